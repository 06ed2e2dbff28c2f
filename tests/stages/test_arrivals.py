"""New results give way first, where the window cannot hold all that stands in it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage import Limits, Session
from ullage.core.contract.kinds import LIMIT_CHARS
from ullage.policy.stages.arrivals import arrivals
from ullage.policy.stages.truncate import DATA_SLACK, SLACK
from ullage.tools.replay.gates import unseen

TOOLS = [
    {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object"}},
    }
    for name in ("Read", "Bash", "ask_user")
]
RULES = "\n".join(
    f"{n}. Never rename a public symbol of module {n} without an entry in the list of changes."
    for n in range(50)
)


def call(id, tool="Read"):
    function = {"name": tool, "arguments": json.dumps({"of": id})}
    return {"id": id, "type": "function", "function": function}


def batch(number, texts, tool="Read"):
    """One reply that makes several calls at once, and what these gave."""
    ids = [f"c{number}_{at}" for at in range(len(texts))]
    said = {
        "role": "assistant",
        "content": f"Step {number}.",
        "tool_calls": [],
    }
    said["tool_calls"] = [call(id, tool) for id in ids]
    results = [
        {"role": "tool", "tool_call_id": id, "content": text}
        for id, text in zip(ids, texts, strict=True)
    ]
    return [said, *results]


def source(name, lines):
    return "\n".join(
        f"{at}\tdef get_{name}_{at}(store, key): return store.lookup_{at}(key)"
        for at in range(lines)
    )


def views(messages, window_tokens, **more):
    """A session that saw the history turn by turn, and each of its views with its messages."""
    limits = Limits(window_tokens=window_tokens)
    session, shown = Session("gpt-4.1", limits=limits, **more), []
    for length in range(1, len(messages) + 1):
        asks = (
            length == len(messages) or messages[length]["role"] == "assistant"
        )
        if asks:
            request = {
                "model": "gpt-4.1",
                "messages": messages[:length],
                "tools": TOOLS,
            }
            shown.append(session.fit(request)["messages"])
    return session, shown


def texts_in(view):
    return "\n".join(str(message["content"]) for message in view)


@pytest.mark.parametrize("lines", [90, 108, 120, 400])
def test_files_read_at_once_leave_the_users_rules_and_the_steps_before(lines):
    """Ten files at once in a window that cannot hold them beside what stands in it."""
    history = [
        {"role": "user", "content": "Rename the field."},
        {"role": "user", "content": RULES},
    ]
    for number in range(12):
        output = "\n".join(
            f"cmd/{number}/file_{at}.go: LastSeenAt" for at in range(40)
        )
        history += batch(number, [output], "Bash")
    history += batch(12, [source(at, lines) for at in range(10)])
    session, shown = views(history, 64_000)
    assert RULES in texts_in(shown[-1])
    assert (
        sum("file_39.go" in str(message["content"]) for message in shown[-1])
        == 12
    )
    assert session.window.estimate <= session.window.limit_tokens
    sizes = [len(message["content"]) for message in shown[-1][-10:]]
    assert max(sizes) < 1.2 * min(sizes)


def test_a_small_window_has_no_room_for_slack():
    """What is little over its limit is whole in a large window, and cut in a small one."""
    text = source("a", int(LIMIT_CHARS["read"] * 1.3) // 62)
    assert LIMIT_CHARS["read"] < len(text) < LIMIT_CHARS["read"] * SLACK
    history = [{"role": "user", "content": "Look."}, *batch(0, [text])]
    session, large = views(history, 200_000)
    assert large[-1][-1] is history[-1]
    session, small = views(history, 32_000)
    assert len(small[-1][-1]["content"]) <= LIMIT_CHARS["read"]
    assert unseen(session) == []


def test_json_has_more_slack_than_text():
    rows = json.dumps(
        [{"id": at, "name": f"harbour {at}"} for at in range(420)]
    )
    text = "the tide came in\n" * (len(rows) // 17)
    limit = LIMIT_CHARS["shell"]
    assert limit * SLACK < len(text) < len(rows) < limit * DATA_SLACK
    history = [
        {"role": "user", "content": "Look."},
        *batch(0, [rows, text], "Bash"),
    ]
    _, shown = views(history, 200_000)
    assert shown[-1][-2] is history[-2]
    assert len(shown[-1][-1]["content"]) <= limit


def test_what_the_user_answers_and_what_was_seen_before_is_no_arrival():
    history = [
        {"role": "user", "content": "Look."},
        *batch(0, ["seen before"]),
    ]
    session, _ = views(history + batch(1, ["new", "new too"]), 64_000)
    texts = [
        session.window.transcript.leaf(spot).text
        for spot in arrivals(session.window)
    ]
    assert texts == ["new", "new too"]
    session, _ = views(
        history + batch(1, ["an answer"], "ask_user"),
        64_000,
        user_tools=["ask_user"],
    )
    assert list(arrivals(session.window)) == []


def test_what_is_decided_of_new_results_stands_for_every_later_view(tmp_path):
    history = [{"role": "user", "content": RULES}]
    for number in range(4):
        history += batch(
            number, [source(f"{number}_{at}", 150) for at in range(6)]
        )
    session, shown = views(history, 32_000, store=tmp_path / "kept.db")
    session.close()
    request = {"model": "gpt-4.1", "messages": history, "tools": TOOLS}
    limits = Limits(window_tokens=32_000)
    with Session(
        "gpt-4.1", limits=limits, store=tmp_path / "kept.db"
    ) as again:
        assert again.fit(request)["messages"] == shown[-1]
    with Session("gpt-4.1", limits=limits) as cold:
        assert cold.fit(request)["messages"] == shown[-1]


turns = st.lists(
    st.tuples(
        st.sampled_from(("user", "answer", "results")),
        st.integers(1, 12),
        st.integers(10, 3_000),
    ),
    min_size=4,
    max_size=24,
)


@given(turns, st.sampled_from((16_000, 24_000, 32_000, 64_000)))
def test_no_word_of_a_users_is_missing_where_half_of_the_room_holds_all(
    turns, window_tokens
):
    history, said = (
        [{"role": "user", "content": "Mend the build."}],
        ["Mend the build."],
    )
    for number, (who, count, size) in enumerate(turns):
        words = (
            f"Rule {number}: "
            + "leave the harbour as it is, whatever comes. " * (size // 44)
        )
        if who == "results":
            history += batch(
                number,
                [source(f"{number}_{at}", size // 4) for at in range(count)],
            )
            continue
        said.append(words.strip())
        if who == "answer":
            history += batch(number, [words], "ask_user")
        else:
            history += [{"role": "assistant", "content": "Go on?"}]
            history += [{"role": "user", "content": words}]
    session, shown = views(history, window_tokens, user_tools=("ask_user",))
    if (
        2 * sum(map(session.window.meter.text, said))
        <= session.window.limit_tokens
    ):
        told = texts_in(shown[-1])
        assert [words[:40] for words in said if words not in told] == []

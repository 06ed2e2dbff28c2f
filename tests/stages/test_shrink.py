"""What of the kept messages is cut, and in which order."""

import pytest

from lab.guard import POLICIES, adds_nothing, rules_kept
from ullage import Limits, Session
from ullage.policy.stages.shrink import LEAST_TOKENS, Tier, shrink
from ullage.tools.replay.gates import unseen

LONG = "one word after another and so on and on "
TASK, NEWEST = f"The task. {LONG * 60}", f"And now? {LONG * 60}"


def bash(id, output):
    function = {"name": "bash", "arguments": "{}"}
    call = {"id": id, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "content": output},
    ]


def fitted(messages, window_tokens):
    session = Session(
        "gpt-4o", limits=Limits(window_tokens=window_tokens), recall=True
    )
    return session.fit({"model": "gpt-4o", "messages": messages})[
        "messages"
    ], session


def test_an_old_result_is_cut_before_what_the_user_says_now():
    messages = [
        {"role": "user", "content": TASK},
        *bash("call_1", LONG * 200),
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": NEWEST},
    ]
    view, session = fitted(messages, 3_200)
    assert view[0] is messages[0]
    assert view[-1] is messages[-1]
    assert session.window.estimate <= session.window.limit_tokens


def test_an_earlier_wish_is_cut_before_the_task_and_the_newest_and_they_go_last():
    messages = [
        {"role": "user", "content": TASK},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": f"A wish. {LONG * 60}"},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": NEWEST},
    ]
    view, _ = fitted(messages, 2_600)
    assert (view[0], view[-1]) == (messages[0], messages[-1])
    assert "A wish." in str(view)
    smaller, session = fitted(messages, 1_200)
    assert session.window.estimate <= session.window.limit_tokens
    assert len(str(smaller[0])) < len(TASK)


def test_a_result_that_is_new_is_whole_while_older_ones_have_room_to_give():
    messages = [
        {"role": "user", "content": "Look."},
        *bash("call_1", "old " + LONG * 80),
    ]
    messages += [
        *bash("call_2", "older " + LONG * 80),
        *bash("call_3", "new " + LONG * 80),
    ]
    view, _ = fitted(messages, 2_200)
    assert view[-1] is messages[-1]
    tight, session = fitted(messages, 1_400)
    assert session.window.estimate <= session.window.limit_tokens
    assert "Look." in str(tight)


def test_what_the_newest_reply_says_stays_while_its_result_is_larger():
    """The model goes on from what it noted there; of the result it can read more."""
    notes = "Note: the clock was wrong, so the cache was stale. " * 8
    call, result = bash("call_2", LONG * 2_000)
    messages = [
        {"role": "user", "content": "The task."},
        *bash("call_1", LONG * 60),
    ]
    view, _ = fitted([*messages, {**call, "content": notes}, result], 1_500)
    assert view[-2]["content"] == notes
    assert len(view[-1]["content"]) > 1_000


TEXTS = {
    "prose": "It may be that the cache is stale, or the clock. " * 20,
    "json": '{"rows": ['
    + ", ".join(f'{{"n": {n}}}' for n in range(60))
    + "]}",
    "base64": "aGVsbG8gd29ybGQ" * 40,
    "no spaces": "名前は猫である。" * 60,
    "colours": "\x1b[31mred\x1b[0m " * 40,
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5"])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_whatever_makes_room_goes_down_to_its_ref_alone(policy, model, text):
    """What stays above it would take room from a result that nobody has read yet."""
    messages = [
        {"role": "user", "content": text},
        *bash("call_1", f"1 {text}"),
    ]
    messages += [
        {"role": "assistant", "content": f"2 {text}"},
        {"role": "user", "content": "Go."},
    ]
    messages += bash("call_2", f"3 {text}")
    session = Session(model, policy=policy, recall=True)
    session.fit({"model": model, "messages": messages})
    window = session.window
    cuts, _ = shrink(window, range(window.size), tuple(Tier), 10**6)
    assert len(cuts) == 4
    assert all(window.edit_tokens(cut.edit) <= LEAST_TOKENS for cut in cuts)
    assert all(cut.edit.ref in cut.edit.text for cut in cuts)


def compacted(olds, text):
    """Behind what a provider compacted one turn, which may not be condensed: one result is new."""
    sealed = {
        "type": "compaction",
        "content": "It fails.",
        "encrypted_content": "c2Vh",
    }
    said = {"type": "text", "text": TEXTS["prose"]}
    uses = [
        {
            "type": "tool_use",
            "id": f"toolu_{n}",
            "name": "read",
            "input": {"n": n},
        }
        for n in range(olds + 1)
    ]
    results = [
        {
            "type": "tool_result",
            "tool_use_id": use["id"],
            "content": f"{use['id']} {text}"[:600],
        }
        for use in uses
    ]
    return [
        {"role": "user", "content": "Look into the failing job."},
        {"role": "assistant", "content": [sealed, said, *uses[:-1]]},
        {"role": "user", "content": results[:-1]},
        {"role": "assistant", "content": [said, uses[-1]]},
        {"role": "user", "content": results[-1:]},
    ]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_near_the_limit_a_new_result_waits_for_nothing_that_could_give_way(
    text,
):
    model, messages, cut = "claude-sonnet-4-5", compacted(16, text), 0
    for window_tokens in range(3_500, 5_800, 100):
        limits = Limits(window_tokens=window_tokens, output_reserve_tokens=0)
        session = Session(model, limits=limits, recall=True)
        session.fit({"model": model, "max_tokens": 100, "messages": messages})
        assert unseen(session) == [], f"in {window_tokens} tokens"
        cut += session.window.edit_at((4, 0, 0)) is not None
    assert cut


@pytest.mark.parametrize("summariser", [None, adds_nothing])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("window_tokens", "least"), [(4_000, 0.90), (8_000, 1.0), (16_000, 1.0)]
)
def test_rules_that_a_user_plants_are_kept_word_for_word(
    policy, window_tokens, least, summariser
):
    assert rules_kept(policy, window_tokens, 1, summariser) >= least


def handed_over(format, lines):
    """The first message of a user: a document of so many lines, and words."""
    text = "".join(f"line {n}: {LONG}\n" for n in range(lines))
    if format == "anthropic":
        source = {"type": "text", "media_type": "text/plain", "data": text}
        document = {"type": "document", "source": source}
        words = {"type": "text", "text": "Mind the fox."}
    else:
        body = {"format": "txt", "name": "Log", "source": {"text": text}}
        document = {"document": body}
        words = {"text": "Mind the fox."}
    return {"role": "user", "content": [document, words]}


def read(format, number, output):
    """A call and its result."""
    id = f"tooluse_{number}"
    if format == "anthropic":
        use = {"type": "tool_use", "id": id, "name": "read", "input": {}}
        result = {"type": "tool_result", "tool_use_id": id, "content": output}
    else:
        use = {"toolUse": {"toolUseId": id, "name": "read", "input": {}}}
        body = {"toolUseId": id, "content": [{"text": output}]}
        result = {"toolResult": body}
    return [
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]


def fitted_to(format, messages, window_tokens):
    models = {
        "anthropic": "claude-sonnet-4-5",
        "bedrock-converse": "anthropic.claude-sonnet-4-5-20250929-v1:0",
    }
    limits = Limits(window_tokens=window_tokens, output_reserve_tokens=0)
    session = Session(
        models[format], format=format, limits=limits, recall=True
    )
    view = session.fit({"messages": messages})
    return view["messages"], session


with_documents = pytest.mark.parametrize(
    "format", ["anthropic", "bedrock-converse"]
)


@with_documents
def test_a_document_of_the_first_message_stays_while_results_have_room(format):
    """Its author is the user, as the table of the wire says."""
    task = handed_over(format, 130)
    messages = [task]
    for number in range(2):
        messages += read(format, number, f"{number} {LONG * 80}")
    view, session = fitted_to(format, messages, 4_000)
    assert view[0]["content"][:2] == task["content"]
    assert session.window.estimate <= session.window.limit_tokens
    assert len(str(view)) < len(str(messages))


@with_documents
def test_a_document_gives_way_before_what_the_user_says(format):
    task = handed_over(format, 400)
    view, session = fitted_to(format, [task], 4_000)
    document, words = view[0]["content"]
    assert words == task["content"][1]
    assert len(str(document)) < len(str(task["content"][0]))
    assert session.window.estimate <= session.window.limit_tokens


@with_documents
def test_a_document_over_half_of_the_limit_makes_room_for_a_new_result(format):
    """Else a model that reads on would see nothing of what it reads."""
    task = handed_over(format, 200)
    messages = [task, *read(format, 1, f"new {LONG * 30}")]
    view, _ = fitted_to(format, messages, 4_000)
    assert view[-1] == messages[-1]
    assert view[0]["content"][1] == task["content"][1]

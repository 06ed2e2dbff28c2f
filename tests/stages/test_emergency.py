from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.histories import CUTS_ALWAYS, Call, Turn, request, wire
from tests.stages.conversations import cases, check
from tests.turn.test_engine import CALL, step
from ullage import Limits, OverLimitError, Session
from ullage.core.values.effects import Commit
from ullage.core.values.usage import Usage
from ullage.policy.stages.default import DEFAULT
from ullage.policy.stages.emergency import emergency, reach
from ullage.tools.replay import reading


@pytest.mark.parametrize(
    "case", cases("emergency"), ids=lambda case: case.title
)
def test_the_conversation_comes_out_as_written(case):
    check(case)


def _played(title):
    return check(
        next(
            case for case in cases("emergency") if case.title.startswith(title)
        )
    )


def test_the_task_and_the_tail_are_the_callers_own_objects():
    played = _played("The middle")
    view, messages = (
        played.view[1:],
        played.messages,
    )  # the system message stands before
    assert view[0] is messages[0]
    assert all(a is b for a, b in zip(view[2:], messages[7:], strict=True))


def test_an_account_is_never_made_from_an_account():
    played = _played("A second emergency")
    condensed = [
        event for event in played.session.events if event.kind == "condensed"
    ]
    assert len(condensed) == 2
    assert str(played.view).count("are condensed here") == 1
    index = reading.follow(played.session, condensed[-1].ref)
    assert "condensed" not in index
    assert all(f"## {number} " in index for number in range(2, 12))


def test_all_the_user_said_stands_in_an_account_where_half_of_the_limit_holds_it():
    rules = [
        f"Rule {n}: " + f"leave harbour {n} as it is, whatever comes. " * 60
        for n in range(14)
    ]
    turns = [Turn(user=rule, calls=(CALL,)) for rule in rules]
    messages = wire("openai-chat", [*turns, *[Turn(calls=(CALL,))] * 5])
    session = Session(
        "gpt-4.1",
        policy=CUTS_ALWAYS,
        limits=Limits(window_tokens=20_000, output_reserve_tokens=0),
    )
    view = session.fit({"model": "gpt-4.1", "messages": messages})["messages"]
    assert any(event.kind == "condensed" for event in session.events)
    held = sum(map(session.window.meter.text, rules))
    assert 0.40 < held / session.window.limit_tokens < 0.50
    shown = "\n".join(str(message["content"]) for message in view)
    assert [rule for rule in rules if rule.strip() not in shown] == []


@given(st.integers(1_200, 20_000), st.integers(1, 300_000))
def test_one_message_of_any_size_is_made_to_fit_and_opens(window, size):
    said = "the tide came in again. " * (size // 24) + "end"
    session = Session(
        "gpt-4.1", limits=Limits(window_tokens=window), recall=True
    )
    request = {
        "model": "gpt-4.1",
        "messages": [{"role": "user", "content": said}],
    }
    shown = session.fit(request)["messages"][0]["content"]
    assert session.window.estimate <= session.window.limit_tokens
    assert (
        shown == said
        or reading.follow(session, session.events[-1].ref) == said
    )


def test_what_may_not_be_touched_and_is_too_large_is_refused_with_its_parts():
    system = {"role": "system", "content": "Never forget this. " * 2_000}
    session = Session(
        "gpt-4.1", policy=CUTS_ALWAYS, limits=Limits(window_tokens=4_000)
    )
    with pytest.raises(
        OverLimitError, match="system text and tools"
    ) as caught:
        session.fit(
            {"messages": [system, {"role": "user", "content": "Hello."}]}
        )
    assert caught.value.need_tokens > caught.value.limit_tokens
    assert next(iter(caught.value.parts)) == "system text and tools"


def loop(
    calls, *, argument="a.py", output="a line of output\n" * 60, signature="s"
):
    """A task, and one signed reply for each call, each with its result."""
    messages = [{"role": "user", "content": "Mend the build."}]
    for number in range(calls):
        id, path = f"toolu_{number}", {"path": f"{argument} {number}"}
        thinking = {
            "type": "thinking",
            "thinking": "I look.",
            "signature": signature,
        }
        call = {"type": "tool_use", "id": id, "name": "read", "input": path}
        result = {
            "type": "tool_result",
            "tool_use_id": id,
            "content": f"{number}: {output}",
        }
        messages.append({"role": "assistant", "content": [thinking, call]})
        messages.append({"role": "user", "content": [result]})
    return messages


def fitted(messages, window_tokens):
    """The view, and the session that made it."""
    session = Session(
        "claude-sonnet-4-5",
        policy=CUTS_ALWAYS,
        limits=Limits(window_tokens=window_tokens),
    )
    request = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 1_000,
        "messages": messages,
    }
    return session.fit(request)["messages"], session


def test_the_newest_messages_stay_whole_where_they_are_small():
    messages, kept = loop(240), []
    _, session = fitted(messages[:1], 12_000)
    for stop in range(3, len(messages) + 1, 2):
        told = len(session.events)
        view = session.fit(
            {"model": "claude-sonnet-4-5", "messages": messages[:stop]}
        )["messages"]
        if any(event.kind == "condensed" for event in session.events[told:]):
            pairs = zip(view[::-1], messages[stop - 1 :: -1], strict=False)
            kept.append(sum(one is other for one, other in pairs))
    assert len(kept) > 1
    assert min(kept) >= 8


def test_arguments_of_a_signed_call_are_never_cut_and_its_results_are():
    messages = loop(
        1, argument="word " * 3_000, output="a line of output\n" * 800
    )
    view, _ = fitted(messages, 8_000)
    assert view[1] is messages[1]
    assert len(str(view[2])) < len(str(messages[2])) / 2


def test_a_newest_turn_that_may_not_be_cut_is_condensed_as_well():
    messages = loop(1, argument="word " * 9_000)
    view, session = fitted(messages, 6_000)
    assert session.window.estimate <= session.window.limit_tokens
    assert messages[1] not in view
    assert len(str(view)) < len(str(messages)) / 10


def test_the_index_of_what_is_condensed_is_kept_with_the_batch():
    effects, turned = step(
        wire("openai-chat", [Turn(calls=(CALL,))] * 120), window=6_000
    )
    *_, newest = (
        event.ref for event in turned.events if event.kind == "condensed"
    )
    kept = {
        output.ref
        for each in effects
        if isinstance(each, Commit)
        for output in each.outputs
    }
    assert newest in kept


def test_a_view_made_anew_fits_though_what_was_reported_so_far_is_gone():
    """Prose costs this provider four fifths of our estimate, and the tables that come then all."""
    session, billed = (
        Session(
            "claude-sonnet-4-5",
            policy=CUTS_ALWAYS,
            limits=Limits(window_tokens=16_000),
        ),
        [],
    )
    prose = ["the tide came in again. " * 1_000] * 2
    tables = [
        "\n".join(f"{at}: {n} {n * n}" for n in range(890)) for at in "ab"
    ]
    read = replace(CALL, tool="read_file")
    turns = [Turn(calls=[replace(read, output=text)]) for text in prose]
    turns.append(Turn(calls=[replace(read, output=text) for text in tables]))
    messages = wire("anthropic", turns)
    for length in range(1, len(messages) + 1, 2):
        request = {"model": "claude-sonnet-4-5", "messages": messages[:length]}
        session.fit(request)
        window = session.window
        counts = {at: window.message_tokens(at) for at in window.visible}
        costs = (
            count * (0.78 if at <= 4 else 1) for at, count in counts.items()
        )
        billed.append(round(sum(costs)) + window.summaries_tokens)
        session.observe(Usage(fresh_tokens=billed[-1]))
    assert max(billed) <= session.window.limit_tokens


def small_window_views(policy, count=170):
    """The views of a long conversation in 16,000 tokens, each with the kinds that it shows."""
    session = Session(
        "gpt-4.1",
        policy=policy,
        limits=Limits(window_tokens=16_000),
        recall=True,
    )
    calls = [
        Call("read_file", f"berth_{number}.py", berth(number))
        for number in range(count)
    ]
    turns = [Turn(calls=(call,)) for call in calls]
    messages = wire("openai-chat", turns)
    for index in range(1, len(messages), 2):
        session.fit(request("openai-chat", messages[: index + 1]))
        yield [placed.edit.kind for placed in session.window.summaries]


def berth(number):
    """A file of 1,300 characters with a name of its own on every line."""
    return "\n".join(
        f"def berth_{number}_{at}(hull): return {at} + hull.draught"
        for at in range(24)
    )


def test_what_fits_of_records_stays_behind_an_account():
    """An account has no line of a result, and a record those that tell most."""
    ten = replace(
        DEFAULT, guard=partial(emergency, user_share=0.67, keep_messages=10)
    )
    shares = []
    for policy in (ten, DEFAULT):
        views = list(small_window_views(policy))
        condensed = [kinds for kinds in views if "condensed" in kinds]
        assert len(condensed) > 10, "the limit was near"
        both = [kinds for kinds in condensed if "pruned" in kinds]
        shares.append(len(both) / len(condensed))
    assert shares[0] < shares[1]


def step_of_log(n):
    """A call and what it gave, on the wire of Responses."""
    asked = {
        "type": "function_call",
        "call_id": f"call_{n}",
        "name": "read_log",
        "arguments": f'{{"day": {n}}}',
    }
    answered = {
        "type": "function_call_output",
        "call_id": f"call_{n}",
        "output": f"day {n}: " + "wind south, anchor down; " * 200,
    }
    return [asked, answered]


def test_a_range_begins_behind_the_reply_of_a_compaction():
    """Behind an account, a provider compacted in mid-reply: the call of that reply stays."""
    history = [{"role": "user", "content": "Find out why the boat drifts."}]
    for n in range(4):
        history += step_of_log(n)
    limits = Limits(window_tokens=4_000, output_reserve_tokens=0)
    session = Session(
        "gpt-5.6",
        format="openai-responses",
        policy=replace(DEFAULT, under_pressure=()),
        limits=limits,
    )
    session.fit({"model": "gpt-5.6", "input": history})
    assert [placed.edit.kind for placed in session.window.summaries] == [
        "condensed"
    ]
    compacted = len(history)
    history.append({"type": "compaction", "encrypted_content": "c2VhbGVk"})
    history += step_of_log(4)
    history += step_of_log(5)
    session.fit({"model": "gpt-5.6", "input": history})
    start, stop = reach(session.window)
    assert (start, stop) == (compacted + 3, len(history))
    assert session.window.transcript.may_split(start)

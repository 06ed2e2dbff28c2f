"""What changes at an old place is new: it is seen whole once, and is then as old as its change.

A result that was pending is replaced in place, an answer is moved back to its call, a user edits an
old message. Every worker shows the same, and a worker that comes later as well.
"""

import json

import pytest

from tests import histories
from tests.histories import CUTS_ALWAYS, EAGER, PRUNING, Call, Turn
from tests.second_reading import broken
from ullage import Limits, MemoryStore, Session, problems
from ullage.core.values.notices import pointers
from ullage.documents import NAMES
from ullage.wires import FORMATS

WIRES = ("anthropic", "openai-chat", "openai-responses", "gemini")
every_wire = pytest.mark.parametrize("format", WIRES)
LIMITS = Limits(window_tokens=16_000, output_reserve_tokens=1_000)
OUTPUT = "\n".join(
    f"row {n}: the lamp of harbour {n} burns" for n in range(160)
)
PENDING = json.dumps({"status": "pending"})
ANSWER = (
    "approved by the harbour master"
    + ", if the lamps burn" * 20
    + ", code XYZ-4711"
)
"""Too long to stand in a record word for word."""
AT, TURNS = 2, 24
"""The call that is answered late stands in this turn, and there are so many before the answer."""


def history(format, turns, answer=PENDING, other=PENDING, task=None):
    """Turns of work; two calls in it wait for a human, and have an answer each."""
    work = [
        Turn(
            said=f"Step {n}.", calls=(Call("bash", f"{n}", f"{n}\n{OUTPUT}"),)
        )
        for n in range(turns)
    ]
    for at, text in ((AT, answer), (AT + 6, other)):
        if at < turns:
            work[at] = Turn(
                said=f"Step {at}.", calls=(Call("ask", f"{at}", f"{text}"),)
            )
    if task is not None:
        work[AT + 1] = Turn(user=task, said="I see.", calls=work[AT + 1].calls)
    return histories.wire(format, work)


def request(format, messages):
    return histories.request(format, messages)


def opened(format, store, policy="default", **more):
    more = {"recall": True, "limits": LIMITS, **more}
    return Session(histories.MODEL[format], policy=policy, store=store, **more)


def walked(session, format, turns, start=1, **more):
    """The last view of a session that sees every request on the way."""
    for number in range(start, turns + 1):
        view = session.fit(request(format, history(format, number, **more)))
        assert problems(view) == []
        assert broken(format, view) == set()
    return view


def shown(format, view):
    return str(view[FORMATS[format].key])


POLICIES = [*NAMES, EAGER, PRUNING, CUTS_ALWAYS]


@every_wire
@pytest.mark.parametrize(
    "policy", POLICIES, ids=lambda it: getattr(it, "name", it)
)
def test_an_answer_in_place_of_a_pending_result_is_seen_and_stays_for_the_next_turns(
    format, policy
):
    store = MemoryStore()
    session = opened(format, store, policy)
    assert ANSWER not in shown(format, walked(session, format, TURNS))
    for turns in (TURNS, TURNS + 1, TURNS + 2):
        view = walked(session, format, turns, start=turns, answer=ANSWER)
        is_there = turns == TURNS or f"'{TURNS - 1}\\nrow" in shown(
            format, view
        )
        assert ANSWER in shown(format, view) or not is_there, (
            "as long as what came with it"
        )
        other = opened(format, store, policy)
        again = other.fit(
            request(format, history(format, turns, answer=ANSWER))
        )
        assert again == view, "another worker shows the same"


@every_wire
def test_it_is_as_old_as_its_change_then_and_leaves_with_what_came_when_it_did(
    format,
):
    large = f"{ANSWER}\n{OUTPUT}"
    last = "row 159:"
    session = opened(format, store := MemoryStore())
    walked(session, format, TURNS)
    view = walked(session, format, TURNS, start=TURNS, answer=large)
    assert (
        shown(format, view).count(last)
        == shown(format, view).count("row 0:")
        > 1
    )
    late = TURNS + 30
    view = walked(session, format, late, start=TURNS + 1, answer=large)
    assert (
        ANSWER not in shown(format, view)
        or shown(format, view).count(ANSWER) == 1
    )
    assert f"{ANSWER}\\nrow 0" not in shown(format, view), "by now it has left"
    cold = opened(format, store)
    assert (
        cold.fit(request(format, history(format, late, answer=large))) == view
    )
    texts = [
        opened_by(session, each.ref) for each in pointers(shown(format, view))
    ]
    refs = [each.ref for text in texts for each in pointers(text)]
    texts += [opened_by(session, ref) for ref in refs]
    assert any(text.startswith(ANSWER) for text in texts), "and it opens"


def opened_by(session, ref):
    """The first page of what a ref opens."""
    return session.answer("get_continuation", {"tool_call_id": ref}).text


@every_wire
def test_a_worker_that_never_saw_it_pending_learns_of_the_change_from_the_ledger(
    format,
):
    first = opened(format, store := MemoryStore())
    walked(first, format, TURNS)
    second = opened(format, store)
    messages = history(format, TURNS, answer=ANSWER)
    view = second.fit(request(format, messages))
    assert ANSWER in shown(format, view)
    assert first.fit(request(format, messages)) == view
    later = history(format, TURNS + 1, answer=ANSWER)
    third = opened(format, store)
    view = third.fit(request(format, later))
    assert ANSWER in shown(format, view)
    assert (
        first.fit(request(format, later))
        == second.fit(request(format, later))
        == view
    )


@every_wire
def test_an_answer_that_was_known_stays_young_when_another_one_comes_before_it(
    format,
):
    session = opened(format, store := MemoryStore())
    walked(session, format, TURNS)
    walked(session, format, TURNS, start=TURNS, other=ANSWER)
    both = {"answer": f"refused: {ANSWER}", "other": ANSWER}
    view = walked(session, format, TURNS + 1, start=TURNS + 1, **both)
    assert shown(format, view).count(ANSWER) == 2
    cold = opened(format, store)
    assert (
        cold.fit(request(format, history(format, TURNS + 1, **both))) == view
    )


@every_wire
def test_an_old_message_of_the_users_that_was_edited_is_seen(format):
    session = opened(format, MemoryStore(), PRUNING)
    walked(session, format, TURNS, start=AT + 2, task="Look at pier 3.")
    view = walked(
        session, format, TURNS, start=TURNS, task="Look at pier 9 instead."
    )
    assert "pier 9" in shown(format, view)
    assert "pier 3" not in shown(format, view)


def test_an_answer_that_a_framework_moves_to_its_call_is_seen_in_the_turn_after_too():
    """At once it stands in a short history; then where its call is, with all that came between."""
    session = opened("gemini", store := MemoryStore())
    walked(session, "gemini", TURNS)
    whole = history("gemini", TURNS, answer=ANSWER)
    ask = next(
        at for at, content in enumerate(whole) if ANSWER in str(content)
    )
    short = [whole[0], *whole[ask - 1 : ask + 1]]
    assert ANSWER in shown("gemini", session.fit(request("gemini", short)))
    said = [*whole, {"role": "model", "parts": [{"text": "ok"}]}]
    asked = [
        *said,
        {"role": "user", "parts": [{"text": "What did they say?"}]},
    ]
    view = session.fit(request("gemini", asked))
    assert ANSWER in shown("gemini", view)
    assert opened("gemini", store).fit(request("gemini", asked)) == view


def test_what_a_client_takes_out_of_its_history_is_no_news():
    """The same line in place of many old results holds nothing back from a batch."""
    cleared = "[Old tool result content cleared]"
    session = opened("openai-chat", MemoryStore(), EAGER)
    walked(session, "openai-chat", TURNS)
    messages = history("openai-chat", TURNS + 20)
    for message in messages[: len(messages) // 2]:
        if message["role"] == "tool":
            message["content"] = cleared
    view = session.fit(request("openai-chat", messages))
    assert not session.window.arrived
    assert len(view["messages"]) < len(messages)


def test_a_branch_and_a_rewound_history_hold_nothing_new():
    session = opened("openai-chat", MemoryStore())
    walked(session, "openai-chat", TURNS)
    messages = history("openai-chat", TURNS)
    branch = [*messages[:20], {"role": "user", "content": "Something else."}]
    session.fit(request("openai-chat", branch))
    assert not session.window.arrived
    said = [
        {"role": "assistant", "content": "Well."},
        {"role": "user", "content": "And?"},
    ]
    session.fit(request("openai-chat", [*branch, *said]))
    assert not session.window.arrived
    session.fit(request("openai-chat", messages))
    assert not session.window.arrived


def test_much_that_changed_at_once_makes_way_rather_than_stop_the_conversation():
    """More than the window holds: it is cut as what is newest is."""
    session = opened("openai-chat", store := MemoryStore())
    walked(session, "openai-chat", TURNS)
    messages = history("openai-chat", TURNS)
    for number, message in enumerate(messages):
        if message["role"] == "tool":
            message["content"] = f"anew {number}\n{OUTPUT}"
    view = session.fit(request("openai-chat", messages))
    assert problems(view) == []
    assert session.window.within(session.window.limit_tokens, surely=True)
    assert (
        opened("openai-chat", store).fit(request("openai-chat", messages))
        == view
    )


def test_a_state_of_its_own_tells_of_changes_as_a_store_does():
    session = opened("openai-chat", MemoryStore())
    walked(session, "openai-chat", TURNS)
    messages = history("openai-chat", TURNS, answer=ANSWER)
    other = opened("openai-chat", MemoryStore(), state=session.state)
    view = other.fit(request("openai-chat", messages))
    assert ANSWER in shown("openai-chat", view)
    assert session.fit(request("openai-chat", messages)) == view


def test_a_change_cuts_no_result_behind_it_that_the_model_could_not_open():
    """Each request forces a tool, so what was whole behind the change stays whole."""
    function = {"name": "bash", "parameters": {"type": "object"}}
    more = {
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": "bash"}},
    }
    session = Session(
        "gpt-4.1", limits=Limits(window_tokens=100_000), recall=True
    )

    def step(number, text):
        call = {"id": f"c{number}", "type": "function"}
        call["function"] = {"name": "bash", "arguments": "{}"}
        return [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": text},
        ]

    def fit(messages):
        return session.fit({"messages": messages, **more})["messages"]

    rows = "row\n" * 4_000
    before = [{"role": "user", "content": "go"}, *step(0, "pending")]
    fit(before)
    fit([*before, *step(1, rows)])
    after = [*before[:2], {**before[2], "content": "done"}]
    for number in (2, 3):
        after += (
            [*step(1, rows), *step(number, "ok")]
            if number == 2
            else step(3, "ok")
        )
        view = fit(after)
        assert view[2]["content"] == "done"
        assert view[4]["content"] == rows

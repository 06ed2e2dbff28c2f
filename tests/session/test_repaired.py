"""A session that mends: through the turn, the store and recall."""

import asyncio
import copy

import pytest

import ullage
from lab import reading
from lab.returned import problems
from tests import histories
from tests.wires.test_repair import speaks
from ullage import AsyncSession, Limits, Session
from ullage.core.history.pairing import INTERRUPTED
from ullage.core.values.notices import pointers
from ullage.wires.repair.base import MOVED

MODEL = histories.MODEL
ALL = sorted(MODEL)
OUT = "caf\u00e9 \u732b \ud800 \x00\r\n" * 50
LOG = "".join(f"{n:05} the tide came in\n" for n in range(3_000))


def calls(count, output):
    turn = histories.Turn(
        calls=(histories.Call("bash", "a", output),), said="Let me look."
    )
    return [turn] * count


def broken(format, *, lose, output=LOG):
    """Six calls without the results of some; where those stood; and those results."""
    whole = histories.wire(format, calls(6, output))
    places = [
        at
        for at, message in enumerate(whole)
        if list(reading.results(message))
    ]
    lost = {places[n]: whole[places[n]] for n in lose}
    return (
        [m for at, m in enumerate(whole) if at not in lost],
        list(lost),
        list(lost.values()),
    )


def shown(view):
    return next(
        view[key] for key in ("contents", "input", "messages") if key in view
    )


def said(format, text):
    """The model says something."""
    content = histories.user(format, text)
    return {**content, "role": "model" if format == "gemini" else "assistant"}


def begins_reply(messages, at):
    return speaks(messages[at]) and not speaks(messages[at - 1])


def request(format, messages):
    return histories.request(format, messages)


@pytest.mark.parametrize("format", ALL)
def test_an_interrupted_history_is_mended_and_a_late_result_takes_its_place(
    format,
):
    messages, (place,), (late,) = broken(format, lose=[3])
    session = Session(MODEL[format], repair=True, recall=True)
    assert problems(format, request(format, messages))
    view = session.fit(request(format, messages))
    assert problems(format, view) == []
    assert INTERRUPTED in str(shown(view)[place])
    assert session.fit(request(format, messages)) == view, (
        "the same bytes again"
    )
    view = session.fit(
        request(format, [*messages, said(format, "I go on."), late])
    )
    assert problems(format, view) == []
    assert INTERRUPTED not in str(view)
    assert "the tide came in" in str(shown(view)[place])
    assert MOVED in str(shown(view)[-1])
    told = [event.why for event in session.events if event.kind == "repaired"]
    assert told == ["a call had no result", "a result came late"]


@pytest.mark.parametrize("format", ALL)
def test_a_warm_session_and_a_cold_one_see_the_same(format):
    messages, _, _ = broken(format, lose=[2, 5])
    limits = Limits(window_tokens=8_000)
    warm = Session(MODEL[format], limits=limits, recall=True, repair=True)
    for length in range(1, len(messages) + 1):
        if length == len(messages) or begins_reply(messages, length):
            view = warm.fit(request(format, messages[:length]))
            assert problems(format, view) == []
            cold = Session(
                MODEL[format], limits=limits, recall=True, repair=True
            )
            assert cold.fit(request(format, messages[:length])) == view

    async def fit_async():
        session = AsyncSession(
            MODEL[format], limits=limits, recall=True, repair=True
        )
        return await session.fit(request(format, messages))

    assert asyncio.run(fit_async()) == view
    told = [event for event in warm.events if event.kind == "repaired"]
    assert len(told) == len(set(told)) == 2, "each thing once"


@pytest.mark.parametrize("format", ALL)
@pytest.mark.parametrize("output", [OUT, LOG], ids=["odd", "long"])
def test_what_an_orphan_said_is_read_back_byte_for_byte(format, output):
    messages = histories.wire(format, calls(2, output))
    first = next(
        at
        for at, message in enumerate(messages)
        if list(reading.results(message))
    )
    del messages[first - 1]  # its call
    session = Session(MODEL[format], repair=True, recall=True)
    for _ in range(2):
        view = session.fit(request(format, messages))
        assert problems(format, view) == []
        (ref,) = {
            p.ref
            for text in reading.visible(shown(view)[: first + 1])
            for p in pointers(text)
        }
        assert reading.follow(session, ref) == output
    session.store.close()
    session.store = ullage.MemoryStore()
    assert reading.follow(session, ref) == output, (
        "the history at hand still holds it"
    )


@pytest.mark.parametrize("format", ALL)
def test_nothing_is_changed_that_is_not_broken(format):
    messages, _, _ = broken(format, lose=[3])
    before = copy.deepcopy(messages)
    view = ullage.fit(request(format, messages), repair=True, recall=False)
    assert messages == before
    mine = {id(message) for message in messages}
    assert sum(id(message) in mine for message in shown(view)) >= 5


@pytest.mark.parametrize("format", ALL)
def test_repair_is_off_unless_asked_for(format):
    messages, _, _ = broken(format, lose=[3])
    session = Session(MODEL[format])
    assert problems(format, session.fit(request(format, messages)))
    assert {event.kind for event in session.events} & {"repaired"} == set()


def test_a_mended_request_goes_to_another_process_as_it_is():
    messages, _, _ = broken("anthropic", lose=[3])
    store = ullage.MemoryStore()
    settings = {"store": store, "repair": True, "recall": True}
    one, two = (Session("claude-sonnet-4-5", **settings) for _ in range(2))
    view = one.fit(request("anthropic", messages))
    assert pointers(str(view)), "what was large is cut too"
    assert two.fit(request("anthropic", messages)) == view


def thinking(number):
    return {"type": "thinking", "thinking": "hm", "signature": f"c2ln{number}"}


@pytest.mark.parametrize(
    ("model", "kept"), [("claude-fable-5-2", 2), ("claude-sonnet-4-5", 3)]
)
def test_reasoning_bound_to_our_own_result_goes_when_the_late_one_comes(
    model, kept
):
    messages, _, (late,) = broken("anthropic", lose=[3], output="ok")
    for number in (3, 8):
        messages[number]["content"].insert(0, thinking(number))
    answer = {
        "role": "assistant",
        "content": [thinking(9), {"type": "text", "text": "I see."}],
    }
    # message 5 calls and is answered at the end: what 8 thought is bound to our own result
    session = Session(model, repair=True)
    early = session.fit({**request("anthropic", messages), "model": model})
    assert str(early).count("c2ln") == 2
    later = [*messages, late, answer, {"role": "user", "content": "go on"}]
    for _ in range(2):
        view = session.fit({**request("anthropic", later), "model": model})
        assert str(view).count("c2ln") == kept
        assert problems("anthropic", view) == []
    told = [
        event.where for event in session.events if event.kind == "reasoning"
    ]
    assert len(told) == 3 - kept

"""A user decides through a session, on every wire: the next view follows, everywhere the same."""

import asyncio
import json
import re
from itertools import pairwise

import pytest

from tests import histories
from tests.histories import Call, Turn
from tests.world import as_bytes
from ullage import (
    AsyncSession,
    ConfigError,
    Limits,
    MemoryStore,
    RefNotFound,
    Session,
)
from ullage.core.history.hand import name_of
from ullage.session.decisions.deciding import DecisionMixin
from ullage.session.decisions.targets import batches_in
from ullage.wires import FORMATS
from ullage.wires.rules.checker import problems_of

WIRES = ("anthropic", "openai-chat", "openai-responses", "gemini")
MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "openai-chat": "gpt-4.1",
    "openai-responses": "gpt-5.6",
    "gemini": "gemini-2.5-pro",
}
ANSWER = {"role": "assistant", "content": "It is in line 3."}
ASKED = {"role": "user", "content": "Mend it."}
SMALL = Limits(window_tokens=12_000)
TURNS = [
    Turn(calls=(Call("bash", "a.py", f"line {n} of it\n" * 400),))
    for n in range(12)
]


def new_session(wire, **more):
    return Session(
        MODELS[wire], limits=SMALL, format=wire, recall=True, **more
    )


def messages_of(wire, turns=12):
    return histories.wire(wire, TURNS[:turns])


def fit(session, wire, messages):
    """A legal view of a history."""
    view = session.fit(histories.request(wire, list(messages)))
    assert problems_of(wire, view[FORMATS[wire].key]) == []
    assert session.window.estimate <= session.window.limit_tokens
    return view


def shown(view):
    return as_bytes(view[view.wire.key])


def gone(session):
    """The names of messages with a result that is not shown whole, the oldest first."""
    window = session.window
    messages = window.transcript.messages
    return [
        f"m{index + 1}"
        for index in range(window.size)
        if messages[index].results
        and (window.hidden(index) or window.shown(index))
    ]


def results(session, name):
    message = session.window.transcript.messages[int(name[1:]) - 1]
    return [item.text for part in message.results for item in part.content]


def pressed(wire, **more):
    """A session under pressure, its history, and its newest view."""
    session, messages = new_session(wire, **more), messages_of(wire)
    for length in range(1, len(messages) + 1):
        if FORMATS[wire].parse(messages[length - 1], "").role != "assistant":
            view = fit(session, wire, messages[:length])
    assert len(gone(session)) > 3
    return session, messages, view


@pytest.mark.parametrize("wire", WIRES)
def test_what_is_pinned_comes_back_whole_and_stays(wire):
    session, messages, view = pressed(wire)
    name = gone(session)[0]
    (text,) = results(session, name)
    assert json.dumps(text)[1:-1] not in shown(view)
    pinned = session.pin(name, reason="the rules", author="ann")
    view = fit(session, wire, messages)
    assert json.dumps(text)[1:-1] in shown(view)
    assert "decided" in {event.kind for event in view.events}
    more = [*messages, *histories.wire(wire, TURNS[:4], start=50)]
    assert json.dumps(text)[1:-1] in shown(fit(session, wire, more))
    (one,) = session.decisions
    assert (one.name, one.decision.reason, one.decision.author) == (
        pinned,
        "the rules",
        "ann",
    )


@pytest.mark.parametrize("wire", WIRES)
def test_an_undo_of_an_undo_is_the_view_before_it(wire):
    session, messages, before = pressed(wire)
    session.note("Never touch main.")
    noted = fit(session, wire, messages)
    assert "Never touch main." in shown(noted)
    undone = session.undo()
    assert shown(fit(session, wire, messages)) == shown(before)
    session.undo(undone)
    assert shown(fit(session, wire, messages)) == shown(noted)


@pytest.mark.parametrize("wire", WIRES)
def test_a_batch_is_taken_back_as_far_as_there_is_room(wire):
    session, messages, view = pressed(wire)
    tokens = session.window.tokens
    session.undo()
    again = fit(session, wire, messages)
    assert session.window.tokens > tokens or shown(again) != shown(view)


@pytest.mark.parametrize("wire", WIRES)
def test_what_is_dropped_leaves_now_and_opens_still(wire):
    session, messages, view = pressed(wire)
    window = session.window
    index = max(
        at
        for at in range(window.size)
        if window.transcript.messages[at].results
    )
    (text,) = results(session, f"m{index + 1}")
    session.drop(f"m{index + 1}", reason="wrong file")
    view = fit(session, wire, messages)
    assert "taken out by the user" in shown(view)
    ref = next(event.ref for event in view.events if event.kind == "pruned")
    assert session.store.get("", ref).text == text


@pytest.mark.parametrize("wire", WIRES)
def test_pinned_lines_stand_in_what_is_shown_of_a_result(wire):
    session, messages, _ = pressed(wire)
    name = gone(session)[0]
    session.pin(name, lines=(10, 12))
    view = fit(session, wire, messages)
    assert "lines 10 to 12, pinned by the user" in shown(view)
    assert len(gone(session)) > 3


@pytest.mark.parametrize("when", ["batch", "end", "now"])
def test_what_left_comes_back_when_it_is_asked_for(when):
    session, messages, view = pressed("anthropic")
    name = gone(session)[-1]
    (text,) = results(session, name)
    wanted = json.dumps(text)[1:-1]
    session.restore(name, when=when)
    view = fit(session, "anthropic", messages)
    assert (wanted in shown(view)) is (when != "batch")
    if when == "end":
        assert wanted in as_bytes(view["messages"][-1])
    if when == "batch":  # it waits for the next batch
        assert [one.carried_out for one in session.decisions] == [()]
        more = [*messages, *histories.wire("anthropic", TURNS[:8], start=50)]
        for length in range(len(messages), len(more) + 1):
            if more[length - 1]["role"] == "user":
                fit(session, "anthropic", more[:length])
        assert [bool(one.carried_out) for one in session.decisions] == [True]


@pytest.mark.parametrize("wire", WIRES)
def test_every_worker_and_a_restart_show_the_same(wire, tmp_path):
    session, messages, _ = pressed(wire, store=tmp_path / "store.db")
    other = new_session(wire, store=tmp_path / "store.db")
    fit(other, wire, messages)
    session.pin(gone(session)[0])
    session.note("Never touch main.")
    views = {shown(fit(one, wire, messages)) for one in (other, session)}
    cold = new_session(wire, store=tmp_path / "store.db")
    views.add(shown(fit(cold, wire, messages)))
    assert len(views) == 1
    assert cold.decisions == other.decisions == session.decisions
    assert len(cold.decisions) == 2
    other.undo()
    assert (
        len(
            {shown(fit(one, wire, messages)) for one in (session, other, cold)}
        )
        == 1
    )
    for one in (session, other, cold):
        one.close()


def test_a_decision_is_carried_in_a_hosts_own_state():
    session, messages, _ = pressed("anthropic")
    session.news()
    session.pin(gone(session)[0])
    view = fit(session, "anthropic", messages)
    other = new_session("anthropic", state=session.state)
    assert shown(fit(other, "anthropic", messages)) == shown(view)
    assert {record.kind for record in session.news()} >= {"decision", "batch"}


def test_two_users_decide_at_one_place():
    store = MemoryStore()
    ann, messages, _ = pressed("anthropic", store=store)
    bob = new_session("anthropic", store=store)
    fit(bob, "anthropic", messages)
    names = {
        ann.note("from ann"),
        bob.note("from bob"),
        ann.note("from ann again"),
    }
    view = fit(bob, "anthropic", messages)
    assert len(names) == 3
    assert {one.name for one in bob.decisions} == names
    assert all(
        text in shown(view)
        for text in ("from ann", "from bob", "from ann again")
    )
    assert shown(fit(ann, "anthropic", messages)) == shown(view)


def test_a_branch_has_the_decisions_that_were_made_before_it():
    session, messages, _ = pressed("anthropic")
    session.note("Never touch main.")
    fit(session, "anthropic", messages)
    fork = [*messages, *histories.wire("anthropic", TURNS[:1], start=70)]
    assert "Never touch main." in shown(fit(session, "anthropic", fork))
    assert "Never touch main." not in shown(
        fit(session, "anthropic", messages[:-4])
    )


@pytest.mark.parametrize("wire", WIRES)
def test_a_branch_that_set_it_aside_before_shows_it_again(wire):
    """The pin is made on the other branch, at a place that both have."""
    session, messages, _ = pressed(wire)
    name = gone(session)[-1]
    (text,) = results(session, name)
    wanted = json.dumps(text)[1:-1]
    trunk = messages[: int(name[1:])]
    view = fit(session, wire, trunk)
    assert wanted in shown(view)
    session.pin(name)
    fit(session, wire, trunk)
    view = fit(session, wire, messages)
    assert wanted in shown(view)
    assert shown(fit(session, wire, messages)) == shown(view)


@pytest.mark.parametrize("wire", WIRES)
def test_of_two_pins_on_it_the_other_keeps_it(wire):
    session, messages, _ = pressed(wire)
    name = gone(session)[0]
    (text,) = results(session, name)
    wanted = json.dumps(text)[1:-1]
    first = session.pin(name)
    fit(session, wire, messages)
    second = session.pin(f"{name}.1")
    fit(session, wire, messages)
    session.undo(first)
    assert wanted in shown(fit(session, wire, messages))
    session.undo(second)
    assert wanted not in shown(fit(session, wire, messages))


def test_a_reply_and_a_call_that_are_pinned_do_not_stand_side_by_side():
    """Gemini has no place for a call behind a reply (G4): what the user said comes along."""
    turns = [Turn(said="I know why.", user="Why?"), *TURNS]
    messages = histories.wire("gemini", turns)
    messages[3]["parts"].insert(0, {"text": "Read on then."})
    session = new_session("gemini")
    fit(session, "gemini", messages)
    session.compact(histories.request("gemini", messages))
    fit(session, "gemini", messages)
    assert session.window.hidden(2)
    session.pin("m3")
    session.pin("m8")
    view = fit(session, "gemini", messages)
    roles = [message["role"] for message in view["contents"]]
    assert "I know why." in shown(view)
    assert ("model", "model") not in {*pairwise(roles)}


def test_of_a_pinned_message_one_text_may_be_dropped():
    session, messages, _ = pressed("anthropic")
    turn = Turn(
        calls=(Call("bash", "b.py", "one\n"), Call("bash", "c.py", "two\n"))
    )
    messages += histories.wire("anthropic", [turn], start=50)
    fit(session, "anthropic", messages)
    name = f"m{len(messages)}"
    session.pin(name)
    session.drop(f"{name}.1")
    fit(session, "anthropic", messages)
    pins, index = session.window.pins, len(messages) - 1
    assert not pins.covers((index, 0, 0))
    assert pins.covers((index, 1, 0))


@pytest.mark.parametrize("wire", WIRES)
def test_where_an_undo_does_not_fit_what_is_pinned_stays(wire):
    session, messages, _ = pressed(wire)
    name = gone(session)[0]
    (text,) = results(session, name)
    wanted = json.dumps(text)[1:-1]
    session.pin(name)
    fit(session, wire, messages)
    ledger = session.state.ledger
    for handle, batch in batches_in(session.window.transcript, ledger):
        if batch.edits and not batch.decision:
            session.undo(name_of(handle))
    view = fit(session, wire, messages)
    assert wanted in shown(view)
    assert shown(fit(session, wire, messages)) == shown(view)


LONG = [
    Turn(calls=(Call("bash", f"{n}", f"line {n} of it is long\n" * 900),))
    for n in range(24)
]


def told_missing(view, kind):
    """The messages that an undo is told not to have brought back, and the reason."""
    for event in view.events:
        places, _, why = event.why.partition(" not whole: ")
        if event.kind == kind and why:
            messages = set()
            for run in re.findall(r"(\d+)(?: to (\d+))?", places):
                start, end = int(run[0]), int(run[1] or run[0])
                messages |= set(range(start, end + 1))
            return messages, why
    raise AssertionError(f"nothing of the kind in {view.events}")


def is_back(session, message):
    """Whether a message is shown as it was first: on arrival its results were cut."""
    window = session.window
    edits = window.shown(message - 1).values()
    return not window.hidden(message - 1) and all(
        edit.kind == "truncated" for edit in edits
    )


@pytest.mark.parametrize("wire", WIRES)
def test_an_undo_that_does_not_fit_brings_back_what_does_and_tells_the_rest(
    wire,
):
    session = Session(
        MODELS[wire],
        limits=Limits(window_tokens=20_000),
        format=wire,
        recall=True,
    )
    messages = histories.wire(wire, LONG)
    for length in range(1, len(messages) + 1):
        if FORMATS[wire].parse(messages[length - 1], "").role != "assistant":
            before = fit(session, wire, messages[:length])
    entries = list(batches_in(session.window.transcript, session.state.ledger))
    undos, out = [], set(map(number, gone(session)))
    for handle, batch in entries:  # the newest first
        if not batch.edits:
            continue
        undos.append(session.undo(name_of(handle)))
        view = fit(session, wire, messages)
        if "overruled" in {event.kind for event in view.events}:
            break
    missing, why = told_missing(view, "overruled")
    assert "hard limit of" in why
    assert missing
    assert not any(is_back(session, message) for message in missing)
    back = {message for message in out if is_back(session, message)}
    assert back, "what fits is whole"
    assert max(missing) < max(back), "the oldest are given up first"
    assert f"Undo {undos[-1]}, or use a model with a larger window" in why
    assert shown(fit(session, wire, messages)) == shown(view)
    for undo in reversed(undos):
        session.undo(undo)
        view = fit(session, wire, messages)
    assert shown(view) == shown(before)


def number(name):
    return int(name[1:].partition(".")[0])


def test_what_a_later_batch_holds_is_told_with_its_name():
    session, messages, view = pressed("anthropic")
    batches = batches_in(session.window.transcript, session.state.ledger)
    *_, handle = [handle for handle, batch in batches if batch.edits]
    dropped = session.drop(gone(session)[0])
    fit(session, "anthropic", messages)
    session.undo(name_of(handle))
    view = fit(session, "anthropic", messages)
    missing, why = told_missing(view, "held")
    assert missing
    assert f"{dropped} takes them out; undo it as well" in why


def test_what_the_guard_took_is_not_tried_again_at_every_turn():
    session, messages, _ = pressed("anthropic")
    for name in gone(session):
        session.pin(name)
    view = fit(session, "anthropic", messages)
    assert "overruled" in {event.kind for event in view.events}
    for _ in range(2):
        again = fit(session, "anthropic", messages)
        assert again.events == ()
        assert shown(again) == shown(view)


def test_where_a_pin_cannot_be_kept_an_event_says_so():
    session, messages, _ = pressed("anthropic")
    for name in gone(session):
        session.pin(name)
    view = fit(session, "anthropic", messages)
    (event,) = [event for event in view.events if event.kind == "overruled"]
    assert "hard limit of" in event.why


def test_reasoning_that_must_stay_holds_a_decision_back():
    """Manual thinking within an open turn: what was sent stays until the turn is over."""
    thinking = {"type": "enabled", "budget_tokens": 1_024}
    more = {"thinking": thinking, "model": "claude-opus-5-1"}
    session = Session("claude-opus-5-1", limits=SMALL, recall=True)
    messages = histories.wire("anthropic", TURNS[:2])
    for message in messages:
        if message["role"] == "assistant":
            thought = {
                "type": "thinking",
                "thinking": "hm",
                "signature": "c2ln",
            }
            message["content"].insert(0, thought)
    request = histories.request("anthropic", messages, **more)
    session.fit(request)
    session.drop("m3")
    view = session.fit(request)
    assert session.window.reasoning == "frozen"
    assert [event.kind for event in view.events] == ["held"]
    session.fit(
        histories.request("anthropic", [*messages, ANSWER, ASKED], **more)
    )
    assert "decided" in [event.kind for event in session.events]


def test_notes_and_reasons_are_kept_without_secrets():
    session = new_session(
        "anthropic", redact=lambda text: text.replace("hunter2", "***")
    )
    messages = messages_of("anthropic", 1)
    fit(session, "anthropic", messages)
    session.note("The password is hunter2.", reason="hunter2")
    view = fit(session, "anthropic", messages)
    assert "The password is ***." in shown(view)
    (one,) = session.decisions
    assert (one.decision.text, one.decision.reason) == (
        "The password is ***.",
        "***",
    )


def test_on_an_event_loop_it_is_the_same():
    messages = messages_of("anthropic")
    request = histories.request("anthropic", messages)

    async def main():
        async with AsyncSession(
            MODELS["anthropic"], limits=SMALL, recall=True
        ) as session:
            view = await session.fit(request)
            before = shown(view)
            told = await view.preview("note", "Keep it short.")
            assert told.changed_from is not None
            name = await session.note("Keep it short.")
            assert "Keep it short." in shown(await session.fit(request))
            await session.undo(name)
            assert shown(await session.fit(request)) == before
            await session.pin("m3")
            await session.drop("m5")
            await session.restore("m7", when="end")
            await session.fit(request)
            verbs = [one.decision.verb for one in session.decisions]
            assert verbs == ["undo", "pin", "drop", "restore"]

    asyncio.run(main())


def test_before_anything_was_fitted_the_request_is_given():
    session = new_session("anthropic")
    assert isinstance(session, DecisionMixin)
    assert session.decisions == ()
    with pytest.raises(ConfigError, match="nothing was fitted yet"):
        session.pin("m1")
    request = histories.request("anthropic", messages_of("anthropic"))
    session.pin("m1", request=request)
    assert len(session.decisions) == 1


def test_what_cannot_be_meant_is_an_error_and_decides_nothing():
    session, _, _ = pressed("anthropic")
    for wanted in ("m999", "m1.9", "no such ref"):
        with pytest.raises(RefNotFound):
            session.pin(wanted)
    with pytest.raises(ConfigError, match="names no message"):
        session.drop(3)
    with pytest.raises(ConfigError, match="not among its 400 lines"):
        session.pin(gone(session)[0], lines=(0, 4))
    with pytest.raises(ConfigError, match="the note is empty"):
        session.note(" ")
    with pytest.raises(ConfigError, match="is not a time"):
        session.restore("m3", when="later")
    with pytest.raises(RefNotFound):
        session.undo("dnosuch")
    assert session.decisions == ()


def test_a_note_stands_on_a_branch_without_the_message_it_stood_behind():
    """Claude Code sends what its user said last in other bytes when it goes on."""
    session, messages = new_session("anthropic"), messages_of("anthropic", 3)
    fit(session, "anthropic", messages)
    session.note("Never touch main.")
    asked = [*messages, ANSWER, ASKED]
    assert shown(fit(session, "anthropic", asked)).count("touch main.") == 1
    changed = [*messages, ANSWER, {**ASKED, "content": "Mend it.\n"}]
    first = shown(fit(session, "anthropic", changed))
    assert first.count("touch main.") == 1
    assert shown(fit(session, "anthropic", changed)) == first
    more = [*changed, ANSWER, ASKED]
    assert shown(fit(session, "anthropic", more)).startswith(first[:-1])

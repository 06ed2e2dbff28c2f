"""Nothing ends a run that would go on without ullage: what cannot be fitted goes as it came."""

import asyncio
import logging

import pytest

import ullage
from tests.loop.replies import FORMAT_NAMES, asking, reply, request
from tests.loop.test_turn import AsyncScripted, Scripted, new_session, read_log
from ullage import (
    AsyncSession,
    Budget,
    BudgetExceeded,
    FormatError,
    Limits,
    MemoryStore,
    Policy,
)
from ullage.core.errors import ConfigError, OverLimitError, StoreError
from ullage.doors.loop import arun_turn, run_turn
from ullage.session.provider.unfitted import went_as_it_came
from ullage.wires import FORMATS

formats = pytest.mark.parametrize("format", FORMAT_NAMES)
BARE = {"policy": Policy(name="bare"), "limits": Limits(window_tokens=2_000)}
LONG = "so it goes. " * 4_000


class NoStore(MemoryStore):
    """A server that went away."""

    def find(self, tenant, keys):
        raise StoreError("test", "find", "the server went away")


class NoObject:
    """Nothing of any wire."""


def broken(monkeypatch):
    """A mistake of ours."""

    def turn(*given, **named):
        raise KeyError("a secret of the user")

    monkeypatch.setattr("ullage.session.turns.turn", turn)


def not_fitted(format, why, monkeypatch):
    """A session and a history that `fit` refuses."""
    history = asking(format)
    match why:
        case "over the limit":
            history = asking(format, LONG)
            return new_session(format, **BARE), history, OverLimitError
        case "the store fails":
            return new_session(format, store=NoStore()), history, StoreError
        case "no message":
            return new_session(format), [*history, NoObject()], FormatError
    broken(monkeypatch)
    return new_session(format), history, KeyError


WHY = ("over the limit", "the store fails", "no message", "a mistake of ours")


def events_of(session, kind="unfitted"):
    return [event for event in session.events if event.kind == kind]


@formats
@pytest.mark.parametrize("why", WHY)
def test_a_call_passes_what_cannot_be_fitted_on_as_it_came(
    format, why, monkeypatch
):
    session, history, error = not_fitted(format, why, monkeypatch)
    asked, said = request(format, history), reply(format, "All is well.")
    with pytest.raises(error):
        session.fit(asked)
    sent = []

    def create(**view):
        sent.append(view)
        return said

    assert session.call(create, **asked) is said
    assert sent == [asked]
    (event,) = events_of(session)
    assert error.__name__ in event.why
    assert "secret" not in event.why
    assert (
        session.usage.input_tokens == FORMATS[format].usage(said).input_tokens
    )
    assert session.budget.spent.calls == 1


@formats
@pytest.mark.parametrize("why", [why for why in WHY if why != "no message"])
def test_a_turn_of_the_loop_goes_on(format, why, monkeypatch):
    session, history, _ = not_fitted(format, why, monkeypatch)
    asked = request(format, history)
    client = Scripted(
        format,
        reply(format, "", [("read_log", {"path": "a"})], 1),
        reply(format, "So."),
    )
    outcome = run_turn(client, session, asked, tools=[read_log])
    assert (outcome.text, outcome.why, len(client.views)) == (
        "So.",
        "answered",
        2,
    )
    assert len(events_of(session)) == 2
    assert session.usage == outcome.usage


def test_the_same_in_an_event_loop(monkeypatch):
    format = "anthropic"

    async def main():
        session = new_session(format, AsyncSession, store=NoStore())
        client = AsyncScripted(format, reply(format, "So."))
        called = await session.call(client, **request(format, asking(format)))
        outcome = await arun_turn(
            client, session, request(format, asking(format))
        )
        return called, outcome, events_of(session)

    called, outcome, events = asyncio.run(main())
    assert called["stop_reason"] == "end_turn"
    assert outcome.text == "So."
    assert len(events) == 2


@formats
def test_a_stream_of_it_is_passed_on_and_counted(format):
    from tests.loop.test_streams import events_of as stream_of

    session, said = (
        new_session(format, store=NoStore()),
        reply(format, "All is well."),
    )
    events = stream_of(format, said)
    stream = session.call(
        lambda **_: iter(events), **request(format, asking(format))
    )
    assert list(stream) == events
    assert (
        session.usage.input_tokens == FORMATS[format].usage(said).input_tokens
    )
    assert session.budget.spent.calls == 1


def test_what_the_provider_says_of_it_is_the_callers():
    session = new_session("openai-chat", **BARE)

    def refuse(**view):
        raise RuntimeError("prompt is too long: 12000 tokens > 2000 maximum")

    with pytest.raises(RuntimeError, match="too long"):
        session.call(
            refuse, **request("openai-chat", asking("openai-chat", LONG))
        )
    assert not events_of(session, "refused"), "it was no view of ours"


def test_where_nothing_shorter_can_be_made_the_providers_word_holds():
    """And not a second request, as long as the one that was refused."""
    session, tries = (
        new_session("openai-chat", limits=Limits(window_tokens=100_000)),
        [],
    )

    def refuse(**view):
        tries.append(view)
        raise RuntimeError("prompt is too long: 12000 tokens > 50 maximum")

    with pytest.raises(RuntimeError, match="too long"):
        session.call(
            refuse, **request("openai-chat", asking("openai-chat", LONG))
        )
    assert len(tries) == 1


def test_a_request_that_nobody_can_read_goes_to_the_client_all_the_same():
    session = ullage.Session("barrel-9")
    assert session.call(lambda **asked: asked, prompt="What now?") == {
        "prompt": "What now?"
    }
    assert len(events_of(session)) == 1


# ── what the caller asked for ────────────────────────────────────────────────────────────


@pytest.mark.parametrize("on_exceeded", ["wrap_up", "stop"])
def test_a_budget_that_is_spent_ends_it(on_exceeded):
    budget = Budget(tokens=100, on_exceeded=on_exceeded)
    session = new_session("openai-chat", store=NoStore(), budget=budget)
    asked, calls = request("openai-chat", asking("openai-chat")), []

    def create(**view):
        calls.append(view)
        return reply("openai-chat", "So.")

    session.call(create, **asked)
    with pytest.raises(BudgetExceeded):
        session.call(create, **asked)
    assert len(calls) == 1


def test_a_budget_that_only_warns_does_not():
    budget = Budget(tokens=100, on_exceeded="warn")
    session = new_session("openai-chat", store=NoStore(), budget=budget)
    for _ in range(3):
        session.call(
            lambda **_: reply("openai-chat", "So."),
            **request("openai-chat", asking("openai-chat")),
        )
    assert budget.spent.calls == 3


def test_settings_that_contradict_the_request_are_told():
    session = ullage.Session(
        "barrel-9", format="openai-chat", budget=Budget(usd=1.0)
    )
    with pytest.raises(ConfigError, match="price"):
        session.call(
            lambda **_: None, model="barrel-9", messages=asking("openai-chat")
        )


# ── who is told ──────────────────────────────────────────────────────────────────────────


def test_it_is_a_warning_once_and_information_from_then_on(caplog):
    session, told = (
        new_session(
            "openai-chat", store=NoStore(), on_event=lambda e: told.append(e)
        ),
        [],
    )
    with caplog.at_level(logging.INFO, "ullage"):
        for _ in range(3):
            session.call(
                lambda **_: reply("openai-chat", "So."),
                **request("openai-chat", asking("openai-chat")),
            )
    levels = [
        r.levelname
        for r in caplog.records
        if r.getMessage().startswith("unfitted")
    ]
    assert levels == ["WARNING", "INFO", "INFO"]
    assert len([event for event in told if event.kind == "unfitted"]) == 3


def test_the_event_quotes_an_error_of_ours_and_names_a_mistake():
    error = StoreError("sqlite", "commit", "the disk is asleep")
    assert went_as_it_came(error).why.endswith("failed: the disk is asleep")
    assert (
        went_as_it_came(ValueError("the tide")).why
        == "sent as it came: ValueError"
    )

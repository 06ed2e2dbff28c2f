"""What adapters stand on: sessions whose ledgers a framework carries, and calls in two halves."""

import asyncio

import pytest

from tests.integrations.outputs import big
from ullage import Budget, Limits, OverLimitError, Session
from ullage.history.ledger import Ledger, Opened
from ullage.integrations._sessions import (
    AsyncHostSessions,
    Calls,
    Entries,
    HostSessions,
    before_reply,
    entry_of,
    forbids,
    given,
    limits_of,
    record_of,
)

REQUEST = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "Hello."}]}


def record():
    return Ledger().with_opened(bytes(16), Opened("first", recall=False))[1]


def test_a_record_is_an_entry_and_a_record_again():
    key, value = entry_of(record())
    assert key == f"ullage:{'00' * 16}:opened:0"
    assert record_of(key, value) == record()
    assert [record_of(*other) for other in ((f"{key}0", value), ("a", value), (key, 7))] == [
        None
    ] * 3


def test_a_state_that_lost_what_was_written_is_given_it_again():
    session, entries = Session("gpt-4.1"), Entries()
    session.fit(REQUEST)
    first = entries.missing(session, {})
    assert first
    assert entries.missing(session, {}) == first  # the step that should have written it failed
    assert entries.missing(session, first) == {}


def test_what_a_state_holds_is_taken_in_once():
    session, entries = Session("gpt-4.1"), Entries()
    session.fit(REQUEST)
    state = {**entries.missing(session, {}), "case": "7"}
    other = Session("gpt-4.1")
    new = entries.unknown(other, state)
    other.take(new)
    assert len(new) == len(state) - 1
    assert entries.unknown(other, state) == []
    assert entries.missing(other, state) == {}


def asked(*results):
    """A request in which each of these results follows a call."""
    messages = list(REQUEST["messages"])
    for n, result in enumerate(results):
        function = {"name": "look", "arguments": f'{{"n": {n}}}'}
        call = {"id": f"c{n}", "type": "function", "function": function}
        messages.append({"role": "assistant", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": result})
    return {"model": "gpt-4.1", "messages": messages}


def test_a_conversation_goes_on_from_what_its_framework_holds():
    first, second = HostSessions("openai-chat"), HostSessions("openai-chat")
    session, state = first.opened("a", {}), {"case": "7"}
    view = session.fit(asked(big(1), big(2)))
    state |= first.missing(session, state)
    again = second.opened("a", state)
    assert again.fit(asked(big(1), big(2)))["messages"] == view["messages"]
    assert second.missing(again, state) == {}
    assert first.opened("a", state) is session


def test_the_window_a_framework_knows_holds_where_no_limits_are_given():
    sessions = HostSessions("openai-chat")
    session = sessions.opened("a", {}, model="my-own", window_tokens=40_000)
    assert session.settings.limits == Limits(window_tokens=40_000)
    small = HostSessions("openai-chat", limits=Limits(window_tokens=9_000))
    session = small.opened("a", {}, model="my-own", window_tokens=40_000)
    assert session.settings.limits == Limits(window_tokens=9_000)
    assert limits_of("my-own", 40_000) == {"limits": Limits(window_tokens=40_000)}
    assert limits_of("my-own", 0) == limits_of("gpt-4.1", 40_000) == {}


def test_the_request_a_reply_came_in_answer_to():
    messages = ["asked", "REPLY", "result", "REPLY", "result"]
    assert before_reply(messages, str.isupper) == messages[:3]
    assert before_reply(["asked"], str.isupper) == []
    assert given(model="m", tools=None, messages=[]) == {"model": "m", "messages": []}
    assert forbids({"tool_choice": "none"}, {"model": "m"})
    assert not forbids({"model": "m"}, {})


TOO_LONG = ValueError("prompt is too long: 15500 tokens > 8000 maximum")


def sessions_of(**settings):
    limits = Limits(window_tokens=16_000, output_reserve_tokens=1_000)
    return AsyncHostSessions("openai-chat", limits=limits, **settings)


def test_a_call_in_two_halves_is_cut_deeper_where_it_is_refused():
    async def main():
        calls, sessions = Calls(), sessions_of()
        session = await sessions.opened("a", {})
        request = asked(*map(big, range(3)))
        first = await calls.begin("here", session, request)
        assert calls.may_retry("here", TOO_LONG)
        second = await calls.begin("here", session, request)
        assert len(str(second)) < len(str(first)) * 0.8
        usage = {"prompt_tokens": 900, "completion_tokens": 9}
        assert await calls.observe("here", {"usage": usage}) is session
        assert await calls.observe("here", {"usage": usage}) is None
        assert session.usage.input_tokens == 900

    asyncio.run(main())


def test_a_call_that_nothing_can_shorten_ends_with_what_the_provider_said():
    async def main():
        calls, session = Calls(), await sessions_of().opened("a", {})
        tiny = ValueError("prompt is too long: 15500 tokens > 40 maximum")
        await calls.begin("here", session, REQUEST)
        assert not calls.may_retry("here", ValueError("no such key"))
        assert calls.may_retry("here", tiny)
        with pytest.raises(ValueError, match="too long") as raised:
            await calls.again("here")
        assert isinstance(raised.value.__cause__, OverLimitError)

    asyncio.run(main())


def test_a_call_that_never_ends_claims_nothing():
    async def main():
        budget = Budget(tokens=9_000_000)
        calls, session = Calls(), await sessions_of(budget=budget).opened("a", {})
        await calls.begin("here", session, REQUEST)
        assert calls.session("here") is session
        assert budget.reserved.tokens > 0
        calls.leave("here")
        calls.leave("here")
        assert budget.reserved.tokens == 0
        assert not calls.may_retry("here", TOO_LONG)

    asyncio.run(main())

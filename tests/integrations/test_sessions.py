"""What adapters stand on: sessions whose ledgers a framework carries, and calls in two halves."""

import asyncio

import pytest

from tests.integrations.outputs import big
from ullage import Budget, ConfigError, Limits, OverLimitError
from ullage.integrations._sessions import (
    AsyncHostSessions,
    HostSessions,
    PendingCalls,
    answered_request,
    forbids,
    limits_of,
    without_none,
)

REQUEST = {
    "model": "gpt-4.1",
    "messages": [{"role": "user", "content": "Hello."}],
}


def asked(*results):
    """A request in which each of these results follows a call."""
    messages = list(REQUEST["messages"])
    for n, result in enumerate(results):
        function = {"name": "look", "arguments": f'{{"n": {n}}}'}
        call = {"id": f"c{n}", "type": "function", "function": function}
        messages.append({"role": "assistant", "tool_calls": [call]})
        messages.append(
            {"role": "tool", "tool_call_id": f"c{n}", "content": result}
        )
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


@pytest.mark.parametrize("kind", [HostSessions, AsyncHostSessions])
def test_a_setting_that_no_session_has_is_refused_with_the_one_meant(kind):
    with pytest.raises(ConfigError, match=r"window_tokens' in limits=ullage"):
        kind("openai-chat", window=3)
    with pytest.raises(ConfigError, match="Did you mean 'user_tools'"):
        kind("openai-chat", user_tool=("ask",))
    with pytest.raises(ConfigError, match="There are: agent, "):
        kind("openai-chat", zzz=1)


@pytest.mark.parametrize("kind", [HostSessions, AsyncHostSessions])
def test_with_recall_off_no_tool_is_offered_and_notices_name_none(kind):
    sessions = kind("openai-chat", recall=False)
    assert sessions.tools == sessions.offered == ()
    assert sessions.free(()) == []
    assert sessions.of("a").settings.recall is False


def test_what_others_keep_beside_ours_is_never_written_back():
    sessions = HostSessions("openai-chat")
    session = sessions.opened("a", {"case": "7", "ullage:nonsense": "x"})
    session.fit(REQUEST)
    new = sessions.missing(session, {"case": "8"})
    assert new
    assert "case" not in new


def test_a_family_spends_one_budget_which_goes_on_in_another_process():
    def members(state):
        sessions = HostSessions(
            "openai-chat", budget=lambda _: Budget(tokens=1_000_000)
        )
        agents = ("logs", "metrics")
        opened = {
            name: sessions.opened(
                f"case/{name}", state, parent="case", agent=name
            )
            for name in agents
        }
        return sessions, opened

    sessions, opened = members({})
    usage = {"prompt_tokens": 900, "completion_tokens": 9}
    for session in opened.values():
        session.fit(REQUEST)
        session.observe({"usage": usage})
    assert sessions.family("case").budget.spent.tokens == 2 * 909
    state = sessions.missing(opened["logs"], {}, agent="logs")
    told = [key for key in state if "spent" in key]
    assert told == [
        "ullage:spent:logs"
    ]  # an older sum of another agent's must not win
    state |= sessions.missing(opened["metrics"], state, agent="metrics")
    nonsense = {
        "ullage:spent:nobody": "much",
        "ullage:spent:some": {"calls": "x"},
    }
    again, held = members({**state, **nonsense})
    assert again.family("case").budget.spent.tokens == 2 * 909
    assert len(again.family("case").sessions) == len(held) == 2
    with pytest.raises(ConfigError, match="none"):
        _ = HostSessions("openai-chat").family("case").budget


def test_what_one_family_set_aside_goes_with_it_and_opens_in_no_other():
    sessions = HostSessions("openai-chat")
    one, other = sessions.opened("a", {}), sessions.opened("b", {})
    assert one.store is not other.store
    assert sessions.opened("c", {}, parent="a").store is one.store
    assert sessions.get("a") is one
    assert sessions.get("z") is None


def test_the_window_a_framework_knows_holds_where_no_limits_are_given():
    sessions = HostSessions("openai-chat")
    session = sessions.opened("a", {}, model="my-own", window_tokens=40_000)
    assert session.settings.limits == Limits(window_tokens=40_000)
    small = HostSessions("openai-chat", limits=Limits(window_tokens=9_000))
    session = small.opened("a", {}, model="my-own", window_tokens=40_000)
    assert session.settings.limits == Limits(window_tokens=9_000)
    assert limits_of("my-own", 40_000) == {
        "limits": Limits(window_tokens=40_000)
    }
    assert limits_of("my-own", 0) == limits_of("gpt-4.1", 40_000) == {}


def test_a_recall_call_after_a_restart_has_the_request_it_was_made_in():
    messages = ["asked", "REPLY", "result", "REPLY", "result"]
    sessions = HostSessions("openai-chat")
    session = sessions.opened("a", {}, model="my-own", window_tokens=40_000)
    state = sessions.missing(session, {})
    again = HostSessions("openai-chat").opened("a", state)
    assert again.settings.limits == Limits(window_tokens=40_000)
    asked = answered_request(again, messages, str.isupper)
    assert asked == {"model": "my-own", "messages": messages[:3]}
    assert answered_request(again, ["asked"], str.isupper)["messages"] == []


def test_a_request_of_what_is_there():
    assert without_none(model="m", tools=None, messages=[]) == {
        "model": "m",
        "messages": [],
    }
    assert forbids({"tool_choice": "none"}, {"model": "m"})
    assert not forbids({"model": "m"}, {})


TOO_LONG = ValueError("prompt is too long: 15500 tokens > 8000 maximum")


def sessions_of(**settings):
    limits = Limits(window_tokens=16_000, output_reserve_tokens=1_000)
    return AsyncHostSessions("openai-chat", limits=limits, **settings)


def test_a_call_in_two_halves_is_cut_deeper_where_it_is_refused():
    async def main():
        calls, sessions = PendingCalls(), sessions_of()
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
        calls, session = PendingCalls(), await sessions_of().opened("a", {})
        too_long = ValueError(
            "prompt is too long: 15500 tokens > 4000 maximum"
        )
        told = "The rules. " * 4_000
        request = {
            **REQUEST,
            "messages": [
                {"role": "system", "content": told},
                *REQUEST["messages"],
            ],
        }
        await calls.begin("here", session, request)
        assert not calls.may_retry("here", ValueError("no such key"))
        assert calls.may_retry("here", too_long)
        with pytest.raises(ValueError, match="too long") as raised:
            await calls.again("here")
        assert isinstance(raised.value.__cause__, OverLimitError)

    asyncio.run(main())


def test_a_refusal_that_cannot_be_meant_is_not_retried():
    async def main():
        calls, session = PendingCalls(), await sessions_of().opened("a", {})
        await calls.begin("here", session, REQUEST)
        assert not calls.may_retry(
            "here",
            ValueError("prompt is too long: 155000 tokens > 40 maximum"),
        )

    asyncio.run(main())


def test_a_call_that_never_ends_claims_nothing():
    async def main():
        budget = Budget(tokens=9_000_000)
        calls, session = (
            PendingCalls(),
            await sessions_of(budget=budget).opened("a", {}),
        )
        await calls.begin("here", session, REQUEST)
        assert calls.session("here") is session
        assert budget.reserved.tokens > 0
        calls.leave("here")
        calls.leave("here")
        assert budget.reserved.tokens == 0
        assert not calls.may_retry("here", TOO_LONG)

    asyncio.run(main())


def conversation(count):
    """A history of so many calls, each with a result of 30 KB."""
    page = "".join(f"line {n} of the page\n" for n in range(1_500))[:30_000]
    tools = [
        {"type": "function", "function": {"name": "look", "parameters": {}}}
    ]
    return {**asked(*(f"{n}\n{page}" for n in range(count))), "tools": tools}


@pytest.mark.parametrize("recall", ["host", "auto"])
@pytest.mark.parametrize("first", [1, 3, 10])
def test_a_conversation_that_an_adapter_meets_under_way_costs_little_more(
    recall, first
):
    """Where the framework offers the tools itself, its prefix is another one anyway."""
    limits = Limits(window_tokens=1_000_000)

    def sizes(first):
        sessions, state, sent = (
            HostSessions("openai-chat", recall=recall, limits=limits),
            {},
            [],
        )
        for count in range(first, 41):
            session = sessions.opened("a", state)
            sent.append(len(str(session.fit(conversation(count)))))
            state |= sessions.missing(session, state)
        return sent

    whole, sent = sizes(0)[first:], sizes(first)
    assert sum(sent) <= 1.5 * sum(whole)
    assert sent[-1] == whole[-1]


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ('["thread-7", "m1"]', ["thread-7"]),  # LangChain
        ('["[\\"case-7\\"]", "helper"]', ["case-7", "helper"]),  # Pydantic AI
        ("incident-7", ["incident-7"]),  # OpenAI Agents
        ('["app", "ann", "s-7", "root", ""]', ["s-7"]),  # ADK
        ('[null, "incident-7"]', ["incident-7"]),  # LiteLLM
        ("8c1f", ["8c1f"]),  # Strands, Inspect
        ("[no list", ["[no list"]),
    ],
)
def test_a_user_finds_the_session_by_the_framework_s_name_and_decides(
    key, names
):
    sessions = HostSessions("openai-chat")
    session, other = sessions.of(key), sessions.of("another")
    request = asked(big(1), big(2))
    for made in (session, other):
        made.fit(request)
    assert sessions.find(*names) == (session,)
    assert sessions.find() == (session, other)
    sessions.of(key)
    assert sessions.find() == (other, session), "the one used last"
    assert sessions.find("elsewhere") == ()
    (found,) = sessions.find(*names)
    found.note("Never touch main.")
    assert "Never touch main." in str(session.fit(request)["messages"])
    assert "Never touch main." not in str(other.fit(request)["messages"])

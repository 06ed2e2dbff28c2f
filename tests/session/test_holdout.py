"""Conversations that are held out: drawn alike by every worker, and passed unfitted."""

import math
import subprocess
import sys

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ullage
from ullage import ConfigError, Limits, MemoryStore, Sessions
from ullage.core.values.usage import Usage
from ullage.doors.exchange import Exchanges
from ullage.doors.exchange.requests import HistoryStart
from ullage.doors.exchange.routes import route_of
from ullage.doors.proxy.config import config_of
from ullage.doors.proxy.headers import program_of
from ullage.session.receipts.holdout import is_held_out
from ullage.session.receipts.writer import close

LINES = "".join(f"line {n} of a long output\n" for n in range(4_000))
CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "read", "arguments": "{}"},
}
TOOL = {
    "type": "function",
    "function": {"name": "read", "parameters": {"type": "object"}},
}
REQUEST = {
    "model": "gpt-4.1",
    "tools": [TOOL],
    "messages": [
        {"role": "user", "content": "Read it."},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": LINES},
    ],
}


def fitted(session):
    """The view of its second request; one that is met under way is cut later."""
    session.fit({**REQUEST, "messages": REQUEST["messages"][:1]})
    return session.fit(REQUEST)


KEYS = [f"conversation {number}" for number in range(10_000)]
OUT = next(key for key in KEYS if is_held_out(key, 0.05))
IN = next(key for key in KEYS if not is_held_out(key, 0.05))


@pytest.mark.parametrize("share", [0.01, 0.05, 0.5])
@pytest.mark.parametrize(
    "name", ["conversation {}", "{:032x}", "user-{}@example.org"]
)
def test_of_ten_thousand_conversations_the_share_is_held_out_and_no_kind_of_key_is_favoured(
    share, name
):
    """A test of proportions: three and a half deviations, once in two thousand."""
    drawn = sum(
        is_held_out(name.format(number), share) for number in range(10_000)
    )
    deviation = math.sqrt(10_000 * share * (1 - share))
    assert abs(drawn - 10_000 * share) < 3.5 * deviation


@given(st.text(st.characters()), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_holds_out_the_same_ones_and_more(key, one, other):
    less, more = sorted((one, other))
    assert is_held_out(key, more) or not is_held_out(key, less)
    assert is_held_out(key, 1)
    assert not is_held_out(key, 0)


def test_another_process_draws_the_same_ones():
    program = (
        "from ullage.session.receipts.holdout import is_held_out\n"
        "print([n for n in range(999) if is_held_out(f'conversation {n}', 0.05)])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True
    )
    assert ran.stdout.decode().strip() == str(
        [number for number in range(999) if is_held_out(KEYS[number], 0.05)]
    )


def test_what_is_held_out_passes_unfitted_and_its_receipts_say_so():
    store = MemoryStore()
    sessions = Sessions("gpt-4.1", store=store, holdout=0.05)
    for key in (OUT, IN):
        view = fitted(sessions.of(key))
        view.observe(Usage(fresh_tokens=view.sent.estimate, output_tokens=9))
    assert dict(sessions.of(OUT).fit(REQUEST)) == REQUEST
    assert len(sessions.of(IN).fit(REQUEST)["tools"]) == 2
    close(store)
    held_out, other = sorted(
        store.receipts(), key=lambda one: not one.key.is_held_out
    )
    assert held_out.key.is_held_out
    assert held_out.sums.sent == held_out.sums.raw
    assert not other.key.is_held_out
    assert other.sums.sent.prompt < other.sums.raw.prompt


def test_another_worker_and_a_restart_hold_out_the_same_and_an_agent_of_it_too():
    store = MemoryStore()
    for _ in range(2):
        sessions = Sessions("gpt-4.1", store=store, holdout=0.05)
        assert dict(sessions.of(OUT).fit(REQUEST)) == REQUEST
        assert (
            dict(sessions.of("an agent", parent=OUT).fit(REQUEST)) == REQUEST
        )
        assert dict(fitted(sessions.of(IN))) != REQUEST


def test_what_would_not_fit_is_cut_all_the_same():
    sessions = Sessions(
        "gpt-4.1", holdout=1.0, limits=Limits(window_tokens=16_000)
    )
    view = sessions.of(OUT).fit(REQUEST)
    assert view.sent.estimate <= 16_000
    assert len(view["tools"]) == 1


def test_one_that_is_drawn_in_the_middle_goes_on_and_what_was_set_aside_opens():
    store = MemoryStore()
    first = fitted(Sessions("gpt-4.1", store=store).of(OUT))
    ref = first["messages"][-1]["content"].split('tool_call_id="')[1][:16]
    session = Sessions("gpt-4.1", store=store, holdout=0.05).of(OUT)
    view = session.fit(REQUEST)
    assert view["messages"][0] == REQUEST["messages"][0]
    assert (
        LINES[:200]
        in session.answer("get_continuation", {"tool_call_id": ref}).text
    )


def test_a_door_draws_by_the_beginning_whatever_model_is_asked_and_whoever_answers():
    sessions = Sessions(holdout=0.5)
    exchanges, route = (
        Exchanges(sessions),
        route_of("POST", "/v1/chat/completions"),
    )
    drawn = set()
    for number in range(40):
        policies = set()
        for model in ("gpt-4.1", "gpt-5.4"):
            for reply in (b"", b"one", b"other"):
                begins = HistoryStart(f"beginning {number}".encode(), reply)
                request = {**REQUEST, "model": model}
                _, session = exchanges.session(
                    route, request, "tenant", None, begins, can_recall=True
                )
                policies.add(session.settings.policy.name)
        assert len(policies) == 1
        drawn |= policies
    assert len(drawn) == 2


@pytest.mark.parametrize("share", [-0.1, 1.5, math.nan])
def test_what_is_no_share_is_refused(share):
    with pytest.raises(ConfigError, match=r"holdout.*is no share"):
        Sessions(holdout=share)


def test_a_door_says_which_program_asks():
    sessions = Sessions(store=MemoryStore())
    exchanges, route = (
        Exchanges(sessions),
        route_of("POST", "/v1/chat/completions"),
    )
    begins = HistoryStart(b"beginning")
    _, session = exchanges.session(
        route,
        REQUEST,
        "tenant",
        None,
        begins,
        can_recall=True,
        client="claude-cli",
    )
    session.fit(REQUEST).observe(Usage(fresh_tokens=9))
    close(sessions.store)
    (receipt,) = sessions.store.receipts()
    assert (receipt.key.tenant, receipt.key.client) == ("tenant", "claude-cli")


@pytest.mark.parametrize(
    ("told", "program"),
    [
        ("claude-cli/2.1.0 (external, cli)", "claude-cli"),
        ("OpenAI/Python 2.8.1", "OpenAI"),
        ("curl", "curl"),
        ("", ""),
        (" / ", ""),
    ],
)
def test_a_program_is_what_it_calls_itself_first(told, program):
    assert program_of({"User-Agent": told}) == program


def test_a_proxy_and_a_wrapped_client_take_a_share():
    assert config_of(None, {"ULLAGE_PROXY_HOLDOUT": "0.05"}).holdout == 0.05
    with pytest.raises(ConfigError, match=r"holdout.*is no share"):
        config_of(None, {}, holdout=2.0)
    client = ullage.wrap(openai.OpenAI(api_key="none"), holdout=0.5)
    assert (
        ullage.wrapped(client).exchanges(is_async=False).sessions._holdout
        == 0.5
    )

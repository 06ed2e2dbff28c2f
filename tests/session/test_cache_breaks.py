"""Why a prompt cache broke: the cause is the change that was made, the tokens the provider's."""

import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import histories
from tests.session.provider import (
    CLAUDE,
    SYSTEM,
    Agent,
    Provider,
    step,
    tool,
)
from ullage import Limits, MemoryStore, Session
from ullage.core.errors import StoreError
from ullage.core.tokens.catalog import lookup
from ullage.core.values.usage import Usage
from ullage.session.prompt_cache.breaks import rebilled_usd
from ullage.session.prompt_cache.sent import SENT, Answered
from ullage.wires import FORMATS

VAST = Limits(window_tokens=500_000)


@pytest.fixture
def provider(monkeypatch):
    return Provider().watch(monkeypatch)


def agent_of(provider, limits=VAST, **more):
    return Agent(Session(CLAUDE, limits=limits, **more), provider)


def warm(provider, turns=3, **more):
    agent = agent_of(provider, **more)
    for _ in range(turns):
        assert agent.turn().sent.broken is None
    return agent


CHANGES = {
    "system": (
        {"system": SYSTEM[:1_203] + "!" + SYSTEM[1_204:]},
        "The system prompt changed at character 1,204, so ",
    ),
    "tools": (
        {"tools": [tool("read"), tool("x")]},
        "The tools changed (`x` added), so ",
    ),
    "model": (
        {"model": "claude-haiku-4-5"},
        "The model changed from claude-sonnet-4-5 to claude-haiku-4-5, so ",
    ),
    "thinking": (
        {"thinking": {"type": "enabled", "budget_tokens": 2_000}},
        "The thinking settings changed (`thinking`), so ",
    ),
}


@pytest.mark.parametrize("cause", CHANGES)
def test_a_changed_head_is_named_with_its_place_and_price(cause, provider):
    agent = warm(provider)
    head, sentence = CHANGES[cause]
    view = agent.turn(**head)
    broken = view.sent.broken
    assert broken.cause == cause
    assert broken.party == "the client"
    assert str(broken).startswith(sentence)
    assert broken.is_measured
    assert broken.tokens == pytest.approx(broken.reckoned_tokens, rel=0.2)
    price = rebilled_usd(
        broken.tokens, lookup(agent.head["model"]), 0, writes=True
    )
    assert broken.cost_usd == pytest.approx(price)
    assert str(broken) in view.explain()
    assert agent.turn().sent.broken is None, "once, and never again"


def test_what_is_no_part_of_a_prompt_breaks_nothing(provider):
    agent = warm(provider)
    view = agent.turn(max_tokens=77, metadata={"user_id": "u"}, stream=True)
    assert view.sent.broken is None
    assert view.sent.change is None


def test_it_is_told_before_the_reply_too(provider):
    agent = warm(provider)
    view = agent.session.fit(agent.request(tools=[tool("write")]))
    broken = view.sent.broken
    assert not broken.is_measured
    assert "(`write` added, `read` removed)" in view.explain()
    assert " tokens are billed again: $" in view.explain()


def test_a_message_that_the_client_changed_is_named(provider):
    agent = warm(provider, 6)
    agent.change(4)
    view = agent.turn()
    broken = view.sent.broken
    assert broken.cause == "message"
    assert broken.place.startswith("message 5,")
    held = broken.held_tokens
    assert broken.tokens == held - view.sent.reply_usage.cache_read_tokens


def test_a_rewind_and_a_branch_are_no_breaks(provider):
    agent = warm(provider, 6)
    del agent.messages[5:]
    assert agent.turn().sent.broken is None
    del agent.messages[3:]
    agent.messages += step(77)
    assert agent.turn().sent.broken is None


def test_a_batch_of_ours_is_named_by_the_name_that_undo_takes(provider):
    agent = agent_of(provider, Limits(window_tokens=40_000))
    breaks = []
    for _ in range(24):
        view = agent.turn(lines=150)
        kinds = {event.kind for event in view.events}
        assert bool(view.sent.broken) == ("pruned" in kinds)
        if view.sent.broken is not None:
            breaks.append(view.sent.broken)
    assert breaks
    assert {broken.cause for broken in breaks} == {"batch"}
    assert all(broken.place.startswith("message ") for broken in breaks)
    assert agent.session.undo(breaks[-1].name)


def test_a_users_decision_and_its_undo_are_named(provider):
    agent = warm(provider, 8)
    name = agent.session.drop("t2")
    broken = agent.turn().sent.broken
    assert (broken.cause, broken.name) == ("decision", name)
    assert broken.party == "a user"
    undo = agent.session.undo(name)
    again = agent.turn().sent.broken
    assert (again.cause, again.name) == ("decision", undo)
    assert again.place == broken.place
    agent.session.note("Use Python 3.11.")
    agent.session.pin("t1")
    assert agent.turn().sent.broken is None, "neither changes what was sent"


def test_a_call_that_was_too_long_ago_is_time_not_the_client(provider):
    agent = warm(provider)
    view = agent.turn(wait_s=420)
    assert view.sent.broken.cause == "expired"
    assert str(view.sent.broken).startswith(
        "The last call was 7 minutes ago, and its cache lives 5 minutes, so "
    )


def test_a_cache_that_lives_longer_than_usual_is_no_break(monkeypatch):
    provider = Provider(ttl_s=3_600).watch(monkeypatch)
    agent = warm(provider)
    view = agent.session.fit(agent.request())
    provider.now_s += 420
    view = agent.session.fit(agent.request())
    assert view.sent.broken.cause == "expired", "that is to be feared"
    view.observe(provider.answer(view))
    assert view.sent.broken is None, "the provider read it all the same"
    assert not [e for e in agent.session.events if e.kind == "cache_broken"]


def test_what_the_provider_lost_by_itself_is_told_as_reported(provider):
    agent = warm(provider)
    provider.forget()
    view = agent.turn()
    broken = view.sent.broken
    assert broken.cause == "evicted"
    assert broken.party == "the provider"
    assert (broken.read_tokens, broken.tokens) == (0, broken.held_tokens)
    assert "Nothing changed, but the provider read 0 of " in str(broken)


def test_each_break_is_one_event_of_the_reply(provider):
    told = []
    agent = warm(provider, on_event=told.append)
    view = agent.turn(tools=[tool("x")])
    (event,) = [event for event in told if event.kind == "cache_broken"]
    assert event.broken == view.sent.broken
    assert event.why == str(view.sent.broken)
    assert event.where == "tools (`x` added, `read` removed)"
    view.observe(view.sent.reply_usage)
    assert len([e for e in told if e.kind == "cache_broken"]) == 1


def test_a_provider_that_speaks_of_no_cache_breaks_none(monkeypatch):
    """Anthropic caches nothing without a marker, and its replies then tell of none."""
    agent = agent_of(Provider().watch(monkeypatch))
    for tools in ([tool("read")], [tool("x")], [tool("x")]):
        view = agent.session.fit(agent.request(tools=tools))
        view.observe(Usage(fresh_tokens=view.sent.estimate))
        agent.messages += step(len(agent.messages))
        assert view.sent.broken is None


NONSENSE = (
    {"cache_read_tokens": 10**9},
    {"cache_read_tokens": 0, "cache_write_tokens": 1},
    {"cache_read_tokens": 5, "prompt_tokens": 0},
)


@pytest.mark.parametrize("report", NONSENSE)
def test_what_a_provider_reports_wrongly_ends_no_turn(report, provider):
    agent = warm(provider)
    view = agent.session.fit(agent.request(tools=[tool("x")]))
    view.observe(Usage(**report))
    agent.messages += step(99)
    broken = view.sent.broken
    assert broken is None or 0 <= broken.tokens <= 2 * view.sent.estimate
    agent.turn()


class Failing(MemoryStore):
    """Keeps nothing of what was sent, and cannot be asked for it."""

    def find(self, tenant, keys):
        if len(keys) == 1:
            raise StoreError("failing", "find", "not now")
        return super().find(tenant, keys)


def test_a_store_that_fails_ends_no_turn(provider):
    store = Failing()
    agent = warm(provider, store=store)
    agent.session = Session(CLAUDE, limits=VAST, store=store)
    assert agent.turn().sent.broken is None


def test_a_turn_without_a_break_is_hardly_longer(monkeypatch):
    """What is worked out for it beside the turn: a constant number of steps."""
    provider = Provider().watch(monkeypatch)
    agent, asked = warm(provider, 12), []
    find = MemoryStore.find

    def counting(store, tenant, keys):
        asked.append(len(keys))
        return find(store, tenant, keys)

    monkeypatch.setattr(MemoryStore, "find", counting)
    for _ in range(3):
        asked.clear()
        agent.turn()
        assert len(asked) == 1, "the look-up of the turn, and no other"


ACTS = st.sampled_from(
    ["on", "on", "on", "system", "tools", "wait", "evict", "drop", "edit"]
)


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.tuples(ACTS, st.booleans()), min_size=3, max_size=14))
def test_whatever_happens_the_first_cause_is_named_and_no_token_is_made_up(
    monkeypatch, acts
):
    """Beside a simulated cache: no break without a loss, no large loss without a break."""
    with monkeypatch.context() as patch:
        provider, store = Provider().watch(patch), MemoryStore()
        agent = warm(provider, store=store)
        for act, moves in acts:
            if moves:  # another worker goes on
                agent.session = Session(CLAUDE, limits=VAST, store=store)
            check(agent, provider, act)


def check(agent, provider, act):
    number, head, wait_s = agent.number, {}, 10
    if act == "system":
        head = {"system": f"{number} {SYSTEM}"}
    elif act == "tools":
        head = {"tools": [tool(f"t{number}")]}
    elif act == "wait":
        wait_s = 900
    elif act == "evict":
        provider.forget()
    elif act == "drop":
        agent.session.drop(f"t{number - 2}", request=agent.request())
    elif act == "edit":
        agent.change(2)
    earlier = agent.provider.cache
    view = agent.turn(wait_s, **head)
    broken, usage = view.sent.broken, view.sent.reply_usage
    causes = {
        "on": None,
        "system": "system",
        "tools": "tools",
        "wait": "expired",
        "evict": "evicted",
        "drop": "decision",
        "edit": "message",
    }
    assert earlier is provider.cache
    if act == "on":
        assert broken is None
        return
    assert broken is None or broken.cause in (causes[act], "evicted")
    assert broken is None or broken.tokens <= usage.input_tokens
    lost = broken.tokens if broken else 0
    if act in ("system", "tools", "wait", "evict"):
        assert broken.cause == causes[act]
        assert lost == pytest.approx(
            usage.input_tokens - usage.cache_read_tokens, rel=0.25
        )


def test_what_is_kept_holds_no_text(provider, tmp_path):
    agent = warm(provider, store=tmp_path / "kept.db")
    agent.turn(system="secret-of-mine " * 3_000)
    records = [
        record for record, _ in agent.session.store.newest("", SENT, 50)
    ]
    assert len(records) == 4
    kept = (tmp_path / "kept.db").read_bytes()
    kept += (tmp_path / "kept.db-wal").read_bytes()
    assert b"secret-of-mine" not in kept


def calls_of(turns):
    """How many functions of Python some turns call."""
    count = 0

    def profile(frame, event, argument):
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        turns()
    finally:
        sys.setprofile(None)
    return count


def nothing(*_, **__):
    return
    yield


def test_a_turn_without_a_break_costs_no_tenth_more(provider, monkeypatch):
    """Beside the same turns of a session that looks for no breaks; counted, not timed."""

    def turns(agent):
        return calls_of(lambda: [agent.turn() for _ in range(8)])

    agent = warm(provider, 12)
    looking = turns(agent)
    monkeypatch.setattr("ullage.session.turns.look_back", nothing)
    monkeypatch.setattr(
        "ullage.session.replies.answered", lambda *_, **__: Answered()
    )
    blind = turns(warm(Provider().watch(monkeypatch), 12))
    assert blind < looking < 1.1 * blind


HEADS = {
    "anthropic": lambda text: {"system": text},
    "bedrock-converse": lambda text: {"system": [{"text": text}]},
    "gemini": lambda text: {"systemInstruction": {"parts": [{"text": text}]}},
    "openai-responses": lambda text: {"instructions": text},
}


@pytest.mark.parametrize("format", sorted(histories.MODEL))
def test_a_system_prompt_that_changed_is_named_on_every_wire(format):
    wire, messages = FORMATS[format], [histories.user(format, "Go on. " * 900)]
    session = Session(histories.MODEL[format], format=format, limits=VAST)
    for text in ("Be brief. " * 800, "Be brave. " * 800):
        request = histories.request(format, messages)
        if format in HEADS:
            request |= HEADS[format](text)
        else:
            head = {"role": "system", "content": text}
            request[wire.key] = [head, *messages]
        view = session.fit(request)
        tokens = view.sent.estimate
        view.observe(Usage(cache_write_tokens=tokens, output_tokens=9))
        turn = histories.Turn(said="On.")
        messages += histories.wire(format, [turn])[1:]
        messages.append(histories.user(format, "And then?"))
    broken = view.sent.broken
    assert (broken.cause, broken.place) == ("system", "at character 6")
    assert broken.tokens > 3_000

"""A conversation that was under way when it was first seen: it waits until it pays to offer the
recall tools, and is then shown as if they had been there from its start.
"""

import asyncio
import json
from itertools import pairwise

import pytest

from lab.fuzz.bound import Bound
from lab.returned import problems
from tests import histories
from tests.histories import Call, Turn
from tests.session.test_joining_wires import (
    KEYS,
    MODELS,
    NONE,
    SCHEMA,
    TOOLS,
    names,
)
from ullage import AsyncSession, Limits, MemoryStore, Session
from ullage.documents import NAMES

TURNS = 40
ROOMY = Limits(window_tokens=1_000_000)
OTHER_TOOLS = {
    "anthropic": {"name": "look", "input_schema": SCHEMA},
    "openai-chat": {
        "type": "function",
        "function": {"name": "look", "parameters": SCHEMA},
    },
    "openai-responses": {
        "type": "function",
        "name": "look",
        "parameters": SCHEMA,
    },
    "gemini": {
        "functionDeclarations": [{"name": "look", "parameters": SCHEMA}]
    },
}
UNBOUND = {**MODELS, "anthropic": "claude-opus-4-5"}
every_format = pytest.mark.parametrize("format", KEYS)


def large(number):
    """A result of 30 KB."""
    lines = "".join(
        f"{number}.{line} what there is to see\n" for line in range(1_300)
    )
    return lines[:30_000]


def steps(count, *, tool="bash", result=large, thought=False):
    each = [Call(tool, f"{n}.py", result(n)) for n in range(count)]
    return [
        Turn(said=f"Step {n}.", calls=(call,), thought=thought)
        for n, call in enumerate(each)
    ]


def request(format, turns, **more):
    head = {"model": UNBOUND[format], "tools": TOOLS[format], **more}
    return histories.request(format, histories.wire(format, turns), **head)


def session_for(format, **settings):
    return Session(UNBOUND[format], format=format, limits=ROOMY, **settings)


def sent(session, format, turns, first, **more):
    """The views of the requests behind ``first`` turns and on."""
    whole = [
        request(format, turns[:count], **more)
        for count in range(first, len(turns) + 1)
    ]
    return [session.fit(each) for each in whole]


def size(view):
    return len(json.dumps(view))


def breaks(format, views):
    """How often a request does not begin with the one before it."""
    key = KEYS[format]

    def begins_alike(before, after):
        same_tools = before["tools"] == after["tools"]
        return same_tools and after[key][: len(before[key])] == before[key]

    return sum(not begins_alike(*pair) for pair in pairwise(views))


def assert_costs_little(format, views, whole):
    """What is sent from joining on, beside what a session from the start sends."""
    beside = whole[-len(views) :]
    assert sum(map(size, views)) <= 1.5 * sum(map(size, beside))
    assert size(views[-1]) <= 1.5 * size(beside[-1])
    assert breaks(format, views) <= breaks(format, beside) + 1


# ── what it costs ────────────────────────────────────────────────────────────────────────


@every_format
@pytest.mark.parametrize("tool", ["bash", "grep"])
def test_it_sends_little_more_than_a_session_from_the_start(format, tool):
    turns = steps(TURNS, tool=tool)
    whole = sent(session_for(format), format, turns, 0)
    for first in (1, 3, 10):
        views = sent(session_for(format), format, turns, first)
        assert_costs_little(format, views, whole)
        assert views[-1] == whole[-1], "and arrives where that one is"


def test_on_an_event_loop_too():
    turns, format = steps(TURNS), "openai-chat"
    whole = sent(session_for(format), format, turns, 0)

    async def joined():
        async with AsyncSession(
            UNBOUND[format], format=format, limits=ROOMY
        ) as session:
            each = [
                request(format, turns[:count]) for count in range(3, TURNS + 1)
            ]
            return [dict(await session.fit(one)) for one in each]

    assert_costs_little(format, asyncio.run(joined()), whole)


@every_format
def test_a_short_conversation_never_pays(format):
    """Nothing is added, nothing is cut, and every message is the caller's own object."""
    turns = steps(8, result=lambda number: f"{number}: " + "a few words " * 40)
    for first in (1, 3):
        session = session_for(format)
        for count in range(first, len(turns) + 1):
            whole = request(format, turns[:count])
            view = session.fit(whole)
            assert view["tools"] == whole["tools"]
            assert all(
                map(
                    lambda a, b: a is b,
                    view[KEYS[format]],
                    whole[KEYS[format]],
                )
            )


def test_where_the_window_is_nearly_full_it_is_joined_and_not_condensed():
    turns = steps(
        12, tool="read_file", result=lambda number: large(number) * 2
    )
    session = Session(
        UNBOUND["anthropic"], limits=Limits(window_tokens=100_000)
    )
    view = session.fit(request("anthropic", turns))
    assert "get_continuation" in names(view)
    assert session.events[0].kind == "joined"


@every_format
def test_a_request_that_says_nothing_yet_decides_nothing_of_others(format):
    """Every conversation goes on from an empty one: what is recorded there would hold in all."""
    turns = steps(10, thought=True)
    empty = request(format, [])
    empty[KEYS[format]] = []
    session = Session(MODELS[format], format=format, limits=ROOMY)
    session.fit(empty)
    assert session.news() == ()
    cold = Session(MODELS[format], format=format, limits=ROOMY)
    asked = request(format, turns, model=MODELS[format])
    assert session.fit(asked) == cold.fit(asked)
    assert session.state.ledger == cold.state.ledger


# ── a beginning ──────────────────────────────────────────────────────────────────────────

SEEDS = {
    "a greeting": [("assistant", "Hello. What shall I do?")],
    "the client's own turn": [
        ("user", "Today is Monday."),
        ("assistant", "Got it. Thanks!"),
    ],
    "examples": [
        ("user", "2+2?"),
        ("assistant", "4"),
        ("user", "3+3?"),
        ("assistant", "6"),
    ],
}


def seeded(format, seed):
    if format == "gemini":
        roles = {"assistant": "model", "user": "user"}
        return [
            {"role": roles[role], "parts": [{"text": text}]}
            for role, text in seed
        ]
    return [{"role": role, "content": text} for role, text in seed]


@every_format
@pytest.mark.parametrize("seed", SEEDS)
def test_turns_that_call_no_tool_are_a_beginning(format, seed):
    key, before = KEYS[format], seeded(format, SEEDS[seed])
    session, plain = session_for(format), session_for(format)
    for count in range(4):
        whole = request(format, steps(count))
        view = session.fit({**whole, key: [*before, *whole[key]]})
        assert view[key] == [*before, *plain.fit(whole)[key]]
        assert "get_continuation" in names(view)
    assert "joined" not in {event.kind for event in session.events}


# ── the same on every worker ─────────────────────────────────────────────────────────────


@every_format
def test_a_cold_start_and_another_worker_arrive_where_the_warm_session_is(
    format,
):
    store, turns = MemoryStore(), steps(12)
    warm, beside = (session_for(format, store=store) for _ in range(2))
    for count in range(3, len(turns) + 1):
        whole = request(format, turns[:count])
        view = (warm if count % 2 else beside).fit(whole)
        assert session_for(format, store=store).fit(whole) == view
        assert warm.fit(whole) == beside.fit(whole) == view, (
            "and so does a retry"
        )
    assert "get_continuation" in names(view)


def test_a_branch_from_before_it_was_joined_shows_what_was_sent_there():
    format, store, turns = "anthropic", MemoryStore(), steps(12)
    session = session_for(format, store=store)
    views = sent(session, format, turns, 1)
    assert "get_continuation" in names(views[-1])
    other = Turn(said="Or else.", calls=(Call("bash", "other.py", "little"),))
    for worker in (session, session_for(format, store=store)):
        rewound = worker.fit(request(format, [turns[0], other]))
        before = views[0]["messages"]
        assert rewound["messages"][: len(before)] == before
        assert worker.fit(request(format, turns)) == views[-1]


def test_what_an_older_version_opened_is_joined_too():
    """It wrote that a history was under way, and no more than that."""
    format, store, turns = "openai-chat", MemoryStore(), steps(30)
    old = session_for(format, store=store, joins=False)
    old.fit(request(format, turns[:2]))
    (opened,) = (
        entry.policies
        for entry in old.state.ledger.entries.values()
        if entry.policies
    )
    assert [one.joined for one in opened] == [True]
    view = session_for(format, store=store).fit(request(format, turns))
    assert "get_continuation" in names(view)
    assert size(view) < size(request(format, turns)) / 3


def test_a_history_that_compacts_itself_begins_anew():
    format, turns = "anthropic", steps(3)
    session = session_for(format)
    session.fit(request(format, turns))
    anew = {"role": "user", "content": "So far: three steps were made."}
    view = session.fit({**request(format, []), "messages": [anew]})
    assert "get_continuation" in names(view)


def test_a_session_for_each_request_without_a_store_goes_on_joined():
    """Once it pays it pays in every later request: a prefix once broken stays."""
    format, turns = "openai-chat", steps(30, tool="grep")
    turns[12:] = [
        Turn(said="So.", calls=(Call("bash", "s", "small " * 900),))
    ] * 18
    views = [
        session_for(format).fit(request(format, turns[:at]))
        for at in range(1, 31)
    ]
    joined = ["get_continuation" in names(view) for view in views]
    assert joined == sorted(joined)
    assert joined[-1]


# ── when else ────────────────────────────────────────────────────────────────────────────


@every_format
def test_tools_of_the_caller_that_change_break_the_prefix_anyway(format):
    session, turns = session_for(format), steps(3)
    assert names(session.fit(request(format, turns[:2]))) == {"bash"}
    more = [*TOOLS[format], OTHER_TOOLS[format]]
    view = session.fit(request(format, turns, tools=more))
    assert names(view) == {"bash", "look", "get_continuation"}
    assert size(view) < size(request(format, turns)) / 2


@every_format
def test_another_model_family_has_another_cache(format):
    other = {
        "anthropic": "claude-sonnet-5-5",
        "openai-chat": "deepseek-reasoner",
        "openai-responses": "o3",
        "gemini": "gemini-2.5-pro",
    }
    session, turns = session_for(format), steps(3)
    session.fit(request(format, turns[:2]))
    view = session.fit(request(format, turns, model=other[format]))
    assert "get_continuation" in names(view)


@every_format
def test_a_request_without_tools_waits_for_one_that_has_them(format):
    """The client asks for a title, or a summary, before it goes on."""
    session, turns = session_for(format), steps(30)
    for more in ({"tools": []}, NONE[format]):
        view = session.fit(request(format, turns, **more))
        assert "get_continuation" not in json.dumps(view)
        assert "no tools" in view.explain()
    assert "get_continuation" in names(session.fit(request(format, turns)))


@pytest.mark.parametrize("settings", [{"joins": False}, {"recall": False}])
@every_format
def test_it_can_be_turned_off(format, settings):
    session, turns = session_for(format, **settings), steps(30)
    for count in (10, 20, 30):
        whole = request(format, turns[:count])
        view = session.fit(whole)
        assert view["tools"] == whole["tools"]
        assert view[KEYS[format]] == whole[KEYS[format]]
        assert next(iter(settings)) in view.explain()


def test_a_host_that_offers_the_tools_can_turn_it_off_too():
    whole = request("openai-chat", steps(10))
    for joins in (True, False):
        session = session_for("openai-chat", recall="host", joins=joins)
        assert (
            session.fit(whole)["messages"] == whole["messages"]
        ) is not joins


# ── reasoning that is bound ──────────────────────────────────────────────────────────────

ADAPTIVE = {"thinking": {"type": "adaptive"}}
MANUAL = {"thinking": {"type": "enabled", "budget_tokens": 1_024}}


def thinking_in(view):
    return json.dumps(view["messages"]).count('"signature"')


def judged(turns, first, settings, **more):
    """The views of a provider that binds reasoning; each is legal, and what it was thought of."""
    model, provider, before = MODELS["anthropic"], Bound(), []
    session = Session(model, limits=ROOMY, **settings)
    for count in range(first):
        whole = histories.wire("anthropic", turns[: count + 1])
        provider.judge(before, whole[len(before) :], grew=True)
        before = whole
    views = []
    for count in range(first, len(turns) + 1):
        whole = request("anthropic", turns[:count], model=model, **more)
        view = session.fit(whole)
        after = request("anthropic", turns[: count + 1])["messages"]
        assert [
            str(one)
            for one in problems("anthropic", view, history=whole["messages"])
        ] == []
        assert not provider.judge(
            view["messages"], after[len(whole["messages"]) :], grew=False
        )
        views.append(view)
    return session, views


def test_bound_reasoning_stays_until_it_pays_and_what_is_new_is_cut_at_once():
    turns = steps(14, thought=True)
    _, views = judged(turns, 2, {}, **ADAPTIVE)
    joined = next(
        at
        for at, view in enumerate(views)
        if "get_continuation" in names(view)
    )
    assert joined > 1
    for at, view in enumerate(views[:joined]):
        assert thinking_in(view) == 2 + at
        assert view["messages"][:3] == histories.wire("anthropic", turns[:1])
        assert size(view["messages"][-1]) < 8_000, "the newest result, in part"
        assert "what is new is cut" in view.explain()
    assert thinking_in(views[joined]) == 0, (
        "it was bound to a request without the tools"
    )
    assert size(views[-1]["messages"]) < 14 * 8_000


def test_reasoning_of_an_open_turn_is_waited_for():
    """Manual thinking: while the turn is open nothing of it may change, so nothing does (A14)."""
    turns = steps(16, thought=True)
    turns[12] = Turn(
        user="And now?", said="Now.", calls=turns[12].calls, thought=True
    )
    asked = histories.wire("anthropic", turns[:13])
    at = next(
        i for i, each in enumerate(asked) if each["content"] == "And now?"
    )
    session = Session(MODELS["anthropic"], limits=ROOMY)
    more = {"model": MODELS["anthropic"], **MANUAL}
    for count in range(3, 13):
        view = session.fit(request("anthropic", turns[:count], **more))
        assert names(view) == {"bash"}
        assert thinking_in(view) == count
        assert view["messages"][:5] == asked[:5]
    assert view.sent.standing.reason == "reasoning"
    whole = {**request("anthropic", [], **more), "messages": asked[: at + 1]}
    view = session.fit(whole)
    assert names(view) == {"bash", "get_continuation"}
    assert thinking_in(view) == 0
    assert size(view["messages"]) < 13 * 8_000


@pytest.mark.parametrize("policy", [*NAMES])
@pytest.mark.parametrize("recall", ["auto", True, False])
def test_manual_thinking_stays_legal_whatever_is_asked_for(policy, recall):
    """Nothing that was sent is cut, and no tool is added, while the turn is open."""
    turns = steps(10, thought=True)
    settings = {"policy": policy, "recall": recall}
    _, views = judged(turns, 3, settings, **MANUAL)
    for count, view in enumerate(views, 3):
        assert names(view) == {"bash"}
        assert thinking_in(view) == count


# ── what is told ─────────────────────────────────────────────────────────────────────────


def test_why_nothing_is_cut_is_told_for_as_long_as_it_is_so():
    session, turns = session_for("anthropic"), steps(12)
    views = sent(session, "anthropic", turns, 2)
    joined = next(
        at
        for at, view in enumerate(views)
        if "get_continuation" in names(view)
    )
    for view in views[:joined]:
        standing = view.sent.standing
        assert (standing.reason, standing.was_joined) == ("price", True)
        assert (
            "does not pay yet: it takes out" in view.explain().splitlines()[-1]
        )
    assert all(view.sent.standing is None for view in views[joined:])
    first, second = [
        event for event in session.events if event.kind == "joined"
    ]
    assert first in views[0].events
    assert "5 messages stood before" in first.why
    assert second in views[joined].events
    assert second.tokens_before > 2 * second.tokens_after > 0


def test_no_content_is_told():
    session = session_for("anthropic")
    views = sent(session, "anthropic", steps(12), 2)
    told = [view.explain() for view in views]
    assert not any(
        "what there is to see" in each or "Step" in each for each in told
    )

"""An event loop is not held up by a long history: its turn is worked out in a thread."""

import asyncio
import threading

import pytest
from blake3 import blake3
from msgspec.structs import replace

from tests import histories
from tests.histories import CUTS_ALWAYS, Call, Turn
from ullage import AsyncSession, Limits, Session
from ullage.core.history import canon
from ullage.policy import Policy
from ullage.session.recall import automaton, grep


def conversation(turns):
    calls = [
        Call("read_file", f"{n}.py", f"line {n}\n" * 200) for n in range(turns)
    ]
    messages = histories.wire(
        "openai-chat", [Turn(calls=(call,)) for call in calls]
    )
    return histories.request("openai-chat", messages)


@pytest.mark.parametrize(
    ("turns", "in_thread"), [(2, False), (60, False), (90, True)]
)
def test_what_is_long_and_new_is_worked_out_beside_the_loop(turns, in_thread):
    seen = []

    def look(window, /):
        seen.append(threading.get_ident())
        return ()

    policy = replace(CUTS_ALWAYS, name="looks-1", under_pressure=(look,))

    async def twice():
        session = AsyncSession(
            "claude-sonnet-4-5", policy=policy, format="openai-chat"
        )
        await session.fit(conversation(min(turns, 58)))
        seen.clear()
        await session.fit(conversation(turns))
        return threading.get_ident()

    loop = asyncio.run(twice())
    assert seen
    assert all((ident != loop) is in_thread for ident in seen)


@pytest.mark.parametrize(
    ("tokens", "in_thread"), [(150_000, False), (250_000, True)]
)
def test_a_turn_behind_a_large_view_is_worked_out_beside_the_loop(
    tokens, in_thread
):
    """A view that a window of 200,000 tokens holds is not: a thread at every turn costs more."""
    seen = []

    def look(window, /):
        seen.append(threading.get_ident())
        return ()

    policy = Policy(name="looks-3", under_pressure=(look,))
    messages = [{"role": "user", "content": "the tide " * (tokens // 2)}]
    limits = Limits(window_tokens=1_000_000)

    async def twice():
        session = AsyncSession("gpt-4.1", policy=policy, limits=limits)
        view = await session.fit({"messages": messages})
        assert view.sent.estimate == pytest.approx(tokens, rel=0.2)
        seen.clear()
        reply = {"role": "assistant", "content": "It turns."}
        await session.fit(
            {
                "messages": [
                    *messages,
                    reply,
                    messages[0] | {"content": "Go on."},
                ]
            }
        )
        return threading.get_ident()

    loop = asyncio.run(twice())
    assert seen
    assert all((ident != loop) is in_thread for ident in seen)


@pytest.mark.parametrize("format", sorted(histories.MODEL))
def test_a_long_walk_hashes_nothing_long_on_its_way(format, monkeypatch):
    """Of 2,048 bytes and more blake3 lets go of the interpreter: who waits for it begins anew."""
    hashed = []

    class Hashing:
        def __init__(self, data=b"", **more):
            hashed.append(len(data))
            self.real = blake3(data, **more)

        def update(self, data):
            hashed.append(len(data))
            self.real.update(data)

        def digest(self, *length):
            return self.real.digest(*length)

    def walks(window, /):
        if window.size <= 2:
            hashed.append("walks")
        return ()

    calls = [
        Call("bash", f"src/harbour/lamps/{n}.py", f"value_{n} = {n}\n" * 900)
        for n in range(60)
    ]
    messages = histories.wire(format, [Turn(calls=(call,)) for call in calls])
    policy = replace(
        CUTS_ALWAYS,
        name="walks-1",
        on_arrival=(walks, *CUTS_ALWAYS.on_arrival),
    )
    limits = Limits(window_tokens=60_000)
    session = Session(
        histories.MODEL[format], policy=policy, format=format, limits=limits
    )
    hashed.clear()
    monkeypatch.setattr(canon, "blake3", Hashing)
    session.fit(histories.request(format, messages))
    assert {event.kind for event in session.events} == {
        "joined",
        "truncated",
        "pruned",
    }
    start = hashed.index("walks")
    before, after = (
        hashed[:start],
        [size for size in hashed[start:] if size != "walks"],
    )
    assert max(before) > 10_000
    assert after
    assert len([size for size in after if size >= 2_048]) <= 1, (
        "all that was decided, at the end"
    )


LOOKING = []


def looks(window, /):
    """A stage that waits for its test; what a test waits by is no setting of a stage."""
    for look in LOOKING:
        look()
    return ()


def test_a_cancelled_fit_leaves_the_session_as_it_was_or_as_it_would_be():
    """Cancelled while the thread works: the next view is the one there would have been."""
    request = conversation(60)
    limits = Limits(window_tokens=12_000)

    async def cancelled():
        loop, works, may_go_on = (
            asyncio.get_running_loop(),
            asyncio.Event(),
            threading.Event(),
        )

        def look():
            loop.call_soon_threadsafe(works.set)
            may_go_on.wait()

        LOOKING.append(look)
        policy = replace(
            CUTS_ALWAYS,
            name="looks-2",
            under_pressure=(looks, *CUTS_ALWAYS.under_pressure),
        )
        session = AsyncSession("gpt-4.1", policy=policy, limits=limits)
        task = asyncio.create_task(session.fit(request))
        await works.wait()
        task.cancel()
        LOOKING.clear()
        may_go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await session.fit(request)

    async def whole():
        return await AsyncSession(
            "gpt-4.1", policy=CUTS_ALWAYS, limits=limits
        ).fit(request)

    assert asyncio.run(cancelled()) == asyncio.run(whole())


def test_what_a_model_looks_up_is_searched_beside_the_loop_a_few_at_a_time(
    monkeypatch,
):
    seen, busy, most = [], [], []

    def look(pattern, ignore_case=False):
        seen.append(threading.get_ident())
        busy.append(pattern)
        most.append(len(busy))
        if len(seen) <= 2:
            both.wait(timeout=20)
        busy.pop()
        return automaton.Automaton(pattern, ignore_case)

    both = threading.Barrier(2)
    monkeypatch.setattr(grep, "Automaton", look)
    request = conversation(2)
    ref = canon.ref_of("line 0\n" * 200)
    call = {
        "function": {"name": "get_continuation", "arguments": ""},
        "id": "r1",
    }
    call["function"]["arguments"] = (
        f'{{"tool_call_id": "{ref}", "pattern": "line"}}'
    )

    async def search():
        session = AsyncSession(
            "gpt-4.1", policy=CUTS_ALWAYS, format="openai-chat"
        )
        view = await session.fit(request)
        return await view.recall(call)

    async def searches():
        results = await asyncio.gather(*(search() for _ in range(5)))
        return threading.get_ident(), results

    loop, results = asyncio.run(searches())
    assert all("matching lines" in result["content"] for result in results)
    assert len(seen) == 5
    assert loop not in seen
    assert max(most) == 2

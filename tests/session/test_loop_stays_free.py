"""An event loop is not held up by a long history: its turn is worked out in a thread."""

import asyncio
import threading

import pytest
from msgspec.structs import replace

from tests import histories
from tests.histories import Call, Turn
from ullage import AsyncSession, Limits
from ullage.stages.default import DEFAULT


def conversation(turns):
    calls = [Call("read_file", f"{n}.py", f"line {n}\n" * 200) for n in range(turns)]
    messages = histories.wire("openai-chat", [Turn(calls=(call,)) for call in calls])
    return histories.request("openai-chat", messages)


@pytest.mark.parametrize(("turns", "in_thread"), [(2, False), (60, False), (90, True)])
def test_what_is_long_and_new_is_worked_out_beside_the_loop(turns, in_thread):
    seen = []

    def look(window, /):
        seen.append(threading.get_ident())
        return ()

    policy = replace(DEFAULT, name="looks-1", under_pressure=(look,))

    async def twice():
        session = AsyncSession("claude-sonnet-4-5", policy=policy, format="openai-chat")
        await session.fit(conversation(min(turns, 58)))
        seen.clear()
        await session.fit(conversation(turns))
        return threading.get_ident()

    loop = asyncio.run(twice())
    assert seen
    assert all((ident != loop) is in_thread for ident in seen)


def test_a_cancelled_fit_leaves_the_session_as_it_was_or_as_it_would_be():
    """Cancelled while the thread works: the next view is the one there would have been."""
    request = conversation(60)
    limits = Limits(window_tokens=12_000)

    async def cancelled():
        loop, works, may_go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

        def look(window, /):
            loop.call_soon_threadsafe(works.set)
            may_go_on.wait()
            return ()

        policy = replace(DEFAULT, name="looks-2", under_pressure=(look, *DEFAULT.under_pressure))
        session = AsyncSession("gpt-4.1", policy=policy, limits=limits)
        task = asyncio.create_task(session.fit(request))
        await works.wait()
        task.cancel()
        may_go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await session.fit(request)

    async def whole():
        return await AsyncSession("gpt-4.1", limits=limits).fit(request)

    assert asyncio.run(cancelled()) == asyncio.run(whole())

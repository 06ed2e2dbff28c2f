"""Drivers: run the core's generators against a real store. The only place effects are done."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from ullage.errors import UllageError
from ullage.stores import AsyncStore, Store
from ullage.summarise import Summaries
from ullage.values.effects import (
    Chunk,
    Commit,
    Do,
    Effect,
    Find,
    Get,
    Look,
    Steps,
    Summarise,
)

__all__ = ["arun", "run"]

T = TypeVar("T")


def run(steps: Steps[T], store: Store, tenant: str, summaries: Summaries | None = None) -> T:
    """Run to the end, doing each effect on ``store``. Errors are thrown into the steps.

    What interrupts an effect closes the steps, so that they can undo what they began.
    """
    try:
        effect = next(steps)
        while True:
            try:
                if isinstance(effect, Summarise):
                    reply: Any = summaries and summaries.ask(effect)
                elif isinstance(effect, Do):
                    reply = effect.act()
                else:
                    reply = _do(effect, store, tenant)
            except UllageError as error:
                effect = steps.throw(error)
            else:
                effect = steps.send(reply)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        steps.close()


async def arun(
    steps: Steps[T],
    store: AsyncStore,
    tenant: str,
    summaries: Summaries | None = None,
    *,
    is_heavy: bool = False,
) -> T:
    """The same for an event loop.

    With ``is_heavy`` what is worked out between two effects is worked out in a thread, so that
    the loop stays free. Cancelled, it waits for the thread.
    """
    move = _moved_in_thread if is_heavy else _moved
    try:
        effect = await move(steps.send, None)
        while True:
            try:
                if isinstance(effect, Summarise):
                    reply: Any = await summaries.aask(effect) if summaries else None
                elif isinstance(effect, Do):
                    reply = await _acted(effect.act)
                else:
                    reply = await _do(effect, store, tenant)
            except UllageError as error:
                effect = await move(steps.throw, error)
            else:
                effect = await move(steps.send, reply)
    except _Ended as ended:
        return ended.value  # type: ignore[no-any-return]
    finally:
        steps.close()


class _Ended(Exception):
    """The steps have come to their end; a coroutine cannot raise StopIteration."""

    def __init__(self, value: Any) -> None:
        self.value = value


async def _moved(move: Callable[[Any], Effect], given: Any) -> Effect:
    """The next effect."""
    return _next(move, given)


async def _moved_in_thread(move: Callable[[Any], Effect], given: Any) -> Effect:
    """The next effect, worked out in a thread."""
    from ullage.stores.threaded import in_thread  # it imports asyncio

    return await in_thread(_next, move, given)


def _next(move: Callable[[Any], Effect], given: Any) -> Effect:
    try:
        return move(given)
    except StopIteration as stop:
        raise _Ended(stop.value) from None


async def _acted(act: Callable[[], Any]) -> Any:
    """What a function returns: awaited, or in a thread if it may block."""
    from ullage.stores.threaded import in_thread  # it imports asyncio

    return await (act() if inspect.iscoroutinefunction(act) else in_thread(act))


def _do(effect: Effect, store: Store | AsyncStore, tenant: str) -> Any:
    """What an effect is on a store: a reply, or an awaitable of it from an async store."""
    match effect:
        case Commit(outputs=outputs, records=records):
            return store.commit(tenant, outputs, records)
        case Find(keys=keys):
            return store.find(tenant, keys)
        case Get(ref=ref):
            return store.get(tenant, ref)
        case Look(ref=ref):
            return store.look(tenant, ref)
        case Chunk(ref=ref, n=n):
            return store.chunk(tenant, ref, n)

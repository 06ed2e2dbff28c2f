"""Any store, for an event loop: each call runs in a worker thread.

A cancelled write waits for its thread (`in_thread`). Reads are simply left behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from ullage.core.values.carried import Portable
from ullage.stores._base import Store

P = ParamSpec("P")
T = TypeVar("T")

_Runner: TypeAlias = Callable[..., Coroutine[Any, Any, Any]]


async def in_thread(
    function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run a function in a worker thread, to its end.

    Args:
        function: the function.
        args: its arguments.
        kwargs: its keyword arguments.

    Raises:
        asyncio.CancelledError: the caller was cancelled; the function has ended.
    """
    return await to_its_end(asyncio.to_thread(function, *args, **kwargs))


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Await work that must not be interrupted.

    Cancelled, it waits for the work before it lets the cancellation through, so that when the
    caller goes on, the work has happened or never will.

    Args:
        work: a coroutine.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait((task,))
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        if not task.cancelled():
            task.exception()  # seen: the cancellation is what the caller hears of
        raise
    return task.result()


def _threaded(
    method: Callable[Concatenate[Store, P], T],
    run: _Runner = asyncio.to_thread,
) -> Callable[Concatenate[Threaded, P], Coroutine[Any, Any, T]]:
    """A method that calls the same one of the store underneath, in a worker thread."""
    name = method.__name__

    async def call(self: Threaded, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = await run(getattr(self.store, name), *args, **kwargs)
        return result

    call.__doc__ = f"`Store.{name}` in a thread."
    return call


class Threaded(Portable):
    """An `AsyncStore` over a `Store`. The errors are those of the store.

    Attributes:
        store: the store underneath; closing this closes it.
        blocking: the same, for what is in a thread already; None where a subclass has its say.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.name = store.name
        self.blocking = store if type(self) is Threaded else None

    put = _threaded(Store.put, in_thread)
    append = _threaded(Store.append, in_thread)
    commit = _threaded(Store.commit, in_thread)
    find = _threaded(Store.find)
    newest = _threaded(Store.newest)
    get = _threaded(Store.get)
    stat = _threaded(Store.stat)
    chunk = _threaded(Store.chunk)
    refs = _threaded(Store.refs)
    existing_refs = _threaded(Store.existing_refs)
    collect = _threaded(Store.collect)
    close = _threaded(Store.close)

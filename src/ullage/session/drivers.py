"""Drivers: run generators of what is to be done, for threads and for an event loop.

`drive` and `adrive` run any; `run` and `arun` do the core's effects on a real store.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from functools import partial
from operator import call
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ullage.core.values.effects import (
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
from ullage.stores.leases import once

if TYPE_CHECKING:  # who only reads in a store loads nothing else
    from ullage.session.summarise import StoredReplies, Summaries
    from ullage.stores import AsyncStore, Store

T = TypeVar("T")
E = TypeVar("E")
Actions: TypeAlias = Generator[Callable[[], Any], Any, T]
"""Steps that ask for what functions without arguments return; an event loop awaits it."""


def drive(steps: Generator[E, Any, T], do: Callable[[Any], Any] = call) -> T:
    """Run steps to their end, doing each thing they ask for.

    Args:
        steps: what is to be run.
        do: does one thing. By default each thing is a function, and is called (`Actions`).

    What ``do`` raises is thrown into the steps, an interrupt too, so that they can undo what they
    began; they are closed in any case.
    """
    try:
        effect = next(steps)
        while True:
            try:
                answer = do(effect)
            except BaseException as error:  # noqa: BLE001 - the steps see it, or it goes on from there
                effect = steps.throw(error)
            else:
                effect = steps.send(answer)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        steps.close()


async def adrive(
    steps: Generator[E, Any, T],
    do: Callable[[Any], Any] = call,
    *,
    is_heavy: bool = False,
) -> T:
    """`drive` for an event loop: what ``do`` returns is awaited where it can be.

    Args:
        steps: what is to be run.
        do: does one thing; it may return an awaitable.
        is_heavy: whether the work between two things is done in a thread, so that the loop stays
            free. Cancelled, this waits for the thread.

    Returns:
        What the steps return.
    """
    if is_heavy:
        from ullage.stores.threaded import in_thread  # it imports asyncio
    try:
        effect = (
            await in_thread(_next, steps.send, None)
            if is_heavy
            else steps.send(None)
        )
        while True:
            try:
                answer = do(effect)
                if isinstance(answer, Awaitable):
                    answer = await answer
            except Exception as error:  # noqa: BLE001
                effect = (
                    await in_thread(_next, steps.throw, error)
                    if is_heavy
                    else steps.throw(error)
                )
            except BaseException as stop:  # noqa: BLE001
                effect = steps.throw(
                    stop
                )  # a cancellation waits for no thread
            else:
                effect = (
                    await in_thread(_next, steps.send, answer)
                    if is_heavy
                    else steps.send(answer)
                )
    except (StopIteration, _StepsEnded) as ended:
        return ended.value  # type: ignore[no-any-return]
    finally:
        steps.close()


class _StepsEnded(Exception):
    """The steps have returned: no thread can raise StopIteration into a coroutine."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _next(move: Callable[[Any], Any], answer: Any) -> Any:
    """The next thing that the steps ask for."""
    try:
        return move(answer)
    except StopIteration as stop:
        raise _StepsEnded(stop.value) from None


# ── the core's effects ───────────────────────────────────────────────────────────────────


def run(
    steps: Steps[T],
    store: Store,
    tenant: str,
    summaries: Summaries | StoredReplies | None = None,
) -> T:
    """Run steps of the core on a store.

    Args:
        steps: what is to be run.
        store: does the effects that they ask for.
        tenant: whose content and records they are about.
        summaries: the summariser; None: no summary is written.

    Returns:
        What the steps return.

    Raises:
        StoreError: the store failed, and the steps let that pass.
    """
    ask = None if summaries is None else asking(summaries, store, tenant)
    return drive(
        steps, partial(_perform, ask=ask, act=call, store=store, tenant=tenant)
    )


async def arun(
    steps: Steps[T],
    store: AsyncStore,
    tenant: str,
    summaries: Summaries | StoredReplies | None = None,
    *,
    is_heavy: bool = False,
) -> T:
    """`run` for an event loop; see `adrive`."""
    ask = None if summaries is None else awaiting(summaries, store, tenant)
    do = partial(_perform, ask=ask, act=_act, store=store, tenant=tenant)
    return await adrive(steps, do, is_heavy=is_heavy)


async def _act(act: Callable[[], Any]) -> Any:
    """The value of a function: awaited, or computed in a thread if it may block."""
    from inspect import iscoroutinefunction

    from ullage.stores.threaded import in_thread  # it imports asyncio

    return await (act() if iscoroutinefunction(act) else in_thread(act))


def asking(
    summaries: Summaries | StoredReplies, store: object, tenant: str
) -> Callable[[Summarise], Any]:
    """A function that asks for a summary: under a lease, where the store has leases."""
    if not summaries.asks:
        return summaries.ask
    ask = summaries.ask
    longest_s = summaries.summariser.timeout_s
    return lambda request: drive(once(request, ask, store, tenant, longest_s))


def awaiting(
    summaries: Summaries | StoredReplies, store: object, tenant: str
) -> Callable[[Summarise], Any]:
    """`asking` for an event loop."""
    if not summaries.asks:
        return summaries.ask
    ask = summaries.aask
    longest_s = summaries.summariser.timeout_s
    return lambda request: adrive(
        once(request, ask, store, tenant, longest_s), _act
    )


def _perform(
    effect: Effect,
    *,
    ask: Callable[[Summarise], Any] | None,
    act: Callable[[Callable[[], Any]], Any],
    store: Store | AsyncStore,
    tenant: str,
) -> Any:
    """Do one effect: return its reply, or an awaitable of it where the store is awaited."""
    match effect:
        case Find(keys=keys):
            return store.find(tenant, keys)
        case Commit(outputs=outputs, records=records):
            return store.commit(tenant, outputs, records)
        case Get(ref=ref):
            return store.get(tenant, ref)
        case Look(ref=ref):
            return store.stat(tenant, ref)
        case Chunk(ref=ref, n=n):
            return store.chunk(tenant, ref, n)
        case Summarise():
            return ask and ask(effect)
        case Do(act=action):
            return act(action)

"""Streams that pass on their events as they come, and are observed when they end.

An SDK's stream stays the very object that its client returned: what it reads its events from
is put behind a `Tap`, before the first of them. So helpers that gather a reply, such as
``text_stream`` and ``get_final_message``, need nothing from us. An iterator of any other kind is
given out as a `Tap`, which has all of its attributes.

A stream is observed once: when it ends, breaks off or is closed. One that is dropped unread, and
not closed, is not; the next `fit` gives back what its call had claimed of a budget.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import ref

from ullage.wires import usage_of_stream

if TYPE_CHECKING:
    from ullage.session.call import AsyncRound, Round

__all__ = ["AsyncTap", "Tap", "source_of", "tapped"]


def tapped(stream: Any, tap: Callable[[Any, Any], Any]) -> Any:
    """A stream whose events go through a tap: the SDK's own object where it is one.

    Args:
        stream: what a client returned, or what its manager was entered for.
        tap: makes the `Tap` of some events and of what closes their source.
    """
    raw, events = source_of(stream)
    if events is stream:
        return tap(stream, stream)
    if not isinstance(events, (Tap, AsyncTap)):  # a raw response parses to one stream, twice
        raw._iterator = tap(events, ref(stream))
        stream.close = raw._iterator.close
    return stream


def source_of(stream: Any) -> tuple[Any, Any]:
    """Where a stream's events come from: what holds their iterator, and the iterator."""
    raw = getattr(stream, "_raw_stream", stream)
    return raw, getattr(raw, "_iterator", stream)


class _Tapped:
    """What both taps share: the events that speak of usage, and whether any was given out."""

    def __init__(self, round: Any, events: Any, source: Any) -> None:
        self._round, self._events, self._source = round, events, source
        self._has_given = False
        self._telling: list[Any] = []

    def _given(self, event: Any) -> Any:
        self._has_given = True
        if usage_of_stream(self._round.wire, (event,)) is not None:
            self._telling.append(event)
        return event

    def _closing(self, name: str) -> Callable[[], Any]:
        """What closes the source, or does nothing where it has no such thing.

        The SDK's stream is not held: one that is dropped closes its connection at once.
        """
        source = self._source() if isinstance(self._source, ref) else self._source
        if source is self._events:
            return getattr(source, name, _nothing)
        method = getattr(type(source), name, None)  # and not the one that stands in its place
        return _nothing if method is None else partial(method, source)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._events, name)


class Tap(_Tapped):
    """The events of one call, read once."""

    _round: Round

    def __iter__(self) -> Tap:
        return self

    def __next__(self) -> Any:
        try:
            return self._given(next(self._events))
        except StopIteration:
            self._round.observe(self._telling)
            raise
        except BaseException as error:
            if self._has_given or not self._round.may_retry(error):
                self._round.observe(self._telling)
                raise
        self._events, self._source = self._round.events_again()
        return next(self)

    def close(self) -> None:
        """Close the stream, and observe what it told until now."""
        try:
            self._closing("close")()
        finally:
            self._round.observe(self._telling)

    def __enter__(self) -> Tap:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncTap(_Tapped):
    """`Tap` for an event loop."""

    _round: AsyncRound

    def __aiter__(self) -> AsyncTap:
        return self

    async def __anext__(self) -> Any:
        try:
            return self._given(await anext(self._events))
        except StopAsyncIteration:
            await self._round.observe(self._telling)
            raise
        except BaseException as error:
            if self._has_given or not self._round.may_retry(error):
                await self._round.observe(self._telling)
                raise
        self._events, self._source = await self._round.events_again()
        return await anext(self)

    async def close(self) -> None:
        """See `Tap.close`."""
        closing = self._closing("close")
        try:
            closed = self._closing("aclose")() if closing is _nothing else closing()
            if isinstance(closed, Awaitable):
                await closed
        finally:
            await self._round.observe(self._telling)

    aclose = close

    async def __aenter__(self) -> AsyncTap:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


def _nothing() -> None:
    """There is nothing to be closed."""

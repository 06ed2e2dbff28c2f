"""Streams that pass on their events as they come, and are observed when they end.

An SDK's stream stays the very object that its client returned: what it reads its events from
is put behind a `Tap`, before the first of them. So helpers that gather a reply, such as
``text_stream`` and ``get_final_message``, need nothing from us. An iterator of any other kind is
given out as a `Tap`, which has all of its attributes.

A stream is observed once: when it ends, breaks off or is closed. One that is dropped unread, and
not closed, is not; from the next `fit` on its call counts by our estimate (`ullage.session.spend`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import ref

from ullage.session.closing import AsyncClosing, Closing
from ullage.session.drivers import Actions

if TYPE_CHECKING:
    from ullage.session.provider.call import ProviderCall

_END = object()


def tapped(stream: Any, tap: Callable[[Any, Any], Any]) -> Any:
    """A stream whose events go through a tap: the SDK's own object where it is one.

    Args:
        stream: what a client returned, or what its manager was entered for.
        tap: makes the `Tap` of some events and of what closes their source.
    """
    raw, events = source_of(stream)
    if events is stream:
        return tap(stream, stream)
    # a raw response that is parsed twice gives the same stream
    if not isinstance(events, (Tap, AsyncTap)):
        raw._iterator = tap(events, ref(stream))
        stream.close = raw._iterator.close
    return stream


def source_of(stream: Any) -> tuple[Any, Any]:
    """The object that holds a stream's iterator, and that iterator.

    Args:
        stream: what a client returned.
    """
    raw = getattr(stream, "_raw_stream", stream)
    return raw, getattr(raw, "_iterator", stream)


class _Tapped:
    """The part both taps share: events are read once, those that report usage are kept."""

    def __init__(self, call: ProviderCall, events: Any, source: Any) -> None:
        self._call = call
        self._events = events
        self._source = source
        self._has_given = False
        self._reporting: list[Any] = []

    def _event(self, next_of: Callable[[Any, Any], Any]) -> Actions[Any]:
        """The next event, or `_END`; the first one of another try where the call was refused."""
        while True:
            try:
                event = yield partial(next_of, self._events, _END)
            except BaseException as error:
                if self._has_given or not self._call.may_retry(error):
                    yield from self._call.observe(self._reporting)
                    raise
            else:
                break
            self._events, self._source = yield from self._call.reopen_stream()
        if event is _END:
            yield from self._call.observe(self._reporting)
            return _END
        # from here on the caller has seen a part of the reply: no second try
        self._has_given = True
        if self._call.view.reports(event):
            self._reporting.append(event)
        return event

    def _closed(self, *names: str) -> Actions[None]:
        """Close the source by the first of these methods it has, and observe what was reported."""
        try:
            yield next(filter(None, map(self._closing, names)), lambda: None)
        finally:
            yield from self._call.observe(self._reporting)

    def _closing(self, name: str) -> Callable[[], Any] | None:
        """The function that closes the source, if it has one.

        The SDK's stream is not held: one that is dropped closes its connection at once.
        """
        source = (
            self._source() if isinstance(self._source, ref) else self._source
        )
        if source is self._events:
            return getattr(source, name, None)
        method = getattr(
            type(source), name, None
        )  # and not the one put in its place
        return None if method is None else partial(method, source)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._events, name)


class Tap(_Tapped, Closing):
    """The events of a call by a client that blocks."""

    def __iter__(self) -> Tap:
        return self

    def __next__(self) -> Any:
        event = self._call.run(self._event(next))
        if event is _END:
            raise StopIteration
        return event

    def close(self) -> None:
        """Close the stream, and observe what it reported until now."""
        self._call.run(self._closed("close"))


class AsyncTap(_Tapped, AsyncClosing):
    """`Tap` for an event loop."""

    def __aiter__(self) -> AsyncTap:
        return self

    async def __anext__(self) -> Any:
        event = await self._call.run(self._event(anext))
        if event is _END:
            raise StopAsyncIteration
        return event

    async def close(self) -> None:
        """See `Tap.close`."""
        await self._call.run(self._closed("close", "aclose"))

    aclose = close

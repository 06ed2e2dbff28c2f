"""One provider call from end to end: fit the request, call, observe the reply.

    reply = session.call(client.messages.create, **request)

    fit ─▶ create ─▶ a reply         observed, and given back
                  ├▶ a stream        observed when it ends, breaks off or is closed
                  ├▶ a manager       entered by the caller; the stream in it as above
                  └▶ a raw response  what it parses to, as above

What a client returns is given back as it is. A request that the provider calls too long is made
shorter and sent once more, as long as nothing of a reply was given out.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ullage.errors import ConfigError, OverLimitError, StoreError
from ullage.session.streams import AsyncTap, Tap, source_of, tapped
from ullage.values.events import Event
from ullage.wires.reported import Unreadable, is_raw, is_stream

__all__ = ["AsyncRound", "Round", "acall", "call"]

if TYPE_CHECKING:
    from ullage.session.aio import AsyncSession
    from ullage.session.session import Session
    from ullage.session.view import AsyncView, View


def call(session: Session, create: Callable[..., Any], request: Mapping[str, Any]) -> Any:
    """See `Session.call`."""
    round = Round(session, create, request)
    return round.given(round.send())


async def acall(
    session: AsyncSession, create: Callable[..., Any], request: Mapping[str, Any]
) -> Any:
    """See `AsyncSession.call`."""
    round = AsyncRound(session, create, request)
    return await round.given(await round.send())


class _Round:
    """One call, until its reply is observed or it has failed.

    Attributes:
        view: the view that was sent.
        wire: the name of the wire of the request.
        is_over: whether the reply was observed, or there is none.
    """

    def __init__(
        self, session: Any, create: Callable[..., Any], request: Mapping[str, Any]
    ) -> None:
        self.session, self.is_over, self.wire = session, False, ""
        self.view: Any = None
        self._create, self._request = create, request
        self._refusal: BaseException | None = None

    def may_retry(self, error: BaseException) -> bool:
        """Whether a call that failed may be made once more. If not, it is over."""
        refused = isinstance(error, Exception) and self.view.refused(error) is not None
        if not refused:
            self.session.release()
        retry = refused and self._refusal is None
        self._refusal, self.is_over = error, not retry
        return retry

    def _too_small(self) -> None:
        """Nothing shorter can be sent: what the provider said of the longer request stands."""
        refusal, self._refusal = self._refusal, None
        if refusal is not None:
            raise refusal

    def _called(self, view: View | AsyncView) -> Any:
        self.view, self.wire = view, view.wire.wire
        return self._create(**view)

    def _unkept(self, error: StoreError) -> None:
        """Say that the usage could not be kept; the reply is there, and paid for."""
        why = f"the reply's usage could not be kept: {error}"
        self.session.emit(Event(kind="unreported", where="reply", why=why))


class Round(_Round):
    """A call by a client that blocks."""

    session: Session

    def send(self) -> Any:
        """What the client returns for the view; a shorter one if the first is too long."""
        while True:
            try:
                view = self.session.fit(self._request)
            except OverLimitError:
                self._too_small()
                raise
            try:
                reply = self._called(view)
                if inspect.isawaitable(reply):
                    raise _misfit(reply, "an asynchronous client", "an AsyncSession")
            except BaseException as error:
                if not self.may_retry(error):
                    raise
            else:
                return reply

    def given(self, reply: Any) -> Any:
        """A reply as the caller gets it, and observed: now, or when it has been read."""
        if is_raw(reply):
            self.given(_parsed(reply))
        elif hasattr(type(reply), "__next__"):
            return tapped(reply, partial(Tap, self))
        elif is_stream(reply) or hasattr(type(reply), "__aenter__"):
            raise _misfit(reply, "an asynchronous client", "an AsyncSession")
        elif hasattr(type(reply), "__enter__"):
            return _Manager(self, reply)
        else:
            self.observe(reply)
        return reply

    def entered(self, opened: Any) -> Any:
        """What a manager was entered for: a stream, or a response whose body is to be read."""
        if not is_raw(opened):
            return self.given(opened)
        parse = opened.parse
        opened.parse = lambda **to: self.given(parse(**to))
        return opened

    def events_again(self) -> tuple[Any, Any]:
        """The events of another try, and what they come from."""
        stream = self.send()
        while not hasattr(type(stream), "__next__"):
            stream = stream.parse() if is_raw(stream) else stream.__enter__()
        return source_of(stream)[1], stream

    def observe(self, reply: Any) -> None:
        """Take a reply in, the first time."""
        if not self.is_over:
            self.is_over = True
            try:
                self.view.observe(reply)
            except StoreError as error:
                self._unkept(error)


class AsyncRound(_Round):
    """A call by a client that is awaited."""

    session: AsyncSession

    async def send(self) -> Any:
        """See `Round.send`."""
        while True:
            try:
                view = await self.session.fit(self._request)
            except OverLimitError:
                self._too_small()
                raise
            try:
                reply = self._called(view)
                return await reply if inspect.isawaitable(reply) else reply
            except BaseException as error:
                if not self.may_retry(error):
                    raise

    async def given(self, reply: Any) -> Any:
        """See `Round.given`."""
        if is_raw(reply):
            await self.given(await _awaited(_parsed(reply)))
        elif hasattr(type(reply), "__anext__"):
            return tapped(reply, partial(AsyncTap, self))
        elif hasattr(type(reply), "__aenter__"):
            return _AsyncManager(self, reply)
        elif is_stream(reply) or hasattr(type(reply), "__enter__"):
            raise _misfit(reply, "a client that blocks", "a Session")
        else:
            await self.observe(reply)
        return reply

    def entered(self, opened: Any) -> Any:
        """See `Round.entered`."""
        parse = opened.parse

        async def parsed(**to: Any) -> Any:
            return await self.given(await _awaited(parse(**to)))

        opened.parse = parsed
        return opened

    async def events_again(self) -> tuple[Any, Any]:
        """See `Round.events_again`."""
        stream = await self.send()
        while not hasattr(type(stream), "__anext__"):
            opened = stream.parse() if is_raw(stream) else stream.__aenter__()
            stream = await _awaited(opened)
        return source_of(stream)[1], stream

    async def observe(self, reply: Any) -> None:
        """See `Round.observe`."""
        if not self.is_over:
            self.is_over = True
            try:
                await self.view.observe(reply)
            except StoreError as error:
                self._unkept(error)


class _Manager:
    """A client's manager: entering it makes the request."""

    def __init__(self, round: Round, manager: Any) -> None:
        self._round, self._manager = round, manager
        self._opened: Any = None

    def __enter__(self) -> Any:
        while True:
            try:
                self._opened = self._manager.__enter__()
            except BaseException as error:
                if not self._round.may_retry(error):
                    raise
                self._manager = self._round.send()
            else:
                return self._round.entered(self._opened)

    def __exit__(self, *error: Any) -> Any:
        try:
            return self._manager.__exit__(*error)
        finally:
            self._round.observe(_read_of(self._opened))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manager, name)


class _AsyncManager:
    """`_Manager` for an event loop."""

    def __init__(self, round: AsyncRound, manager: Any) -> None:
        self._round, self._manager = round, manager
        self._opened: Any = None

    async def __aenter__(self) -> Any:
        while True:
            try:
                self._opened = await self._manager.__aenter__()
            except BaseException as error:
                if not self._round.may_retry(error):
                    raise
                self._manager = await self._round.send()
            else:
                is_response = is_raw(self._opened)
                opened = self._opened
                return (
                    self._round.entered(opened) if is_response else await self._round.given(opened)
                )

    async def __aexit__(self, *error: Any) -> Any:
        try:
            return await self._manager.__aexit__(*error)
        finally:
            await self._round.observe(_read_of(self._opened))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manager, name)


def _read_of(opened: Any) -> Any:
    """What of a response was read without being parsed: its body, or its events."""
    try:
        text = opened.http_response.text
        if text.startswith(("event:", "data:")):
            lines = [line[5:] for line in text.splitlines() if line.startswith("data:")]
            return [json.loads(line) for line in lines if line.strip() != "[DONE]"]
        return json.loads(text)
    except Exception:  # noqa: BLE001 - it was not read, or not kept: then nobody knows
        return opened


def _parsed(response: Any) -> Any:
    """What a raw response parses to; where the SDK cannot read it, that is for the caller."""
    try:
        return response.parse()
    except Exception as error:  # noqa: BLE001 - an SDK raises what it likes
        return Unreadable(f"a raw response that does not parse ({type(error).__name__})")


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _misfit(reply: Any, what: str, remedy: str) -> ConfigError:
    """The error for a client of the other kind."""
    if inspect.iscoroutine(reply):
        reply.close()
    return ConfigError("create", f"it belongs to {what}", f"Use {remedy}.")

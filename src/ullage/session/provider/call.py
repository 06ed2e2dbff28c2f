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
from typing import Any

from ullage.core.errors import ConfigError
from ullage.session.drivers import Actions, adrive, drive
from ullage.session.provider.streams import AsyncTap, Tap, source_of, tapped
from ullage.wires.reported import Unreadable, is_raw, is_stream
from ullage.wires.streams import stream_in


class ProviderCall:
    """One call, until its reply is observed or it has failed: steps for either driver.

    Attributes:
        view: the view that was sent.
        is_over: whether the reply was observed, or there is none.
        run: runs steps of it: as a call, or as something to be awaited.
    """

    def __init__(
        self,
        session: Any,
        create: Callable[..., Any],
        request: Mapping[str, Any],
        *,
        is_awaited: bool,
    ) -> None:
        self.session = session
        self.is_over = False
        self.view: Any = None
        self.run: Callable[[Actions[Any]], Any] = (
            adrive if is_awaited else drive
        )
        self._create = create
        self._request = request
        self._is_awaited = is_awaited
        self._next, self._enter = _NAMES[is_awaited]
        self._refusal: BaseException | None = None

    def steps(self) -> Actions[Any]:
        """Steps from the request to the reply as the caller gets it."""
        return (yield from self.deliver((yield from self.send())))

    def send(self) -> Actions[Any]:
        """Steps that send the view, or a shorter one; they return what the client returns."""
        while True:
            # where nothing shorter can be sent, the provider's refusal is raised
            refusal = self._refusal
            self.view = yield from self.session.fit_or_pass(
                self._request, refusal
            )
            try:
                return (yield self._call_client)
            except BaseException as error:
                if not self.may_retry(error):
                    raise

    def may_retry(self, error: BaseException) -> bool:
        """Whether a call that failed may be made once more; if not, it is over.

        Args:
            error: what the call raised. A refusal is reported to the session.
        """
        refused = (
            isinstance(error, Exception)
            and self.view.refused(error) is not None
        )
        if not refused:
            self.session.release()
        retry = refused and self._refusal is None
        self._refusal = error
        self.is_over = not retry
        return retry

    def deliver(self, reply: Any) -> Actions[Any]:
        """Steps that return a reply as the caller gets it.

        Args:
            reply: what the client returned. A complete reply is observed now; a stream, a manager
                or a raw response when it has been read.

        Raises:
            ConfigError: the reply is one of the other kind of client.
        """
        kind = type(reply)
        foreign_methods = _NAMES[not self._is_awaited]
        if is_raw(reply):
            yield from self.deliver((yield partial(_parse, reply)))
        elif (events := stream_in(reply)) is not None and not self._is_awaited:
            tap = tapped(events, partial(Tap, self))
            return (
                {**reply, "stream": tap} if isinstance(reply, Mapping) else tap
            )
        elif hasattr(kind, self._next):
            return tapped(
                reply, partial(AsyncTap if self._is_awaited else Tap, self)
            )
        elif hasattr(kind, self._enter):
            return (_AsyncManager if self._is_awaited else _Manager)(
                self, reply
            )
        elif is_stream(reply) or any(
            hasattr(kind, name) for name in foreign_methods
        ):
            raise self._misfit(reply)
        else:
            yield from self.observe(reply)
        return reply

    def deliver_opened(self, opened: Any) -> Actions[Any]:
        """Steps that return what a manager was entered for, as the caller gets it.

        Args:
            opened: a stream, or a response whose body is still to be read.
        """
        if not is_raw(opened):
            return (yield from self.deliver(opened))
        parse = opened.parse
        opened.parse = lambda **to: self.run(
            self._deliver_parsed(partial(parse, **to))
        )
        return opened

    def reopen_stream(self) -> Actions[Any]:
        """Steps that send the request again; they return the new events and their source."""
        stream = yield from self.send()
        stream = stream_in(stream) or stream
        while not hasattr(type(stream), self._next):
            stream = (
                yield stream.parse
                if is_raw(stream)
                else getattr(stream, self._enter)
            )
        return source_of(stream)[1], stream

    def observe(self, reply: Any) -> Actions[None]:
        """Steps that take in a reply, the first time they run.

        Args:
            reply: as for `ullage.Session.observe`.
        """
        if self.is_over:
            return
        self.is_over = True
        try:
            yield partial(self.view.observe, reply)
        except Exception as error:  # noqa: BLE001 - the reply is there, and paid for
            self.session.leave_uncounted(error)

    def _call_client(self) -> Any:
        reply = self._create(**self.view)
        if not self._is_awaited and inspect.isawaitable(reply):
            raise self._misfit(reply)
        return reply

    def _deliver_parsed(self, parse: Callable[[], Any]) -> Actions[Any]:
        return (yield from self.deliver((yield parse)))

    def _misfit(self, reply: Any) -> ConfigError:
        """The error for a client of the other kind: sync for async, or async for sync."""
        if inspect.iscoroutine(reply):
            reply.close()
        if self._is_awaited:
            return ConfigError(
                "create",
                "it belongs to a client that blocks",
                "Use a Session.",
            )
        problem = "it belongs to an asynchronous client"
        return ConfigError("create", problem, "Use an AsyncSession.")


_NAMES = {False: ("__next__", "__enter__"), True: ("__anext__", "__aenter__")}
"""What a stream has and what a manager has, of clients that block and of those that do not."""


class _Entered:
    """The part both managers share: the request is sent when the manager is entered."""

    def __init__(self, call: ProviderCall, manager: Any) -> None:
        self._call = call
        self._manager = manager
        self._opened: Any = None

    def _enter(self, name: str) -> Actions[Any]:
        while True:
            try:
                self._opened = yield getattr(self._manager, name)
            except BaseException as error:
                if not self._call.may_retry(error):
                    raise
                self._manager = yield from self._call.send()
            else:
                return (yield from self._call.deliver_opened(self._opened))

    def _exit(self, leave: Callable[[], Any]) -> Actions[Any]:
        try:
            return (yield leave)
        finally:
            yield from self._call.observe(_unparsed_content(self._opened))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manager, name)


class _Manager(_Entered):
    """A client's manager."""

    def __enter__(self) -> Any:
        return self._call.run(self._enter("__enter__"))

    def __exit__(self, *error: Any) -> Any:
        return self._call.run(
            self._exit(partial(self._manager.__exit__, *error))
        )


class _AsyncManager(_Entered):
    """A client's manager for an event loop."""

    async def __aenter__(self) -> Any:
        return await self._call.run(self._enter("__aenter__"))

    async def __aexit__(self, *error: Any) -> Any:
        return await self._call.run(
            self._exit(partial(self._manager.__aexit__, *error))
        )


def _unparsed_content(opened: Any) -> Any:
    """The body or the events of a response that was read but not parsed; else the response."""
    try:
        text = opened.http_response.text
        if text.startswith(("event:", "data:")):
            lines = [
                line[5:]
                for line in text.splitlines()
                if line.startswith("data:")
            ]
            return [
                json.loads(line) for line in lines if line.strip() != "[DONE]"
            ]
        return json.loads(text)
    except Exception:  # noqa: BLE001 - it was not read, or not kept: then nobody knows
        return opened


def _parse(response: Any) -> Any:
    """The value that a raw response parses to; `Unreadable` where the SDK fails."""
    try:
        return response.parse()
    except Exception as error:  # noqa: BLE001 - an SDK raises what it likes
        return Unreadable(
            f"a raw response that does not parse ({type(error).__name__})"
        )

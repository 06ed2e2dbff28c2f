"""The HTTP client that a wrapped SDK client sends through: one around the SDK's own.

The SDK builds a request, with everything that it does for it, and calls ``send``. Here the body is
fitted and sent through the HTTP client that was there, with its connections, proxies, hooks and
authentication. The SDK's retries are around this: each try is fitted again, to the same bytes.

The classes are made for the library of the client that was there, httpx2 or httpx: the SDKs ask for
an instance of its ``Client``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from typing import Any, NamedTuple
from weakref import ref

from ullage.doors.exchange import ClientAnswer, Passed, route_of
from ullage.doors.host import Actions, adrive, drive
from ullage.doors.wrapping._signing import Signer, is_signed
from ullage.doors.wrapping.wrapped import Wrapped

_OF_BODY = (b"content-length", b"content-encoding", b"transfer-encoding")


class _Names(NamedTuple):
    """The names of a library's methods, for blocking and for asynchronous clients."""

    read: str
    close: str
    chunks: str
    next: Callable[[Any, bytes], Any]


_SYNC = _Names("read", "close", "iter_bytes", next)
_ASYNC = _Names("aread", "aclose", "aiter_bytes", anext)


def library_of(client: Any) -> str | None:
    """The library whose HTTP client this is: ``"httpx2"``, ``"httpx"`` or None."""
    roots = (
        kind.__module__.partition(".")[0] for kind in type(client).__mro__
    )
    return next((root for root in roots if root in ("httpx2", "httpx")), None)


def is_awaited(client: Any) -> bool:
    """Whether an HTTP client is for an event loop."""
    return hasattr(client, "aclose")


def http_client_around(inner: Any, wrapped: Wrapped, signer: Signer) -> Any:
    """An HTTP client that fits what is sent through ``inner``.

    Args:
        inner: the HTTP client that was there, of httpx2 or httpx.
        wrapped: what the wrapped client shares.
        signer: signs a request again whose body was changed.
    """
    return _kinds(library_of(inner) or "")[is_awaited(inner)](
        inner, wrapped, signer
    )


@cache
def _kinds(library: str) -> tuple[Any, Any]:
    """The two classes for an HTTP library: the one that blocks, and the one that is awaited."""
    module = import_module(library)
    body = type("Body", (_Body, module.SyncByteStream), {})
    awaited_body = type("AsyncBody", (_AsyncBody, module.AsyncByteStream), {})
    return (
        type(
            "Client",
            (_Client, module.Client),
            {"library": module, "body": body},
        ),
        type(
            "AsyncClient",
            (_AsyncClient, module.AsyncClient),
            {"library": module, "body": awaited_body},
        ),
    )


# ── upstream ─────────────────────────────────────────────────────────────────────────────


class _Upstream:
    """Sends one request through the client that was there; see `ullage.doors.exchange.Upstream`."""

    def __init__(
        self,
        client: _Fitting,
        request: Any,
        original_body: bytes,
        options: dict[str, Any],
    ) -> None:
        self._client = client
        self._request = request
        self._came = original_body
        self._options = options

    def send(self, body: bytes) -> Any:
        """The request itself for the body that came; with another one it is signed anew."""
        return self._client.run(self._sent(body))

    def delete(self, reply_id: str, hidden_id: str) -> Any:
        """See `ullage.doors.exchange.Upstream.delete`."""
        return self._client.run(self._deleted(reply_id, hidden_id))

    def _deleted(self, reply_id: str, hidden_id: str) -> Actions[_Reply]:
        client = self._client
        request = self._request
        url = str(request.url).replace(reply_id, hidden_id)
        also = client.library.Request(
            request.method,
            url,
            headers=request.headers,
            extensions=request.extensions,
        )
        response = yield partial(
            client.inner.send, also, stream=True, **self._options
        )
        return _Reply(response, client.names)

    def _sent(self, body: bytes) -> Actions[_Reply]:
        client = self._client
        request = self._request
        if body is not self._came:
            request = with_body(client.library, request, body)
            if is_signed(request):
                yield from client.signer.sign(request)
        response = yield partial(
            client.inner.send, request, stream=True, **self._options
        )
        return _Reply(response, client.names)


class _Reply:
    """A response that is read as it comes; see `ullage.doors.exchange.UpstreamReply`."""

    def __init__(self, response: Any, names: _Names) -> None:
        self.response = response
        self.status = response.status_code
        self.content_type = response.headers.get("content-type", "")
        self.read = getattr(response, names.read)
        self.close = getattr(response, names.close)
        self._names = names
        self._chunks = None

    def next(self) -> Any:
        """The next bytes of the body, decoded."""
        if self._chunks is None:
            self._chunks = getattr(self.response, self._names.chunks)()
        return self._names.next(self._chunks, b"")


def with_body(library: Any, request: Any, body: bytes) -> Any:
    """A request with another body."""
    headers = [
        pair
        for pair in request.headers.raw
        if pair[0].lower() != b"content-length"
    ]
    return library.Request(
        request.method,
        request.url,
        headers=headers,
        content=body,
        extensions=request.extensions,
    )


# ── the body of a streamed answer ────────────────────────────────────────────────────────


class _Body:
    """The bytes of an answer as they come.

    Attributes:
        response: the response that it is the body of.
    """

    def __init__(self, answer: ClientAnswer) -> None:
        self._answer = answer
        self.response: Callable[[], Any] = lambda: None

    def __iter__(self) -> Iterator[bytes]:
        while data := drive(self._answer.next()):
            yield data

    def close(self) -> None:
        """Close the answer, read or not."""
        drive(self._answer.close())
        self._tell_time()

    def _tell_time(self) -> None:
        """The upstream's response knows how long it took, once it is closed."""
        response = self.response()
        with suppress(
            RuntimeError
        ):  # a transport that is no network measures nothing
            if response is not None:
                response.elapsed = self._answer.reply.response.elapsed


class _AsyncBody(_Body):
    """`_Body` for an event loop."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while data := await adrive(self._answer.next()):
            yield data

    async def aclose(self) -> None:
        """See `_Body.close`."""
        await adrive(self._answer.close())
        self._tell_time()


# ── the clients ──────────────────────────────────────────────────────────────────────────


class _Fitting:
    """What both clients share: all but sending is asked of the client that was there."""

    library: Any
    body: Any
    names: _Names
    run: Callable[..., Any]
    placeholder: str

    def __init__(self, inner: Any, wrapped: Wrapped, signer: Signer) -> None:
        transport = getattr(
            self.library, self.placeholder
        )()  # nothing goes through it
        super().__init__(transport=transport, trust_env=False)  # type: ignore[call-arg]
        self.inner = inner
        self.wrapped = wrapped
        self.signer = signer

    def build_request(self, *given: Any, **named: Any) -> Any:
        """Build a request as the inner client does."""
        return self.inner.build_request(*given, **named)

    @property
    def is_closed(self) -> bool:
        """Whether the client that was there is closed."""
        return bool(self.inner.is_closed)

    @property
    def timeout(self) -> Any:
        """The time limits of the client that was there."""
        return self.inner.timeout

    def _sent(
        self, request: Any, stream: bool, options: dict[str, Any]
    ) -> Actions[Any]:
        """Fit a request, send it, and make a response of the answer."""
        path = request.url.raw_path.decode("ascii", "replace")
        passed: Passed | None = None
        body = b""  # of another path it may be a file, and is not read here
        if route_of(request.method, path) is not None:
            body = yield getattr(request, self.names.read)
            if is_signed(request) and not (
                yield from self.signer.can_sign(self.library, request)
            ):
                passed = "signature"
        upstream = _Upstream(self, request, body, options)
        exchanges = self.wrapped.exchanges(self.names is _ASYNC)
        tenant = self.wrapped.tenant
        origin = f"{request.url.scheme}://{request.url.netloc.decode('ascii', 'replace')}"
        exchange = exchanges.of(
            request.method,
            path,
            body,
            upstream,
            tenant=tenant,
            passed=passed,
            origin=origin,
        )
        answer = yield from exchange.steps()
        response = self._response(answer, request)
        if answer.body is not None:
            yield from answer.close()
        if not stream:
            yield getattr(response, self.names.read)
        return response

    def _response(self, answer: ClientAnswer, request: Any) -> Any:
        """An answer as a response of the library: the upstream's own, where nothing is changed."""
        if answer.reply is None:
            return self.library.Response(
                answer.status,
                headers={
                    "content-type": answer.content_type,
                    "x-should-retry": "false",
                },
                content=answer.body,
                request=request,
            )
        original = answer.reply.response
        if answer.is_untouched or (
            answer.body is not None and answer.body is original.content
        ):
            return original
        stream = None if answer.body is not None else self.body(answer)
        response = self.library.Response(
            answer.status,
            headers=[
                pair
                for pair in original.headers.raw
                if pair[0].lower() not in _OF_BODY
            ],
            **(
                {"content": answer.body}
                if stream is None
                else {"stream": stream}
            ),
            request=request,
            extensions=original.extensions,
            history=original.history,
        )
        if stream is not None:
            stream.response = ref(response)
        else:
            with suppress(RuntimeError):
                response.elapsed = original.elapsed
        return response


class _Client(_Fitting):
    """A client that blocks."""

    names = _SYNC
    run = staticmethod(drive)
    placeholder = "BaseTransport"

    def send(
        self, request: Any, *, stream: bool = False, **options: Any
    ) -> Any:
        """Fit a request and send it; see the SDK's HTTP library for the arguments."""
        return drive(self._sent(request, stream, options))

    def close(self) -> None:
        """Close the inner client, which is shared, and the store."""
        self.inner.close()
        self.wrapped.close()


class _AsyncClient(_Fitting):
    """`_Client` for an event loop."""

    names = _ASYNC
    run = staticmethod(adrive)
    placeholder = "AsyncBaseTransport"

    async def send(
        self, request: Any, *, stream: bool = False, **options: Any
    ) -> Any:
        """See `_Client.send`."""
        return await adrive(self._sent(request, stream, options))

    async def aclose(self) -> None:
        """See `_Client.close`."""
        await self.inner.aclose()
        await self.wrapped.aclose()

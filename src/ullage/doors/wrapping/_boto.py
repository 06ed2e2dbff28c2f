"""The HTTP session that a wrapped client of boto3 sends through: one around botocore's own.

botocore makes a request, signs it, and calls ``send``. Here the body is fitted, signed again by the
client's own signer (with a signature, or with an API key), and sent through the session that was
there. Retries are around this: each try is fitted again, to the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ullage.doors.exchange import ClientAnswer, route_of
from ullage.doors.host import Actions, drive
from ullage.doors.wrapping.wrapped import Wrapped

_SERVICE = "bedrock-runtime"
_OPERATIONS = {
    "converse": "Converse",
    "converse-stream": "ConverseStream",
    "invoke": "InvokeModel",
    "invoke-with-response-stream": "InvokeModelWithResponseStream",
}
"""The operations by the end of their paths: signers are asked by these names."""

_OF_BODY = ("content-length", "content-encoding", "transfer-encoding")
_OF_SIGNATURE = (
    "authorization",
    "x-amz-date",
    "x-amz-content-sha256",
    "x-amz-security-token",
)


def is_bedrock(client: Any) -> bool:
    """Whether this is boto3's client of Bedrock's models."""
    service = getattr(getattr(client, "meta", None), "service_model", None)
    return getattr(service, "service_name", None) == _SERVICE and hasattr(
        client, "_endpoint"
    )


def session_of(client: Any) -> Any:
    """The HTTP session of a client of boto3, or None."""
    return client._endpoint.http_session if is_bedrock(client) else None


def wrapped_around(client: Any, shared: Wrapped) -> Any:
    """A copy of a client of boto3 whose requests are fitted.

    It is of the same class, and shares all but the session that sends for it.
    """
    # its ``__getattr__`` is not made for `copy.copy`
    duplicate = object.__new__(type(client))
    vars(duplicate).update(vars(client))
    endpoint = object.__new__(type(client._endpoint))
    vars(endpoint).update(vars(client._endpoint))
    endpoint.http_session = _Session(endpoint.http_session, shared, client)
    duplicate._endpoint = endpoint
    return duplicate


class _Session:
    """An HTTP session of botocore's that fits what is sent.

    Attributes:
        wrapped: what the wrapped client shares.
    """

    def __init__(self, inner: Any, wrapped: Wrapped, client: Any) -> None:
        self.inner = inner
        self.wrapped = wrapped
        self._signer = client._request_signer

    def send(self, request: Any) -> Any:
        """Fit a request and send it; what asks no model goes as it is."""
        path = _path_of(request.url)
        is_read = route_of(request.method, path) is not None
        body = (
            request.body
            if is_read and isinstance(request.body, bytes)
            else b""
        )
        return drive(self._sent(request, path, body))

    def _sent(self, request: Any, path: str, body: bytes) -> Actions[Any]:
        exchanges = self.wrapped.exchanges(is_async=False)
        tenant = self.wrapped.tenant
        origin = request.url.partition(path)[0]
        upstream = _Upstream(request, body, self._signer, self.inner.send)
        exchange = exchanges.of(
            request.method, path, body, upstream, tenant=tenant, origin=origin
        )
        answer = yield from exchange.steps()
        response = _response(answer, request)
        if answer.body is not None:
            yield from answer.close()
        return response

    def close(self) -> None:
        """Close the inner session, which is shared, and the store."""
        self.inner.close()
        self.wrapped.close()


# ── upstream ─────────────────────────────────────────────────────────────────────────────


class _Upstream:
    """Sends one request through the session that was there; see
    `ullage.doors.exchange.Upstream`.
    """

    def __init__(
        self,
        request: Any,
        original_body: bytes,
        signer: Any,
        send: Callable[[Any], Any],
    ) -> None:
        self._request = request
        self._came = original_body
        self._signer = signer
        self._send = send

    def send(self, body: bytes) -> _Reply:
        """The request itself for the body that came; with another one it is signed anew."""
        request = self._request if body is self._came else self._signed(body)
        return _Reply(self._send(request))

    def delete(self, reply_id: str, hidden_id: str) -> _Reply:
        """See `ullage.doors.exchange.Upstream.delete`. Bedrock keeps no replies."""
        raise NotImplementedError

    def _signed(self, body: bytes) -> Any:
        """The request with another body, prepared as botocore prepares it."""
        from botocore.awsrequest import AWSRequest

        original = self._request
        headers = {
            name: _text(value) for name, value in original.headers.items()
        }
        for name in list(headers):
            if name.lower() in (*_OF_SIGNATURE, *_OF_BODY):
                del headers[name]
        again = AWSRequest(
            original.method,
            original.url,
            headers,
            body,
            stream_output=original.stream_output,
        )
        again.context.update(getattr(original, "context", None) or {})
        operation = _OPERATIONS[_path_of(original.url).rpartition("/")[2]]
        self._signer.sign(operation, again)
        return again.prepare()


class _Reply:
    """A response that is read as it comes; see `ullage.doors.exchange.UpstreamReply`."""

    def __init__(self, response: Any) -> None:
        self.response = response
        self.status = response.status_code
        self.content_type = _text(response.headers.get("content-type", ""))
        self._chunks: Iterator[bytes] | None = None

    def read(self) -> bytes:
        """The whole body."""
        content: bytes = self.response.content
        return content

    def next(self) -> bytes:
        """The next bytes of the body; none at its end."""
        if self._chunks is None:
            self._chunks = self.response.raw.stream()
        return next(self._chunks, b"")

    def close(self) -> None:
        """Let go of the connection."""
        self.response.raw.close()


def _path_of(url: str) -> str:
    """The path of a URL, quoted as it stands there."""
    rest = url.partition("://")[2]
    return "/" + rest.partition("/")[2].partition("?")[0]


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


# ── the response ─────────────────────────────────────────────────────────────────────────


def _response(answer: ClientAnswer, request: Any) -> Any:
    """An answer as a response of botocore: the upstream's own, where nothing is changed."""
    from botocore.awsrequest import AWSResponse

    if answer.reply is None:
        headers = {"content-type": answer.content_type}
    else:
        original = answer.reply.response
        if answer.is_untouched or (
            answer.body is not None and answer.body is original.content
        ):
            return original
        named = original.headers.items()
        headers = {
            name: value
            for name, value in named
            if name.lower() not in _OF_BODY
        }
    return AWSResponse(request.url, answer.status, headers, _Raw(answer))


class _Raw:
    """The body of an answer, with what botocore asks of urllib3's."""

    def __init__(self, answer: ClientAnswer) -> None:
        self._answer = answer
        self._rest = answer.body

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        """The bytes as they come. At the end, or where its reader stops, the answer is closed."""
        if self._rest is not None:
            yield self._rest
            return
        try:
            while data := drive(self._answer.next()):
                yield data
        finally:
            self.close()

    def close(self) -> None:
        """Close the answer, read or not."""
        drive(self._answer.close())

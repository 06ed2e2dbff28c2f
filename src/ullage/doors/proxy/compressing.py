"""Requests in, shorter requests out, and no upstream: for a gateway that sends them itself.

    POST /_ullage/v1/compress   a request of any wire, its history changed as the proxy would
    POST /_ullage/v1/recall     the same request and a call of a recall tool, answered

The contract is the one that gateways call (LiteLLM's and Portkey's guardrail, Kong's policy):
``messages`` and ``model`` in, ``messages`` and token counts out. Whoever is given the pages may
ask. No upstream checks a credential here, so who is given them is believed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aiohttp import web
from msgspec import Struct

from ullage.core.errors import (
    ConfigError,
    FormatError,
    OverLimitError,
    StoreError,
)
from ullage.doors.exchange import Route, bodies, requests
from ullage.doors.proxy.answers import failure
from ullage.doors.proxy.bodies import decoded, read_body
from ullage.doors.proxy.headers import TREATMENT_HEADER, program_of
from ullage.wires import FORMATS, model_in, recognise

if TYPE_CHECKING:
    from ullage.doors.proxy.relay import RequestRelay

# the paths, behind ``/_ullage``
COMPRESS = "/v1/compress"
RECALL = "/v1/recall"

_OWN_FIELDS = ("config", "format", "session_id", "recall", "call")
"""What is ours in a body, or a gateway's for its compressor; all else is the provider's request."""
_MOST_NAME_CHARS = 256
_STATUS: tuple[tuple[type[Exception], int, str], ...] = (
    (FormatError, 400, "format"),
    (OverLimitError, 422, "over_limit"),
    (ConfigError, 422, "settings"),
    (StoreError, 503, "store"),
)


class CompressRequest(Struct, frozen=True, kw_only=True):
    """What a body asks for.

    Attributes:
        request: the provider's request.
        format: the name of its wire.
        session_id: names the conversation; None: it is told by its history.
        recall: whether the caller answers calls of the recall tools, at ``/v1/recall``.
        call: the name and the arguments of such a call.
    """

    request: dict[str, Any]
    format: str
    session_id: str | None = None
    recall: bool = False
    call: tuple[str, str | dict[str, Any]] | None = None


def read_request(body: Any) -> CompressRequest:
    """What a body asks for.

    Args:
        body: its JSON value.

    Raises:
        FormatError: it is not an object with a history, or one of our fields cannot be meant.
    """
    if not isinstance(body, dict):
        raise FormatError(
            "body", "it is not a JSON object", "Send model and messages."
        )
    request = {
        name: value for name, value in body.items() if name not in _OWN_FIELDS
    }
    format_name = body.get("format")
    if format_name is None:
        format_name = recognise(request).name
    wire = FORMATS.get(str(format_name))
    if wire is None:
        raise FormatError(
            "format", "it names no wire", f"Use one of {', '.join(FORMATS)}."
        )
    if not isinstance(request.get(wire.key), list):
        raise FormatError(
            wire.key, "there is no such list", "Send the history in it."
        )
    return CompressRequest(
        request=request,
        format=wire.name,
        session_id=_name_of(body.get("session_id")),
        recall=_flag(body.get("recall")),
        call=_call_of(body.get("call")),
    )


def _name_of(value: Any) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > _MOST_NAME_CHARS:
        raise FormatError(
            "session_id",
            f"it is not a text of up to {_MOST_NAME_CHARS} characters",
            "Name the conversation, the same in each of its requests.",
        )
    return value


def _flag(value: Any) -> bool:
    if value is not None and not isinstance(value, bool):
        raise FormatError(
            "recall", "it is neither true nor false", "Leave it out for false."
        )
    return bool(value)


def _call_of(value: Any) -> tuple[str, str | dict[str, Any]] | None:
    if value is None:
        return None
    fields = value if isinstance(value, dict) else {}
    name = fields.get("name")
    arguments = fields.get("arguments", {})
    if not isinstance(name, str) or not isinstance(arguments, str | dict):
        raise FormatError(
            "call",
            "it has no name, or its arguments are neither object nor text",
            "Send name and arguments of the call.",
        )
    return name, arguments


class Compressing:
    """Answers for one worker.

    Args:
        relay: its sessions, tenants, guard and bounds.
    """

    def __init__(self, relay: RequestRelay) -> None:
        self._relay = relay

    async def __call__(
        self, request: web.BaseRequest, path: str
    ) -> web.StreamResponse:
        """Answer a request of somebody who is given the pages.

        Args:
            request: the request.
            path: `COMPRESS` or `RECALL`.
        """
        if request.method != "POST":
            return failure(405, "this is asked with POST.", Allow="POST")
        problem = self._relay.guard.problem(request)
        if problem is not None:
            return self._relay.refusal(403, f"this is not answered: {problem}")
        if self._relay.is_full:
            return self._relay.refusal(
                503,
                "too many requests are in flight. Try again.",
                Retry_After="1",
            )
        with self._relay.under_way():
            return await self._answer(request, path)

    async def _answer(
        self, request: web.BaseRequest, path: str
    ) -> web.StreamResponse:
        limits = self._relay.config.limits
        held = self._relay.held
        try:
            body = await read_body(
                request.content, limits.body_bytes, held, limits.idle_s
            )
        except TimeoutError:
            return failure(
                408, "the body did not come to its end.", Connection="close"
            )
        try:
            encoding = request.headers.get("Content-Encoding", "")
            plain = (
                decoded(body.data, encoding, limits.body_bytes)
                if body.is_whole
                else None
            )
            if plain is None:
                words = f"the body is over {limits.body_bytes:,} bytes, or cannot be decoded."
                return failure(413, words, Connection="close")
            return await self._worked_out(request, path, plain)
        finally:
            held.give(len(body.data) if body.is_whole else 0)

    async def _worked_out(
        self, request: web.BaseRequest, path: str, plain: bytes
    ) -> web.StreamResponse:
        value, write = bodies.read_to_write(plain)
        try:
            wanted = read_request(value)
            session = await self._session(request, wanted)
            answer = (
                await _compressed(session, wanted)
                if path == COMPRESS
                else await _recalled(session, wanted)
            )
        except tuple(kind for kind, _, _ in _STATUS) as error:
            return _refusal(error)
        return web.Response(
            body=write(answer),
            content_type="application/json",
            headers={
                TREATMENT_HEADER: answer.get("done", "answered"),
                "Cache-Control": "no-store",
            },
        )

    async def _session(
        self, request: web.BaseRequest, wanted: CompressRequest
    ) -> Any:
        """The session of the conversation, which is the caller's tenant's."""
        relay = self._relay
        tenant = relay.tenant_of(request, request.path_qs)
        await relay.judge(tenant, 200)
        client_request = requests.request_of(
            Route(wanted.format), wanted.request
        )
        _, session = relay.exchanges.session(
            Route(wanted.format),
            client_request,
            tenant,
            wanted.session_id,
            requests.beginning(wanted.format, client_request),
            can_recall=wanted.recall,
            client=program_of(request.headers),
        )
        return session


async def _compressed(session: Any, wanted: CompressRequest) -> dict[str, Any]:
    """The answer to `COMPRESS`: the fields that changed, the history always, and the counts."""
    view = await session.fit(wanted.request)
    session.release()  # nothing of ours is sent
    wire = FORMATS[wanted.format]
    before, after = await asyncio.to_thread(
        lambda: (view.sent.raw_tokens, view.sent.tokens)
    )
    is_same = requests.is_same(wanted.request, view)
    changed = {
        name: value
        for name, value in view.items()
        if name == wire.key or wanted.request.get(name) is not value
    }
    return {
        **changed,
        "done": "unchanged" if is_same else "fitted",
        "model": model_in(wanted.request) or "",
        "tokens_before": before,
        "tokens_after": after,
        "tokens_saved": before - after,
        "compression_ratio": round(after / before, 4) if before else 1.0,
        "transforms_applied": [event.kind for event in view.events],
    }


async def _recalled(session: Any, wanted: CompressRequest) -> dict[str, Any]:
    """The answer to `RECALL`: what the model is to read."""
    if wanted.call is None or not wanted.recall:
        raise FormatError(
            "call",
            "a call is answered where the tools are offered",
            "Send the call, and recall = true as for the request before it.",
        )
    name, arguments = wanted.call
    answer = await session.answer(name, arguments, request=wanted.request)
    return {"text": answer.text, "is_error": answer.is_error}


def _refusal(error: Exception) -> web.StreamResponse:
    """A typed error. Its words may quote the request, and go to nobody but who sent it."""
    status, code = next(
        (status, code)
        for kind, status, code in _STATUS
        if isinstance(error, kind)
    )
    return failure(status, str(error), code=code)

"""Between the JSON of a request's body and what a session fits.

A path may name the model (Gemini, Azure, Vertex, Bedrock); then it is put into the request that is
fitted, and left out of what is sent. A batch holds many requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from operator import is_
from typing import Any

from msgspec import Struct

from ullage.core.errors import FormatError
from ullage.doors.exchange.routes import Route
from ullage.doors.host import digest_of
from ullage.wires import FORMATS, wire_named

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MODEL_CHARS = 256
"""No model's name is as long: what is kept by a name, in many places, has to have a bound."""
_NEAR = 8
"""Among so many messages the first reply is looked for."""


def request_of(route: Route, body: Mapping[str, Any]) -> dict[str, Any]:
    """The request that a body is, with the model that the path names.

    Raises:
        FormatError: it is for a model of another maker, at a path that takes many; or its model
            has a name that is none.
    """
    maker_field = wire_named(route.wire).http.maker_field
    if maker_field and route.model and maker_field not in body:
        raise FormatError(
            "body", "it is for another maker's model", "It is sent as it came."
        )
    request = dict(body)
    name = FORMATS[route.wire].model_field
    if route.model and not request.get(name):
        request[name] = route.model
    model = request.get(name) or ""
    if not isinstance(model, str) or len(model) > _MODEL_CHARS:
        raise FormatError(
            "model",
            f"no name of up to {_MODEL_CHARS} characters",
            "Name a model.",
        )
    return request


def body_of(
    route: Route, fields: Collection[str], view: Mapping[str, Any]
) -> dict[str, Any]:
    """The body to send for a view. It names a model only if the client's body did."""
    name = FORMATS[route.wire].model_field
    return {
        key: value
        for key, value in view.items()
        if key != name or key in fields
    }


def is_same(request: Mapping[str, Any], view: Mapping[str, Any]) -> bool:
    """Whether a view holds the same values as its request, item by item of their lists."""
    if request.keys() != view.keys():
        return False
    return all(_are_same(value, view[key]) for key, value in request.items())


def _are_same(value: Any, view_value: Any) -> bool:
    if value is view_value:
        return True
    if not isinstance(value, list) or not isinstance(view_value, list):
        return False
    return len(value) == len(view_value) and all(map(is_, value, view_value))


def with_usage(route: Route, view: Mapping[str, Any]) -> dict[str, Any] | None:
    """The view with its stream asked to report usage, or None where it reports it anyway."""
    return wire_named(route.wire).http.with_usage(view)


class HistoryStart(Struct, frozen=True):
    """How a history begins.

    Attributes:
        opening: the digest of the first message behind the system text; ``b""``: there is none.
        reply: that of the first that replies to it; ``b""`` also where it stands far behind.
        read: whatever stands behind so many messages, the history begins like this.
    """

    opening: bytes = b""
    reply: bytes = b""
    read: int = 0


def client_session_in(request: Mapping[str, Any]) -> str:
    """A client's own name of its session, as its request has it; "" where it has none.

    Claude Code writes it into ``metadata.user_id``, Codex into ``prompt_cache_key``. Other programs
    put other things there: only what has the form of a UUID is taken.
    """
    metadata = request.get("metadata")
    user = metadata.get("user_id") if isinstance(metadata, Mapping) else None
    for value in (request.get("prompt_cache_key"), user):
        matches = _UUID.findall(value) if isinstance(value, str) else ()
        if matches:
            return str(matches[-1])
    return ""


def beginning(wire: str, request: Mapping[str, Any]) -> HistoryStart:
    """How the history of a request begins.

    Raises:
        FormatError: one of its first messages is not what the wire says it is.
    """
    format = FORMATS[wire]
    leading = len(format.leading(request))
    opening = b""
    stop = leading + _NEAR
    for at, raw in enumerate(format.history(request)[leading:stop], leading):
        message = format.parse(raw, f"{format.key}[{at}]")
        opening = opening or digest_of(message)
        if message.role == "assistant" and not message.only_thought:
            return HistoryStart(opening, digest_of(message), at + 1)
    return HistoryStart(opening, read=stop)


def with_changed_requests(
    route: Route,
    body: Mapping[str, Any],
    change: Callable[[dict[str, Any]], Any],
) -> dict[str, Any]:
    """A batch with each of its requests replaced.

    Raises:
        FormatError: there is no list of requests in it.
    """
    batch = wire_named(route.wire).http.batch
    assert batch is not None, (
        f"{route.wire} has a path for batches, and no form of one"
    )

    def changed(items: Any) -> list[Any]:
        return [_with(item, (batch.request,), change) for item in items]

    changed_batch: dict[str, Any] = _with(body, batch.requests, changed)
    return changed_batch


def requests_of_batch(
    route: Route, body: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The requests of a batch, in order. Raises FormatError: see `with_changed_requests`."""
    batch: list[dict[str, Any]] = []
    with_changed_requests(route, body, batch.append)
    return batch


def _with(
    value: Any, path: tuple[str, ...], change: Callable[[Any], Any]
) -> Any:
    if not path:
        return change(value)
    if not isinstance(value, dict) or path[0] not in value:
        raise FormatError(path[0], "there is none", "It is sent as it came.")
    return {**value, path[0]: _with(value[path[0]], path[1:], change)}

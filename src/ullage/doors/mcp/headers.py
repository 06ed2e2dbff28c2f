"""The HTTP headers of a request: the credentials among them, and what they say of the body.

From 2026-07-28 on a request says in its headers

``MCP-Protocol-Version``, ``Mcp-Method``, the name of what is called in ``Mcp-Name``, and the
arguments that a tool's ``inputSchema`` marks with ``x-mcp-header`` in ``Mcp-Param-…`` (Streamable
HTTP, "Custom Headers"; SEP-2243): a server refuses a request whose headers say something else.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from msgspec import UNSET, Raw

from ullage.doors.mcp.frames import (
    RpcMessage,
    UnreadableFrame,
    fields_of,
    items_of,
    value_of,
)
from ullage.doors.mcp.tools import version_of

Marked = Mapping[tuple[str, ...], str]
"""The arguments of a tool that are said in headers: the names on the way to each, its header."""

_CREDENTIAL = re.compile(
    r"auth|cookie|credential|jwt|passw|secret|session|signature|token|(?:^|[-_])api[-_]?key"
    r"|(?:^|[-_])(?:access|private|subscription|user|account|tenant|org|organization)(?:$|[-_])"
    r"|(?:^|[-_])key$"
)
"""Names of headers that say whose a request is, as vendors write them."""
_NO_CREDENTIAL = frozenset(
    ("mcp-session-id", "idempotency-key", "user-agent", ":authority")
)
_MARK = "x-mcp-header"
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Whose name a request says in its headers."""

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PLAIN = re.compile(
    r"(?!=\?base64\?)(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?"
)


def credentials_of(
    headers: Mapping[str, str], named: Collection[str] = ()
) -> str:
    """All that the headers of a request say of its tenant; empty where they say nothing.

    Args:
        headers: the headers of the request. A name may stand there several times.
        named: further names of headers that say whose a request is.
    """
    more = {name.lower() for name in named}
    values = [
        (name.lower(), value)
        for name, value in headers.items()
        if name.lower() in more or _is_credential(name.lower())
    ]
    return "\n".join(f"{name}: {value}" for name, value in sorted(values))


def _is_credential(name: str) -> bool:
    return name not in _NO_CREDENTIAL and _CREDENTIAL.search(name) is not None


def marked_in(result: bytes | Raw) -> dict[str, Marked]:
    """The marked arguments of each tool in the result of a ``tools/list``.

    Raises:
        Unreadable: it is not such a result.
    """
    marks: dict[str, Marked] = {}
    for raw in items_of(fields_of(result).get("tools", b"[]")):
        if _MARK.encode() in bytes(raw):
            tool = value_of(raw)
            marks[str(tool.get("name"))] = dict(
                _marks(tool.get("inputSchema"), ())
            )
    return marks


def _marks(
    schema: Any, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """The marks on properties, and on properties of those; a mark anywhere else means nothing."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, inner in (
        properties.items() if isinstance(properties, dict) else ()
    ):
        mark = inner.get(_MARK) if isinstance(inner, dict) else None
        if isinstance(mark, str) and _TOKEN.fullmatch(mark):
            yield (*path, name), mark
        yield from _marks(inner, (*path, name))


def request_headers(
    message: RpcMessage | None, marked: Mapping[str, Marked]
) -> dict[str, str]:
    """The headers of a request; none before 2026-07-28.

    Args:
        message: the request.
        marked: the marked arguments of each tool.
    """
    if message is None or message.method is UNSET or message.params is UNSET:
        return {}
    method = str(message.method)
    try:
        params = fields_of(message.params)
        version = version_of({"_meta": value_of(params.get("_meta", b"null"))})
        name = value_of(params.get(_NAMED.get(method, ""), b"null"))
        if version is None:
            return {}
        headers = {"MCP-Protocol-Version": version, "Mcp-Method": method}
        if isinstance(name, str):
            headers["Mcp-Name"] = _written(name)
        if method == "tools/call" and name in marked:
            headers |= _arguments(
                value_of(params.get("arguments", b"null")), marked[name]
            )
    except UnreadableFrame:
        return {}
    return headers


def _arguments(arguments: Any, marked: Marked) -> dict[str, str]:
    values = {mark: _at(arguments, path) for path, mark in marked.items()}
    return {
        f"Mcp-Param-{mark}": _written(
            str(value).lower() if isinstance(value, bool) else str(value)
        )
        for mark, value in values.items()
        if isinstance(value, str | int | float)
    }


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _written(value: str) -> str:
    """A value as a header may hold it."""
    if _PLAIN.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode()}?="

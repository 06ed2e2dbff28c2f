"""Errors of the proxy's own, in a form that every vendor's client reads."""

from __future__ import annotations

from typing import Any

import msgspec
from aiohttp import web

from ullage.doors.proxy.headers import TREATMENT_HEADER

_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    408: "DEADLINE_EXCEEDED",
    413: "INVALID_ARGUMENT",
    422: "FAILED_PRECONDITION",
    426: "UNIMPLEMENTED",
}
_KIND = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    408: "timeout_error",
    413: "request_too_large",
    422: "invalid_request_error",
    426: "invalid_request_error",
}


def failure(
    status: int, words: str, *, code: str = "ullage_proxy", **headers: str
) -> web.Response:
    """An error of the proxy's own; ``X-Ullage`` says that it is none of the upstream's.

    Args:
        status: of HTTP.
        words: what happened, and what to do.
        code: what kind of error it is, for a program.
        headers: more of them; an underscore is a hyphen. ``Connection="close"`` closes it, too.
    """
    error = {
        "type": _KIND.get(status, "api_error"),
        "message": f"ullage proxy: {words}",
        "code": code,
        "status": _STATUS.get(status, "UNAVAILABLE"),
    }
    more = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = json_answer({"type": "error", "error": error}, status)
    answer.headers.update({TREATMENT_HEADER: "error", **more})
    if more.get("Connection") == "close":
        answer.force_close()
    return answer


def json_answer(value: Any, status: int = 200) -> web.Response:
    """A value as JSON."""
    return web.Response(
        body=msgspec.json.encode(value),
        status=status,
        content_type="application/json",
    )

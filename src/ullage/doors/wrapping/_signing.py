"""Requests that are signed with their body (Amazon's signature 4): signed again for another body.

The SDK signs a request before it sends it, in a hook of its own; the same hook signs it again. A
copy of a client (``with_options``) may have other credentials, and its requests are not told from
those of the client that was wrapped; so what that one signs must be signed in the same name. If it
is not, or cannot be signed at all, the request is sent as it came.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from ullage.doors.host import Actions

_OF_SIGNATURE = (
    "authorization",
    "x-amz-date",
    "x-amz-content-sha256",
    "x-amz-security-token",
)
_NAME = re.compile(r"Credential=([^,\s]+)")


def is_signed(request: Any) -> bool:
    """Whether a request is signed with its body."""
    return str(request.headers.get("authorization", "")).startswith("AWS4-")


class Signer:
    """Signs as an SDK client does.

    Args:
        client: the SDK client. It is held, too: some close their connections when they are dropped.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self._sign: Any = getattr(client, "_prepare_request", None)

    def sign(self, request: Any) -> Actions[None]:
        """Sign a request in place of the signature it has."""
        for name in _OF_SIGNATURE:
            request.headers.pop(name, None)
        yield partial(self._sign, request)

    def can_sign(self, library: Any, request: Any) -> Actions[bool]:
        """Whether a signature of ours is in the name that stands in this request."""
        if self._sign is None:
            return False
        again = library.Request(
            request.method,
            request.url,
            headers=request.headers,
            content=request.content,
        )
        try:
            yield from self.sign(again)
        except Exception:  # noqa: BLE001 - an SDK raises what it likes
            return False
        return _name_in(again) == _name_in(request)


def _name_in(request: Any) -> str | None:
    match = _NAME.search(request.headers.get("authorization", ""))
    return match and match[1]

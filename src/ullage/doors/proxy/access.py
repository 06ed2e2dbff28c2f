"""Who may look at the pages: who runs the proxy, on this machine; others by authentication.

Without ``[access]`` a page is given to a program on this machine, of the user that runs the proxy,
that asks by the proxy's own address and is no reverse proxy. With it, to whoever authenticates, and
to nobody else: what comes from this machine may come from a reverse proxy on it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import ipaddress
import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from ullage.doors.proxy.config import Config, is_loopback
from ullage.doors.proxy.guard import Guard, host_of

if TYPE_CHECKING:
    from aiohttp import web
    from multidict import CIMultiDictProxy

Verdict: TypeAlias = Literal["given", "unauthenticated", "refused"]

_NAME_CHARS = 100
_OF_REVERSE_PROXIES = (
    *(
        "forwarded",
        "via",
        "x-forwarded",
        "x-real-ip",
        "x-client-ip",
        "x-cluster-client-ip",
    ),
    *(
        "true-client-ip",
        "x-original-",
        "x-envoy-",
        "x-amzn-",
        "cf-",
        "fly-",
        "x-proxy",
    ),
)
"""How the headers begin that reverse proxies add."""


class Access:
    """Decides who is given a page.

    Args:
        config: the proxy's settings.
        guard: knows the proxy's own names.
    """

    def __init__(self, config: Config, guard: Guard) -> None:
        self._settings = config.access
        self._guard = guard

    def verdict(self, request: web.BaseRequest) -> Verdict:
        """Whether a request for a page is granted."""
        if not self._guard.is_ours(
            request.headers.getall("Host", [])
        ) or _is_of_a_page(request):
            return "refused"
        if not self._settings.is_set:
            return "given" if _is_of_who_runs_it(request) else "refused"
        is_known = self._has_token(request.headers) or self._is_named(request)
        return "given" if is_known else "unauthenticated"

    def name_of(self, request: web.BaseRequest) -> str:
        """Who asks, as a trusted reverse proxy says; ``""``: nothing says it."""
        if not self._is_named(request):
            return ""
        name = request.headers[str(self._settings.user_header)]
        return " ".join(name.split())[:_NAME_CHARS]

    def _has_token(self, headers: CIMultiDictProxy[str]) -> bool:
        expected = self._settings.token_sha256
        if expected is None:
            return False
        tokens = [
            _token_of(value) for value in headers.getall("Authorization", [])
        ]
        digests = [
            hashlib.sha256(token).hexdigest() for token in tokens if token
        ]
        return any(hmac.compare_digest(digest, expected) for digest in digests)

    def _is_named(self, request: web.BaseRequest) -> bool:
        """Whether a reverse proxy that is trusted says who asks."""
        header = self._settings.user_header
        if header is None or not request.headers.get(header, "").strip():
            return False
        return self._guard.comes_from_proxy(request)


def _token_of(authorization: str) -> bytes:
    """The token of a Bearer or, as browsers send it, the password of a Basic credential."""
    scheme, _, value = authorization.strip().partition(" ")
    value = value.strip()
    if scheme.lower() == "bearer":
        return value.encode()
    if scheme.lower() != "basic":
        return b""
    try:
        return base64.b64decode(value, validate=True).partition(b":")[2]
    except binascii.Error:
        return b""


def _is_of_a_page(request: web.BaseRequest) -> bool:
    """Whether another page asks, other than by a link that a user followed."""
    site = request.headers.get("Sec-Fetch-Site", "none")
    is_followed = request.headers.get("Sec-Fetch-Dest") == "document"
    if site not in ("none", "same-origin") and not is_followed:
        return True
    own_origins = [
        f"{scheme}://{request.headers.get('Host', '')}"
        for scheme in ("http", "https")
    ]
    return any(
        origin not in own_origins
        for origin in request.headers.getall("Origin", [])
    )


def _is_of_who_runs_it(request: web.BaseRequest) -> bool:
    """Whether a program of the proxy's own user asks, on this machine and directly."""
    if request.version < (1, 1) or not is_loopback(request.remote or ""):
        return False
    names = (name.lower() for name in request.headers)
    if any(name.startswith(_OF_REVERSE_PROXIES) for name in names):
        return False
    return _is_by_own_address(request) and _is_of_own_user(request)


def _is_by_own_address(request: web.BaseRequest) -> bool:
    host = host_of(request.headers.get("Host", ""))
    if host is None or request.transport is None:
        return False
    name, port = host
    return (
        is_loopback(name)
        and (port or 80) == request.transport.get_extra_info("sockname")[1]
    )


def _is_of_own_user(request: web.BaseRequest) -> bool:
    """Whether the other end of a connection is a socket of our user's, where Linux can tell."""
    if request.transport is None:
        return False
    user = user_of_connection(request)
    return user is None or user == os.geteuid()


def user_of_connection(request: web.BaseRequest) -> int | None:
    """The user id that the other end of a request's connection belongs to; None: nothing tells."""
    if request.transport is None:
        return None
    here = request.transport.get_extra_info("sockname")
    there = request.transport.get_extra_info("peername")
    return user_of_socket(there[:2], here[:2])


def user_of_socket(
    local: tuple[str, int], remote: tuple[str, int]
) -> int | None:
    """The user id that a TCP socket of this machine belongs to; None where nothing tells.

    Args:
        local: address and port of its own end.
        remote: address and port of the other end.

    Source: Linux, proc_net_tcp.rst: addresses are in the order of the host's bytes, ports in hex.
    """
    table = "tcp6" if ":" in local[0] else "tcp"
    try:
        addresses = [_in_hex(*local), _in_hex(*remote)]
        lines = (
            Path(f"/proc/net/{table}")
            .read_text(encoding="ascii")
            .splitlines()[1:]
        )
    except (OSError, ValueError):
        return None
    for line in lines:
        fields = line.split()
        if fields[1:3] == addresses:
            return int(fields[7])
    return None


def _in_hex(address: str, port: int) -> str:
    packed = ipaddress.ip_address(address).packed
    words = [packed[start : start + 4] for start in range(0, len(packed), 4)]
    return "".join(_word(word) for word in words) + f":{port:04X}"


def _word(data: bytes) -> str:
    import sys

    return f"{int.from_bytes(data, sys.byteorder):08X}"

"""Who may ask: programs, not web pages; and pages of the proxy's own for who runs it.

Any page that a user of this machine opens can send requests to it. A proxy that passed them on
would spend the user's quota and keep what a stranger wrote. So a request of a page is refused
unless the page's origin is configured. Four things tell a page:

    Origin          every browser sends it with a POST, and with whatever reads a reply of another
                    origin
    Sec-Fetch-Site  newer browsers send it with every request to an address that they trust, as
                    they do this machine's
    Host            a page whose name was made to lead here (DNS rebinding) asks by that name
    what is absent  without asking first, a page can send none of the headers that clients of a
                    model's API send: no credential, and no JSON (Fetch standard, CORS-safelisted
                    request-headers)

Programs send neither Origin nor Sec-Fetch-Site. Windows of Electron and extensions of a browser
may send an Origin of their own.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ullage.doors.proxy.config import Config, host_and_port, is_loopback
from ullage.doors.proxy.tenants import is_tenant_name

if TYPE_CHECKING:
    from aiohttp import web
    from multidict import CIMultiDictProxy

_HOST = re.compile(
    r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::([0-9]{1,5}))?"
)
_LOCAL_DOMAINS = (".localhost", ".local", ".internal", ".home.arpa")
"""Domains in which nobody on the internet can have a name (RFC 6761, 6762, 8375; ICANN 2024)."""

_READS = frozenset(("GET", "HEAD", "OPTIONS"))
_SIMPLE_TYPES = frozenset(
    ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data")
)
_OF_PROGRAMS = (
    *("authorization", "x-api-key", "x-goog-api-key", "api-key"),
    *("anthropic-version", "x-ullage"),
)
"""Headers that a page can send to another origin only after a preflight, which has an Origin."""


def host_of(header: str) -> tuple[str, int | None] | None:
    """The name and the port in a Host header; None if it is not one name and perhaps a port.

    ``user@host`` is none: whoever reads such a name takes another part of it than we would.
    """
    match = _HOST.fullmatch(header)
    if match is None:
        return None
    name = (match[1] or match[2]).lower()
    return name, None if match[3] is None else int(match[3])


class Guard:
    """Decides which requests are passed on.

    Args:
        config: the proxy's settings: where it listens, which hosts and origins are allowed.
    """

    def __init__(self, config: Config) -> None:
        listened, _ = host_and_port(config.listen)
        self._hosts = {
            listened.lower(),
            *(name.lower() for name in config.allowed_hosts),
        }
        self._origins = config.allowed_origins
        self._tenant_header = config.access.tenant_header
        self._proxies = [
            ipaddress.ip_network(network) for network in config.access.proxies
        ]
        self._is_for_this_machine = is_loopback(listened)

    def problem(self, request: web.BaseRequest) -> str | None:
        """Why a request is refused; None: it is passed on. No words of the request's own."""
        headers = request.headers
        if not self.is_ours(headers.getall("Host", [])):
            return (
                "its Host is no name of this proxy's, as with a page whose name was made to lead "
                "here. Use the address that the proxy listens on, or add the name to allowed_hosts."
            )
        if self._is_of_a_page(request):
            return (
                "it comes from a web page, an extension or an Electron window, and its origin is "
                "not allowed. Add the origin to allowed_origins, or send the request from a "
                "program, without Origin and Sec-Fetch-Site."
            )
        if request.method not in _READS and _is_simple(headers):
            return (
                "any web page could have sent it. Send Content-Type: application/json, or the "
                "credential in a header."
            )
        return self._problem_of_tenant(request)

    def _problem_of_tenant(self, request: web.BaseRequest) -> str | None:
        """Why a request may not name its tenant as it does; None: it may, or names none."""
        header = self._tenant_header
        names = [] if header is None else request.headers.getall(header, [])
        if not names:
            return None
        if not self.comes_from_proxy(request):
            return (
                "it names a tenant, and comes from no address of access.proxies. Leave the "
                "header out, or add the reverse proxy that sends it."
            )
        if len(names) > 1 or not is_tenant_name(names[0].strip()):
            return (
                "its header of the tenant holds no name: send it once, with up to 64 letters, "
                "digits and ._@-, and not 32 hexadecimal digits, which are made of credentials."
            )
        return None

    def comes_from_proxy(self, request: web.BaseRequest) -> bool:
        """Whether a reverse proxy of ``access.proxies`` sends a request, by its address."""
        if not self._proxies:
            return False
        try:
            peer = ipaddress.ip_address(request.remote or "")
        except ValueError:
            return False
        return any(peer in network for network in self._proxies)

    def is_ours(self, hosts: Iterable[str]) -> bool:
        """Whether a request's Host headers, of which there is to be one, name this proxy."""
        names = [host_of(header) for header in hosts]
        if len(names) != 1 or names[0] is None:
            return False
        name = names[0][0]
        if name in self._hosts or is_loopback(name):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return "." not in name or name.endswith(_LOCAL_DOMAINS)
        # an address of this machine's: no page has one
        return not self._is_for_this_machine

    def _is_of_a_page(self, request: web.BaseRequest) -> bool:
        """Whether a page sends a request, and one whose origin is not allowed."""
        headers = request.headers
        origins = headers.getall("Origin", [])
        site = headers.get("Sec-Fetch-Site", "none").strip().lower()
        if not origins and site == "same-origin":  # only its Host says which
            host = headers.get("Host", "")
            return not any(
                self._allows(f"{scheme}://{host}")
                for scheme in ("http", "https")
            )
        if not origins:
            return site != "none"
        return not all(self._allows(origin) for origin in origins)

    def _allows(self, origin: str) -> bool:
        origin = origin.strip().lower()
        scheme, separator, _ = origin.partition("://")
        return (
            origin in self._origins or f"{scheme}{separator}*" in self._origins
        )


def _is_simple(headers: CIMultiDictProxy[str]) -> bool:
    """Whether a page could send these headers to another origin without asking first."""
    if any(name in headers for name in _OF_PROGRAMS):
        return False
    types = [
        value.partition(";")[0].strip().lower()
        for value in headers.getall("Content-Type", [])
    ]
    if not types:
        return headers.get("User-Agent", "").startswith("Mozilla/")
    return all(kind in _SIMPLE_TYPES for kind in types)

"""Which upstream a request is for. A request never names a host: only the configuration does."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from ullage.doors.proxy.config import UPSTREAMS

_DOT_SEGMENT = re.compile(
    r"(?:^|[/\\]|%2f|%5c)(?:\.|%2e){1,2}(?:$|[/\\;]|%2f|%5c|%3b)",
    re.IGNORECASE,
)
"""A segment that leads up or nowhere, however it is encoded: it would leave an upstream's path."""


_VENDORS_PATH = re.compile(
    r"/(?:$|\?|(?:v\d\w*|api|upload|backend-api|model|chat|completions|responses"
    r"|models|embeddings)(?:$|[/?]))"
)
"""How a path begins that names no upstream: as the vendors' own APIs do. OpenAI's clients leave the
version out where their base URL does."""

_OLLAMAS = re.compile(r"/api/(?!v\d+(?:$|/)|chat/completions$)")
"""The paths of Ollama's own API: it alone has no version in them. Its other one is OpenAI's, and
goes where that goes, as does that of a gateway under ``/api``."""


class UpstreamRoute(Struct, frozen=True):
    """Where a request goes.

    Attributes:
        upstream: the upstream's name.
        url: the whole URL, as encoded as it came.
        path: its path, without the query.
    """

    upstream: str
    url: str
    path: str


def route_of(
    target: str, headers: Mapping[str, str], upstreams: Mapping[str, str]
) -> UpstreamRoute | None:
    """The upstream of a request, or None if it asks for none of ours, or leaves its path.

    A path that begins with the name of an upstream goes there, without the name. One that begins as
    a vendor's own does goes to the vendor that path and headers tell. Any other goes nowhere: with
    the name of an upstream that is not configured, the client's key is for another host.

    Args:
        target: what stands in the request line: path and query, still encoded.
        headers: of the request; names in any case.
        upstreams: base URLs by name.
    """
    if not target.startswith("/"):
        return (
            None  # a whole URL, as for a forward proxy: it would name a host
        )
    if _DOT_SEGMENT.search(target.partition("?")[0]):
        return None
    prefix, slash, rest = target[1:].partition("/")
    name, upstream_target = (
        (prefix, f"/{rest}")
        if slash and prefix in upstreams
        else (None, target)
    )
    if name is None and not _VENDORS_PATH.match(target):
        return None
    path, _, query = upstream_target.partition("?")
    name = name or _vendor(path, query, headers)
    if name == "openai" and _is_of_chatgpt(headers, upstreams):
        name = "chatgpt"
        upstream_target = upstream_target.removeprefix("/v1")
    base = upstreams.get(name)
    if base is None:
        return None
    url = base.rstrip("/") + upstream_target
    return UpstreamRoute(name, url, url.partition("?")[0])


def _is_of_chatgpt(
    headers: Mapping[str, str], upstreams: Mapping[str, str]
) -> bool:
    """Whether Codex is signed in with a ChatGPT account: api.openai.com refuses its credential.

    Codex has one base URL for both accounts. An upstream of the user's is left as it is.
    """
    is_vendor_s = all(
        upstreams.get(name) == UPSTREAMS[name]
        for name in ("openai", "chatgpt")
    )
    return is_vendor_s and "chatgpt-account-id" in headers


def _vendor(path: str, query: str, headers: Mapping[str, str]) -> str:
    if (
        path.startswith(("/v1beta/", "/v1alpha/"))
        or "x-goog-api-key" in headers
    ):
        return "gemini"
    if (
        ":generateContent" in path
        or ":streamGenerateContent" in path
        or query.startswith("key=")
    ):
        return "gemini"
    if (
        path.startswith(("/v1/messages", "/v1/complete"))
        and "/completions" not in path
    ):
        return "anthropic"
    if "anthropic-version" in headers or "x-api-key" in headers:
        return "anthropic"
    return "ollama" if _OLLAMAS.match(path) else "openai"

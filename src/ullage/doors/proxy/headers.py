"""Which headers are passed on, to the upstream and to the client."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multidict import CIMultiDict, CIMultiDictProxy

TREATMENT_HEADER = "X-Ullage"
"""The header of a reply that says what was done to its request."""

_SESSION_HEADERS = (
    "X-Claude-Code-Session-Id",
    "session_id",
    "x-session-affinity",
)
"""In which clients name their session: Claude Code, Codex, opencode."""
_SUBAGENT_HEADER = "X-Claude-Code-Agent-Id"
"""In which Claude Code names a sub-agent, whose session it shares."""
_PARENT_HEADER = "x-parent-session-id"
"""In which opencode names the session that began a sub-agent, which has a session of its own."""
_SESSION = re.compile(r"[\w.-]{8,64}")
_HOP = frozenset(
    (
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
    ),
).union(("te", "trailer", "transfer-encoding", "upgrade"))
"""What is between two neighbours (RFC 9110, 7.6.1)."""


def passed_up(
    headers: CIMultiDictProxy[str], *, without: Iterable[str] = ()
) -> CIMultiDict[str]:
    """The request headers for the upstream: all that are not ours or a hop's.

    ``Expect`` was answered here, and ``Host`` is the upstream's own.
    """
    return _less(headers, {"host", "expect", *without})


def passed_down(
    headers: CIMultiDictProxy[str], *, without: Iterable[str] = ()
) -> CIMultiDict[str]:
    """The headers of a reply as they go to the client."""
    return _less(headers, set(without))


def _less(
    headers: CIMultiDictProxy[str], without: set[str]
) -> CIMultiDict[str]:
    without |= _HOP
    named = headers.get("Connection", "")
    if named:
        without.update(word.strip().lower() for word in named.split(","))
    remaining = headers.copy()
    for name in headers:
        lower = name.lower()
        if lower in without or lower.startswith("x-ullage"):
            remaining.popall(name, None)
    return remaining


def client_session_of(headers: Mapping[str, str]) -> str:
    """The client's own name of its session; "" where no header has one."""
    values = (headers.get(name, "") for name in _SESSION_HEADERS)
    return next(filter(_SESSION.fullmatch, values), "")


def subagent_of(headers: Mapping[str, str]) -> str:
    """The client's own name of the sub-agent that asks; "" where no header has one."""
    value = headers.get(_SUBAGENT_HEADER, "")
    if _PARENT_HEADER in headers:
        value = value or client_session_of(headers)
    return value if _SESSION.fullmatch(value) else ""


def program_of(headers: Mapping[str, str]) -> str:
    """The program that asks, as it calls itself first in its ``User-Agent``, without a version.

    ``claude-cli/2.1.0 (external, cli)`` is ``claude-cli``; empty where it says nothing.
    """
    return (
        headers.get("User-Agent", "")
        .strip()
        .partition(" ")[0]
        .partition("/")[0]
    )

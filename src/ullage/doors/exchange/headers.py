"""Request headers: the tools and system text around a history, held once for many conversations.

A body that is read from JSON makes a string of every text, and the next conversation's first body
makes them all again. A session that begins with what its tenant sent last holds those strings.
"""

from __future__ import annotations

from typing import Any

from ullage import AsyncSession, Session

_MOST_HEADERS = 64


class SharedHeaders:
    """The newest header of each tenant and format, of the tenants that were met last."""

    def __init__(self) -> None:
        self._headers: dict[tuple[str, str], Any] = {}

    def give(
        self, session: Session | AsyncSession, tenant: str, wire: str
    ) -> None:
        """Have a session that has read nothing yet begin with what its tenant sent last."""
        session.begin_with_header(self._headers.get((tenant, wire)))

    def take(
        self, session: Session | AsyncSession, tenant: str, wire: str
    ) -> None:
        """Keep what a session has read."""
        header = session.header
        if header is None or header is self._headers.get((tenant, wire)):
            return
        self._headers[tenant, wire] = header
        if len(self._headers) > _MOST_HEADERS:
            self._headers.pop(next(iter(self._headers)), None)

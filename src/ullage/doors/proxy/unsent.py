"""Requests that reach no upstream: one that does not answer, and none at all in a dry run."""

from __future__ import annotations

from typing import Any

import aiohttp
from aiohttp import web

from ullage.doors.proxy.answers import failure
from ullage.doors.proxy.routes import UpstreamRoute


class Unsent(Exception):
    """An upstream took too long to be reached."""


async def sent(sending: Any) -> Any:
    """What sending something gives; a timeout of it is the upstream's, not the client's."""
    try:
        return await sending
    except TimeoutError as error:
        raise Unsent from error


class DryRun(Exception):
    """Nothing is sent."""


class NowhereUpstream:
    """The upstream of a dry run."""

    def send(self, body: bytes) -> Any:
        """See `ullage.doors.exchange.Upstream`."""
        raise DryRun

    def delete(self, reply_id: str, hidden_id: str) -> Any:
        """See `ullage.doors.exchange.Upstream`."""
        raise DryRun


def unreached(route: UpstreamRoute, error: Exception) -> web.Response:
    """What is answered where an upstream could not be asked, or broke off before it answered."""
    kind = type(error.__cause__ or error).__name__
    if isinstance(error, Unsent):
        return failure(
            504,
            f"the upstream {route.upstream!r} did not answer in time ({kind}).",
        )
    if _hung_up(error):
        return failure(
            502,
            f"the upstream {route.upstream!r} closed the connection before its reply began"
            f" ({kind}). Try again.",
        )
    return failure(
        502,
        f"the upstream {route.upstream!r} could not be reached ({kind}). Is its URL right?",
    )


def _hung_up(error: Exception) -> bool:
    """Whether an upstream was reached, and ended the connection."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return False
    return isinstance(
        error,
        aiohttp.ServerDisconnectedError
        | aiohttp.ClientOSError
        | ConnectionError,
    )

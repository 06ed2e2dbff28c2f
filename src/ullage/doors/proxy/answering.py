"""Who answers at an address of this machine: a proxy of ours, another program, nobody."""

from __future__ import annotations

import json
from collections.abc import Iterable
from http.client import HTTPConnection, HTTPException
from typing import Literal, TypeAlias
from urllib.parse import urlencode

Answering: TypeAlias = Literal["proxy", "lacking", "another", "nobody"]

UNKNOWN_UPSTREAM = {"status": "unknown upstream"}
"""What a proxy says of its health where it has not each upstream that it is asked for."""
_TIMEOUT_S = 1.0
_MOST_BYTES = 1_000


def answers_at(place: str, upstreams: Iterable[str] = ()) -> Answering:
    """Ask an address for the health of a proxy.

    Args:
        place: host and port; IPv6 in brackets.
        upstreams: names of those that the proxy has to have.

    Returns:
        ``"lacking"`` where a proxy of ours does not have one of the upstreams; ``"another"`` where
        something takes connections and is no proxy of ours.
    """
    connection = HTTPConnection(place, timeout=_TIMEOUT_S)
    try:
        connection.connect()
    except OSError:
        return "nobody"
    try:
        query = urlencode([("upstream", name) for name in upstreams])
        connection.request("GET", f"/_ullage/health?{query}")
        reply = json.loads(connection.getresponse().read(_MOST_BYTES))
    except (OSError, ValueError, HTTPException):
        return "another"
    finally:
        connection.close()
    if reply == {"status": "ok"}:
        return "proxy"
    return "lacking" if reply == UNKNOWN_UPSTREAM else "another"

"""Who answers at an address of this machine: a proxy of ours, another program, nobody."""

from __future__ import annotations

import json
from http.client import HTTPConnection, HTTPException
from typing import Literal, TypeAlias

Answering: TypeAlias = Literal["proxy", "another", "nobody"]

_TIMEOUT_S = 1.0
_MOST_BYTES = 1_000


def answers_at(place: str) -> Answering:
    """Ask an address for the health of a proxy.

    Args:
        place: host and port; IPv6 in brackets.

    Returns:
        ``"another"`` where something takes connections and is no proxy of ours.
    """
    connection = HTTPConnection(place, timeout=_TIMEOUT_S)
    try:
        connection.connect()
    except OSError:
        return "nobody"
    try:
        connection.request("GET", "/_ullage/health")
        reply = connection.getresponse().read(_MOST_BYTES)
        is_ours = json.loads(reply) == {"status": "ok"}
    except (OSError, ValueError, HTTPException):
        is_ours = False
    finally:
        connection.close()
    return "proxy" if is_ours else "another"

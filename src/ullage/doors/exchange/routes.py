"""Which path of which provider is which wire.

Only the end of a path is looked at, so that any prefix of a gateway or of a compatible server will
do: ``/v1/chat/completions`` is also ``/openai/deployments/NAME/chat/completions`` (Azure) and
``/api/v1/chat/completions`` (a gateway). The paths of a wire are in ``wires/NAME/http.py``.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ullage.doors.host import Route
from ullage.wires import WIRES
from ullage.wires.http import Endpoint, Http

__all__ = ["Route", "route_of"]

_MOST_PATHS = 256
"""So many paths are remembered: clients ask the same few again and again."""


def route_of(method: str, path: str) -> Route | None:
    """The route of a path; None where requests hold no history.

    Args:
        method: the HTTP method.
        path: the path of the URL as it stands there, quoted; a query behind it is passed over.
    """
    path, _, query = path.partition("?")
    found = _endpoint_at(method.upper(), path.rstrip("/"))
    if found is None:
        return None
    http, endpoint, match = found
    return http.route_at(endpoint, match, query)


@lru_cache(maxsize=_MOST_PATHS)
def _endpoint_at(
    method: str, path: str
) -> tuple[Http, Endpoint, re.Match[str]] | None:
    """The endpoint of any wire at a path. A query is no part of it: it may hold a key."""
    for wire in WIRES:
        found = wire.http.endpoint_at(method, path)
        if found is not None:
            return wire.http, *found
    return None

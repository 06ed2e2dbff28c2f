"""Which path of which provider is which wire.

Only the end of a path is looked at, so that any prefix of a gateway or of a compatible server will
do: ``/v1/chat/completions`` is also ``/openai/deployments/NAME/chat/completions`` (Azure) and
``/api/v1/chat/completions`` (a gateway). The paths of a wire are in ``wires/NAME/http.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

from ullage.doors.host import Route
from ullage.wires import WIRES

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
    route_with = _route_at(method.upper(), path.rstrip("/"))
    return None if route_with is None else route_with(query)


@lru_cache(maxsize=_MOST_PATHS)
def _route_at(method: str, path: str) -> Callable[[str], Route] | None:
    """What gives the route of a path with a query; None where requests hold no history.

    The query is not remembered with the path: it may hold a key.
    """
    for wire in WIRES:
        found = wire.http.endpoint_at(method, path)
        if found is not None:
            return partial(wire.http.route_at, *found)
    return None

"""Which path of which provider is which wire.

Only the end of a path is looked at, so that any prefix of a gateway or of a compatible server will
do: ``/v1/chat/completions`` is also ``/openai/deployments/NAME/chat/completions`` (Azure) and
``/api/v1/chat/completions`` (a gateway). The paths of a wire are in ``wires/NAME/http.py``.
"""

from __future__ import annotations

from ullage.doors.host import Route
from ullage.wires import WIRES

__all__ = ["Route", "route_of"]


def route_of(method: str, path: str) -> Route | None:
    """The route of a path; None where requests hold no history.

    Args:
        method: the HTTP method.
        path: the path of the URL as it stands there, quoted; a query behind it is passed over.
    """
    path, _, query = path.partition("?")
    path = path.rstrip("/")
    for wire in WIRES:
        route = wire.http.route(method.upper(), path, query)
        if route is not None:
            return route
    return None

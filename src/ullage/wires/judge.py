"""What a request breaks, whatever its format: the front door of `ullage.wires.rules`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ullage.history.snapshots import snapshot_at
from ullage.wires import FORMATS, recognise
from ullage.wires.base import plain
from ullage.wires.rules.checker import problems as judge
from ullage.wires.rules.problem import Problem


def problems(request: Any, format: str | None = None) -> list[Problem]:
    """Every rule of its provider that a request breaks, in the order found.

    Args:
        request: the keyword arguments of the provider call, with the whole history: a dict,
            or an object with ``model_dump``; objects may stand anywhere inside. Not changed.
        format: the wire format. None: recognised from the request.

    Returns:
        Of each broken rule its name, its place as a JSON path, a sentence and a remedy;
        none if the request is legal. What depends on the model is judged where it is named.

    Raises:
        FormatError: the request is no object, its format cannot be recognised, it holds no
            history where its format has it, or something in it has no end.
        ConfigError: no rules are known for ``format``.
    """
    body: Mapping[str, Any] = plain(request, "request")
    name = recognise(body).name if format is None else format
    if name in FORMATS:
        FORMATS[name].history(body)
    for key, value in body.items():
        _check_depth(value, str(key))
    return judge(name, body)


def _check_depth(value: Any, where: str) -> None:
    """Raise FormatError for what has no end, naming the message in which it stands."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            snapshot_at(item, f"{where}[{index}]")
    else:
        snapshot_at(value, where)

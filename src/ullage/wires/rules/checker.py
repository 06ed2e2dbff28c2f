"""Is this request legal? The providers' wire rules, as one strict judge.

It is the judge of everything that cuts, so it shares no code with anything that cuts, but for
which result answers which call (`ullage.core.history.pairing`; the tests judge that a second
time), the tables of blocks, and where a request has its history: it reads plain JSON and knows
nothing of edits, windows or policies.

    problems(request)              the whole request: head and messages
    problems_of(format, messages)  the messages alone
    check_of(format)               the same, one message at a time, for a growing history

The rules are data: ``table.toml`` has what each asks and where it was read.

A history with an open call at its end is not legal: it cannot be sent. A13, R4, R8, half of R3 and
G8 compare with what was returned, which a request does not show. What depends on the model (A11,
A12, A24, A25, C11, C12, G7) is judged by `problems` alone, where a model is named; A8 and C6 are
not asked of another maker's model. What else is not judged, and what is taken as legal, is in
docs/validator.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ullage.core.errors import ConfigError
from ullage.core.history.snapshots import snapshot_at
from ullage.wires import FORMATS, base, recognise, wire_named
from ullage.wires.rules.problem import Check, JsonObject, Problem, plain


def check_of(format: str, head: JsonObject | None = None) -> Check:
    """A judge of an empty history.

    `Check.feed` takes a message, at the same cost whatever came before, and `Check.problems` may be
    asked after any.

    Args:
        format: the name of a wire, such as ``"anthropic"``.
        head: the request without its messages, as plain JSON, to be judged with them.

    Raises:
        ConfigError: no rules are known for ``format``.
    """
    if format not in FORMATS:
        names = ", ".join(repr(name) for name in FORMATS)
        problem = f"no rules are known for {format!r}"
        raise ConfigError("format", problem, f"Use {names}.")
    return wire_named(format).check(head)


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
    body = base.plain(request, "request")
    name = recognise(body).name if format is None else format
    if name in FORMATS:
        FORMATS[name].history(body)
    for key, value in body.items():
        if isinstance(
            value, list
        ):  # of a message that has no end the place is told
            for index, item in enumerate(value):
                snapshot_at(item, f"{key}[{index}]")
        else:
            snapshot_at(value, str(key))
    return fed(name, body).problems()


def problems_of(format: str, messages: Any) -> list[Problem]:
    """Every rule that these messages break, in one pass. See `check_of`."""
    return _fed(check_of(format), messages).problems()


def fed(format: str, request: Any) -> Check:
    """The judge of a request, which has been fed all its messages. See `check_of`."""
    body = request if isinstance(request, Mapping) else plain(request)
    if not isinstance(body, Mapping):
        body = {}
    empty = check_of(format)
    messages = empty.listed(body.get(empty.key))
    head = {
        key: plain(value) for key, value in body.items() if key != empty.key
    }
    return _fed(check_of(format, head), messages)


def _fed(check: Check, messages: Any) -> Check:
    if isinstance(messages, (list, tuple)):
        for message in messages:
            check.feed(message)
    return check

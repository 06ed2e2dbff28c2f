"""A conversation of one wire format as one of another.

    request ── read ──▶ turns ── write ──▶ request of the target
              (parse)     │
                          └── what the target cannot hold: `UnsupportedPart`, or a line of text

What is carried: text, tool calls and results, images, documents and sounds, system text, tool
definitions, the limit of the answer. Ids are kept where the target takes them. Reasoning is
not: it is sealed for the model and the history it was made in, and its loss is no error.
`docs/formats.md` has the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ullage.errors import ConfigError, FormatError
from ullage.history.snapshots import snapshot_at
from ullage.wires import FORMATS, recognise
from ullage.wires.convert.head import beside, request_of
from ullage.wires.convert.names import tool_names
from ullage.wires.convert.read import read
from ullage.wires.convert.turns import Losses
from ullage.wires.convert.write import write

__all__ = ["convert"]


def convert(
    conversation: Mapping[str, Any] | Sequence[Any],
    to: str,
    *,
    format: str | None = None,
    model: str | None = None,
    lossy: Literal["error", "describe"] = "error",
) -> Any:
    """The same conversation in another wire format.

    Settings of the call (temperature, tool choice, thinking …) and cache markers are not carried.
    What is legal for its own provider is legal for the target, and for ``model``.

    Args:
        conversation: the keyword arguments of a provider's call, or its list of messages
            alone. Dicts or SDK objects. Not changed.
        to: the target, one of the four formats.
        format: the format of ``conversation``. None: recognised from a request; a list of
            messages needs it.
        model: the model of the new request. None: the request names none.
        lossy: what to do with a part that the target cannot hold. ``"error"`` raises;
            ``"describe"`` puts a line of text in its place, leaves out a tool definition or a
            field that the target has not, and writes a tool's name that it does not take with
            ``_``. A history that the provider holds is refused both ways.

    Returns:
        A request, as keyword arguments of the target's SDK (of google-genai with ``config``),
        or a list of messages, as was given. Fresh containers, unless ``to`` is the format it
        has: then what was given.

    Raises:
        FormatError: the conversation is not what its format says it is.
        UnsupportedPart: something in it would be lost; names its place, and what to do.
        ConfigError: there is no format of that name, or no such ``lossy``.
    """
    _check((to, to if format is None else format), lossy)
    losses = Losses(to, model, describe=lossy == "describe")
    if isinstance(conversation, Mapping):
        source = format or recognise(conversation).name
        return conversation if source == to else _request(source, conversation, losses)
    if not isinstance(conversation, (list, tuple)):
        got = f"expected a request or a list of messages, got {type(conversation).__name__}"
        raise FormatError("conversation", got, "Give a call's keyword arguments, or its messages.")
    if format is None:
        problem = "a list alone does not show its format"
        raise FormatError("messages", problem, "Give format=, or the request.")
    return conversation if format == to else _messages(format, conversation, losses)


def _check(formats: Sequence[Any], lossy: Any) -> None:
    for name in formats:
        if not isinstance(name, str) or name not in FORMATS:
            raise ConfigError(
                "convert", f"{name!r} is not known", f"Use one of {', '.join(FORMATS)}."
            )
    if lossy not in ("error", "describe"):
        raise ConfigError("lossy", f"{lossy!r} is not known", "Use error or describe.")


def _messages(source: str, messages: Sequence[Any], losses: Losses) -> list[dict[str, Any]]:
    turns = read(source, messages, 0, losses)
    return write(turns, losses, source, tool_names((), turns, losses))


def _request(source: str, request: Mapping[str, Any], losses: Losses) -> dict[str, Any]:
    wire = FORMATS[source]
    for key, value in request.items():
        if key != wire.key:  # of its messages each is asked for itself
            snapshot_at(value, str(key))
    head = beside(source, request, losses)
    first = len(wire.leading(request))
    turns = read(source, wire.history(request)[first:], first, losses)
    names = tool_names(head.tools, turns, losses)
    messages = write(turns, losses, source, names)
    return request_of(losses, head.under(names), messages)

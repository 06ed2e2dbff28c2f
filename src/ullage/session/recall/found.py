"""What a ref or the id of a tool call names, in the history at hand or in the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from ullage.core.errors import RefNotFound
from ullage.core.values.effects import Look, Output, Shape, Steps
from ullage.session.recall.source import OutputReader

FromHistory: TypeAlias = Callable[[str, bool], Output | None]
"""Finds a ref, or the id of a tool call, in the history at hand, which holds the originals:
first at a glance, and thoroughly if the store has nothing."""


class ToolOutputRef(Struct, frozen=True):
    """The name of a tool output, and how much there is of it (output-cache 1.4).

    Attributes:
        id: the ref.
        byte_size: its length in UTF-8; of an image or a file, of its block as JSON.
        line_count: its lines, as `tool_output_cache` numbers them; None for what is no text.
    """

    id: str
    byte_size: int | None = None
    line_count: int | None = None


def find(name: str, from_history: FromHistory) -> Steps[Output | Shape | None]:
    """Find an output by its ref or the id of its call.

    Args:
        name: the ref, or the id.
        from_history: finds outputs in the history at hand.

    Returns:
        The output, or its shape in the store; None if neither has it.
    """
    at_hand = from_history(name, False)
    if at_hand is not None:
        return at_hand
    try:
        shape: Shape = yield Look(name)
    except RefNotFound:
        return from_history(name, True)
    return shape


def output_ref(
    name: str, from_history: FromHistory
) -> Steps[ToolOutputRef | None]:
    """The ref and the size of an output; None if nothing has this name.

    Args:
        name: the ref, or the id of a tool call.
        from_history: finds outputs in the history at hand.
    """
    match = yield from find(name, from_history)
    if match is None:
        return None
    source = OutputReader(match)
    lines = source.line_count if match.kind == "text" else None
    return ToolOutputRef(match.ref, source.size_bytes, lines)

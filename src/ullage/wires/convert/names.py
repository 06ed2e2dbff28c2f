"""What calls and tools are called: kept where the target takes it, written otherwise where not.

An id is a name of the wire's own, and is numbered anew without a word. The name of a tool is
the caller's: to write it otherwise is a loss.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import count

from msgspec.structs import replace

from ullage.core.history.pairing import At, is_made_up
from ullage.wires import ToolSpec, wire_named
from ullage.wires.convert.turns import Call, Conversion, Piece, Result, Turn

OPENAI_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
"""The form of a function's name on OpenAI's wires, as the SDK documents it."""
_NOT_EVERYWHERE = re.compile(r"[^a-zA-Z0-9_-]")
_SHORTEST_LIMIT = 64


def tool_names(
    tools: Sequence[ToolSpec], turns: Sequence[Turn], conversion: Conversion
) -> Mapping[str, str]:
    """For each name that the target does not take, another that no other tool has.

    Raises UnsupportedPart if there is one, and it may not be written otherwise.
    """
    places = [(tool.name, f"tools[{at}].name") for at, tool in enumerate(tools)]
    calls = (
        piece for turn in turns for piece in turn.pieces if isinstance(piece, Call)
    )
    places += [(call.name, call.where) for call in calls]
    used = {name for name, _ in places}
    names: dict[str, str] = {}
    legal = wire_named(conversion.target).writer(conversion).tool_name
    for name, where in places:
        if name in names or legal.match(name):
            continue
        conversion.lose(
            where,
            "a tool's name of these characters or this length",
            "Rename the tool.",
        )
        names[name] = _free(name, used)
        used.add(names[name])
    return names


def _free(name: str, used: set[str]) -> str:
    """The name in the characters that every target takes, and numbered if that is taken."""
    base = _NOT_EVERYWHERE.sub("_", name)
    base = base if base[:1].isalpha() else f"_{base}"
    new, number = base[:_SHORTEST_LIMIT], 2
    while new in used:
        end = f"_{number}"
        new, number = base[: _SHORTEST_LIMIT - len(end)] + end, number + 1
    return new


def under_names(
    turns: Sequence[Turn], conversion: Conversion, names: Mapping[str, str]
) -> list[Turn]:
    """The turns with names and ids the target takes: ids numbered where they are not legal.

    Anthropic wants them unique (A7). A call of Gemini's that had none gets one.
    """
    used: set[str] = set()
    wire = wire_named(conversion.target)
    unique_ids = wire.writer(conversion).unique_ids
    legal_ids = wire.format.call_ids(conversion.model or "")
    calls: dict[At, Call] = {}
    numbered = (f"call_{number}" for number in count())

    def again(piece: Piece) -> Piece:
        if isinstance(piece, Call):
            new = piece.id
            taken = unique_ids and new in used
            if taken or is_made_up(new, piece.name) or not legal_ids.match(new):
                new = next(id for id in numbered if id not in used)
            used.add(new)
            calls[piece.at] = replace(
                piece, id=new, name=names.get(piece.name, piece.name)
            )
            return calls[piece.at]
        if isinstance(piece, Result):
            asked = calls.get(piece.call)
            return (
                piece
                if asked is None
                else replace(piece, call_id=asked.id, name=asked.name)
            )
        return piece

    return [
        replace(turn, pieces=tuple(again(piece) for piece in turn.pieces))
        for turn in turns
    ]

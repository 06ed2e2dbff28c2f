"""What calls and tools are called: kept where the target takes it, written otherwise where not.

An id is a name of the wire's own, and is numbered again without a word. The name of a tool is
the caller's: to write it otherwise is a loss.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import count

from msgspec.structs import replace

from ullage.core.history.pairing import At, is_made_up
from ullage.wires import ToolSpec, wire_named
from ullage.wires.convert.turns import (
    Conversion,
    Piece,
    Result,
    Turn,
    TurnCall,
)

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
    places = [
        (tool.name, f"tools[{at}].name") for at, tool in enumerate(tools)
    ]
    for turn in turns:
        for piece in turn.pieces:
            if isinstance(piece, TurnCall):
                places.append((piece.name, piece.where))
    used = {name for name, _ in places}
    names: dict[str, str] = {}
    legal = wire_named(conversion.target).writer(conversion).tool_name
    problem = "a tool's name of these characters or this length"
    for name, path in places:
        if name in names or legal.match(name):
            continue
        conversion.lose(path, problem, "Rename the tool.")
        names[name] = _free(name, used)
        used.add(names[name])
    return names


def _free(name: str, used: set[str]) -> str:
    """The name in the characters that every target takes, and numbered if that is taken."""
    base = _NOT_EVERYWHERE.sub("_", name)
    if not base[:1].isalpha():
        base = f"_{base}"
    candidate = base[:_SHORTEST_LIMIT]
    number = 2
    while candidate in used:
        end = f"_{number}"
        candidate = base[: _SHORTEST_LIMIT - len(end)] + end
        number += 1
    return candidate


def under_names(
    turns: Sequence[Turn], conversion: Conversion, names: Mapping[str, str]
) -> list[Turn]:
    """The turns with names and ids the target takes: ids numbered where they are not legal.

    Anthropic wants them unique (A7). A call of Gemini's that had none gets one.
    """
    renaming = _Renaming(conversion, names)
    return [
        replace(
            turn,
            pieces=tuple(renaming.renamed(piece) for piece in turn.pieces),
        )
        for turn in turns
    ]


class _Renaming:
    """The names and ids of one conversion, piece by piece in the order of the history."""

    def __init__(
        self, conversion: Conversion, names: Mapping[str, str]
    ) -> None:
        wire = wire_named(conversion.target)
        self._names = names
        self._unique_ids = wire.writer(conversion).unique_ids
        self._legal_ids = wire.format.call_ids(conversion.model or "")
        self._used: set[str] = set()
        self._calls: dict[At, TurnCall] = {}
        self._numbered = (f"call_{number}" for number in count())

    def renamed(self, piece: Piece) -> Piece:
        """A piece under the name and the id that the target takes."""
        if isinstance(piece, TurnCall):
            return self._call(piece)
        if isinstance(piece, Result):
            call = self._calls.get(piece.call)
            if call is not None:
                return replace(piece, call_id=call.id, name=call.name)
        return piece

    def _call(self, call: TurnCall) -> TurnCall:
        call_id = call.id
        is_taken = self._unique_ids and call_id in self._used
        is_legal = self._legal_ids.match(call_id) is not None
        if is_taken or not is_legal or is_made_up(call_id, call.name):
            call_id = next(
                name for name in self._numbered if name not in self._used
            )
        self._used.add(call_id)
        name = self._names.get(call.name, call.name)
        renamed = replace(call, id=call_id, name=name)
        self._calls[call.at] = renamed
        return renamed

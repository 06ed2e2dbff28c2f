"""Out of a wire: messages as turns, and every field that the turns do not hold named as lost."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ullage.errors import FormatError
from ullage.history.pairing import At, Pairing
from ullage.history.snapshots import snapshot_at
from ullage.values.messages import (
    WHOLE,
    Content,
    Media,
    Message,
    Opaque,
    Part,
    Text,
    ToolCall,
    ToolResult,
)
from ullage.wires import BLOCKS, FORMATS
from ullage.wires.base import field, get, snake, unmarked
from ullage.wires.convert.media import medium_of
from ullage.wires.convert.turns import NOWHERE, Call, Losses, Medium, Piece, Result, Turn, Who
from ullage.wires.gemini.blocks import PARTS
from ullage.wires.gemini.fields import is_content, parts_of
from ullage.wires.openai_chat.format import REFUSAL
from ullage.wires.repair.base import EMPTY

__all__ = ["FAILED", "read"]

FAILED = "[the tool failed]\n"
"""Says that a result is an error where the wire has no flag for it; read back as the flag."""

_FLAGGED = frozenset(("anthropic", "gemini"))
_NOTHING: tuple[Any, ...] = (None, "", False, [], {}, {"type": "direct"})
_SILENT = frozenset(
    (
        *("type", "role", "id", "status", "created_by", "logprobs", "index"),
        *("thought", "thoughtSignature", "thought_signature", "extra_content"),
    )
)
"""Fields that say nothing of the conversation: names and states, and reasoning, sealed."""


def read(name: str, raws: Sequence[Any], first: int, losses: Losses) -> list[Turn]:
    """The messages of a history as turns; ``first`` is the place of the first of them."""
    turns: list[Turn] = []
    pairs = Pairing()
    for index, raw in enumerate(raws, first):
        reading = _Reading(name, raw, index, pairs, losses)
        for turn in reading.turns():
            _add(turns, turn, merge=name == "openai-responses")
    _phases(raws, first, losses)
    return _without_late(_named(turns, losses), losses)


def _phases(raws: Sequence[Any], first: int, losses: Losses) -> None:
    """Name each text that is said to be no answer, but for those that calls follow: they tell."""
    for at, raw in enumerate(raws):
        phase = field(raw, "phase")
        if phase is None or phase == "final_answer":
            continue
        behind = (raws[later] for later in range(at + 1, len(raws)))
        kinds = (field(item, "type") for item in behind)
        follows = next((kind for kind in kinds if kind != "reasoning"), None)
        if phase != "commentary" or follows not in ("function_call", "custom_tool_call"):
            where = f"input[{first + at}].phase"
            losses.lose(where, "that a text is no final answer", "Leave it out.")


def _add(turns: list[Turn], turn: Turn, *, merge: bool) -> None:
    """Add a turn, or to the turn before: a batch of results, and the items of one reply."""
    together = turn.who == "results" or (merge and turn.who == "assistant")
    if together and turns and turns[-1].who == turn.who:
        turns[-1] = replace(turns[-1], pieces=turns[-1].pieces + turn.pieces)
    else:
        turns.append(turn)


class _Reading:
    """One raw message: its parts, each beside the block it came from."""

    def __init__(self, name: str, raw: Any, index: int, pairs: Pairing, losses: Losses) -> None:
        self.name = name
        self.where = where = f"{FORMATS[name].key}[{index}]"
        self.losses = losses
        self.index = index
        self.pairs = pairs
        snapshot_at(raw, where)
        self.message: Message = FORMATS[name].parse(raw, where)
        pairs.feed(index, self.message)
        self.bare = unmarked(raw)

    def turns(self) -> Iterator[Turn]:
        """The turns in the message: results first, then what is said."""
        if self.name != "gemini" or is_content(self.bare):
            self._beside(self.bare, self._kind(), self.where)
        results: list[Piece] = []
        said: list[Piece] = []
        for number, part in enumerate(self.message.parts):
            piece = self._piece(number, part)
            if isinstance(piece, Result):
                results.append(piece)
            elif piece is not None and not _is_silence(piece):
                said.append(piece)
        if results:
            yield Turn("results", tuple(results), self.where)
        if not said and not results and self.message.role == "user":
            said.append(Text(""))
        if said:
            role = self.message.role
            yield Turn("user" if role == "tool" else role, tuple(said), self.where)

    def _kind(self) -> str:
        kind = self.bare.get("type") if self.name == "openai-responses" else None
        is_tool = self.name == "openai-chat" and self.message.role == "tool"
        return str(kind or ("tool" if is_tool else "message"))

    def _piece(self, number: int, part: Part) -> Piece | None:
        block, where = self._block(part)
        if isinstance(part, (ToolCall, ToolResult)):
            self._beside(block, _kind_of(self.name, block), where)
            at = (self.index, number)
            return (
                self._call(part, block, where, at)
                if isinstance(part, ToolCall)
                else self._result(part, block, where, self.pairs.of(at) or NOWHERE)
            )
        if isinstance(part, (Text, Media, Opaque)):
            return self._content(part, block, where)
        return None

    def _content(self, part: Content, block: Any, where: str) -> Text | Medium:
        kind = _kind_of(self.name, block)
        if isinstance(part, Opaque) or (isinstance(part, Media) and part.block is None):
            named = part.kind if isinstance(part, Opaque) else kind
            what = f"a part of type {named!r} of {self.name}"
            return Text(self.losses.lose(where, what, "Leave it out."))
        if kind == "refusal":
            self.losses.lose(where, "that a text is a refusal", "Give it as text.")
        else:
            self._beside(block, kind, where)
        return part if isinstance(part, Text) else medium_of(self.name, part, where)

    def _call(self, part: ToolCall, block: Any, where: str, at: At) -> Call:
        """A call with its arguments in the order of keys they have on the wire."""
        free = block.get("type") in ("custom", "custom_tool_call")
        value: Any = block.get("input")
        if self.name == "gemini":
            value = get(get(block, "functionCall"), "args") or {}
        elif self.name != "anthropic":
            value = None if free else _object(part.arguments)
        text = part.arguments
        if self.name in _FLAGGED and isinstance(value, Mapping):
            text = _json(value, where)
        value = value if isinstance(value, Mapping) else None
        return Call(part.id, part.name, text, value, where, free, part.late, at)

    def _result(self, part: ToolResult, block: Any, where: str, call: At) -> Piece:
        kind = "function" if block.get("role") == "function" else block.get("type")
        row = BLOCKS[self.name].get(kind)
        if kind == "function" or (row is not None and row.carried is None):
            what = f"an item of type {kind!r} of {self.name}"
            return Text(self.losses.lose(where, what, "Leave it out."))
        content = tuple(
            self._item(part, number, block, where) for number in range(len(part.content))
        )
        is_error = part.is_error
        first = isinstance(content[0], Text) and content[0].text if content else ""
        if self.name not in _FLAGGED and first and first.startswith(FAILED):
            content = (Text(first.removeprefix(FAILED)), *content[1:])
            is_error = True
        name = part.name or str(block.get("name") or "")
        return Result(part.call_id, name, content, is_error, where, call=call)

    def _item(self, part: ToolResult, number: int, block: Any, where: str) -> Text | Medium:
        item = part.content[number]
        if item.at == WHOLE:
            return self._content(item, {}, where)
        if self.name == "gemini":
            parts = get(get(block, "functionResponse"), "parts")
            return self._content(item, parts[item.at], f"{where}.functionResponse.parts[{item.at}]")
        key = "output" if self.name == "openai-responses" else "content"
        return self._content(item, block[key][item.at], f"{where}.{key}[{item.at}]")

    def _block(self, part: Part) -> tuple[Any, str]:
        """The block a part came from, and its path."""
        if self.name == "gemini":
            at = max(part.at, 0)
            return parts_of(self.bare)[at], f"{self.where}.parts[{at}]"
        if self.name == "openai-chat" and isinstance(part, ToolCall):
            return self.bare["tool_calls"][part.at], f"{self.where}.tool_calls[{part.at}]"
        if self.name == "openai-chat" and part.at == REFUSAL:
            return {"type": "refusal"}, f"{self.where}.refusal"
        if part.at == WHOLE:
            is_item = isinstance(part, (ToolCall, ToolResult, Media))
            return (self.bare, self.where) if is_item else ({}, self.where)
        return self.bare["content"][part.at], f"{self.where}.content[{part.at}]"

    def _beside(self, block: Any, kind: str, where: str) -> None:
        """Name every field that is not carried."""
        row = BLOCKS[self.name].get(kind)
        if not isinstance(block, Mapping) or row is None or row.carried is None:
            return
        self._all_but(row.carried, block, kind, where)
        for key, within in row.within.items():
            body = get(block, key)
            if isinstance(body, Mapping):
                self._all_but(within, body, key, f"{where}.{key}")

    def _all_but(
        self, carried: frozenset[str], block: Mapping[str, Any], kind: str, where: str
    ) -> None:
        known = carried.union(map(snake, carried), _SILENT)
        for key, value in block.items():
            if key not in known and value not in _NOTHING:
                self.losses.lose(f"{where}.{key}", f"the {key!r} of a {kind}", "Leave it out.")


def _is_silence(piece: Piece) -> bool:
    """Whether nothing is said, or our own words say so."""
    return isinstance(piece, Text) and piece.text in ("", EMPTY)


def _kind_of(name: str, block: Any) -> str:
    if not isinstance(block, Mapping):
        return "text"
    if name == "gemini":
        return next((kind for kind in PARTS if get(block, kind) is not None), "part")
    default = "tool" if "tool_call_id" in block else "function" if "function" in block else "text"
    return str(block.get("type") or default)


def _json(value: Any, where: str) -> str:
    """``value`` as JSON text, its keys in their order."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise FormatError(where, f"not JSON ({error})", "Give plain JSON values.") from None


def _object(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


# ── calls and results ────────────────────────────────────────────────────────────────────


def _named(turns: Sequence[Turn], losses: Losses) -> list[Turn]:
    """The turns, each result with what the call that it belongs to tells of it."""
    calls: dict[At, Call] = {}
    named: list[Turn] = []
    for turn in turns:
        pieces: list[Piece] = []
        for piece in turn.pieces:
            if isinstance(piece, Call):
                calls[piece.at] = piece
            elif isinstance(piece, Result) and piece.call in calls:
                call = calls[piece.call]
                if piece.name not in ("", call.name):
                    what = "the name of a result that is not its call's"
                    losses.lose(f"{piece.where}.name", what, "Leave it out.")
                piece = replace(piece, name=call.name, is_free_text=call.is_free_text)
            pieces.append(piece)
        named.append(replace(turn, pieces=tuple(pieces)))
    return named


def _without_late(turns: list[Turn], losses: Losses) -> list[Turn]:
    """The turns without asynchronous calls whose results come later than at once."""
    late: set[At] = set()
    for number, turn in enumerate(turns):
        follows = turns[number + 1].pieces if number + 1 < len(turns) else ()
        answered = {piece.call for piece in follows if isinstance(piece, Result)}
        late |= {
            piece.at
            for piece in turn.pieces
            if isinstance(piece, Call) and piece.is_late and piece.at not in answered
        }
    return [part for turn in turns for part in _without(turn, late, losses)] if late else turns


def _without(turn: Turn, late: set[At], losses: Losses) -> Iterator[Turn]:
    def described(piece: Piece) -> Piece:
        remedy = "Put its result behind it."
        if isinstance(piece, Call) and piece.at in late:
            return Text(losses.lose(piece.where, "a call that is answered later", remedy))
        if isinstance(piece, Result) and piece.call in late:
            return Text(losses.lose(piece.where, "the late result of a call", remedy))
        return piece

    pieces = tuple(described(piece) for piece in turn.pieces)
    if turn.who != "results":
        yield replace(turn, pieces=pieces)
        return
    sides: tuple[tuple[Who, bool], ...] = (("results", True), ("user", False))
    for who, is_result in sides:
        some = tuple(piece for piece in pieces if isinstance(piece, Result) == is_result)
        if some:
            yield Turn(who, some, turn.where)

"""Out of a wire: messages as turns, and every field that the turns do not hold named as lost."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from msgspec.structs import replace

from ullage.core.history.pairing import At, Pairing
from ullage.core.history.raw import field, not_json
from ullage.core.history.snapshots import snapshot_at
from ullage.core.values.messages import (
    WHOLE,
    BlockFrame,
    Media,
    Message,
    Opaque,
    Part,
    Passage,
    Text,
    ToolCall,
    ToolResult,
)
from ullage.wires import FORMATS, wire_named
from ullage.wires.base import at_path, get, snake, unmarked
from ullage.wires.block import Block, fields
from ullage.wires.convert.media import medium_of
from ullage.wires.convert.turns import (
    NOWHERE,
    Conversion,
    Medium,
    Piece,
    Result,
    Turn,
    TurnCall,
)
from ullage.wires.repair.base import EMPTY

FAILED = "[the tool failed]\n"
"""Says that a result is an error where the wire has no flag for it; read back as the flag."""

_NOTHING: tuple[Any, ...] = (None, "", False, [], {}, {"type": "direct"})
_NO_BLOCK = Block("")
_CALLS = ("function_call", "custom_tool_call")
_SAYS_NOTHING = fields(
    "type role id status created_by logprobs index"
    " thought thoughtSignature thought_signature extra_content"
)
"""Fields that say nothing of the conversation: names and states, and reasoning, sealed."""


def read(
    raws: Sequence[Any], start: int, conversion: Conversion
) -> list[Turn]:
    """The messages of a history as turns.

    Args:
        raws: the raw messages.
        start: the index of the first of them in the history.
        conversion: from which wire, and what to do with what is lost.

    Raises:
        FormatError: a message is not what its format says it is.
        UnsupportedPart: something in it would be lost.
    """
    turns: list[Turn] = []
    reader = wire_named(conversion.source).reader(conversion)
    for index, raw in enumerate(raws, start):
        for turn in reader.turns(raw, index):
            _add(turns, turn, merge=reader.joins_items)
    _phases(raws, start, conversion)
    return turns


def _phases(raws: Sequence[Any], start: int, conversion: Conversion) -> None:
    """Name each text that is said to be no answer, but for those that calls follow: they tell."""
    for at, raw in enumerate(raws):
        phase = field(raw, "phase")
        if phase is None or phase == "final_answer":
            continue
        is_followed_by_call = _kind_behind(raws, at) in _CALLS
        if phase != "commentary" or not is_followed_by_call:
            path = f"input[{start + at}].phase"
            conversion.lose(path, "that a text is no final answer")


def _kind_behind(raws: Sequence[Any], at: int) -> Any:
    """The type of the next item that is no reasoning; None if there is none."""
    for index in range(at + 1, len(raws)):
        kind = field(raws[index], "type")
        if kind != "reasoning":
            return kind
    return None


def _add(turns: list[Turn], turn: Turn, *, merge: bool) -> None:
    """Add a turn, or to the turn before: a batch of results, and the items of one reply."""
    is_mergeable = turn.who == "results" or (merge and turn.who == "assistant")
    if is_mergeable and turns and turns[-1].who == turn.who:
        pieces = turns[-1].pieces + turn.pieces
        turns[-1] = replace(turns[-1], pieces=pieces)
    else:
        turns.append(turn)


class Reader(ABC):
    """The messages of one history in order: their parts, each beside the block it came from.

    A wire says here where its blocks stand, and what of a request has no place in another.

    Attributes:
        held: the paths of what names a history that the provider holds: there is nothing to carry.
        beside: the fields of a request with what else the model is given, and no other wire has,
            each with its words for an error.
        tool_fields: of the definition of a function, those that are carried.
        joins_items: whether the items of one reply are messages of their own.
        flags_errors: whether a result says in a field of its own that it is an error.
        result_content: the path of the list with what a result says, within its block.
    """

    held: ClassVar[tuple[str, ...]] = ()
    beside: ClassVar[Mapping[str, str]] = {}
    tool_fields: ClassVar[frozenset[str]] = fields(
        "type name description parameters input_schema function"
        " parametersJsonSchema parameters_json_schema"
    )
    joins_items: ClassVar[bool] = False
    flags_errors: ClassVar[bool] = False
    result_content: ClassVar[str] = "content"

    def __init__(self, conversion: Conversion) -> None:
        self.name = conversion.source
        self.lose = conversion.lose
        self.format = FORMATS[self.name]
        self.rows = self.format.blocks
        self.pairs = Pairing()
        self.calls: dict[At, TurnCall] = {}
        self.late: set[At] = set()

    # ── what a wire says ─────────────────────────────────────────────────────────────

    def held_system(self, request: Mapping[str, Any]) -> Iterator[str]:
        """What stands for system text that the provider holds, and the request only names."""
        return iter(())

    def tool_body(
        self, raw: Mapping[str, Any], path: str
    ) -> Mapping[str, Any]:
        """What holds name and description of a tool: itself, or an object in it."""
        return raw

    @abstractmethod
    def schema(
        self, raw: Mapping[str, Any], body: Mapping[str, Any], path: str
    ) -> Any:
        """The schema of a function's arguments; None of what is no function.

        Args:
            raw: the definition.
            body: what `tool_body` gave.
            path: its path.
        """

    def message_kind(self, bare: Any, message: Message) -> str | None:
        """The row of `Block` that a whole message has; None if it is not an object with fields."""
        if message.role == "tool":
            return "tool"
        return "message"

    def block(self, part: Part, bare: Any, path: str) -> tuple[Any, str]:
        """The block that a part of a message came from, and its path.

        Args:
            part: of the message.
            bare: the message without its cache markers.
            path: its path.
        """
        if part.at == WHOLE:
            is_item = isinstance(part, (ToolCall, ToolResult, Media))
            return (bare if is_item else {}), path
        return bare["content"][part.at], f"{path}.content[{part.at}]"

    def kind(self, block: Mapping[str, Any]) -> str:
        """The row of `Block` that a block has."""
        return str(block.get("type") or "text")

    @abstractmethod
    def arguments(
        self, part: ToolCall, block: Any, path: str
    ) -> tuple[str, Any]:
        """The arguments of a call as text, and as the value that stands on the wire.

        Both have the keys in the order that they have there. The value is no mapping where the
        arguments are no JSON object, or free text.
        """

    # ── the same for all wires ───────────────────────────────────────────────────────

    def turns(self, raw: Any, index: int) -> Iterator[Turn]:
        """The turns in a message: results first, then what is said."""
        path = f"{self.format.key}[{index}]"
        snapshot_at(raw, path)
        message = self.format.parse(raw, path)
        self.pairs.feed(index, message)
        bare = unmarked(raw)
        kind = self.message_kind(bare, message)
        if kind is not None:
            self._beside(bare, kind, path)
        results: list[Piece] = []
        spoken: list[Piece] = []
        for number, part in enumerate(message.parts):
            block, place = self.block(part, bare, path)
            piece = self._piece(part, block, place, (index, number))
            if isinstance(piece, Result):
                results.append(piece)
            elif piece is not None and not _is_empty(piece):
                spoken.append(piece)
        if results:
            yield Turn("results", tuple(results), path)
        if not spoken and not results and message.role == "user":
            spoken.append(Text(""))
        if spoken:
            speaker = "user" if message.role == "tool" else message.role
            yield Turn(speaker, tuple(spoken), path)

    def _piece(
        self, part: Part, block: Any, path: str, at: At
    ) -> Piece | None:
        match part:
            case ToolCall(deferred=True):
                self.late.add(at)
                return Text(
                    self.lose(path, "a call that may be answered later")
                )
            case ToolCall():
                self._beside(block, self._kind_of(block), path)
                call = self._call(part, block, path, at)
                self.calls[at] = call
                return call
            case ToolResult():
                call_at = self.pairs.of(at) or NOWHERE
                if call_at in self.late:
                    return Text(self.lose(path, "the result of such a call"))
                self._beside(block, self._kind_of(block), path)
                return self._result(part, block, path, call_at)
            case BlockFrame():
                return self._without_frame(block, path)
            case Text() | Media() | Opaque():
                return self._content(part, block, path)
        return None

    def _content(
        self, part: Text | Media | Opaque, block: Any, path: str
    ) -> Text | Medium:
        kind = self._kind_of(block)
        if isinstance(part, Passage):
            return Text(part.text)
        if isinstance(part, Opaque):
            return self._unknown(part.kind, path)
        if isinstance(part, Media) and part.block is None:
            return self._unknown(kind, path)
        if kind == "refusal":
            self.lose(path, "that a text is a refusal", "Give it as text.")
        else:
            self._beside(block, kind, path)
        if isinstance(part, Media):
            return medium_of(part, self.rows[kind], path)
        return part

    def _unknown(self, kind: str, path: str) -> Text:
        """The text in place of a part that no other wire has."""
        return Text(self.lose(path, f"a part of type {kind!r} of {self.name}"))

    def _call(self, part: ToolCall, block: Any, path: str, at: At) -> TurnCall:
        """A call with its arguments in the order of keys they have on the wire."""
        text, value = self.arguments(part, block, path)
        return TurnCall(
            id=part.id,
            name=part.name,
            arguments=text,
            value=value if isinstance(value, Mapping) else None,
            where=path,
            is_free_text=block.get("type") in ("custom", "custom_tool_call"),
            at=at,
        )

    def _result(
        self, part: ToolResult, block: Any, path: str, call_at: At
    ) -> Piece:
        """A result, with what the call that it belongs to tells of it."""
        kind = block.get("type")
        row = self.rows.get(kind)
        if row is not None and row.carried is None:
            return Text(
                self.lose(path, f"an item of type {kind!r} of {self.name}")
            )
        content = tuple(self._items(part, block, path))
        is_error = part.is_error
        text = (
            content[0].text if content and isinstance(content[0], Text) else ""
        )
        if not self.flags_errors and text.startswith(FAILED):
            is_error = True
            content = (Text(text.removeprefix(FAILED)), *content[1:])
        name = part.name or str(block.get("name") or "")
        call = self.calls.get(call_at)
        if call is not None:
            if name not in ("", call.name):
                problem = "the name of a result that is not its call's"
                self.lose(f"{path}.name", problem)
            name = call.name
        return Result(
            call_id=part.call_id,
            name=name,
            content=content,
            is_error=is_error,
            where=path,
            is_free_text=call is not None and call.is_free_text,
            call=call_at,
        )

    def _items(
        self, part: ToolResult, block: Any, path: str
    ) -> Iterator[Text | Medium]:
        """What a result says, item by item."""
        list_path = self.result_content
        blocks = at_path(block, list_path)
        for item in part.content:
            item_block: Any = {}
            place = path
            if item.at != WHOLE:
                item_block = blocks[item.at]
                place = f"{path}.{list_path}[{item.at}]"
            if isinstance(item, BlockFrame):
                yield self._without_frame(item_block, place)
            else:
                yield self._content(item, item_block, place)

    def _without_frame(self, block: Any, path: str) -> Text:
        """What is said of a block whose texts are carried, and nothing else of it."""
        description = (
            f"what stands beside the text of a {self._kind_of(block)!r}"
        )
        return Text(self.lose(path, description, "Give its texts alone."))

    def _kind_of(self, block: Any) -> str:
        if not isinstance(block, Mapping):
            return "text"
        return self.kind(block)

    def _beside(self, block: Any, kind: str, path: str) -> None:
        """Name every field that is not carried."""
        row = self.rows.get(kind, _NO_BLOCK)
        if not isinstance(block, Mapping) or row.carried is None:
            return
        self._all_but(row.carried, block, kind, path)
        for key, within in row.within.items():
            body = get(block, key)
            if isinstance(body, Mapping):
                self._all_but(within, body, key, f"{path}.{key}")

    def _all_but(
        self,
        carried: frozenset[str],
        block: Mapping[str, Any],
        kind: str,
        path: str,
    ) -> None:
        snake_case = {snake(name) for name in carried}
        names = carried | snake_case | _SAYS_NOTHING
        for key, value in block.items():
            if key not in names and value not in _NOTHING:
                self.lose(f"{path}.{key}", f"the {key!r} of a {kind}")


def _is_empty(piece: Piece) -> bool:
    """Whether a text says nothing, or is our own for a message that was empty."""
    return isinstance(piece, Text) and piece.text in ("", EMPTY)


def json_text(value: Any, path: str) -> str:
    """``value`` as JSON text, its keys in their order."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise not_json(path, error) from None


def json_value(text: str) -> Any:
    """The value of a JSON text; None if it is none."""
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")

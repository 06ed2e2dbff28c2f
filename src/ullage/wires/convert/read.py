"""Out of a wire: messages as turns, and every field that the turns do not hold named as lost."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from msgspec.structs import replace

from ullage.core.errors import FormatError
from ullage.core.history.pairing import At, Pairing
from ullage.core.history.raw import field
from ullage.core.history.snapshots import snapshot_at
from ullage.core.values.messages import (
    WHOLE,
    Frame,
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
    Call,
    Conversion,
    Medium,
    Piece,
    Result,
    Turn,
)
from ullage.wires.repair.base import EMPTY

FAILED = "[the tool failed]\n"
"""Says that a result is an error where the wire has no flag for it; read back as the flag."""

_NOTHING: tuple[Any, ...] = (None, "", False, [], {}, {"type": "direct"})
_NO_BLOCK = Block("")
_SAYS_NOTHING = fields(
    "type role id status created_by logprobs index"
    " thought thoughtSignature thought_signature extra_content"
)
"""Fields that say nothing of the conversation: names and states, and reasoning, sealed."""


def read(raws: Sequence[Any], first: int, conversion: Conversion) -> list[Turn]:
    """The messages of a history as turns; ``first`` is the place of the first of them."""
    turns: list[Turn] = []
    reader = wire_named(conversion.source).reader(conversion)
    for index, raw in enumerate(raws, first):
        for turn in reader.turns(raw, index):
            _add(turns, turn, merge=reader.joins_items)
    _phases(raws, first, conversion)
    return turns


def _phases(raws: Sequence[Any], first: int, conversion: Conversion) -> None:
    """Name each text that is said to be no answer, but for those that calls follow: they tell."""
    for at, raw in enumerate(raws):
        phase = field(raw, "phase")
        if phase is None or phase == "final_answer":
            continue
        behind = (raws[later] for later in range(at + 1, len(raws)))
        kinds = (field(item, "type") for item in behind)
        follows = next((kind for kind in kinds if kind != "reasoning"), None)
        if phase != "commentary" or follows not in (
            "function_call",
            "custom_tool_call",
        ):
            conversion.lose(
                f"input[{first + at}].phase", "that a text is no final answer"
            )


def _add(turns: list[Turn], turn: Turn, *, merge: bool) -> None:
    """Add a turn, or to the turn before: a batch of results, and the items of one reply."""
    together = turn.who == "results" or (merge and turn.who == "assistant")
    if together and turns and turns[-1].who == turn.who:
        turns[-1] = replace(turns[-1], pieces=turns[-1].pieces + turn.pieces)
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
        self.calls: dict[At, Call] = {}
        self.late: set[At] = set()

    # ── what a wire says ─────────────────────────────────────────────────────────────

    def held_system(self, request: Mapping[str, Any]) -> Iterator[str]:
        """What stands for system text that the provider holds, and the request only names."""
        return iter(())

    def tool_body(self, raw: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """What holds name and description of a tool: itself, or an object in it."""
        return raw

    @abstractmethod
    def schema(
        self, raw: Mapping[str, Any], body: Mapping[str, Any], where: str
    ) -> Any:
        """The schema of a function's arguments; None of what is no function.

        Args:
            raw: the definition.
            body: what `tool_body` gave.
            where: its path.
        """

    def message_kind(self, bare: Any, message: Message) -> str | None:
        """The row of `Block` that a whole message has; None if it is no object with fields."""
        return "tool" if message.role == "tool" else "message"

    def block(self, part: Part, bare: Any, where: str) -> tuple[Any, str]:
        """The block that a part of a message came from, and its path.

        Args:
            part: of the message.
            bare: the message without its cache markers.
            where: its path.
        """
        if part.at == WHOLE:
            is_item = isinstance(part, (ToolCall, ToolResult, Media))
            return (bare if is_item else {}), where
        return bare["content"][part.at], f"{where}.content[{part.at}]"

    def kind(self, block: Mapping[str, Any]) -> str:
        """The row of `Block` that a block has."""
        return str(block.get("type") or "text")

    @abstractmethod
    def arguments(self, part: ToolCall, block: Any, where: str) -> tuple[str, Any]:
        """The arguments of a call as text, and as the value that stands on the wire.

        Both have the keys in the order that they have there. The value is no mapping where the
        arguments are no JSON object, or free text.
        """

    # ── the same for all wires ───────────────────────────────────────────────────────

    def turns(self, raw: Any, index: int) -> Iterator[Turn]:
        """The turns in a message: results first, then what is said."""
        where = f"{self.format.key}[{index}]"
        snapshot_at(raw, where)
        message = self.format.parse(raw, where)
        self.pairs.feed(index, message)
        bare = unmarked(raw)
        kind = self.message_kind(bare, message)
        if kind is not None:
            self._beside(bare, kind, where)
        results: list[Piece] = []
        said: list[Piece] = []
        for number, part in enumerate(message.parts):
            piece = self._piece(part, *self.block(part, bare, where), (index, number))
            if isinstance(piece, Result):
                results.append(piece)
            elif piece is not None and not (
                isinstance(piece, Text) and piece.text in ("", EMPTY)
            ):
                said.append(piece)
        if results:
            yield Turn("results", tuple(results), where)
        if not said and not results and message.role == "user":
            said.append(Text(""))
        if said:
            yield Turn(
                "user" if message.role == "tool" else message.role, tuple(said), where
            )

    def _piece(self, part: Part, block: Any, where: str, at: At) -> Piece | None:
        match part:
            case ToolCall(late=True):
                self.late.add(at)
                return Text(self.lose(where, "a call that may be answered later"))
            case ToolCall():
                self._beside(block, self._kind_of(block), where)
                call = self.calls[at] = self._call(part, block, where, at)
                return call
            case ToolResult():
                asked = self.pairs.of(at) or NOWHERE
                if asked in self.late:
                    return Text(self.lose(where, "the result of such a call"))
                self._beside(block, self._kind_of(block), where)
                return self._result(part, block, where, asked)
            case Frame():
                return self._without_frame(block, where)
            case Text() | Media() | Opaque():
                return self._content(part, block, where)
        return None

    def _content(
        self, part: Text | Media | Opaque, block: Any, where: str
    ) -> Text | Medium:
        kind = self._kind_of(block)
        if isinstance(part, Passage):
            return Text(part.text)
        if isinstance(part, Opaque) or (isinstance(part, Media) and part.block is None):
            named = part.kind if isinstance(part, Opaque) else kind
            return Text(self.lose(where, f"a part of type {named!r} of {self.name}"))
        if kind == "refusal":
            self.lose(where, "that a text is a refusal", "Give it as text.")
        else:
            self._beside(block, kind, where)
        return (
            part if isinstance(part, Text) else medium_of(part, self.rows[kind], where)
        )

    def _call(self, part: ToolCall, block: Any, where: str, at: At) -> Call:
        """A call with its arguments in the order of keys they have on the wire."""
        free = block.get("type") in ("custom", "custom_tool_call")
        text, value = self.arguments(part, block, where)
        value = value if isinstance(value, Mapping) else None
        return Call(part.id, part.name, text, value, where, free, at)

    def _result(self, part: ToolResult, block: Any, where: str, at: At) -> Piece:
        """A result, with what the call that it belongs to tells of it."""
        kind = block.get("type")
        row = self.rows.get(kind)
        if row is not None and row.carried is None:
            return Text(self.lose(where, f"an item of type {kind!r} of {self.name}"))
        content = tuple(self._items(part, block, where))
        is_error = part.is_error
        first = content[0].text if content and isinstance(content[0], Text) else ""
        if not self.flags_errors and first.startswith(FAILED):
            content = (Text(first.removeprefix(FAILED)), *content[1:])
            is_error = True
        name, call = part.name or str(block.get("name") or ""), self.calls.get(at)
        if call is not None and name not in ("", call.name):
            self.lose(f"{where}.name", "the name of a result that is not its call's")
        free = call is not None and call.is_free_text
        return Result(
            part.call_id,
            call.name if call else name,
            content,
            is_error,
            where,
            free,
            at,
        )

    def _items(
        self, part: ToolResult, block: Any, where: str
    ) -> Iterator[Text | Medium]:
        path = self.result_content
        held = at_path(block, path)
        for item in part.content:
            if item.at == WHOLE:
                block, place = {}, where
            else:
                block, place = held[item.at], f"{where}.{path}[{item.at}]"
            if isinstance(item, Frame):
                yield self._without_frame(block, place)
            else:
                yield self._content(item, block, place)

    def _without_frame(self, block: Any, where: str) -> Text:
        """What is said of a block whose texts are carried, and nothing else of it."""
        what = f"what stands beside the text of a {self._kind_of(block)!r}"
        return Text(self.lose(where, what, "Give its texts alone."))

    def _kind_of(self, block: Any) -> str:
        if not isinstance(block, Mapping):
            return "text"
        return self.kind(block)

    def _beside(self, block: Any, kind: str, where: str) -> None:
        """Name every field that is not carried."""
        row = self.rows.get(kind, _NO_BLOCK)
        if not isinstance(block, Mapping) or row.carried is None:
            return
        self._all_but(row.carried, block, kind, where)
        for key, within in row.within.items():
            body = get(block, key)
            if isinstance(body, Mapping):
                self._all_but(within, body, key, f"{where}.{key}")

    def _all_but(
        self, carried: frozenset[str], block: Mapping[str, Any], kind: str, where: str
    ) -> None:
        known = carried.union(map(snake, carried), _SAYS_NOTHING)
        for key, value in block.items():
            if key not in known and value not in _NOTHING:
                self.lose(f"{where}.{key}", f"the {key!r} of a {kind}")


def json_text(value: Any, where: str) -> str:
    """``value`` as JSON text, its keys in their order."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise FormatError(
            where, f"not JSON ({error})", "Give plain JSON values."
        ) from None


def json_value(text: str) -> Any:
    """The value of a JSON text; None if it is none."""
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")

"""Into a wire: turns as the messages of the target."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

from ullage.core.values.messages import Text
from ullage.core.values.toolset import ToolSpec
from ullage.wires import wire_named
from ullage.wires.base import snake
from ullage.wires.convert.names import under_names
from ullage.wires.convert.read import FAILED
from ullage.wires.convert.turns import (
    Conversion,
    Medium,
    Piece,
    Result,
    Turn,
    TurnCall,
)

WireDict: TypeAlias = dict[str, Any]
"""A message, an item or a block, as it stands on the wire."""
Say: TypeAlias = Callable[[str], WireDict]
"""Makes a block of a text."""

REPLY = "a reply"
RESULT = "a tool's result"
_NO_USER = "[ullage: no message of the user stood here]"


class Writer(ABC):
    """Writes turns as the messages of one wire.

    Attributes:
        tool_name: the form that the names of tools must have.
        not_first: the roles that no history may begin with.
        unique_ids: whether no two calls of a history may have one id.
    """

    tool_name: ClassVar[re.Pattern[str]]
    not_first: ClassVar[tuple[str, ...]] = ()
    unique_ids: ClassVar[bool] = False

    def __init__(self, conversion: Conversion) -> None:
        self.conversion = conversion
        self.wire = wire_named(conversion.target)
        self.format = self.wire.format

    # ── what a wire says ─────────────────────────────────────────────────────────────

    @abstractmethod
    def messages(self, turns: Sequence[Turn]) -> Iterable[WireDict]:
        """The messages of these turns, whose names and ids are legal already."""

    @abstractmethod
    def call(self, call: TurnCall) -> WireDict:
        """A call of a tool, as the model writes it."""

    @abstractmethod
    def medium(self, medium: Medium) -> WireDict | None:
        """The block of a medium; None where there is none for it."""

    @abstractmethod
    def keeps_name(self, medium: Medium) -> bool:
        """Whether the name of a document goes along."""

    @abstractmethod
    def request(
        self,
        system: Sequence[str],
        tools: Sequence[ToolSpec],
        output_tokens: int | None,
        messages: Sequence[Any],
    ) -> WireDict:
        """The keyword arguments of the provider's call."""

    # ── the same for several wires ───────────────────────────────────────────────────

    def beginning(self) -> Any:
        """What stands for the user where the wire wants one to speak first (A1, G4)."""
        return self.format.user(_NO_USER)

    def model(self) -> WireDict:
        """The field with the model, if there is one."""
        model = self.conversion.model
        if model is None:
            return {}
        return {self.format.model_field: model}

    def settings(
        self, tools: Sequence[ToolSpec], output_tokens: int | None
    ) -> WireDict:
        """The fields with the tools and the limit of the answer, if there are any."""
        settings: WireDict = {}
        if tools:
            settings["tools"] = [self.format.tool(tool) for tool in tools]
        if output_tokens is not None:
            settings[snake(self.format.answer_limits[0])] = output_tokens
        return settings

    def led_request(
        self,
        role: str,
        system: Sequence[str],
        tools: Sequence[ToolSpec],
        output_tokens: int | None,
        messages: Sequence[Any],
    ) -> WireDict:
        """A request whose system texts are leading messages of a role. See `request`."""
        leading = [{"role": role, "content": text} for text in system]
        settings = self.settings(tools, output_tokens)
        return {
            **self.model(),
            **settings,
            self.format.key: [*leading, *messages],
        }

    def blocks(self, pieces: Sequence[Piece], say: Say) -> list[WireDict]:
        """The blocks of texts and media, a text in place of a medium that has none."""
        blocks: list[WireDict] = []
        for piece in pieces:
            if isinstance(piece, Text):
                blocks.append(say(piece.text))
            elif isinstance(piece, Medium):
                block = self._block_of(piece)
                if isinstance(block, str):
                    block = say(block)
                blocks.append(block)
        return blocks

    def _block_of(self, medium: Medium) -> WireDict | str:
        """The block of a medium; a text where there is none and the caller accepts that."""
        lose = self.conversion.lose
        source = self.conversion.source
        shares_files = wire_named(source).provider == self.wire.provider
        if medium.file_id and not shares_files:
            remedy = "Give its data instead of the id."
            return lose(medium.where, f"a file of {source}'s own", remedy)
        block = self.medium(medium)
        if block is None:
            remedy = "Leave it out, or give it otherwise."
            return lose(medium.where, _described(medium), remedy)
        if medium.detail not in ("", "auto") and not shares_files:
            lose(f"{medium.where}.detail", "the detail of an image")
        keeps_name = medium.kind == "document" and self.keeps_name(medium)
        if medium.name and not keeps_name:
            lose(
                f"{medium.where}.title",
                f"the name of {_with_article(medium.kind)}",
            )
        return block

    def texts(self, pieces: Sequence[Piece], place: str) -> list[Text]:
        """What is said in texts, where no medium may stand at all."""
        remedy = "Put it into a message of the user."
        texts: list[Text] = []
        for piece in pieces:
            if isinstance(piece, Medium):
                name = "an image" if piece.kind == "image" else piece.kind
                line = self.conversion.lose(
                    piece.where, f"{name} in {place}", remedy
                )
                texts.append(Text(line))
            elif isinstance(piece, Text):
                texts.append(piece)
        return texts

    def arguments(self, call: TurnCall) -> WireDict:
        """The arguments as the object that the wire wants."""
        if call.value is not None:
            return dict(call.value)
        problem = "a call whose arguments are no JSON object"
        self.conversion.lose(
            call.where, problem, "Give its arguments as an object."
        )
        return {"input": call.arguments}

    def system_note(self, turn: Turn) -> Turn:
        """A system message in mid-history as the user's, for a wire that has none."""
        problem = "a system message in the middle"
        remedy = "Put it into the system text."
        note = self.conversion.lose(turn.where, problem, remedy)
        return Turn("user", (Text(note), *turn.pieces), turn.where)


def write(
    turns: Sequence[Turn], conversion: Conversion, names: Mapping[str, str]
) -> list[WireDict]:
    """The turns as messages of the target, tools called by ``names``."""
    writer = wire_named(conversion.target).writer(conversion)
    messages = list(writer.messages(under_names(turns, conversion, names)))
    if messages and messages[0].get("role") in writer.not_first:
        return [writer.beginning(), *messages]
    return messages


def call_on(
    wire: str, tool: str, arguments: Mapping[str, Any], text: str, id: str
) -> WireDict:
    """A call of a tool, as a model writes it on a wire.

    Args:
        wire: its name.
        tool: the tool's name.
        arguments: what it is called with.
        text: the same as JSON text.
        id: of the call.
    """
    conversion = Conversion(wire, wire, None, describe=False)
    writer = wire_named(wire).writer(conversion)
    return writer.call(TurnCall(id, tool, text, arguments, "call"))


# ── helpers of the wires ─────────────────────────────────────────────────────────────────


def failed(result: Result) -> tuple[Text | Medium, ...]:
    """The content of a result, with words for an error where there is no flag."""
    content = result.content
    if not result.is_error:
        return content
    if content and isinstance(content[0], Text):
        text = FAILED + content[0].text
        return (Text(text), *content[1:])
    return (Text(FAILED), *content)


def text_block(text: str) -> WireDict:
    """A block of text on the wires that call it ``text``."""
    return {"type": "text", "text": text}


def alone(content: Sequence[Any]) -> str | None:
    """The text that is all there is, to be given as a string; None if there is more."""
    if len(content) == 1 and isinstance(content[0], Text):
        return content[0].text
    return None


def called(call: TurnCall) -> WireDict:
    """Name and arguments of a call, as OpenAI's wires have them."""
    key = "input" if call.is_free_text else "arguments"
    return {"name": call.name, key: call.arguments}


def _described(medium: Medium) -> str:
    """A medium in words: its kind, its type if that is known, and whether it stands elsewhere."""
    text = _with_article(medium.kind)
    if medium.mime:
        text = f"{text} ({medium.mime})"
    if medium.url:
        text = f"{text} by URL"
    return text


def _with_article(kind: str) -> str:
    article = "an" if kind[0] in "ai" else "a"
    return f"{article} {kind}"

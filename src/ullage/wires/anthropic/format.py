"""Anthropic Messages: ``POST /v1/messages`` (`provider-rules` §1.A).

System text stands beside the messages. Tool results are blocks of a user message. Blocks we
do not look into (server tools, search results, compaction) are carried through untouched,
and thinking blocks are never edited: the API checks them byte for byte (A13).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ullage.core.contract.choice import ANY, FORCED, NONE, Choice
from ullage.core.contract.format import Change, HeldHistory
from ullage.core.errors import FormatError
from ullage.core.history.raw import as_json, field, text_at
from ullage.core.values.authors import Author
from ullage.core.values.messages import (
    WHOLE,
    BlockFrame,
    Content,
    Message,
    Opaque,
    Part,
    Passage,
    Reasoning,
    ReasoningRule,
    Text,
    ToolCall,
    ToolResult,
)
from ullage.core.values.notices import NO_REASONING
from ullage.core.values.usage import Usage
from ullage.wires.anthropic.blocks import (
    BLOCKS,
    ROLES,
    SERVER,
    SERVER_CALLS,
    SERVER_RESULTS,
)
from ullage.wires.anthropic.models import FAMILIES, call_ids
from ullage.wires.anthropic.passages import passages_of, with_shown_text
from ullage.wires.anthropic.usage import usage_from, usage_from_stream
from ullage.wires.base import (
    PartT,
    content_at,
    list_at,
    opaque_json,
    ordered,
    plain,
    sealed_bytes,
)
from ullage.wires.block import (
    Block,
    arguments_of,
    cannot_edit,
    filled,
    medium_at,
    replaced,
)
from ullage.wires.format import WireFormat, before_last
from ullage.wires.models import family_of
from ullage.wires.unknown_media import media_tokens_of

_FRAME_BYTES = 170
"""Bytes of a signature that are not the thought, as measured (docs/tokens.md)."""
_UNKNOWN = Block("")
_CUT_SHORT = (
    "max_tokens",
    "model_context_window_exceeded",
    "refusal",
    "stop_sequence",
)


class Anthropic(WireFormat):
    """The Messages format."""

    name = wire = "anthropic"
    blocks = BLOCKS
    roles = ROLES
    answer_limits = ("max_tokens",)
    schemas = ("output_format.schema", "output_config.format.schema")
    answer_forms = ("output_format.type", "output_config.format.type")
    held_histories = (HeldHistory("thread", ("thread.previous_message_id",)),)
    parameters = "input_schema"
    families = FAMILIES
    joins_results = True

    def system(
        self, request: Mapping[str, Any]
    ) -> Iterator[tuple[str, str | None]]:
        """See `WireFormat.system`: text, or blocks of it."""
        system = request.get("system")
        blocks = (
            [system] if isinstance(system, str) else list_at(system, "system")
        )
        for at, block in enumerate(blocks):
            path = f"system[{at}]"
            if isinstance(block, str):
                yield path, block
            elif field(block, "type") in (None, "text"):
                yield path, text_at(field(block, "text"), f"{path}.text")
            else:
                yield path, None

    def previous(self, request: Mapping[str, Any]) -> str:
        """See `Format.previous`: what a message thread is continued from."""
        thread = request.get("thread")
        if field(thread, "type") != "continue":
            return ""
        return str(field(thread, "previous_message_id") or "")

    def is_thread(self, request: Mapping[str, Any]) -> bool:
        """See `Format.is_thread`: where a message thread is created or continued."""
        return bool(request.get("thread"))

    def call_ids(self, model: str) -> re.Pattern[str]:
        """See `WireFormat.call_ids`."""
        return call_ids(model)

    def wants_turns(self, model: str) -> bool:
        """See `Format.wants_turns`: where another maker's model has a chat template."""
        return bool(model) and "claude" not in model.lower()

    def takes_tools(self, request: Mapping[str, Any], model: str) -> bool:
        """See `Format.takes_tools`: a thread keeps the tools that it was created with."""
        return not self.previous(request)

    def choice(self, request: Mapping[str, Any]) -> Choice:
        """See `Format.choice`."""
        choice = request.get("tool_choice")
        match field(choice, "type"):
            case "none":
                return NONE
            case "any":
                return FORCED
            case "tool":
                name = str(field(choice, "name"))
                return Choice(frozenset((name,)), is_open=False)
            case _:
                return ANY

    def parse(self, raw: Any, path: str) -> Message:
        """See `Format.parse`."""
        message = raw if type(raw) is dict else plain(raw, path)
        role = self.role_of(message.get("role"), path)
        content = message.get("content")
        place = f"{path}.content"
        if content is None:
            raise FormatError(place, "there is none", "Give text, or blocks.")
        parts: list[Part] = _with_passages(content, place, self._block)
        return Message(role, ordered(parts), before_reply=role == "system")

    def _block(self, raw: Any, at: int, path: str) -> Part:
        block = raw if type(raw) is dict else plain(raw, path)
        row = _row_of(block)
        match row.becomes:
            case "call":
                return _call_in(block, row, at, path)
            case "result":
                content: list[Content] = _with_passages(
                    block.get("content"),
                    f"{path}.content",
                    self._item,
                )
                call_id = str(block.get("tool_use_id") or "")
                is_error = bool(block.get("is_error"))
                return ToolResult(call_id, tuple(content), is_error, at)
            case "reasoning":
                return _reasoning_in(block, row, at)
            case _:
                return _content(block, row, at, path)

    def _item(self, raw: Any, at: int, path: str) -> Content:
        """An item of a result, where text may stand bare."""
        if type(raw) is str:
            return Text(raw, at)
        block = plain(raw, path)
        return _content(block, _row_of(block), at, path)

    def edit(
        self,
        raw: Any,
        message: Message,
        changes: Sequence[Change],
        *,
        drop_reasoning: bool = False,
    ) -> dict[str, Any]:
        """See `Format.edit`."""
        # Shallow copies all the way down: what the caller holds is never changed.
        edited = dict(raw if type(raw) is dict else plain(raw, "message"))
        if isinstance(edited["content"], str):
            for _, _, text in changes:
                edited["content"] = filled(text, "text", "A9")
            return edited
        blocks = list(edited["content"])
        for number, item, text in changes:
            part = message.parts[number]
            block = plain(blocks[part.at], "block")
            blocks[part.at] = _with_text(block, part, item, text)
        # Last, since the places of the parts are those of all blocks.
        if drop_reasoning:
            blocks = _without_reasoning(blocks, message.parts)
        edited["content"] = blocks
        return edited

    def reasoning(
        self, request: Mapping[str, Any], model: str
    ) -> ReasoningRule:
        """See `Format.reasoning`: of a family that is bound to what precedes it.

        The API then answers 400 (A15) unless it was asked to drop the blocks itself. With
        manual thinking the open turn must begin with its thinking (A14), so nothing may be
        left out while it is open.
        """
        thinking = request.get("thinking") or {}
        if field(thinking, "block_binding"):
            return "free"
        family = family_of(self.families, model)
        if self.thinks_first(request):
            return family.manual_rule
        return family.rule

    def thinks_first(self, request: Mapping[str, Any]) -> bool:
        """See `Format.thinks_first`: with manual thinking."""
        return bool(field(request.get("thinking"), "type") == "enabled")

    def user(self, text: str) -> dict[str, Any]:
        """See `Format.user`."""
        block = {"type": "text", "text": text}
        return {"role": "user", "content": [block]}

    def wrap_up(self, request: Mapping[str, Any], text: str) -> dict[str, Any]:
        """See `Format.wrap_up`. Behind results, the API takes both messages as one (A2).

        A system message stays the last (A20). While a tool of the server's is open, only
        results may follow (A18, A19): then nothing is asked in words.
        """
        messages = self.history(request)
        if not _is_server_tool_open(messages):
            messages = before_last(messages, self.user(text), _is_system)
        last_request = self.compose(request, messages, ())
        if last_request.get("tools"):
            last_request["tool_choice"] = {"type": "none"}
        return last_request

    def call(self, raw: Any) -> ToolCall:
        """See `Format.call`."""
        part = self._block(raw, WHOLE, "call")
        if isinstance(part, ToolCall):
            return part
        remedy = "Give the block the model sent."
        raise FormatError("call", "not a tool_use block", remedy)

    def result(
        self,
        call: ToolCall,
        text: str,
        *,
        is_error: bool = False,
        block: Any = None,
    ) -> dict[str, Any]:
        """See `Format.result`: a block, to stand first in the next user message (A5)."""
        content = text if block is None else [block]
        result: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": call.id,
            "content": content,
        }
        if is_error:
            result["is_error"] = True
        return result

    def results(self, results: Sequence[Any]) -> list[Any]:
        """See `Format.results`: all of one step stand in one user message (A6)."""
        return [{"role": "user", "content": list(results)}]

    def reply(self, reply: Any) -> list[Any]:
        """See `Format.reply`. A message without blocks is refused (A9)."""
        content = field(reply, "content")
        if not content:
            return []
        return [{"role": "assistant", "content": content}]

    def cut_short(self, reply: Any) -> str:
        """See `Format.cut_short`."""
        reason = field(reply, "stop_reason")
        return reason if reason in _CUT_SHORT else ""

    def calls(self, raw: Any) -> list[Any]:
        """See `Format.calls`. The server answers its own tools itself."""
        content = field(raw, "content")
        blocks = content if isinstance(content, (list, tuple)) else ()
        return [
            block for block in blocks if field(block, "type") == "tool_use"
        ]

    def usage(self, reply: Any) -> Usage | None:
        """See `Format.usage`."""
        usage = field(reply, "usage")
        return None if usage is None else usage_from(usage)

    def usage_of_stream(self, events: Iterable[Any]) -> Usage | None:
        """See `Format.usage_of_stream`."""
        return usage_from_stream(events)


# ── reading ──────────────────────────────────────────────────────────────────────────────


def _row_of(block: Mapping[str, Any]) -> Block:
    kind = block.get("type")
    return BLOCKS.get(kind, _UNKNOWN) if type(kind) is str else _UNKNOWN


def _call_in(
    block: Mapping[str, Any], row: Block, at: int, path: str
) -> ToolCall:
    arguments = as_json(block.get("input"), f"{path}.input")
    name = text_at(block.get("name"), f"{path}.name")
    call_id = str(block.get("id") or "")
    author: Author = "program" if row.is_of_program(block) else "model"
    return ToolCall(call_id, name, arguments, at, author=author)


def _reasoning_in(block: Mapping[str, Any], row: Block, at: int) -> Reasoning:
    """A thought: bound where it is signed, and where it has no text to be read."""
    text = str(block.get(row.text) or "")
    seal = block.get("signature") or block.get("data")
    size = sealed_bytes(seal, _FRAME_BYTES)
    is_bound = bool(seal) or not row.text
    return Reasoning(text, at, is_bound, size)


def _content(
    block: Mapping[str, Any], row: Block, at: int, path: str
) -> Content:
    if row.becomes == "text":
        return Text(text_at(block.get(row.text), f"{path}.{row.text}"), at)
    if row.media and field(block.get("source"), "type") in (
        "base64",
        "url",
        "file",
    ):
        return medium_at(block, row, at, path)
    return _opaque(block, row, at, path)


def _opaque(
    block: Mapping[str, Any], row: Block, at: int, path: str
) -> Opaque:
    """A block that is carried through."""
    kind = block.get("type")
    call_id = block.get("tool_use_id")
    opens = f"{SERVER}{block.get(row.opens)}" if row.opens else ""
    closes = f"{SERVER}{call_id}" if call_id else ""
    # Without content a compaction failed, and what stands before it is read (§2.A).
    has_summary = bool(block.get("content") or block.get("encrypted_content"))
    return Opaque(
        str(kind),
        opaque_json(block, path),
        at,
        media_tokens_of(block),
        opens=opens,
        closes=closes,
        supersedes=kind == "compaction" and has_summary,
        author=row.author,
        reader=row.read_by(block),
        loads=_loaded(block),
    )


def _loaded(block: Mapping[str, Any]) -> tuple[str, ...]:
    """The tools that a block makes callable: a search found them, the caller's or the server's."""
    match block.get("type"):
        case "tool_reference":
            references = [block]
        case "tool_search_tool_result":
            references = field(block.get("content"), "tool_references") or []
        case _:
            return ()
    return tuple(
        str(field(reference, "tool_name")) for reference in references
    )


def _with_passages(
    content: Any,
    path: str,
    read: Callable[[Any, int, str], PartT],
) -> list[PartT | Any]:
    """The parts of a content (`content_at`); a block with passages is these and its frame."""
    if not isinstance(content, (list, tuple)):
        return list(content_at(content, path, read))
    parts: list[Any] = []
    for at, block in enumerate(content):
        place = f"{path}[{at}]"
        parts += passages_of(block, at, place) or [read(block, at, place)]
    return parts


# ── writing ──────────────────────────────────────────────────────────────────────────────


def _with_text(
    block: Mapping[str, Any], part: Part, item: int, text: str
) -> Any:
    """A block of a message that shows another text: of a result, in one of its items."""
    if isinstance(part, ToolCall):
        return {**block, "input": arguments_of(text)}
    if isinstance(part, ToolResult):
        content = _with_item(block["content"], part.content[item], text)
        return {**block, "content": content}
    return _with_leaf(block, part, text)


def _with_item(content: Any, leaf: Content, text: str) -> Any:
    """A result's content with another text in the place of one item."""
    if leaf.at == WHOLE:
        return text
    items = list(content)
    items[leaf.at] = _with_leaf(items[leaf.at], leaf, text)
    return items


def _with_leaf(raw: Any, part: Part, text: str) -> dict[str, Any]:
    """A block, or an item of a result, that shows another text.

    A passage is replaced within its block, anything else is replaced as a whole.
    """
    kind = "text" if isinstance(raw, str) else field(raw, "type")
    if isinstance(part, BlockFrame):
        raise cannot_edit(kind, "keeps what stands beside its texts")
    if isinstance(part, Passage):
        return with_shown_text(raw, part.inner, text)
    return replaced(raw, BLOCKS, filled(text, kind, "A9"))


def _without_reasoning(
    blocks: Sequence[Any], parts: Sequence[Part]
) -> list[Any]:
    """The blocks of a message without its thoughts; a line of text if it has no others."""
    thoughts = {part.at for part in parts if isinstance(part, Reasoning)}
    rest = [block for at, block in enumerate(blocks) if at not in thoughts]
    return rest or [{"type": "text", "text": NO_REASONING}]


# ── the history ──────────────────────────────────────────────────────────────────────────


def _is_system(raw: Any) -> bool:
    return bool(field(raw, "role") == "system")


def _is_server_tool_open(messages: Sequence[Any]) -> bool:
    """Whether the last reply holds a call of a server's tool without its result."""
    for message in reversed(messages):
        if field(message, "role") == "assistant":
            break
    else:
        return False
    content = field(message, "content")
    if not isinstance(content, list):
        return False
    kinds = [field(block, "type") for block in content]
    # Counted, not paired: within one reply each result has its call in front of it (A18).
    calls = sum(kind in SERVER_CALLS for kind in kinds)
    results = sum(kind in SERVER_RESULTS for kind in kinds)
    return calls > results

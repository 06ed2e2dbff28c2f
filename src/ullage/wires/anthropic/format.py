"""Anthropic Messages: ``POST /v1/messages`` (`provider-rules` §1.A).

System text stands beside the messages. Tool results are blocks of a user message. Blocks we
do not look into (server tools, search results, compaction) are carried through untouched,
and thinking blocks are never edited: the API checks them byte for byte (A13).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

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
from ullage.wires.anthropic.passages import passages_of, shown
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
    fields,
    filled,
    medium_at,
    replaced,
)
from ullage.wires.format import WireFormat, before_last
from ullage.wires.models import family_of
from ullage.wires.unknown_media import media_tokens_of
from ullage.wires.usages import Counts, read

_FRAME_BYTES = 170
"""What stands in a signature beside the thought, as measured (docs/tokens.md)."""
_UNKNOWN = Block("")
_BESIDE_THE_SUMS = ("compaction", "advisor_message")
_COUNTS = Counts(
    prompt="input_tokens",
    beside_cache=True,
    read="cache_read_input_tokens",
    written="cache_creation_input_tokens",
    long_written="cache_creation.ephemeral_1h_input_tokens",
    output="output_tokens",
    reasoning="output_tokens_details.thinking_tokens",
)
_CUT_SHORT = ("max_tokens", "model_context_window_exceeded", "refusal", "stop_sequence")
_COUNTED = fields(
    "input_tokens cache_read_input_tokens cache_creation_input_tokens cache_creation output_tokens"
    " output_tokens_details iterations"
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

    def system(self, request: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
        """See `WireFormat.system`: text, or blocks of it."""
        system = request.get("system")
        blocks = [system] if isinstance(system, str) else list_at(system, "system")
        for at, block in enumerate(blocks):
            where = f"system[{at}]"
            if isinstance(block, str):
                yield where, block
            else:
                is_text = field(block, "type") in (None, "text")
                yield (
                    where,
                    text_at(field(block, "text"), f"{where}.text") if is_text else None,
                )

    def previous(self, request: Mapping[str, Any]) -> str:
        """See `Format.previous`: what a message thread is continued from."""
        thread = request.get("thread")
        is_continued = field(thread, "type") == "continue"
        return str(field(thread, "previous_message_id") or "") if is_continued else ""

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
                return Choice(frozenset((str(field(choice, "name")),)), is_open=False)
            case _:
                return ANY

    def parse(self, raw: Any, where: str) -> Message:
        """See `Format.parse`."""
        message = raw if type(raw) is dict else plain(raw, where)
        role = self.role_of(message.get("role"), where)
        content = message.get("content")
        if content is None:
            raise FormatError(
                f"{where}.content", "there is none", "Give text, or blocks."
            )
        parts: list[Part] = _with_passages(content, f"{where}.content", self._block)
        return Message(role, ordered(parts), before_reply=role == "system")

    def _block(self, raw: Any, at: int, where: str) -> Part:
        block = raw if type(raw) is dict else plain(raw, where)
        row = _row_of(block)
        match row.becomes:
            case "call":
                arguments = as_json(block.get("input"), f"{where}.input")
                name = text_at(block.get("name"), f"{where}.name")
                author: Author = "program" if row.is_of_program(block) else "model"
                return ToolCall(
                    str(block.get("id") or ""), name, arguments, at, author=author
                )
            case "result":
                held = f"{where}.content"
                content: list[Content] = _with_passages(
                    block.get("content"), held, self._item
                )
                failed = bool(block.get("is_error"))
                return ToolResult(
                    str(block.get("tool_use_id") or ""), tuple(content), failed, at
                )
            case "reasoning":
                sealed = block.get("signature") or block.get("data")
                size = sealed_bytes(sealed, _FRAME_BYTES)
                bound = bool(sealed) or not row.text
                return Reasoning(str(block.get(row.text) or ""), at, bound, size)
            case _:
                return _content(block, row, at, where)

    def _item(self, raw: Any, at: int, where: str) -> Content:
        """Of a result; text may stand there bare."""
        if type(raw) is str:
            return Text(raw, at)
        block = plain(raw, where)
        return _content(block, _row_of(block), at, where)

    def edit(
        self,
        raw: Any,
        message: Message,
        changes: Sequence[Change],
        *,
        drop_reasoning: bool = False,
    ) -> dict[str, Any]:
        """See `Format.edit`."""
        new = dict(raw if type(raw) is dict else plain(raw, "message"))
        if isinstance(new["content"], str):
            for _, _, text in changes:
                new["content"] = filled(text, "text", "A9")
            return new
        blocks = new["content"] = list(new["content"])
        for number, item, text in changes:
            part = message.parts[number]
            block = plain(blocks[part.at], "block")
            if isinstance(part, ToolCall):
                blocks[part.at] = {**block, "input": arguments_of(text)}
            elif isinstance(part, ToolResult):
                content = _shown(block["content"], part.content[item], text)
                blocks[part.at] = {**block, "content": content}
            else:
                blocks[part.at] = _edited(block, part, text)
        if drop_reasoning:
            thoughts = {
                part.at for part in message.parts if isinstance(part, Reasoning)
            }
            kept = [block for at, block in enumerate(blocks) if at not in thoughts]
            new["content"] = kept or [{"type": "text", "text": NO_REASONING}]
        return new

    def reasoning(self, request: Mapping[str, Any], model: str) -> ReasoningRule:
        """See `Format.reasoning`: of a family that is bound to what precedes it.

        The API then answers 400 (A15) unless it was asked to drop the blocks itself. With
        manual thinking the open turn must begin with its thinking (A14), so nothing may be
        left out while it is open.
        """
        thinking = request.get("thinking") or {}
        if field(thinking, "block_binding"):
            return "free"
        family = family_of(self.families, model)
        return family.manual_rule if self.thinks_first(request) else family.rule

    def thinks_first(self, request: Mapping[str, Any]) -> bool:
        """See `Format.thinks_first`: with manual thinking."""
        return bool(field(request.get("thinking"), "type") == "enabled")

    def user(self, text: str) -> dict[str, Any]:
        """See `Format.user`."""
        return {"role": "user", "content": [{"type": "text", "text": text}]}

    def wrap_up(self, request: Mapping[str, Any], text: str) -> dict[str, Any]:
        """See `Format.wrap_up`. Behind results, the API takes both messages as one (A2).

        A system message stays the last (A20). While a tool of the server's is open, only
        results may follow (A18, A19): then nothing is asked in words.
        """
        messages = self.history(request)
        if not _is_server_tool_open(messages):
            messages = before_last(
                messages, self.user(text), lambda it: field(it, "role") == "system"
            )
        new = self.compose(request, messages, ())
        if new.get("tools"):
            new["tool_choice"] = {"type": "none"}
        return new

    def call(self, raw: Any) -> ToolCall:
        """See `Format.call`."""
        part = self._block(raw, WHOLE, "call")
        if isinstance(part, ToolCall):
            return part
        raise FormatError(
            "call", "not a tool_use block", "Give the block the model sent."
        )

    def result(
        self, call: ToolCall, text: str, *, is_error: bool = False, block: Any = None
    ) -> dict[str, Any]:
        """See `Format.result`: a block, to stand first in the next user message (A5)."""
        content = text if block is None else [block]
        result = {"type": "tool_result", "tool_use_id": call.id, "content": content}
        return {**result, "is_error": True} if is_error else result

    def results(self, results: Sequence[Any]) -> list[Any]:
        """See `Format.results`: all of one step stand in one user message (A6)."""
        return [{"role": "user", "content": list(results)}]

    def reply(self, reply: Any) -> list[Any]:
        """See `Format.reply`. A message without blocks is refused (A9)."""
        content = field(reply, "content")
        return [{"role": "assistant", "content": content}] if content else []

    def cut_short(self, reply: Any) -> str:
        """See `Format.cut_short`."""
        reason = field(reply, "stop_reason")
        return reason if reason in _CUT_SHORT else ""

    def calls(self, raw: Any) -> list[Any]:
        """See `Format.calls`. The server answers its own tools itself."""
        content = field(raw, "content")
        blocks = content if isinstance(content, (list, tuple)) else ()
        return [block for block in blocks if field(block, "type") == "tool_use"]

    def usage(self, reply: Any) -> Usage | None:
        """See `Format.usage`."""
        counts = field(reply, "usage")
        return None if counts is None else _usage(counts)

    def usage_of_stream(self, events: Iterable[Any]) -> Usage | None:
        """See `Format.usage_of_stream`.

        ``message_start`` has the counts, overlaid by each ``message_delta``: they are cumulative,
        and what one leaves out stays as it was (`provider-rules` §4.4).
        """
        known: dict[str, Any] = {}
        for event in events:
            match field(event, "type"):
                case "message_start":
                    usage = field(field(event, "message"), "usage")
                case "message_delta" | "message":
                    usage = field(event, "usage")
                case _:
                    continue
            given = {name: field(usage, name) for name in _COUNTED}
            known |= {name: value for name, value in given.items() if value is not None}
        return _usage(known) if known else None


def _row_of(block: Mapping[str, Any]) -> Block:
    kind = block.get("type")
    return BLOCKS.get(kind, _UNKNOWN) if type(kind) is str else _UNKNOWN


def _content(block: Mapping[str, Any], row: Block, at: int, where: str) -> Content:
    if row.becomes == "text":
        return Text(text_at(block.get(row.text), f"{where}.{row.text}"), at)
    kind = block.get("type")
    if row.media and field(block.get("source"), "type") in ("base64", "url", "file"):
        return medium_at(block, row, at, where)
    opens = f"{SERVER}{block.get(row.opens)}" if row.opens else ""
    closes = f"{SERVER}{block['tool_use_id']}" if block.get("tool_use_id") else ""
    # Without content a compaction failed, and what stands before it is read (§2.A).
    whole = bool(block.get("content") or block.get("encrypted_content"))
    compacted = kind == "compaction" and whole
    text = opaque_json(block, where)
    return Opaque(
        str(kind),
        text,
        at,
        media_tokens_of(block),
        opens=opens,
        closes=closes,
        supersedes=compacted,
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
    return tuple(str(field(reference, "tool_name")) for reference in references)


def _said(raw: Any, text: str) -> dict[str, Any]:
    """A block, or an item of a result, that shows another text."""
    kind = "text" if isinstance(raw, str) else field(raw, "type")
    return replaced(raw, BLOCKS, filled(text, kind, "A9"))


def _edited(raw: Any, part: Part, text: str) -> dict[str, Any]:
    """A block that shows another text: in the block where it is a passage, or in its place."""
    if isinstance(part, BlockFrame):
        raise cannot_edit(field(raw, "type"), "keeps what stands beside its texts")
    return (
        shown(raw, part.inner, text) if isinstance(part, Passage) else _said(raw, text)
    )


def _shown(content: Any, leaf: Content, text: str) -> Any:
    """A result's content with one item shown otherwise."""
    if leaf.at == WHOLE:
        return text
    items = list(content)
    items[leaf.at] = _edited(items[leaf.at], leaf, text)
    return items


def _with_passages(
    content: Any, where: str, read: Callable[[Any, int, str], PartT]
) -> list[PartT | Any]:
    """What stands in a content (`content_at`): of a block with passages, these and its frame."""
    if not isinstance(content, (list, tuple)):
        return list(content_at(content, where, read))
    parts: list[Any] = []
    for at, block in enumerate(content):
        path = f"{where}[{at}]"
        parts += passages_of(block, at, path) or [read(block, at, path)]
    return parts


def _is_server_tool_open(messages: Sequence[Any]) -> bool:
    """Whether the last reply holds a call of a server's tool without its result."""
    said = (
        field(m, "content")
        for m in reversed(messages)
        if field(m, "role") == "assistant"
    )
    blocks = next(said, None)
    kinds = (
        [field(block, "type") for block in blocks] if isinstance(blocks, list) else []
    )
    calls = sum(kind in SERVER_CALLS for kind in kinds)
    return calls > sum(kind in SERVER_RESULTS for kind in kinds)


def _usage(usage: Any) -> Usage | None:
    """What a usage object reports, or None if a count of it is none.

    Where a server ran several iterations, the sums at the top are those of the replies in them.
    What a compaction or an advisor took is listed under ``iterations`` only, and is added. An
    advisor's tokens are another model's; nothing here says so to who prices them.
    """
    listed = field(usage, "iterations")
    iterations = listed if isinstance(listed, (list, tuple)) else ()
    beside = [each for each in iterations if field(each, "type") in _BESIDE_THE_SUMS]
    read_all = [
        found for each in (usage, *beside) if (found := read(each, _COUNTS)) is not None
    ]
    if len(read_all) <= len(beside):
        return None
    total = sum(read_all, Usage()) if beside else read_all[0]
    if not iterations:
        return total
    first = iterations[0]
    is_of_prompt = (
        field(first, "type") not in _BESIDE_THE_SUMS
    )  # and not of what became of it
    sent = (read(first, _COUNTS) or Usage()) if is_of_prompt else Usage()
    return replace(total, prompt_tokens=sent.input_tokens)

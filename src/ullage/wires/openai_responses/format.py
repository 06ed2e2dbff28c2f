"""OpenAI Responses: ``POST /v1/responses`` (`provider-rules` §1.C).

The history is ``input``: a string, or a list of items, and one item is one message here. A
reply of the model is therefore several messages in a row, its reasoning in an item of its
own. What the model or the provider's own tools made speaks as the assistant, what the caller's
tools answered as a tool. ``instructions`` and leading system and developer messages are the
head.

Items that hold nothing we edit (server tools, compaction, references, programs) are carried
through untouched. Ids and status stay on every item and have no say in identity: an item sent
with its id needs the reasoning it was made with (R4), and no edit removes either.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ullage.core.contract.format import Change, HeldHistory
from ullage.core.errors import FormatError
from ullage.core.history.raw import as_json, field, text_at, unexpected
from ullage.core.values.authors import Author
from ullage.core.values.messages import (
    WHOLE,
    Content,
    Media,
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from ullage.core.values.toolset import ToolSpec
from ullage.core.values.usage import Usage
from ullage.wires.base import content_at, list_at, opaque_json, plain, sealed_bytes
from ullage.wires.block import Block, cannot_edit, read_part, replaced, without_medium
from ullage.wires.format import WireFormat, before_last
from ullage.wires.models import (
    MOST_OPENAI_TOOLS,
    is_elsewhere,
    openai_call_ids,
    takes_hosted_tools_alone,
)
from ullage.wires.openai_responses.blocks import BLOCKS, ITEMS, PARTS, ROLES, paired_by
from ullage.wires.openai_responses.models import FAMILIES
from ullage.wires.unknown_media import media_tokens_of
from ullage.wires.usages import openai_counts

_NAMELESS = frozenset(("id", "status", "created_by"))
"""Fields of an item that have no say in what it is."""

_APART = "[ullage: one more result of a call that is summarised above]"
_STREAMS = ("stdout", "stderr", "outcome")
_FRAME_BYTES = 650
"""What stands around an encrypted text, as OpenAI's own coding agent reckons it."""
_BYTES_PER_TOKEN = 4
_TRIGGER = "compaction_trigger"
_LOADING = ("tool_search_output", "additional_tools")
_CUT_SHORT = ("incomplete", "failed", "cancelled")
_CLOSING = ("response.completed", "response.incomplete", "response.failed")
_UNKNOWN = Block("", roles=("assistant",))
_part = partial(read_part, PARTS)


class OpenAIResponses(WireFormat):
    """The Responses format."""

    name = wire = "openai-responses"
    key = "input"
    blocks = BLOCKS
    roles = ROLES
    leading_roles = ("system", "developer")
    answer_limits = ("max_output_tokens",)
    schemas = ("text.format.schema", "text_format")
    answer_forms = ("text.format.type",)
    held_histories = (
        HeldHistory("previous_response_id", ("previous_response_id",)),
        HeldHistory("conversation", ("conversation",)),
    )
    families = FAMILIES
    counts = openai_counts("input", "output")
    most_tools = MOST_OPENAI_TOOLS
    text_type = "input_text"

    def history(self, request: Mapping[str, Any]) -> list[Any]:
        """See `Format.history`. A string is one user message."""
        given = request.get("input")
        return (
            [self.user(given)] if isinstance(given, str) else super().history(request)
        )

    def compose(
        self,
        request: Mapping[str, Any],
        messages: list[Any],
        tools: Sequence[dict[str, Any]],
    ) -> dict[str, Any]:
        """See `Format.compose`. A string that was not edited stays a string."""
        new = super().compose(request, messages, tools)
        given = request["input"]
        if isinstance(given, str) and messages == [self.user(given)]:
            new["input"] = given
        return new

    def system(self, request: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """See `WireFormat.system`."""
        if request.get("instructions") is not None:
            yield "instructions", text_at(request["instructions"], "instructions")

    def previous(self, request: Mapping[str, Any]) -> str:
        """See `Format.previous`."""
        return str(request.get("previous_response_id") or "")

    def takes_tools(self, request: Mapping[str, Any], model: str) -> bool:
        """See `Format.takes_tools`: models for deep research take OpenAI's own tools alone."""
        return not takes_hosted_tools_alone(model)

    def call_ids(self, model: str) -> re.Pattern[str]:
        """See `WireFormat.call_ids`."""
        return openai_call_ids(model)

    def wants_turns(self, model: str) -> bool:
        """See `Format.wants_turns`."""
        return is_elsewhere(model)

    def allowing(self, request: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """See `Format.allowing`."""
        choice = plain(request["tool_choice"], "tool_choice")
        more = [{"type": "function", "name": name} for name in names]
        return {
            **request,
            "tool_choice": {**choice, "tools": [*choice["tools"], *more]},
        }

    # ── reading ──────────────────────────────────────────────────────────────────────

    def parse(self, raw: Any, where: str) -> Message:
        """See `Format.parse`."""
        item = raw if type(raw) is dict else plain(raw, where)
        kind = _kind_of(item, where)
        row = ITEMS.get(kind, _UNKNOWN)
        match row.becomes:
            case "message":
                return self._message(item, where)
            case "reasoning":
                return _reasoning(item, where)
            case "call":
                return Message("assistant", (_call(item, row, where),))
            case "result":
                content = tuple(self._output(item, kind, f"{where}.output"))
                name = item.get("call_id") or item.get("id") or item.get("name") or ""
                asked = paired_by(kind, name)
                reader = row.read_by(item)
                return Message(
                    "tool", (ToolResult(asked, content, False, WHOLE, reader=reader),)
                )
        return _other(item, row, kind, where)

    def _message(self, item: Mapping[str, Any], where: str) -> Message:
        role = self.role_of(item.get("role"), where)
        if item.get("content") is None:
            raise FormatError(
                f"{where}.content", "there is none", "Give text, or parts."
            )
        return Message(
            role, tuple(content_at(item["content"], f"{where}.content", _part))
        )

    def _output(
        self, item: Mapping[str, Any], kind: str, where: str
    ) -> Iterable[Content]:
        """What a tool answered: text, a list of parts, chunks of a shell, or a screenshot."""
        output = item.get("output")
        if kind == "shell_call_output" and isinstance(output, (list, tuple)):
            return _streams(output, where)
        if output is None or isinstance(output, (str, list, tuple)):
            return content_at(output, where, _part)
        return (_part(output, WHOLE, where),)

    # ── writing ──────────────────────────────────────────────────────────────────────

    def edit(
        self,
        raw: Any,
        message: Message,
        changes: Sequence[Change],
        *,
        drop_reasoning: bool = False,
    ) -> dict[str, Any]:
        """See `Format.edit`. Reasoning is an item of its own here; it is never left out."""
        new = dict(raw if type(raw) is dict else plain(raw, "item"))
        for number, item, text in changes:
            part = message.parts[number]
            if isinstance(part, ToolCall):
                new[ITEMS[new["type"]].text] = text
                continue
            held = "output" if isinstance(part, ToolResult) else "content"
            leaf = part.content[item] if isinstance(part, ToolResult) else part
            if new.get("type") == "shell_call_output" and isinstance(leaf, Text):
                new[held] = _with_stream(new[held], leaf.at, text)
            elif leaf.at == WHOLE and isinstance(leaf, Text):
                new[held] = text
            elif leaf.at == WHOLE or new.get("type") == "shell_call_output":
                raise cannot_edit(
                    leaf.kind if isinstance(leaf, Opaque) else new["type"]
                )
            else:
                new[held] = _with(new[held], leaf.at, text)
        return new

    def apart(self, raw: Any) -> dict[str, Any]:
        """See `Format.apart`. A second output may come any time: then the user hands it in."""
        output = field(raw, "output")
        parts = (
            [{"type": "input_text", "text": output}]
            if isinstance(output, str)
            else output
        )
        return {
            "role": "user",
            "content": [{"type": "input_text", "text": _APART}, *parts],
        }

    def wrap_up(self, request: Mapping[str, Any], text: str) -> dict[str, Any]:
        """See `Format.wrap_up`. A compaction_trigger stays the last item (R14)."""
        items = self.history(request)
        items = before_last(
            items, self.user(text), lambda it: field(it, "type") == _TRIGGER
        )
        new = self.compose(request, items, ())
        if new.get("tools") or any(
            field(item, "type") == "additional_tools" for item in items
        ):
            new["tool_choice"] = "none"
        return new

    def tool(self, spec: ToolSpec) -> dict[str, Any]:
        """See `Format.tool`."""
        return {"type": "function", **super().tool(spec), "strict": None}

    def call(self, raw: Any) -> ToolCall:
        """See `Format.call`."""
        calls = self.parse(raw, "call").calls
        if calls:
            return calls[0]
        raise FormatError(
            "call", "not a function_call item", "Give the item the model sent."
        )

    def result(
        self, call: ToolCall, text: str, *, is_error: bool = False, block: Any = None
    ) -> dict[str, Any]:
        """See `Format.result`. The wire has no error flag: the text says what went wrong.

        Images and files come back as what they were; an output holds no sound.
        """
        output: Any = text
        if block is not None:
            said = without_medium(PARTS, _part(block, 0, "block"), text)
            output = [block] if said is None else said
        return {"type": "function_call_output", "call_id": call.id, "output": output}

    def reply(self, reply: Any) -> list[Any]:
        """See `Format.reply`: every item, reasoning and the server's own tools included."""
        return list(list_at(field(reply, "output"), "output"))

    def cut_short(self, reply: Any) -> str:
        """See `Format.cut_short`."""
        status = field(reply, "status")
        if status not in _CUT_SHORT:
            return ""
        return str(field(field(reply, "incomplete_details"), "reason") or status)

    def calls(self, raw: Any) -> list[Any]:
        """See `Format.calls`. The item is the call."""
        row = ITEMS.get(str(field(raw, "type")), _UNKNOWN)
        return [raw] if row.becomes == "call" else []

    def usage_of_stream(self, events: Iterable[Any]) -> Usage | None:
        """See `Format.usage_of_stream`: what the reply says that the closing event carries."""
        return super().usage_of_stream(
            field(event, "response") if field(event, "type") in _CLOSING else event
            for event in events
            if field(event, "type") in _CLOSING or field(event, "object") == "response"
        )


# ── the items ────────────────────────────────────────────────────────────────────────────


def _kind_of(item: Mapping[str, Any], where: str) -> str:
    """The type of an item; it may be left out of messages and of references."""
    kind = item.get("type")
    if kind is None and ("role" in item or "id" in item):
        return "message" if "role" in item else "item_reference"
    if isinstance(kind, str):
        return kind
    raise unexpected(kind, f"{where}.type", "a string", "Give items as the API does.")


def _reasoning(item: Mapping[str, Any], where: str) -> Message:
    """What the model thought: in the open, or sealed; then its size is all that is known."""
    sealed = item.get("encrypted_content")
    if isinstance(sealed, str) and sealed:
        size = sealed_bytes(sealed, _FRAME_BYTES)
        part = Reasoning("", WHOLE, bound=True, sealed_bytes=size)
        return Message("assistant", (part,))
    shown = list_at(
        item.get("content") or item.get("summary") or (), f"{where}.summary"
    )
    texts = [str(field(part, "text") or "") for part in shown]
    return Message("assistant", (Reasoning("\n".join(texts), WHOLE),))


def _call(item: Mapping[str, Any], row: Block, where: str) -> ToolCall:
    arguments = item.get(row.text)
    if not isinstance(arguments, str):
        arguments = as_json(arguments, f"{where}.{row.text}")
    name = text_at(item.get("name"), f"{where}.name")
    late = bool(item.get("async"))
    author: Author = "program" if row.is_of_program(item) else "model"
    call_id = str(item.get("call_id") or "")
    return ToolCall(call_id, name, arguments, WHOLE, deferred=late, author=author)


def _other(item: Mapping[str, Any], row: Block, kind: str, where: str) -> Message:
    """An item that is carried through untouched."""
    role = ROLES[row.roles[0]]
    if kind == "tool_search_output" and item.get("execution") == "client":
        role = "tool"
    if row.media and isinstance(item.get("result"), str):
        return Message(role, (Media(row.media[0], "", item["result"], WHOLE),))
    nameless = () if kind == "item_reference" else _NAMELESS
    known = {key: value for key, value in item.items() if key not in nameless}
    sealed = known.get("encrypted_content")
    is_sealed = isinstance(sealed, str)
    tokens = media_tokens_of(known)
    if is_sealed:
        tokens = sealed_bytes(sealed, _FRAME_BYTES) // _BYTES_PER_TOKEN + 1
    opens, closes = (
        paired_by(kind, item[name]) if item.get(name) else ""
        for name in (row.opens, row.closes)
    )
    late = kind == "mcp_approval_request"
    part = Opaque(
        kind,
        opaque_json(known, where),
        WHOLE,
        tokens,
        opens,
        closes,
        late,
        author=row.author,
        reader=row.read_by(item),
        words=_decision(item, row),
        loads=_loaded(item, kind, where),
    )
    return Message(role, (part,))


def _decision(item: Mapping[str, Any], row: Block) -> str:
    """What the user decided of an approval that was asked for, and why; ``""`` of other items."""
    if not row.words:
        return ""
    decided = "approved" if item.get("approve") else "not approved"
    reason = item.get(row.words)
    return (
        f"{decided}: {reason}"
        if isinstance(reason, str) and reason.strip()
        else decided
    )


def _loaded(item: Mapping[str, Any], kind: str, where: str) -> tuple[str, ...]:
    """The tools that an item makes callable: those of a search, and those that were added."""
    if kind not in _LOADING:
        return ()
    tools = list_at(item.get("tools"), f"{where}.tools")
    return tuple(str(field(tool, "name") or field(tool, "type")) for tool in tools)


def _streams(chunks: Sequence[Any], where: str) -> Iterator[Content]:
    """The chunks of a shell's output: what it printed, its errors and how it ended."""
    for index, raw in enumerate(chunks):
        chunk = plain(raw, f"{where}[{index}]")
        for offset, name in enumerate(_STREAMS):
            at, given = index * len(_STREAMS) + offset, chunk.get(name)
            if isinstance(given, str):
                yield Text(given, at)
            elif given is not None:
                yield Opaque(name, opaque_json(given, f"{where}[{index}].{name}"), at)


def _with_stream(chunks: Sequence[Any], at: int, text: str) -> list[Any]:
    new = list(chunks)
    index, offset = divmod(at, len(_STREAMS))
    new[index] = {**plain(new[index], "chunk"), _STREAMS[offset]: text}
    return new


def _with(content: Sequence[Any], at: int, text: str) -> list[Any]:
    """Content with one text shown otherwise; what a part carries beside it stays.

    Annotations and log probabilities point into the old text, so they go.
    """
    new = list(content)
    if isinstance(new[at], str):
        new[at] = text
        return new
    part = {
        key: value for key, value in plain(new[at], "part").items() if key != "logprobs"
    }
    if part.get("annotations"):
        part["annotations"] = []
    new[at] = replaced(part, PARTS, text, "input_text")
    return new

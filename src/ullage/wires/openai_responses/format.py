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
from ullage.wires.base import (
    content_at,
    list_at,
    opaque_json,
    plain,
    sealed_bytes,
)
from ullage.wires.block import (
    Block,
    cannot_edit,
    read_part,
    replaced,
    without_medium,
)
from ullage.wires.format import WireFormat, before_last
from ullage.wires.models import (
    MOST_OPENAI_TOOLS,
    is_elsewhere,
    openai_call_ids,
    takes_hosted_tools_alone,
)
from ullage.wires.openai_responses.blocks import (
    BLOCKS,
    ITEMS,
    PARTS,
    ROLES,
    paired_by,
)
from ullage.wires.openai_responses.models import FAMILIES
from ullage.wires.unknown_media import media_tokens_of
from ullage.wires.usages import openai_counts

_NAMELESS = frozenset(("id", "status", "created_by"))
"""Fields of an item that have no say in what it is."""

_APART = "[ullage: one more result of a call that is summarised above]"
_STREAMS = ("stdout", "stderr", "outcome")
_FRAME_BYTES = 650
"""Bytes around an encrypted text, as OpenAI's own coding agent reckons them."""
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
        items = request.get("input")
        if isinstance(items, str):
            return [self.user(items)]
        return super().history(request)

    def compose(
        self,
        request: Mapping[str, Any],
        messages: list[Any],
        tools: Sequence[dict[str, Any]],
    ) -> dict[str, Any]:
        """See `Format.compose`. A string that was not edited stays a string."""
        composed = super().compose(request, messages, tools)
        text = request["input"]
        if isinstance(text, str) and messages == [self.user(text)]:
            composed["input"] = text
        return composed

    def system(self, request: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """See `WireFormat.system`."""
        if request.get("instructions") is not None:
            yield (
                "instructions",
                text_at(request["instructions"], "instructions"),
            )

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

    def allowing(
        self, request: dict[str, Any], names: Sequence[str]
    ) -> dict[str, Any]:
        """See `Format.allowing`."""
        choice = plain(request["tool_choice"], "tool_choice")
        allowed = list(choice["tools"])
        for name in names:
            allowed.append({"type": "function", "name": name})
        return {**request, "tool_choice": {**choice, "tools": allowed}}

    # ── reading ──────────────────────────────────────────────────────────────────────

    def parse(self, raw: Any, path: str) -> Message:
        """See `Format.parse`."""
        item = raw if type(raw) is dict else plain(raw, path)
        kind = _kind_of(item, path)
        row = ITEMS.get(kind, _UNKNOWN)
        match row.becomes:
            case "message":
                return self._message(item, path)
            case "reasoning":
                return _reasoning(item, path)
            case "call":
                return Message("assistant", (_call(item, row, path),))
            case "result":
                return Message("tool", (self._result(item, row, path),))
        return _other(item, row, kind, path)

    def _message(self, item: Mapping[str, Any], path: str) -> Message:
        role = self.role_of(item.get("role"), path)
        place = f"{path}.content"
        if item.get("content") is None:
            raise FormatError(place, "there is none", "Give text, or parts.")
        parts = content_at(item["content"], place, _part)
        return Message(role, tuple(parts))

    def _result(
        self, item: Mapping[str, Any], row: Block, path: str
    ) -> ToolResult:
        """An output, by the id of its call, its own, or the name of a function."""
        content = tuple(self._output(item, row.kind, f"{path}.output"))
        name = item.get("call_id") or item.get("id") or item.get("name") or ""
        call_id = paired_by(row.kind, name)
        return ToolResult(
            call_id, content, False, WHOLE, reader=row.read_by(item)
        )

    def _output(
        self,
        item: Mapping[str, Any],
        kind: str,
        path: str,
    ) -> Iterable[Content]:
        """The content of an output: text, a list of parts, chunks of a shell, or a screenshot."""
        output = item.get("output")
        if kind == "shell_call_output" and isinstance(output, (list, tuple)):
            return _streams(output, path)
        if output is None or isinstance(output, (str, list, tuple)):
            return content_at(output, path, _part)
        return (_part(output, WHOLE, path),)

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
        edited = dict(raw if type(raw) is dict else plain(raw, "item"))
        for number, item, text in changes:
            part = message.parts[number]
            if isinstance(part, ToolCall):
                edited[ITEMS[edited["type"]].text] = text
            elif isinstance(part, ToolResult):
                _edit_content(edited, "output", part.content[item], text)
            else:
                _edit_content(edited, "content", part, text)
        return edited

    def apart(self, raw: Any) -> dict[str, Any]:
        """See `Format.apart`. A second output may come any time: then the user hands it in."""
        parts = field(raw, "output")
        if isinstance(parts, str):
            parts = [{"type": "input_text", "text": parts}]
        line = {"type": "input_text", "text": _APART}
        return {"role": "user", "content": [line, *parts]}

    def wrap_up(self, request: Mapping[str, Any], text: str) -> dict[str, Any]:
        """See `Format.wrap_up`. A compaction_trigger stays the last item (R14)."""
        items = before_last(
            self.history(request), self.user(text), _is_trigger
        )
        last_request = self.compose(request, items, ())
        if last_request.get("tools") or any(
            _adds_tools(item) for item in items
        ):
            last_request["tool_choice"] = "none"
        return last_request

    def tool(self, spec: ToolSpec) -> dict[str, Any]:
        """See `Format.tool`."""
        return {"type": "function", **super().tool(spec), "strict": None}

    def call(self, raw: Any) -> ToolCall:
        """See `Format.call`."""
        calls = self.parse(raw, "call").calls
        if calls:
            return calls[0]
        remedy = "Give the item the model sent."
        raise FormatError("call", "not a function_call item", remedy)

    def result(
        self,
        call: ToolCall,
        text: str,
        *,
        is_error: bool = False,
        block: Any = None,
    ) -> dict[str, Any]:
        """See `Format.result`. The wire has no error flag: the text says what went wrong.

        Images and files come back as what they were; an output holds no sound.
        """
        output: Any = text
        if block is not None:
            output = without_medium(PARTS, _part(block, 0, "block"), text)
        if output is None:
            output = [block]
        return {
            "type": "function_call_output",
            "call_id": call.id,
            "output": output,
        }

    def reply(self, reply: Any) -> list[Any]:
        """See `Format.reply`: every item, reasoning and the server's own tools included."""
        return list(list_at(field(reply, "output"), "output"))

    def cut_short(self, reply: Any) -> str:
        """See `Format.cut_short`."""
        status = field(reply, "status")
        if status not in _CUT_SHORT:
            return ""
        return str(
            field(field(reply, "incomplete_details"), "reason") or status
        )

    def calls(self, raw: Any) -> list[Any]:
        """See `Format.calls`. The item is the call."""
        row = ITEMS.get(str(field(raw, "type")), _UNKNOWN)
        if row.becomes != "call":
            return []
        return [raw]

    def usage_of_stream(self, events: Iterable[Any]) -> Usage | None:
        """See `Format.usage_of_stream`: what the reply says that the closing event carries."""
        return super().usage_of_stream(_replies_in(events))


def _is_trigger(item: Any) -> bool:
    return bool(field(item, "type") == _TRIGGER)


def _adds_tools(item: Any) -> bool:
    return bool(field(item, "type") == "additional_tools")


def _replies_in(events: Iterable[Any]) -> Iterator[Any]:
    """The replies of a stream: in the events that close one, or by themselves."""
    for event in events:
        if field(event, "type") in _CLOSING:
            yield field(event, "response")
        elif field(event, "object") == "response":
            yield event


# ── the items ────────────────────────────────────────────────────────────────────────────


def _kind_of(item: Mapping[str, Any], path: str) -> str:
    """The type of an item; it may be left out of messages and of references."""
    kind = item.get("type")
    if isinstance(kind, str):
        return kind
    if kind is None and "role" in item:
        return "message"
    if kind is None and "id" in item:
        return "item_reference"
    raise unexpected(
        kind, f"{path}.type", "a string", "Give items as the API does."
    )


def _reasoning(item: Mapping[str, Any], path: str) -> Message:
    """The thought in a reasoning item. Of a sealed one no more than its size is known."""
    seal = item.get("encrypted_content")
    if isinstance(seal, str) and seal:
        size = sealed_bytes(seal, _FRAME_BYTES)
        thought = Reasoning("", WHOLE, bound=True, sealed_bytes=size)
        return Message("assistant", (thought,))
    parts = item.get("content") or item.get("summary") or ()
    texts = []
    for part in list_at(parts, f"{path}.summary"):
        texts.append(str(field(part, "text") or ""))
    return Message("assistant", (Reasoning("\n".join(texts), WHOLE),))


def _call(item: Mapping[str, Any], row: Block, path: str) -> ToolCall:
    arguments = item.get(row.text)
    if not isinstance(arguments, str):
        arguments = as_json(arguments, f"{path}.{row.text}")
    author: Author = "program" if row.is_of_program(item) else "model"
    return ToolCall(
        str(item.get("call_id") or ""),
        text_at(item.get("name"), f"{path}.name"),
        arguments,
        WHOLE,
        deferred=bool(item.get("async")),
        author=author,
    )


def _other(
    item: Mapping[str, Any], row: Block, kind: str, path: str
) -> Message:
    """An item that is carried through untouched."""
    role = ROLES[row.roles[0]]
    if kind == "tool_search_output" and item.get("execution") == "client":
        role = "tool"
    if row.media and isinstance(item.get("result"), str):
        return Message(role, (Media(row.media[0], "", item["result"], WHOLE),))
    dropped = () if kind == "item_reference" else _NAMELESS
    fields = {key: value for key, value in item.items() if key not in dropped}
    part = Opaque(
        kind,
        opaque_json(fields, path),
        WHOLE,
        _tokens_of(fields),
        _paired_name(item, kind, row.opens),
        _paired_name(item, kind, row.closes),
        kind == "mcp_approval_request",
        author=row.author,
        reader=row.read_by(item),
        words=_decision(item, row),
        loads=_loaded(item, kind, path),
    )
    return Message(role, (part,))


def _tokens_of(fields: Mapping[str, Any]) -> int | None:
    """The tokens of an item whose JSON does not tell them; None of any other."""
    seal = fields.get("encrypted_content")
    if not isinstance(seal, str):
        return media_tokens_of(fields)
    return sealed_bytes(seal, _FRAME_BYTES) // _BYTES_PER_TOKEN + 1


def _paired_name(item: Mapping[str, Any], kind: str, name: str) -> str:
    """The name that an item is paired by (`paired_by`); ``""`` without an id in ``name``."""
    if not item.get(name):
        return ""
    return paired_by(kind, item[name])


def _decision(item: Mapping[str, Any], row: Block) -> str:
    """The user's answer to a request for approval, and why; ``""`` of other items."""
    if not row.words:
        return ""
    decision = "approved" if item.get("approve") else "not approved"
    reason = item.get(row.words)
    if not isinstance(reason, str) or not reason.strip():
        return decision
    return f"{decision}: {reason}"


def _loaded(item: Mapping[str, Any], kind: str, path: str) -> tuple[str, ...]:
    """The tools that an item makes callable: those of a search, and those that were added."""
    if kind not in _LOADING:
        return ()
    tools = list_at(item.get("tools"), f"{path}.tools")
    return tuple(
        str(field(tool, "name") or field(tool, "type")) for tool in tools
    )


def _streams(chunks: Sequence[Any], path: str) -> Iterator[Content]:
    """The chunks of a shell's output: what it printed, its errors and how it ended."""
    for index, raw in enumerate(chunks):
        chunk = plain(raw, f"{path}[{index}]")
        for offset, name in enumerate(_STREAMS):
            at = index * len(_STREAMS) + offset
            value = chunk.get(name)
            if isinstance(value, str):
                yield Text(value, at)
            elif value is not None:
                text = opaque_json(value, f"{path}[{index}].{name}")
                yield Opaque(name, text, at)


def _edit_content(
    item: dict[str, Any],
    key: str,
    leaf: Content | Reasoning,
    text: str,
) -> None:
    """Show another text in one place of an item, in place of what its field ``key`` holds.

    Raises UnsupportedPart if nothing but the part itself may stand there.
    """
    is_text = isinstance(leaf, Text)
    is_shell = item.get("type") == "shell_call_output"
    if is_shell and is_text:
        item[key] = _with_stream(item[key], leaf.at, text)
    elif is_text and leaf.at == WHOLE:
        item[key] = text
    elif is_shell or leaf.at == WHOLE:
        raise cannot_edit(
            leaf.kind if isinstance(leaf, Opaque) else item["type"]
        )
    else:
        item[key] = _with_part(item[key], leaf.at, text)


def _with_stream(chunks: Sequence[Any], at: int, text: str) -> list[Any]:
    """The chunks of a shell with another text in one stream of one of them."""
    edited = list(chunks)
    index, offset = divmod(at, len(_STREAMS))
    chunk = plain(edited[index], "chunk")
    edited[index] = {**chunk, _STREAMS[offset]: text}
    return edited


def _with_part(content: Sequence[Any], at: int, text: str) -> list[Any]:
    """Content with another text in one part; what the part carries beside it stays.

    Annotations and log probabilities point into the old text, so they go.
    """
    edited = list(content)
    if isinstance(edited[at], str):
        edited[at] = text
        return edited
    part = dict(plain(edited[at], "part"))
    part.pop("logprobs", None)
    if part.get("annotations"):
        part["annotations"] = []
    edited[at] = replaced(part, PARTS, text, "input_text")
    return edited

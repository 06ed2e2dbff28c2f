"""Amazon Bedrock Converse: ``converse`` and ``converse_stream``.

Two forms are taken, and what comes out is in the form that came in: the body of the REST call, and
the keyword arguments of boto3's client, which have ``modelId`` beside it and bytes where the body
has base64. A block is an object with one field, whose name is its type. Calls and results are
blocks, results in a message of the user. Cache points are blocks that are no part of a message:
clients move them from turn to turn.

Reasoning is never edited. A Claude's is signed, and Bedrock passes it on as it came.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ullage.core.contract.choice import ANY, FORCED, Choice
from ullage.core.contract.format import Change
from ullage.core.errors import FormatError
from ullage.core.history.raw import (
    as_json,
    field,
    not_json,
    text_at,
    unexpected,
)
from ullage.core.values.jsonable import jsonable
from ullage.core.values.messages import (
    WHOLE,
    BlockFrame,
    Content,
    Media,
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
from ullage.core.values.toolset import ToolSpec
from ullage.core.values.usage import Usage
from ullage.wires.base import (
    at_path,
    list_at,
    opaque_json,
    ordered,
    plain,
    sealed_bytes,
    unmarked,
)
from ullage.wires.bedrock_converse import media, passages
from ullage.wires.bedrock_converse.blocks import (
    BLOCKS,
    ROLES,
    body_of,
    is_by_server,
    is_cache_point,
    kind_of,
)
from ullage.wires.bedrock_converse.models import FAMILIES, call_ids, family
from ullage.wires.block import Block, arguments_of, cannot_edit, filled
from ullage.wires.format import WireFormat
from ullage.wires.unknown_media import media_tokens_of
from ullage.wires.usages import Counts

SERVER = "server "
"""Before the id of a call that a server answers, and of its result, where these are paired."""

_FRAME_BYTES = 170
"""What stands in a Claude's signature beside the thought, as measured (docs/tokens.md)."""
_CUT_SHORT = (
    "max_tokens",
    "stop_sequence",
    "guardrail_intervened",
    "content_filtered",
    "malformed_model_output",
    "malformed_tool_use",
    "model_context_window_exceeded",
)
_OUTPUT = "output"
"""The field that holds a blank text as JSON."""
_THINKING = ("thinking", "reasoning_config")
"""Fields of ``additionalModelRequestFields`` that set a Claude's thinking."""


class BedrockConverse(WireFormat):
    """The Converse format."""

    name = wire = "bedrock-converse"
    model_field = "modelId"
    blocks = BLOCKS
    roles = ROLES
    answer_limits = ("maxTokens",)
    schemas = ("outputConfig.textFormat.structure.jsonSchema.schema",)
    answer_forms = ("outputConfig.textFormat.type",)
    families = FAMILIES
    joins_results = True
    counts = Counts(
        prompt="inputTokens",
        beside_cache=True,
        read="cacheReadInputTokens",
        written="cacheWriteInputTokens",
        output="outputTokens",
        reasoning="",
    )

    # ── the request ──────────────────────────────────────────────────────────────────

    def system(
        self, request: Mapping[str, Any]
    ) -> Iterator[tuple[str, str | None]]:
        """See `Format.system`: texts, and texts that a guardrail looks at."""
        for at, block in enumerate(list_at(request.get("system"), "system")):
            if is_cache_point(block):
                continue
            path = f"system[{at}]"
            text = field(block, "text")
            if text is None:
                text = at_path(block, "guardContent.text.text")
            if text is not None:
                text = text_at(text, f"{path}.text")
            yield path, text

    def settings(self, request: Mapping[str, Any]) -> Any:
        """See `Format.settings`: those of the answer's length, beside those of its form."""
        inference = request.get("inferenceConfig") or {}
        limits = {name: field(inference, name) for name in self.answer_limits}
        return {**limits, "outputConfig": request.get("outputConfig")}

    def tools(self, request: Mapping[str, Any]) -> Sequence[Any]:
        """See `Format.tools`: without cache points."""
        return [tool for _, tool in self.definitions(request)]

    def definitions(
        self, request: Mapping[str, Any]
    ) -> Iterator[tuple[str, Any]]:
        """See `Format.definitions`."""
        config = request.get("toolConfig")
        if config is not None and not isinstance(config, Mapping):
            remedy = 'Give {"tools": […]}, or leave it out.'
            raise unexpected(config, "toolConfig", "an object", remedy)
        path = "toolConfig.tools"
        for at, tool in enumerate(list_at(at_path(request, path), path)):
            if not is_cache_point(tool):
                yield f"{path}[{at}]", tool

    def choice(self, request: Mapping[str, Any]) -> Choice:
        """See `Format.choice`: that no tool may be called cannot be said here."""
        choice = at_path(request, "toolConfig.toolChoice")
        if field(choice, "tool") is not None:
            name = str(at_path(choice, "tool.name"))
            return Choice(frozenset((name,)), is_open=False)
        if field(choice, "any") is not None:
            return FORCED
        return ANY

    def compose(
        self,
        request: Mapping[str, Any],
        messages: list[Any],
        tools: Sequence[dict[str, Any]],
    ) -> dict[str, Any]:
        """See `Format.compose`."""
        composed = {**request, self.key: messages}
        if tools:
            config = request.get("toolConfig") or {}
            own_tools = config.get("tools") or ()
            composed["toolConfig"] = {**config, "tools": [*own_tools, *tools]}
        return composed

    def wrap_up(self, request: Mapping[str, Any], text: str) -> dict[str, Any]:
        """See `Format.wrap_up`: it is told in words, and none is forced.

        The tools have to stay, for the history holds calls (B8).
        """
        messages = list(self.history(request))
        message = self.user(text)
        if messages and field(messages[-1], "role") == "user":
            message = self.together([messages.pop(), message])
        messages.append(message)
        composed = self.compose(request, messages, ())
        if composed.get("toolConfig"):
            config = dict(composed["toolConfig"])
            config.pop("toolChoice", None)
            composed["toolConfig"] = config
        return composed

    # ── messages ─────────────────────────────────────────────────────────────────────

    def parse(self, raw: Any, path: str) -> Message:
        """See `Format.parse`."""
        message = raw if type(raw) is dict else plain(raw, path)
        role = self.role_of(message.get("role"), path)
        content = message.get("content")
        if not isinstance(content, (list, tuple)):
            remedy = "Give a list of blocks."
            raise unexpected(content, f"{path}.content", "a list", remedy)
        parts: list[Part] = []
        for at, block in enumerate(content):
            parts += self._parts(block, at, f"{path}.content[{at}]")
        return Message(role, ordered(parts), before_reply=role == "system")

    def _parts(self, raw: Any, at: int, path: str) -> Sequence[Part]:
        """The parts of a block: none of a cache point, several of one with texts inside."""
        block = raw if type(raw) is dict else plain(raw, path)
        if is_cache_point(block):
            return ()
        kind = kind_of(block)
        body = body_of(block, kind)
        if kind == "toolUse" and not is_by_server(body):
            return (_call(body, at, f"{path}.toolUse"),)
        if kind == "toolResult" and not is_by_server(body):
            return (_result(body, at, f"{path}.toolResult"),)
        if kind == "reasoningContent":
            return (_reasoning(body, at),)
        return _contents(block, kind, at, path)

    def edit(
        self,
        raw: Any,
        message: Message,
        changes: Sequence[Change],
        *,
        drop_reasoning: bool = False,
    ) -> dict[str, Any]:
        """See `Format.edit`. Cache points stay where they are, but never in front."""
        edited = dict(raw if type(raw) is dict else plain(raw, "message"))
        blocks = list(edited["content"])
        for number, item, text in changes:
            part = message.parts[number]
            block = plain(blocks[part.at], "block")
            blocks[part.at] = _edited(block, part, item, text)
        if drop_reasoning:
            blocks = _without_reasoning(blocks, message)
        edited["content"] = blocks or [{"text": NO_REASONING}]
        return edited

    def user(self, text: str) -> dict[str, Any]:
        """See `Format.user`."""
        return {"role": "user", "content": [{"text": text}]}

    def wants_turns(self, model: str) -> bool:
        """See `Format.wants_turns`: Bedrock itself asks for it (B2)."""
        return True

    def unmarked(self, raw: Any) -> Any:
        """See `Format.unmarked`: without cache points."""
        message = unmarked(raw)
        content = field(message, "content")
        if not isinstance(content, list):
            return message
        blocks = [block for block in content if not is_cache_point(block)]
        return {**message, "content": blocks}

    # ── reasoning ────────────────────────────────────────────────────────────────────

    def family(self, model: str) -> str:
        """See `Format.family`."""
        return family(model).name

    def reasoning(
        self, request: Mapping[str, Any], model: str
    ) -> ReasoningRule:
        """See `Format.reasoning`: as Anthropic binds it; what others think is free."""
        if any(
            field(thinking, "block_binding") for thinking in _thinking(request)
        ):
            return "free"
        row = family(model)
        if self.thinks_first(request):
            return row.manual_rule
        return row.rule

    def thinks_first(self, request: Mapping[str, Any]) -> bool:
        """See `Format.thinks_first`: with a Claude's manual thinking (B11)."""
        kinds = [field(thinking, "type") for thinking in _thinking(request)]
        return "enabled" in kinds

    # ── tools, calls and replies ─────────────────────────────────────────────────────

    def tool(self, spec: ToolSpec) -> dict[str, Any]:
        """See `Format.tool`."""
        tool_spec = {
            "name": spec.name,
            "description": spec.description,
            "inputSchema": {"json": dict(spec.parameters)},
        }
        return {"toolSpec": tool_spec}

    def tool_name(self, raw: Any) -> str:
        """See `Format.tool_name`."""
        body = field(raw, "toolSpec") or field(raw, "systemTool")
        return str(field(body, "name") or "")

    def call(self, raw: Any) -> ToolCall:
        """See `Format.call`: the block, or the ``toolUse`` in it."""
        body = field(raw, "toolUse") or raw
        if isinstance(field(body, "name"), str) and isinstance(body, Mapping):
            return _call(body, WHOLE, "call")
        remedy = "Give the block the model sent."
        raise FormatError("call", "not a toolUse block", remedy)

    def result(
        self,
        call: ToolCall,
        text: str,
        *,
        is_error: bool = False,
        block: Any = None,
    ) -> dict[str, Any]:
        """See `Format.result`: a block, to stand in the next message of the user.

        An empty text is no content at all, and one of nothing but spaces is JSON: a blank text is
        refused (B6). Bytes are bytes, as boto3 takes them.
        """
        content = _items_of(text) if block is None else [_as_item(block)]
        body: dict[str, Any] = {"toolUseId": call.id, "content": content}
        if is_error:
            body["content"] = content or [{"text": NO_REASON}]
            body["status"] = "error"
        return {"toolResult": body}

    def results(self, results: Sequence[Any]) -> list[Any]:
        """See `Format.results`: all of one step stand in one user message (B3)."""
        return [{"role": "user", "content": list(results)}]

    def reply(self, reply: Any) -> list[Any]:
        """See `Format.reply`. A message without blocks is refused (B6)."""
        message = at_path(reply, "output.message")
        return [message] if field(message, "content") else []

    def cut_short(self, reply: Any) -> str:
        """See `Format.cut_short`."""
        reason = field(reply, "stopReason")
        return reason if reason in _CUT_SHORT else ""

    def calls(self, raw: Any) -> list[Any]:
        """See `Format.calls`. A server answers its own tools itself."""
        content = field(raw, "content")
        if not isinstance(content, (list, tuple)):
            return []
        calls = []
        for block in content:
            body = field(block, "toolUse")
            if body is not None and not is_by_server(body):
                calls.append(block)
        return calls

    def call_ids(self, model: str) -> re.Pattern[str]:
        """See `Format.call_ids`."""
        return call_ids(model)

    # ── usage ────────────────────────────────────────────────────────────────────────

    def usage(self, reply: Any) -> Usage | None:
        """See `Format.usage`: of a reply, or of the event ``metadata``.

        What was written to the cache for an hour stands in a list, by its time.
        """
        holder = field(reply, "metadata") or reply
        usage = super().usage(holder)
        details = at_path(holder, "usage.cacheDetails")
        if usage is None or not isinstance(details, (list, tuple)):
            return usage
        long_tokens = 0
        for detail in details:
            tokens = field(detail, "inputTokens")
            if (
                field(detail, "ttl") == "1h"
                and type(tokens) is int
                and tokens > 0
            ):
                long_tokens += tokens
        long_tokens = min(long_tokens, usage.cache_write_tokens)
        return replace(usage, long_write_tokens=long_tokens)

    def usage_of_stream(self, events: Iterable[Any]) -> Usage | None:
        """See `Format.usage_of_stream`: the event ``metadata`` has it."""
        return super().usage_of_stream(events)


def _items_of(text: str) -> list[dict[str, Any]]:
    """A text as the content of a result."""
    if text.isspace():
        return [blank(text)]
    return [{"text": text}] if text else []


def blank(text: str) -> dict[str, Any]:
    """A text of nothing but spaces, as an item of a result: as JSON, for no text is blank (B6)."""
    return {"json": {_OUTPUT: text}}


NO_REASON = "[ullage: the tool gave no reason]"
"""An error has a content (B6)."""


def _thinking(request: Mapping[str, Any]) -> list[Any]:
    """The settings of a Claude's thinking, None for each that is not there."""
    settings = request.get("additionalModelRequestFields")
    if not isinstance(settings, Mapping):
        return []
    return [field(settings, name) for name in _THINKING]


# ── blocks ───────────────────────────────────────────────────────────────────────────────


def _call(body: Mapping[str, Any], at: int, path: str) -> ToolCall:
    arguments = as_json(body.get("input"), f"{path}.input")
    name = text_at(body.get("name"), f"{path}.name")
    return ToolCall(str(body.get("toolUseId") or ""), name, arguments, at)


def _result(body: Mapping[str, Any], at: int, path: str) -> ToolResult:
    content: list[Content] = []
    for inner, raw in enumerate(
        list_at(body.get("content"), f"{path}.content")
    ):
        item_path = f"{path}.content[{inner}]"
        item = raw if type(raw) is dict else plain(raw, item_path)
        content += _contents(item, kind_of(item), inner, item_path)
    call_id = str(body.get("toolUseId") or "")
    is_error = body.get("status") == "error"
    return ToolResult(call_id, tuple(content), is_error, at)


def _reasoning(body: Mapping[str, Any], at: int) -> Reasoning:
    thought = body.get("reasoningText")
    text = str(field(thought, "text") or "")
    redacted = media.b64_of(body.get("redactedContent"))
    sealed = redacted or field(thought, "signature")
    return Reasoning(
        text, at, bool(sealed), sealed_bytes(sealed, _FRAME_BYTES)
    )


def _without_reasoning(blocks: Sequence[Any], message: Message) -> list[Any]:
    """The blocks of a message without its reasoning, and no cache point in front."""
    reasoning = {
        part.at for part in message.parts if isinstance(part, Reasoning)
    }
    remaining = [
        block for at, block in enumerate(blocks) if at not in reasoning
    ]
    while remaining and is_cache_point(remaining[0]):
        del remaining[0]
    return remaining


def _contents(
    block: Mapping[str, Any], kind: str, at: int, path: str
) -> Sequence[Content]:
    """The texts inside a block and its frame, or the one content that it is."""
    texts = passages.passages_of(block, at, path)
    if texts:
        return texts
    return (_content(block, kind, at, path),)


def _content(
    block: Mapping[str, Any], kind: str, at: int, path: str
) -> Content:
    """A text, a medium, or what is carried through."""
    if kind == "text":
        return Text(text_at(block["text"], f"{path}.text"), at)
    if kind == "json":
        return Text(_text_of_json(block["json"], f"{path}.json"), at)
    if media.is_medium(block):
        return _medium(block, kind, at, path)
    call_id = f"{SERVER}{body_of(block, kind).get('toolUseId')}"
    row = BLOCKS.get(kind)
    return Opaque(
        kind=kind or "block",
        text=opaque_json(block, path),
        at=at,
        tokens=media_tokens_of(block),
        opens=call_id if kind == "toolUse" else "",
        closes=call_id if kind == "toolResult" else "",
        author=row.author if row else None,
    )


def _medium(block: Mapping[str, Any], kind: str, at: int, path: str) -> Media:
    row = BLOCKS[kind]
    data_path = _data_path(block, row)
    data = media.b64_of(at_path(block, data_path))
    form = at_path(block, row.mime)
    return Media(
        kind=row.media[0],
        mime=media.type_of(kind, form) if isinstance(form, str) else "",
        data=text_at(data, f"{path}.{data_path}"),
        at=at,
        block=media.as_json(block, path),
    )


def _data_path(block: Mapping[str, Any], row: Block) -> str:
    """The path of a medium's bytes, or of its address; `media.is_medium` says there is one."""
    return next(name for name in row.data if at_path(block, name) is not None)


def _text_of_json(value: Any, path: str) -> str:
    """The text of a JSON item: of a blank text (`blank`) that text, of all else the JSON."""
    if isinstance(value, Mapping) and len(value) == 1:
        text = value.get(_OUTPUT)
        if isinstance(text, str) and text.isspace():
            return text
    return json_text(value, path)


def json_text(value: Any, path: str) -> str:
    """A JSON result as text, in its own order of keys. Raises FormatError if it is not JSON."""
    try:
        return json.dumps(
            value, ensure_ascii=False, separators=(",", ":"), default=jsonable
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise not_json(path, error) from None


def _as_item(block: Any) -> dict[str, Any]:
    """A block that was set aside, as an item of a result: as JSON where none may hold it."""
    item = plain(block, "block")
    row = BLOCKS.get(kind_of(item))
    if row is not None and row.in_result:
        return media.as_sdk(item) if row.media else dict(item)
    return {"text": as_json(block, "block")}


def _edited(
    block: Mapping[str, Any], part: Part, item: int, text: str
) -> dict[str, Any]:
    """A block of a message that shows another text in one place."""
    if isinstance(part, ToolCall):
        call = {**block["toolUse"], "input": arguments_of(text)}
        return {**block, "toolUse": call}
    if isinstance(part, ToolResult):
        leaf = part.content[item]
        content = list(block["toolResult"]["content"])
        content[leaf.at] = _shown(plain(content[leaf.at], "block"), leaf, text)
        result = {**block["toolResult"], "content": content}
        return {**block, "toolResult": result}
    return _shown(block, part, text)


def _shown(
    block: Mapping[str, Any], part: Part | Content, text: str
) -> dict[str, Any]:
    """A block, or an item of a result, that shows another text."""
    kind = kind_of(block)
    if isinstance(part, BlockFrame):
        raise cannot_edit(kind, "keeps what stands beside its texts")
    if isinstance(part, Passage):
        return passages.shown(block, part.inner, text)
    if kind == "guardContent":
        return passages.shown(block, WHOLE, text)
    row = BLOCKS.get(kind)
    if row is None or not row.edited:
        raise cannot_edit(kind or "block")
    return {"text": filled(text, kind, "B6")}

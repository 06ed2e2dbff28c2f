"""OpenAI Chat Completions: ``POST /v1/chat/completions`` (`provider-rules` §1.B).

Leading system and developer messages are the head; later ones are ordinary messages. Tool
results are messages of their own; their content is a string or text parts, never media (C8).
Compatible servers take ``reasoning_content`` back, or ``reasoning`` and ``reasoning_details``: it
is counted, and never edited. Fields that nobody is known to read are not counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ullage.core.contract.choice import Choice
from ullage.core.contract.format import Change
from ullage.core.errors import FormatError
from ullage.core.history.pairing import made_up
from ullage.core.history.raw import as_json, field, text_at
from ullage.core.values.messages import (
    WHOLE,
    Content,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from ullage.core.values.toolset import ToolSpec
from ullage.wires.base import (
    content_at,
    list_at,
    opaque_json,
    ordered,
    plain,
    sealed_bytes,
)
from ullage.wires.block import (
    cannot_edit,
    filled,
    read_part,
    replaced,
    without_medium,
)
from ullage.wires.choice import openai_choice
from ullage.wires.format import WireFormat
from ullage.wires.models import (
    MOST_OPENAI_TOOLS,
    is_elsewhere,
    is_gpt_6_2,
    openai_call_ids,
    takes_hosted_tools_alone,
)
from ullage.wires.openai_chat.blocks import (
    BLOCKS,
    CALLS,
    FIELDS,
    PARTS,
    ROLES,
    THOUGHTS,
)
from ullage.wires.openai_chat.models import FAMILIES
from ullage.wires.usages import openai_counts

REFUSAL = -2
"""Where a text stands that is the field ``refusal`` of a message, beside its content."""
FUNCTION_CALL = -3
"""Where a call stands that is the deprecated field ``function_call`` of a message."""

_part = partial(read_part, PARTS)


class OpenAIChat(WireFormat):
    """The Chat Completions format."""

    name = wire = "openai-chat"
    blocks = BLOCKS
    roles = ROLES
    leading_roles = ("system", "developer")
    answer_limits = ("max_completion_tokens", "max_tokens")
    schemas = ("response_format.json_schema.schema",)
    answer_forms = ("response_format.type",)
    families = FAMILIES
    counts = openai_counts("prompt", "completion")
    most_tools = MOST_OPENAI_TOOLS

    def takes_tools(self, request: Mapping[str, Any], model: str) -> bool:
        """See `Format.takes_tools`: GPT-6.2 takes none here (C11)."""
        return not is_gpt_6_2(model) and not takes_hosted_tools_alone(model)

    def call_ids(self, model: str) -> re.Pattern[str]:
        """See `WireFormat.call_ids`."""
        return openai_call_ids(model)

    def wants_turns(self, model: str) -> bool:
        """See `Format.wants_turns`."""
        return is_elsewhere(model)

    def choice(self, request: Mapping[str, Any]) -> Choice:
        """See `Format.choice`. Older requests choose by ``function_call``."""
        chosen = request.get("tool_choice")
        return openai_choice(
            request.get("function_call") if chosen is None else chosen
        )

    def allowing(
        self, request: dict[str, Any], names: Sequence[str]
    ) -> dict[str, Any]:
        """See `Format.allowing`."""
        choice = plain(request["tool_choice"], "tool_choice")
        listed = plain(choice["allowed_tools"], "tool_choice.allowed_tools")
        more = [
            {"type": "function", "function": {"name": name}} for name in names
        ]
        listed = {**listed, "tools": [*listed["tools"], *more]}
        return {**request, "tool_choice": {**choice, "allowed_tools": listed}}

    def definitions(
        self, request: Mapping[str, Any]
    ) -> Iterator[tuple[str, Any]]:
        """See `WireFormat.definitions`: older requests have ``functions``."""
        yield from super().definitions(request)
        for at, function in enumerate(
            list_at(request.get("functions"), "functions")
        ):
            yield f"functions[{at}]", function

    def parse(self, raw: Any, path: str) -> Message:
        """See `Format.parse`."""
        fields = raw if type(raw) is dict else plain(raw, path)
        role = self.role_of(fields.get("role"), path)
        content = content_at(fields.get("content"), f"{path}.content", _part)
        if role == "tool":
            return Message(role, (_result(fields, tuple(content)),))
        parts: list[Part] = [*content]
        if role == "assistant":
            parts += self._beside_content(fields, path)
        return Message(role, ordered(parts))

    def _beside_content(
        self, fields: Mapping[str, Any], path: str
    ) -> list[Part]:
        """The parts of an assistant message beside its content: a refusal, calls, thoughts."""
        parts: list[Part] = []
        if fields.get("refusal") is not None:
            text = text_at(fields["refusal"], f"{path}.refusal")
            parts.append(Text(text, REFUSAL))
        calls = list_at(fields.get("tool_calls"), f"{path}.tool_calls")
        for index, call in enumerate(calls):
            parts.append(
                self._call(call, index, f"{path}.tool_calls[{index}]")
            )
        if fields.get("function_call"):
            place = f"{path}.function_call"
            parts.append(_function_call(fields["function_call"], place))
        for name, row in FIELDS.items():
            if row.becomes == "opaque" and fields.get(name):
                text = opaque_json(fields[name], f"{path}.{name}")
                parts.append(Opaque(name, text, WHOLE))
        if any(_is_signed(call) for call in calls):
            parts.append(Reasoning("", WHOLE, bound=True))
        return parts + _thoughts(fields)

    def _call(self, raw: Any, at: int, path: str) -> ToolCall:
        call = plain(raw, path)
        kind = text_at(call.get("type") or "function", f"{path}.type")
        body = call.get(kind)
        if body is None:
            problem = f"a {kind} call without its {kind!r}"
            raise FormatError(path, problem, "Give the whole call.")
        row = CALLS.get(kind, _CUSTOM)
        arguments = field(body, row.text, "")
        if not isinstance(arguments, str):
            arguments = as_json(arguments, f"{path}.{kind}.arguments")
        name = text_at(field(body, "name"), f"{path}.{kind}.name")
        return ToolCall(str(call.get("id") or ""), name, arguments, at)

    def edit(
        self,
        raw: Any,
        message: Message,
        changes: Sequence[Change],
        *,
        drop_reasoning: bool = False,
    ) -> dict[str, Any]:
        """See `Format.edit`."""
        edited = dict(raw if type(raw) is dict else plain(raw, "message"))
        if drop_reasoning:
            for name in THOUGHTS:
                edited.pop(name, None)
        for number, item, text in changes:
            part = message.parts[number]
            if isinstance(part, ToolCall):
                _edit_call(edited, part, text)
            elif isinstance(part, ToolResult):
                _edit_content(edited, part.content[item], text)
            else:
                _edit_content(edited, part, text)
        return edited

    def wrap_up(self, request: Mapping[str, Any], text: str) -> dict[str, Any]:
        """See `Format.wrap_up`. Without tools the API takes no choice of one."""
        messages = [*self.history(request), self.user(text)]
        last_request = self.compose(request, messages, ())
        if last_request.get("tools"):
            last_request["tool_choice"] = "none"
        if last_request.get("functions"):
            last_request["function_call"] = "none"
        return last_request

    def tool(self, spec: ToolSpec) -> dict[str, Any]:
        """See `Format.tool`."""
        return {"type": "function", "function": super().tool(spec)}

    def tool_name(self, raw: Any) -> str:
        """See `Format.tool_name`."""
        kind = field(raw, "type") or "function"
        body = field(raw, kind) if isinstance(kind, str) else None
        if body is None:
            body = raw
        return str(field(body, "name") or "")

    def call(self, raw: Any) -> ToolCall:
        """See `Format.call`."""
        return self._call(raw, WHOLE, "call")

    def result(
        self,
        call: ToolCall,
        text: str,
        *,
        is_error: bool = False,
        block: Any = None,
    ) -> dict[str, Any]:
        """See `Format.result`. There is no error flag (the text tells) and only text (C8).

        So a medium does not come back: the text says why. Other blocks come as JSON.
        """
        content: str | None = text
        if block is not None:
            content = without_medium(PARTS, _part(block, 0, "block"), text)
        if content is None:
            content = as_json(block, "block")
        return {"role": "tool", "tool_call_id": call.id, "content": content}

    def reply(self, reply: Any) -> list[Any]:
        """See `Format.reply`: the first choice, as the API gave it."""
        choices = field(reply, "choices")
        if not choices:
            return []
        message = field(choices[0], "message")
        is_empty = not any(field(message, name) for name in _ANSWER_FIELDS)
        return [] if is_empty else [message]

    def cut_short(self, reply: Any) -> str:
        """See `Format.cut_short`: of the first choice. Servers that speak it have own words."""
        choices = field(reply, "choices")
        if not choices:
            return ""
        reason = field(choices[0], "finish_reason")
        return reason if reason in _CUT_SHORT else ""

    def calls(self, raw: Any) -> list[Any]:
        """See `Format.calls`."""
        return list(list_at(field(raw, "tool_calls"), "tool_calls"))


def _function_call(raw: Any, path: str) -> ToolCall:
    """A deprecated call. It has no id: a ``function`` message answers it by its name."""
    call = plain(raw, path)
    name = text_at(call.get("name"), f"{path}.name")
    arguments = call.get("arguments") or ""
    if not isinstance(arguments, str):
        arguments = as_json(arguments, f"{path}.arguments")
    return ToolCall(made_up(name, 0), name, arguments, FUNCTION_CALL)


def _result(
    fields: Mapping[str, Any], content: tuple[Content, ...]
) -> ToolResult:
    """A result, by the id of its call, or by the function's name."""
    name = str(fields.get("name") or "")
    if fields.get("role") == "function":
        return ToolResult(made_up(name, 0), content, False, WHOLE, name)
    call_id = str(fields.get("tool_call_id") or name)
    return ToolResult(call_id, content, False, WHOLE)


def _is_signed(call: Any) -> bool:
    """Whether a call carries Gemini's signature, which is of this very call (C12)."""
    google = field(field(call, "extra_content"), "google")
    return bool(field(google, "thought_signature"))


def _thoughts(fields: Mapping[str, Any]) -> list[Part]:
    """The model's thought as one part, however many fields repeat it; none without any."""
    texts = []
    sealed_size = 0
    details = fields.get("reasoning_details")
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict):
            texts += [detail.get("text"), detail.get("summary")]
        for name in ("data", "signature"):
            sealed_size += sealed_bytes(field(detail, name), 0)
    text = "\n".join(text for text in texts if isinstance(text, str) and text)
    # Servers repeat one thought in several fields: the plain ones win over the details.
    for name in ("reasoning", "reasoning_content"):
        value = fields.get(name)
        if isinstance(value, str) and value:
            text = value
    if not text and not sealed_size:
        return []
    return [Reasoning(text, WHOLE, sealed_bytes=sealed_size)]


# ── editing, in place ────────────────────────────────────────────────────────────────────


def _edit_call(message: dict[str, Any], part: ToolCall, text: str) -> None:
    """Show other arguments of a call; what the caller's message holds is not changed."""
    if part.at == FUNCTION_CALL:
        call = plain(message["function_call"], "function_call")
        message["function_call"] = {**call, "arguments": text}
        return
    calls = list(message["tool_calls"])
    call = plain(calls[part.at], "tool_call")
    kind = call.get("type") or "function"
    row = CALLS.get(kind, _CUSTOM)
    body = {**plain(call[kind], kind), row.text: text}
    calls[part.at] = {**call, kind: body}
    message["tool_calls"] = calls


def _edit_content(
    message: dict[str, Any], leaf: Part | Content, text: str
) -> None:
    """Show another text in one place of the content, or in the field of a refusal.

    Raises UnsupportedPart if nothing but the part itself may stand there.
    """
    if leaf.at >= 0:
        items = list(message["content"])
        items[leaf.at] = replaced(items[leaf.at], PARTS, text)
        message["content"] = items
    elif isinstance(leaf, Text) and leaf.at == REFUSAL:
        message["refusal"] = filled(text, "refusal", "C5")
    elif isinstance(leaf, Text):
        message["content"] = text
    elif isinstance(leaf, (Media, Opaque)):
        raise cannot_edit(leaf.kind)
    else:
        raise cannot_edit("reasoning")


_CUSTOM = CALLS["custom"]
_CUT_SHORT = (
    "length",
    "content_filter",
    # of servers that speak its wire
    "max_tokens",
    "model_length",
    "error",
    "insufficient_system_resource",
)
"""The two of OpenAI's (`provider-rules` §1.B), and those of servers that speak its wire."""

_ANSWER_FIELDS = ("content", "tool_calls", "refusal", "function_call", "audio")
"""With one of these a message of a reply says something."""

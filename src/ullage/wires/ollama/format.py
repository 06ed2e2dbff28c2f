"""Ollama's own chat: ``POST /api/chat``.

Leading system messages are the head; later ones are ordinary messages. A message has one text and,
beside it, images. Tool results are messages of their own. Source: ``api/types.go`` of
ollama/ollama.

Calls of servers before 0.12, and of the Python client, have no id. Such a call is known by its tool
and its number within the message, ``read_file#1``, and a result without an id by its tool: it
answers the first open call of that tool. Some clients leave out the tool as well; then it answers
the first open call. No id that is made up goes onto the wire.
"""

from __future__ import annotations

import inspect
from base64 import b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ullage.core.contract.choice import ANY, Choice
from ullage.core.contract.format import Change
from ullage.core.history.pairing import is_made_up, made_up
from ullage.core.history.raw import as_json, field, text_at
from ullage.core.values.messages import (
    WHOLE,
    Content,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from ullage.core.values.toolset import ToolSpec
from ullage.core.values.usage import Usage
from ullage.wires.base import list_at, optional_text_at, ordered, plain
from ullage.wires.block import arguments_of, cannot_edit
from ullage.wires.format import WireFormat
from ullage.wires.ollama.blocks import BLOCKS, ROLES, TOOL_NAMES
from ullage.wires.ollama.models import FAMILIES, is_hosted
from ullage.wires.usages import Counts
from ullage.wires.usages import read as read_usage

DEFAULT_WINDOW_TOKENS = 4_096
"""The window of a server that nobody has told another (docs.ollama.com, "Context length"): 2,048
before 0.6.6, and more from 0.15.5 on where its graphics memory is 24 GiB or larger."""

_MIMES = {
    "iVBOR": "image/png",
    "/9j/": "image/jpeg",
    "R0lGO": "image/gif",
    "UklGR": "image/webp",
}
"""How the base64 of an image begins, by its type, which the wire does not say."""
_SAYINGS = ("content", "tool_calls", "images")
_COUNTED = ("prompt_eval_count", "eval_count")


class Ollama(WireFormat):
    """The format of ``/api/chat``."""

    name = wire = "ollama"
    blocks = BLOCKS
    roles = ROLES
    leading_roles = ("system",)
    answer_limits = ("options.num_predict",)
    schemas = ("format",)
    answer_forms = ("format",)
    families = FAMILIES
    counts = Counts(
        prompt="prompt_eval_count",
        read="prompt_eval_cached_count",
        output="eval_count",
        reasoning="",
    )

    # ── the request ──────────────────────────────────────────────────────────────────

    def window_tokens(self, request: Mapping[str, Any]) -> int | None:
        """See `Format.window_tokens`: ``num_ctx``. The server cuts what does not fit into it."""
        tokens = field(request.get("options"), "num_ctx")
        if not isinstance(tokens, int) or isinstance(tokens, bool):
            return None
        return tokens if tokens > 0 else None

    def default_window_tokens(self, model: str) -> int | None:
        """See `Format.default_window_tokens`."""
        return None if is_hosted(model) else DEFAULT_WINDOW_TOKENS

    def choice(self, request: Mapping[str, Any]) -> Choice:
        """See `Format.choice`: a request has no word for it."""
        return ANY

    def tool_text(self, tool: Any, path: str) -> str:
        """See `Format.tool_text`: of a function, what its client makes a definition from."""
        if inspect.isroutine(tool):
            signature = str(inspect.signature(tool))
            return as_json([tool.__name__, signature, tool.__doc__], path)
        return super().tool_text(tool, path)

    def wrap_up(self, request: Mapping[str, Any], text: str) -> dict[str, Any]:
        """See `Format.wrap_up`: without tools, as a request cannot forbid them."""
        messages = [*self.history(request), self.user(text)]
        composed = self.compose(request, messages, ())
        composed.pop("tools", None)
        return composed

    # ── messages ─────────────────────────────────────────────────────────────────────

    def parse(self, raw: Any, path: str) -> Message:
        """See `Format.parse`."""
        fields = raw if type(raw) is dict else plain(raw, path)
        role = self.role_of(fields.get("role"), path)
        content = [*_text(fields, path), *_images(fields, path)]
        if role == "tool":
            return Message(role, (_result(fields, tuple(content)),))
        parts: list[Part] = [*content]
        if role == "assistant":
            parts += _calls(fields, path)
            thought = optional_text_at(
                fields.get("thinking"), f"{path}.thinking"
            )
            if thought:
                parts.append(Reasoning(thought, WHOLE))
        return Message(role, ordered(parts))

    def edit(
        self,
        raw: Any,
        message: Message,
        changes: Sequence[Change],
        *,
        drop_reasoning: bool = False,
    ) -> dict[str, Any]:
        """See `Format.edit`. What is said instead of an image stands behind the text."""
        edited = dict(raw if type(raw) is dict else plain(raw, "message"))
        if drop_reasoning:
            edited.pop("thinking", None)
        instead: dict[int, str] = {}
        for number, item, text in changes:
            part = message.parts[number]
            leaf = part.content[item] if isinstance(part, ToolResult) else part
            match leaf:
                case ToolCall():
                    calls = _with_arguments(
                        edited["tool_calls"], leaf.at, text
                    )
                    edited["tool_calls"] = calls
                case Media():
                    instead[leaf.at] = text
                case Text():
                    edited["content"] = text
                case _:
                    raise cannot_edit("thinking")
        if instead:
            return _without_images(edited, instead)
        return edited

    # ── tools, calls and replies ─────────────────────────────────────────────────────

    def tool(self, spec: ToolSpec) -> dict[str, Any]:
        """See `Format.tool`."""
        return {"type": "function", "function": super().tool(spec)}

    def tool_name(self, raw: Any) -> str:
        """See `Format.tool_name`: of a definition, of a call, or of a function of Python."""
        if inspect.isroutine(raw):
            return raw.__name__
        body = field(raw, "function")
        if body is None:
            body = raw
        return str(field(body, "name") or "")

    def call(self, raw: Any) -> ToolCall:
        """See `Format.call`."""
        return _call(raw, WHOLE, "call")

    def result(
        self,
        call: ToolCall,
        text: str,
        *,
        is_error: bool = False,
        block: Any = None,
    ) -> dict[str, Any]:
        """See `Format.result`. There is no error flag: the text tells."""
        images = field(block, "images")
        if block is not None and not images:
            text = as_json(block, "block")
        message: dict[str, Any] = {
            "role": "tool",
            "tool_name": call.name,
            "content": text,
        }
        if call.id and not is_made_up(call.id, call.name):
            message["tool_call_id"] = call.id
        if images:
            message["images"] = list(images)
        return message

    def reply(self, reply: Any) -> list[Any]:
        """See `Format.reply`."""
        message = field(reply, "message")
        says = any(field(message, name) for name in _SAYINGS)
        return [message] if says else []

    def cut_short(self, reply: Any) -> str:
        """See `Format.cut_short`."""
        reason = field(reply, "done_reason")
        return reason if reason == "length" else ""

    def calls(self, raw: Any) -> list[Any]:
        """See `Format.calls`."""
        return list(list_at(field(raw, "tool_calls"), "tool_calls"))

    def usage(self, reply: Any) -> Usage | None:
        """See `Format.usage`: beside the message. Only the last line of a stream has counts.

        Servers count the whole prompt. Those before 0.3 left out of the count what was cached, and
        the count itself where all of it was: that reads as a report without a prompt.
        """
        if all(field(reply, name) is None for name in _COUNTED):
            return None
        return read_usage(reply, self.counts)


# ── reading ──────────────────────────────────────────────────────────────────────────────


def _text(fields: Mapping[str, Any], path: str) -> list[Content]:
    content = fields.get("content")
    if content is None:
        return []
    return [Text(text_at(content, f"{path}.content"))]


def _images(fields: Mapping[str, Any], path: str) -> list[Content]:
    images = list_at(fields.get("images"), f"{path}.images")
    return [
        _image(raw, at, f"{path}.images[{at}]")
        for at, raw in enumerate(images)
    ]


def _image(raw: Any, at: int, path: str) -> Media:
    """An image in any form that a client takes: base64, bytes, a path, or its own object."""
    if hasattr(raw, "model_dump"):
        raw = raw.model_dump(mode="json")
    elif isinstance(raw, bytes):
        raw = b64encode(raw).decode()
    elif hasattr(raw, "__fspath__"):
        raw = raw.__fspath__()
    data = text_at(raw, path)
    return Media("image", _mime_of(data), data, at, block={"images": [data]})


def _mime_of(data: str) -> str:
    """The type of an image by how its base64 begins; ``""`` if that is not known."""
    for start, mime in _MIMES.items():
        if data.startswith(start):
            return mime
    return ""


def _calls(fields: Mapping[str, Any], path: str) -> list[Part]:
    """The calls of a message; each without an id gets one of its tool and number."""
    calls: list[Part] = []
    numbers: Counter[str] = Counter()
    raw_calls = list_at(fields.get("tool_calls"), f"{path}.tool_calls")
    for at, raw in enumerate(raw_calls):
        call = _call(raw, at, f"{path}.tool_calls[{at}]")
        numbers[call.name] += 1
        if not call.id:
            call = replace(call, id=made_up(call.name, numbers[call.name]))
        calls.append(call)
    return calls


def _call(raw: Any, at: int, path: str) -> ToolCall:
    call = plain(raw, path)
    body = plain(call.get("function"), f"{path}.function")
    name = text_at(body.get("name"), f"{path}.function.name")
    arguments = body.get("arguments")
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, str):
        arguments = as_json(arguments, f"{path}.function.arguments")
    return ToolCall(str(call.get("id") or ""), name, arguments, at)


def named(fields: Any) -> tuple[str, str]:
    """The id of the call that a result names, and its tool; ``""`` for what it does not say."""
    call_id = field(fields, "tool_call_id") or ""
    for key in TOOL_NAMES:
        tool = field(fields, key)
        if tool:
            return str(call_id), str(tool)
    return str(call_id), ""


def _result(
    fields: Mapping[str, Any], content: tuple[Content, ...]
) -> ToolResult:
    """A result, by the id of its call, else by its tool, else by its order alone."""
    call_id, tool = named(fields)
    return ToolResult(call_id or made_up(tool, 0), content, False, WHOLE, tool)


# ── writing ──────────────────────────────────────────────────────────────────────────────


def _with_arguments(calls: Any, at: int, text: str) -> list[Any]:
    """The calls of a message, one of them with other arguments."""
    edited = list(calls)
    call = plain(edited[at], "tool_call")
    function = plain(call["function"], "function")
    function = {**function, "arguments": arguments_of(text)}
    edited[at] = {**call, "function": function}
    return edited


def _without_images(
    message: dict[str, Any], instead: Mapping[int, str]
) -> dict[str, Any]:
    """A message with texts in the place of some images.

    Args:
        message: the message; it is changed.
        instead: the text in the place of each image, by its index.
    """
    images = [
        image
        for at, image in enumerate(message["images"])
        if at not in instead
    ]
    texts = [message.get("content"), *(instead[at] for at in sorted(instead))]
    message["content"] = "\n".join(text for text in texts if text)
    if images:
        message["images"] = images
    else:
        del message["images"]
    return message

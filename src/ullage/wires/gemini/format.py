"""Google Gemini: ``generateContent`` (`provider-rules` §1.D).

Two forms are taken, and what comes out is in the form that came in: the body of the REST
call (camelCase), and the keyword arguments of ``client.models.generate_content`` in
google-genai (snake_case, ``config``; contents may be strings, dicts or the SDK's objects).
Each field is read in either spelling and written back in the one it had; an edited object is
a copy of the object. Of parts that stand among the contents without one, calls and responses
are refused: google-genai makes steps of them by rules of its own.

Calls may have no id. Such a call, and such a result, is known by its tool and its number
within the content, ``read_file#1``; that name never goes onto the wire.

A call with a ``thoughtSignature`` is never edited, nor are its parallel siblings. A text with
one loses the signature if it is ever cut: it is optional there, and valid for that text only.
"""

from __future__ import annotations

import inspect
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ullage.core.contract.choice import NONE, Choice
from ullage.core.contract.format import Change, HeldHistory
from ullage.core.errors import FormatError
from ullage.core.history.pairing import is_made_up, made_up
from ullage.core.history.raw import as_json, text_at, unexpected
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
from ullage.core.values.notices import NO_REASONING
from ullage.wires.base import (
    check_object,
    detail_of,
    get,
    list_at,
    opaque_json,
    optional_text_at,
    ordered,
)
from ullage.wires.format import WireFormat
from ullage.wires.gemini import fields
from ullage.wires.gemini.blocks import BLOCKS, PARTS, ROLES
from ullage.wires.gemini.models import FAMILIES
from ullage.wires.unknown_media import media_tokens_of
from ullage.wires.usages import Counts

_DONE = ("", "STOP", "FINISH_REASON_UNSPECIFIED")
_OPAQUE = tuple(row.kind for row in PARTS.values() if row.becomes == "opaque")


class Gemini(WireFormat):
    """The generateContent format."""

    name = wire = "gemini"
    key = "contents"
    blocks = BLOCKS
    roles = ROLES
    answer_limits = ("maxOutputTokens",)
    schemas = ("responseSchema", "responseJsonSchema", "_responseJsonSchema")
    answer_forms = ("responseMimeType",)
    held_histories = (
        HeldHistory("cachedContent", ("cachedContent", "config.cachedContent")),
        HeldHistory("cached_content", ("cached_content", "config.cached_content")),
    )
    usage_field = "usageMetadata"
    families = FAMILIES
    counts = Counts(
        prompt="promptTokenCount",
        read="cachedContentTokenCount",
        brought="toolUsePromptTokenCount",
        output="candidatesTokenCount",
        reasoning="thoughtsTokenCount",
        beside_reasoning=True,
        input_media="promptTokensDetails",
        brought_media="toolUsePromptTokensDetails",
        read_media="cacheTokensDetails",
        output_media="candidatesTokensDetails",
    )

    # ── the request ──────────────────────────────────────────────────────────────────

    def history(self, request: Mapping[str, Any]) -> list[Any]:
        """See `Format.history`. A content that stands alone is a history of one."""
        contents = request.get(self.key)
        if isinstance(contents, list):
            fields.check_wrapped(contents)
            return contents
        if contents is None:
            raise FormatError(
                self.key,
                "there are none",
                f"Give the whole history under {self.key!r}.",
            )
        return [contents]

    def tools(self, request: Mapping[str, Any]) -> Sequence[Any]:
        """See `Format.tools`: function declarations, then whatever else a tool holds."""
        found: list[Any] = []
        for index, tool in enumerate(fields.tool_list(request)):
            declared = get(tool, "functionDeclarations")
            found += list_at(declared, f"tools[{index}].functionDeclarations")
            if declared is None:
                found.append(tool)
        return found

    def takes_tools(self, request: Mapping[str, Any], model: str) -> bool:
        """See `Format.takes_tools`.

        Google's own tools stand beside functions only where the request has brought that about:
        it holds functions already, or asks for the calls of the server's tools. Where google-genai
        calls Python functions itself, a declaration beside them would switch that off. What is
        cached has the tools that it was cached with.
        """
        if get(request, "cachedContent") or fields.setting(request, "cachedContent"):
            return False
        if fields.calls_functions(request):
            return False
        tools, config = fields.tool_list(request), fields.setting(request, "toolConfig")
        own = [tool for tool in tools if fields.is_built_in(tool)]
        asks = bool(get(config, "includeServerSideToolInvocations"))
        return not own or len(own) < len(tools) or asks

    def choice(self, request: Mapping[str, Any]) -> Choice:
        """See `Format.choice`. A list of names counts with any mode: servers differ in that."""
        calling = get(fields.setting(request, "toolConfig"), "functionCallingConfig")
        mode = str(get(calling, "mode")).rpartition(".")[2]
        if mode == "NONE":
            return NONE
        names = get(calling, "allowedFunctionNames")
        return Choice(frozenset(names) if names else None, is_open=mode != "ANY")

    def allowing(self, request: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """See `Format.allowing`."""
        config = request.get("config")
        choice = get(config or request, "toolConfig")
        calling = get(choice, "functionCallingConfig")
        listed = [*get(calling, "allowedFunctionNames"), *names]
        calling = fields.with_field(calling, "allowedFunctionNames", listed)
        choice = fields.with_field(choice, "functionCallingConfig", calling)
        if config:
            return {
                **request,
                "config": fields.with_field(config, "toolConfig", choice),
            }
        return dict(fields.with_field(request, "toolConfig", choice))

    def compose(
        self,
        request: Mapping[str, Any],
        messages: list[Any],
        tools: Sequence[dict[str, Any]],
    ) -> dict[str, Any]:
        """See `Format.compose`. Added tools stand behind the request's own declarations."""
        contents = request[self.key]
        alone = not isinstance(contents, list) and len(messages) == 1
        new = {**request, self.key: messages[0] if alone else messages}
        if not tools:
            return new
        every = fields.with_declarations(request, tools)
        if not fields.is_sdk_call(request):
            return {**new, "tools": every}
        config = request.get("config")
        return {**new, "config": fields.with_field(config or {}, "tools", every)}

    def settings(self, request: Mapping[str, Any]) -> Any:
        """See `WireFormat.settings`: in either form of a request."""
        return request.get("config") or get(request, "generationConfig")

    def system(self, request: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
        """See `WireFormat.system`: a content, or anything that the SDK takes for one."""
        system = fields.setting(request, "systemInstruction")
        parts = () if system is None else fields.parts_of(system)
        for at, part in enumerate(list_at(parts, "systemInstruction.parts")):
            where = f"systemInstruction.parts[{at}]"
            if not isinstance(part, str):
                check_object(part, where)
            text = part if isinstance(part, str) else get(part, "text")
            yield where, None if text is None else text_at(text, f"{where}.text")

    def tool_text(self, tool: Any, where: str) -> str:
        """See `Format.tool_text`: of a function, what its declaration will be made from."""
        if inspect.isroutine(tool):
            tool = [tool.__name__, str(inspect.signature(tool)), tool.__doc__]
        elif hasattr(tool, "model_dump"):
            tool = tool.model_dump(mode="json", exclude_none=True, by_alias=True)
        elif not isinstance(tool, Mapping):
            tool = {"type": type(tool).__name__}
        return as_json(tool, where)

    def media_detail(self, request: Mapping[str, Any]) -> str:
        """See `Format.media_detail`."""
        return detail_of(get(self.settings(request), "mediaResolution"))

    # ── contents ─────────────────────────────────────────────────────────────────────

    def parse(self, raw: Any, where: str) -> Message:
        """See `Format.parse`. A content without a role is the user's, as the API takes it."""
        parts = self._parts(fields.parts_of(raw), where)
        said = get(raw, "role") if fields.is_content(raw) else None
        if said is None:
            calls = any(isinstance(part, ToolCall) for part in parts)
            return Message("assistant" if calls else "user", tuple(parts))
        return Message(self.role_of(said, where), tuple(parts))

    def _parts(self, raws: Any, where: str) -> list[Part]:
        if not isinstance(raws, (list, tuple)):
            remedy = "Give contents as the API takes them."
            raise unexpected(raws, f"{where}.parts", "a list of parts", remedy)
        parts: list[Part] = []
        numbers: Counter[tuple[type, str]] = Counter()
        signed = False
        for at, raw in enumerate(raws):
            part = self._part(raw, at, f"{where}.parts[{at}]")
            if isinstance(part, (ToolCall, ToolResult)):
                numbers[type(part), part.name] += 1
                part = _named(part, numbers[type(part), part.name])
            if isinstance(part, ToolCall) and get(raw, "thoughtSignature"):
                signed = True
            parts.append(part)
        if signed:
            parts.append(Reasoning("", WHOLE, bound=True))
        return list(ordered(parts))

    def _part(self, raw: Any, at: int, where: str) -> Part:
        if isinstance(raw, str):
            return Text(raw, at)
        check_object(raw, where)
        text = get(raw, "text")
        if text is not None:
            said = text_at(text, f"{where}.text")
            return Reasoning(said, at) if get(raw, "thought") else Text(said, at)
        call = get(raw, "functionCall")
        if call is not None:
            return self._call(call, at, f"{where}.functionCall")
        response = get(raw, "functionResponse")
        if response is not None:
            return self._result(response, at, f"{where}.functionResponse")
        return self._content(raw, at, where)

    def _call(self, raw: Any, at: int, where: str) -> ToolCall:
        name = text_at(get(raw, "name"), f"{where}.name")
        arguments = as_json(get(raw, "args") or {}, f"{where}.args")
        return ToolCall(str(get(raw, "id") or ""), name, arguments, at)

    def _result(self, raw: Any, at: int, where: str) -> ToolResult:
        name = text_at(get(raw, "name") or "", f"{where}.name")
        response = get(raw, "response")
        wrapper, value = fields.unwrapped(response)
        content: list[Content] = []
        if response is not None:
            content.append(Text(fields.response_text(value, f"{where}.response")))
        for index, part in enumerate(list_at(get(raw, "parts"), f"{where}.parts")):
            check_object(part, f"{where}.parts[{index}]")
            item = self._content(part, index, f"{where}.parts[{index}]")
            text = fields.plain_text(item) if isinstance(item, Media) else None
            content.append(item if text is None else Text(text, index))
        call_id = str(get(raw, "id") or "")
        return ToolResult(call_id, tuple(content), wrapper == "error", at, name)

    def _content(self, raw: Any, at: int, where: str) -> Media | Opaque:
        inline, file = get(raw, "inlineData"), get(raw, "fileData")
        blob = file if inline is None else inline
        if blob is not None:
            holder, name = (
                ("fileData", "fileUri") if inline is None else ("inlineData", "data")
            )
            check_object(blob, f"{where}.{holder}")
            mime = optional_text_at(get(blob, "mimeType"), f"{where}.{holder}.mimeType")
            given = get(blob, name)
            text = b64encode(given).decode() if isinstance(given, bytes) else given
            data = optional_text_at(text, f"{where}.{holder}.{name}")
            clip_s, frames_per_s = fields.clip_of(get(raw, "videoMetadata"))
            return Media(
                fields.kind_of(mime),
                mime,
                data,
                at,
                block=fields.block_of(raw, data, where),
                detail=detail_of(get(raw, "mediaResolution")),
                clip_s=clip_s,
                frames_per_s=frames_per_s,
            )
        kind = next((name for name in _OPAQUE if get(raw, name) is not None), "part")
        author = PARTS[kind].author if kind in PARTS else None
        unsigned = fields.unsigned(raw)
        tokens = media_tokens_of(unsigned)
        return Opaque(kind, opaque_json(unsigned, where), at, tokens, author=author)

    # ── edits ────────────────────────────────────────────────────────────────────────

    def edit(
        self,
        raw: Any,
        message: Message,
        changes: Sequence[Change],
        *,
        drop_reasoning: bool = False,
    ) -> Any:
        """See `Format.edit`. A string stays a string, an object an object of its type."""
        parts = list(fields.parts_of(raw))
        for number, item, text in changes:
            part = message.parts[number]
            parts[part.at] = fields.edited(parts[part.at], part, item, text)
        if drop_reasoning:
            thoughts = {
                part.at for part in message.parts if isinstance(part, Reasoning)
            }
            kept = [part for at, part in enumerate(parts) if at not in thoughts]
            parts = kept or [{"text": NO_REASONING}]
        if isinstance(raw, list):
            return parts
        return (
            fields.with_field(raw, "parts", parts)
            if fields.is_content(raw)
            else parts[0]
        )

    def user(self, text: str) -> dict[str, Any]:
        """See `Format.user`."""
        return {"role": "user", "parts": [{"text": text}]}

    def wants_turns(self, model: str) -> bool:
        """See `Format.wants_turns`."""
        return bool(model) and "gemini" not in model.lower()

    def together(self, raws: Sequence[Any]) -> dict[str, Any]:
        """See `Format.together`."""
        return {
            "role": "user",
            "parts": [part for raw in raws for part in _said_parts(raw)],
        }

    def wrap_up(self, request: Mapping[str, Any], text: str) -> dict[str, Any]:
        """See `Format.wrap_up`. Without functions the API takes no choice of one."""
        new = self.compose(request, [*self.history(request), self.user(text)], ())
        if not any(self.tool_name(tool) for tool in self.tools(new)):
            return new
        config = new.get("config")
        choice = get(config or new, "toolConfig") or {}
        choice = fields.with_field(choice, "functionCallingConfig", {"mode": "NONE"})
        if config is None:
            return dict(fields.with_field(new, "toolConfig", choice))
        return {**new, "config": fields.with_field(config, "toolConfig", choice)}

    # ── tools ────────────────────────────────────────────────────────────────────────

    def tool_name(self, raw: Any) -> str:
        """See `Format.tool_name`."""
        name = getattr(raw, "__name__", "") if callable(raw) else get(raw, "name")
        return name if isinstance(name, str) else ""

    def call(self, raw: Any) -> ToolCall:
        """See `Format.call`: a ``functionCall``, or the part that holds it."""
        if not isinstance(raw, str):
            body = get(raw, "functionCall") or raw
            if isinstance(get(body, "name"), str):
                return self._call(body, WHOLE, "call")
        raise FormatError("call", "not a functionCall", "Give the part the model sent.")

    def result(
        self, call: ToolCall, text: str, *, is_error: bool = False, block: Any = None
    ) -> dict[str, Any]:
        """See `Format.result`: a part, to stand with the other results of its step (G3).

        A response holds media beside its text (from Gemini 3 on), other blocks as JSON.
        """
        is_media = any(
            get(block, name) is not None for name in ("inlineData", "fileData")
        )
        if block is not None and not is_media:
            text = as_json(block, "block")
        response = {"error" if is_error else "output": text}
        known = (
            {"id": call.id} if call.id and not is_made_up(call.id, call.name) else {}
        )
        body = {**known, "name": call.name, "response": response}
        return {"functionResponse": {**body, "parts": [block]} if is_media else body}

    def results(self, results: Sequence[Any]) -> list[Any]:
        """See `Format.results`: all of one step stand in one content (G3)."""
        return [{"role": "user", "parts": list(results)}]

    def reply(self, reply: Any) -> list[Any]:
        """See `Format.reply`: the first candidate's content, its signatures untouched."""
        candidates = get(reply, "candidates")
        content = get(candidates[0], "content") if candidates else None
        return [content] if content is not None and fields.parts_of(content) else []

    def cut_short(self, reply: Any) -> str:
        """See `Format.cut_short`: of the first candidate. Any reason but one is such a one."""
        candidates = get(reply, "candidates")
        reason = get(candidates[0], "finishReason") if candidates else None
        name = str(reason or "").rpartition(".")[2]
        return "" if name in _DONE else name

    def calls(self, raw: Any) -> list[Any]:
        """See `Format.calls`: the parts that hold them."""
        parts = (part for part in fields.parts_of(raw) if not isinstance(part, str))
        return [part for part in parts if get(part, "functionCall") is not None]


def _named(part: ToolCall | ToolResult, number: int) -> ToolCall | ToolResult:
    """The part with an id: its own, or one made up where it has none."""
    if isinstance(part, ToolCall):
        return part if part.id else replace(part, id=made_up(part.name, number))
    return part if part.call_id else replace(part, call_id=made_up(part.name, number))


def _said_parts(raw: Any) -> list[Any]:
    """The parts of what the user says, in whatever form it was given."""
    return [{"text": raw}] if isinstance(raw, str) else list(fields.parts_of(raw))

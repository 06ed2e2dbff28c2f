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
_BLOBS = ("inlineData", "fileData")
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
        HeldHistory(
            "cachedContent", ("cachedContent", "config.cachedContent")
        ),
        HeldHistory(
            "cached_content", ("cached_content", "config.cached_content")
        ),
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
            remedy = f"Give the whole history under {self.key!r}."
            raise FormatError(self.key, "there are none", remedy)
        return [contents]

    def tools(self, request: Mapping[str, Any]) -> Sequence[Any]:
        """See `Format.tools`: function declarations, then whatever else a tool holds."""
        tools: list[Any] = []
        for index, tool in enumerate(fields.tool_list(request)):
            declared = get(tool, "functionDeclarations")
            if declared is None:
                tools.append(tool)
            else:
                tools += list_at(
                    declared, f"tools[{index}].functionDeclarations"
                )
        return tools

    def takes_tools(self, request: Mapping[str, Any], model: str) -> bool:
        """See `Format.takes_tools`.

        Google's own tools stand beside functions only where the request has brought that about:
        it holds functions already, or asks for the calls of the server's tools. Where google-genai
        calls Python functions itself, a declaration beside them would switch that off. What is
        cached has the tools that it was cached with.
        """
        if get(request, "cachedContent") or fields.setting(
            request, "cachedContent"
        ):
            return False
        if fields.calls_functions(request):
            return False
        tools = fields.tool_list(request)
        config = fields.setting(request, "toolConfig")
        if get(config, "includeServerSideToolInvocations"):
            return True
        built_in = [tool for tool in tools if fields.is_built_in(tool)]
        return not built_in or len(built_in) < len(tools)

    def choice(self, request: Mapping[str, Any]) -> Choice:
        """See `Format.choice`. A list of names counts with any mode: servers differ in that."""
        calling = get(
            fields.setting(request, "toolConfig"), "functionCallingConfig"
        )
        mode = str(get(calling, "mode")).rpartition(".")[2]
        if mode == "NONE":
            return NONE
        names = get(calling, "allowedFunctionNames")
        return Choice(
            frozenset(names) if names else None, is_open=mode != "ANY"
        )

    def allowing(
        self, request: dict[str, Any], names: Sequence[str]
    ) -> dict[str, Any]:
        """See `Format.allowing`."""
        config = request.get("config")
        choice = get(config or request, "toolConfig")
        calling = get(choice, "functionCallingConfig")
        allowed = [*get(calling, "allowedFunctionNames"), *names]
        calling = fields.with_field(calling, "allowedFunctionNames", allowed)
        choice = fields.with_field(choice, "functionCallingConfig", calling)
        return _with_tool_config(request, choice)

    def compose(
        self,
        request: Mapping[str, Any],
        messages: list[Any],
        tools: Sequence[dict[str, Any]],
    ) -> dict[str, Any]:
        """See `Format.compose`. Added tools stand behind the request's own declarations."""
        contents: Any = messages
        if not isinstance(request[self.key], list) and len(messages) == 1:
            contents = messages[0]
        composed = {**request, self.key: contents}
        if not tools:
            return composed
        all_tools = fields.with_declarations(request, tools)
        if not fields.is_sdk_call(request):
            return {**composed, "tools": all_tools}
        config = request.get("config") or {}
        return {
            **composed,
            "config": fields.with_field(config, "tools", all_tools),
        }

    def settings(self, request: Mapping[str, Any]) -> Any:
        """See `WireFormat.settings`: in either form of a request."""
        return request.get("config") or get(request, "generationConfig")

    def system(
        self, request: Mapping[str, Any]
    ) -> Iterator[tuple[str, str | None]]:
        """See `WireFormat.system`: a content, or anything that the SDK takes for one."""
        system = fields.setting(request, "systemInstruction")
        parts = () if system is None else fields.parts_of(system)
        for at, part in enumerate(list_at(parts, "systemInstruction.parts")):
            path = f"systemInstruction.parts[{at}]"
            text: Any = part
            if not isinstance(part, str):
                check_object(part, path)
                text = get(part, "text")
            if text is None:
                yield path, None
            else:
                yield path, text_at(text, f"{path}.text")

    def tool_text(self, tool: Any, path: str) -> str:
        """See `Format.tool_text`: of a function, what its declaration will be made from."""
        if inspect.isroutine(tool):
            tool = [tool.__name__, str(inspect.signature(tool)), tool.__doc__]
        elif hasattr(tool, "model_dump"):
            tool = tool.model_dump(
                mode="json", exclude_none=True, by_alias=True
            )
        elif not isinstance(tool, Mapping):
            tool = {"type": type(tool).__name__}
        return as_json(tool, path)

    def media_detail(self, request: Mapping[str, Any]) -> str:
        """See `Format.media_detail`."""
        return detail_of(get(self.settings(request), "mediaResolution"))

    # ── contents ─────────────────────────────────────────────────────────────────────

    def parse(self, raw: Any, path: str) -> Message:
        """See `Format.parse`. A content without a role is the user's, as the API takes it."""
        parts = self._parts(fields.parts_of(raw), path)
        role = get(raw, "role") if fields.is_content(raw) else None
        if role is not None:
            return Message(self.role_of(role, path), tuple(parts))
        has_calls = any(isinstance(part, ToolCall) for part in parts)
        return Message("assistant" if has_calls else "user", tuple(parts))

    def _parts(self, raws: Any, path: str) -> list[Part]:
        if not isinstance(raws, (list, tuple)):
            remedy = "Give contents as the API takes them."
            raise unexpected(raws, f"{path}.parts", "a list of parts", remedy)
        parts: list[Part] = []
        numbers: Counter[tuple[type, str]] = Counter()
        has_signed_call = False
        for at, raw in enumerate(raws):
            part = self._part(raw, at, f"{path}.parts[{at}]")
            if isinstance(part, ToolCall) and get(raw, "thoughtSignature"):
                has_signed_call = True
            if isinstance(part, (ToolCall, ToolResult)):
                key = (type(part), part.name)
                # Calls without ids are known by their number, so the order of parts counts.
                numbers[key] += 1
                part = _with_id(part, numbers[key])
            parts.append(part)
        if has_signed_call:
            parts.append(Reasoning("", WHOLE, bound=True))
        return list(ordered(parts))

    def _part(self, raw: Any, at: int, path: str) -> Part:
        if isinstance(raw, str):
            return Text(raw, at)
        check_object(raw, path)
        text = get(raw, "text")
        if text is not None:
            text = text_at(text, f"{path}.text")
            return (
                Reasoning(text, at) if get(raw, "thought") else Text(text, at)
            )
        call = get(raw, "functionCall")
        if call is not None:
            return self._call(call, at, f"{path}.functionCall")
        response = get(raw, "functionResponse")
        if response is not None:
            return self._result(response, at, f"{path}.functionResponse")
        return self._content(raw, at, path)

    def _call(self, raw: Any, at: int, path: str) -> ToolCall:
        name = text_at(get(raw, "name"), f"{path}.name")
        arguments = as_json(get(raw, "args") or {}, f"{path}.args")
        return ToolCall(str(get(raw, "id") or ""), name, arguments, at)

    def _result(self, raw: Any, at: int, path: str) -> ToolResult:
        name = text_at(get(raw, "name") or "", f"{path}.name")
        response = get(raw, "response")
        wrapper, value = fields.unwrapped(response)
        content: list[Content] = []
        if response is not None:
            content.append(
                Text(fields.response_text(value, f"{path}.response"))
            )
        for index, part in enumerate(
            list_at(get(raw, "parts"), f"{path}.parts")
        ):
            check_object(part, f"{path}.parts[{index}]")
            item = self._content(part, index, f"{path}.parts[{index}]")
            text = fields.plain_text(item) if isinstance(item, Media) else None
            content.append(item if text is None else Text(text, index))
        return ToolResult(
            str(get(raw, "id") or ""),
            tuple(content),
            wrapper == "error",
            at,
            name,
        )

    def _content(self, raw: Any, at: int, path: str) -> Media | Opaque:
        blob = get(raw, "inlineData")
        if blob is not None:
            return self._medium(raw, blob, ("inlineData", "data"), at, path)
        blob = get(raw, "fileData")
        if blob is not None:
            return self._medium(raw, blob, ("fileData", "fileUri"), at, path)
        kind = next(
            (name for name in _OPAQUE if get(raw, name) is not None), "part"
        )
        author = PARTS[kind].author if kind in PARTS else None
        unsigned = fields.unsigned(raw)
        text = opaque_json(unsigned, path)
        return Opaque(kind, text, at, media_tokens_of(unsigned), author=author)

    def _medium(
        self,
        raw: Any,
        blob: Any,
        address: tuple[str, str],
        at: int,
        path: str,
    ) -> Media:
        """A medium.

        Args:
            raw: its part.
            blob: what the part holds it in.
            address: the field of the part with that, and the one in it with data or address.
            at: the place of the part.
            path: its path.
        """
        holder, name = address
        place = f"{path}.{holder}"
        check_object(blob, place)
        mime = optional_text_at(get(blob, "mimeType"), f"{place}.mimeType")
        value = get(blob, name)
        if isinstance(value, bytes):
            value = b64encode(value).decode()
        data = optional_text_at(value, f"{place}.{name}")
        clip_s, frames_per_s = fields.clip_of(get(raw, "videoMetadata"))
        return Media(
            fields.kind_of(mime),
            mime,
            data,
            at,
            block=fields.block_of(raw, data, path),
            detail=detail_of(get(raw, "mediaResolution")),
            clip_s=clip_s,
            frames_per_s=frames_per_s,
        )

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
            parts = _without_reasoning(parts, message.parts)
        if isinstance(raw, list):
            return parts
        if fields.is_content(raw):
            return fields.with_field(raw, "parts", parts)
        return parts[0]

    def user(self, text: str) -> dict[str, Any]:
        """See `Format.user`."""
        return {"role": "user", "parts": [{"text": text}]}

    def wants_turns(self, model: str) -> bool:
        """See `Format.wants_turns`."""
        return bool(model) and "gemini" not in model.lower()

    def together(self, raws: Sequence[Any]) -> dict[str, Any]:
        """See `Format.together`."""
        parts: list[Any] = []
        for raw in raws:
            parts += (
                [{"text": raw}]
                if isinstance(raw, str)
                else fields.parts_of(raw)
            )
        return {"role": "user", "parts": parts}

    def wrap_up(self, request: Mapping[str, Any], text: str) -> dict[str, Any]:
        """See `Format.wrap_up`. Without functions the API takes no choice of one."""
        contents = [*self.history(request), self.user(text)]
        last_request = self.compose(request, contents, ())
        if not any(self.tool_name(tool) for tool in self.tools(last_request)):
            return last_request
        config = last_request.get("config")
        choice = get(config or last_request, "toolConfig") or {}
        choice = fields.with_field(
            choice, "functionCallingConfig", {"mode": "NONE"}
        )
        if config is None:
            return dict(fields.with_field(last_request, "toolConfig", choice))
        config = fields.with_field(config, "toolConfig", choice)
        return {**last_request, "config": config}

    # ── tools ────────────────────────────────────────────────────────────────────────

    def tool_name(self, raw: Any) -> str:
        """See `Format.tool_name`."""
        name = (
            getattr(raw, "__name__", "") if callable(raw) else get(raw, "name")
        )
        if isinstance(name, str):
            return name
        return ""

    def call(self, raw: Any) -> ToolCall:
        """See `Format.call`: a ``functionCall``, or the part that holds it."""
        if not isinstance(raw, str):
            body = get(raw, "functionCall") or raw
            if isinstance(get(body, "name"), str):
                return self._call(body, WHOLE, "call")
        raise FormatError(
            "call", "not a functionCall", "Give the part the model sent."
        )

    def result(
        self,
        call: ToolCall,
        text: str,
        *,
        is_error: bool = False,
        block: Any = None,
    ) -> dict[str, Any]:
        """See `Format.result`: a part, to stand with the other results of its step (G3).

        A response holds media beside its text (from Gemini 3 on), other blocks as JSON.
        """
        is_media = any(get(block, name) is not None for name in _BLOBS)
        if block is not None and not is_media:
            text = as_json(block, "block")
        body: dict[str, Any] = {}
        if call.id and not is_made_up(call.id, call.name):
            body["id"] = call.id
        body["name"] = call.name
        body["response"] = {"error" if is_error else "output": text}
        if is_media:
            body["parts"] = [block]
        return {"functionResponse": body}

    def results(self, results: Sequence[Any]) -> list[Any]:
        """See `Format.results`: all of one step stand in one content (G3)."""
        return [{"role": "user", "parts": list(results)}]

    def reply(self, reply: Any) -> list[Any]:
        """See `Format.reply`: the first candidate's content, its signatures untouched."""
        candidates = get(reply, "candidates")
        if not candidates:
            return []
        content = get(candidates[0], "content")
        if content is None or not fields.parts_of(content):
            return []
        return [content]

    def cut_short(self, reply: Any) -> str:
        """See `Format.cut_short`: of the first candidate. Any reason but one is such a one."""
        candidates = get(reply, "candidates")
        if not candidates:
            return ""
        reason = get(candidates[0], "finishReason")
        name = str(reason or "").rpartition(".")[2]
        if name in _DONE:
            return ""
        return name

    def calls(self, raw: Any) -> list[Any]:
        """See `Format.calls`: the parts that hold them."""
        calls = []
        for part in fields.parts_of(raw):
            if (
                not isinstance(part, str)
                and get(part, "functionCall") is not None
            ):
                calls.append(part)
        return calls


def _with_tool_config(
    request: dict[str, Any], tool_config: Any
) -> dict[str, Any]:
    """The request with another ``toolConfig``, where its form has one."""
    config = request.get("config")
    if not config:
        return dict(fields.with_field(request, "toolConfig", tool_config))
    return {
        **request,
        "config": fields.with_field(config, "toolConfig", tool_config),
    }


def _with_id(
    part: ToolCall | ToolResult, number: int
) -> ToolCall | ToolResult:
    """The part with an id: its own, or one made up where it has none.

    Args:
        part: a call or a result.
        number: how many of its tool there are in the content up to here.
    """
    if isinstance(part, ToolCall):
        return (
            part if part.id else replace(part, id=made_up(part.name, number))
        )
    return (
        part
        if part.call_id
        else replace(part, call_id=made_up(part.name, number))
    )


def _without_reasoning(
    raws: Sequence[Any], parts: Sequence[Part]
) -> list[Any]:
    """The raw parts of a content without its thoughts; a line of text if it has no others."""
    thoughts = {part.at for part in parts if isinstance(part, Reasoning)}
    rest = [raw for at, raw in enumerate(raws) if at not in thoughts]
    return rest or [{"text": NO_REASONING}]

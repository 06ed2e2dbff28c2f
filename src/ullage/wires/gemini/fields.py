"""Gemini's requests, contents and parts: read in either spelling, and written back edited.

Names are given in camelCase here, as in REST bodies. A dict may use snake_case as well, also mixed;
an object of the SDK has that as attributes and is copied by its own ``model_copy``.

A function's response is an object. Around what the tool gave there is often a wrapper of one
key, ``result``, ``output`` or ``error``: what it holds is the result. A text is taken as it
is, any other value as JSON in its own order of keys; a response without a wrapper is JSON as
a whole. Written back, it reads as the very text that was to be shown.
"""

from __future__ import annotations

import inspect
import json
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ullage.core.errors import FormatError
from ullage.core.values.jsonable import as_google
from ullage.core.values.messages import (
    WHOLE,
    Media,
    Opaque,
    Part,
    Reasoning,
    ToolCall,
    ToolResult,
)
from ullage.wires.base import block_at, check_object, get, snake
from ullage.wires.block import arguments_of, cannot_edit, filled
from ullage.wires.gemini.blocks import PARTS

_REST = (
    "systemInstruction",
    "generationConfig",
    "tools",
    "toolConfig",
    "safetySettings",
)
_WRAPPERS = ("result", "output", "error")
_SIGNATURES = ("thoughtSignature", "thought_signature")
_PLAIN = "text/plain"
_SECONDS = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s")
_MOST_FRAMES_A_SECOND = 24


def with_field(holder: Any, name: str, value: Any) -> Any:
    """A copy with one field set, in the spelling the field has there.

    Args:
        holder: a dict or an object of the SDK; it is not changed.
        name: the field, in camelCase.
        value: what it is to hold. A dict set on an object of the SDK becomes an object of that
            field's type.
    """
    snake_name = snake(name)
    if isinstance(holder, Mapping):
        if snake_name in holder and name not in holder:
            name = snake_name
        return {**holder, name: value}
    if isinstance(value, Mapping):
        typed = type(holder).model_validate({snake_name: value})
        value = getattr(typed, snake_name)
    return holder.model_copy(update={snake_name: value})


def unsigned(raw: Any) -> Any:
    """A part without its signature, as a dict in the spelling of the wire."""
    if not isinstance(raw, Mapping):
        raw = raw.model_dump(mode="json", exclude_none=True, by_alias=True)
    return {key: value for key, value in raw.items() if key not in _SIGNATURES}


def check_wrapped(contents: Sequence[Any]) -> None:
    """Raise FormatError if a call or a response stands among the contents and in none of them.

    google-genai joins such parts with those beside them, in an order of its own where dicts
    stand between: what is one step there would be several here.
    """
    for at, raw in enumerate(contents):
        if type(raw) is dict and "role" in raw:
            continue  # almost always so, and quick
        if isinstance(raw, (str, list)) or is_content(raw):
            continue
        is_call = get(raw, "functionCall") is not None
        if is_call or get(raw, "functionResponse") is not None:
            raise FormatError(
                f"contents[{at}]",
                "a function call or response that is in no content",
                "Wrap the parts of each step: types.Content(role=..., parts=[...]).",
            )


def is_content(raw: Any) -> bool:
    """Whether this is a content, and not a part that stands for one."""
    if type(raw) is dict or isinstance(raw, Mapping):
        return "parts" in raw or "role" in raw
    return hasattr(raw, "parts")


def parts_of(raw: Any) -> Any:
    """The raw parts of a content, of a list of parts, or of a part that stands alone."""
    if isinstance(raw, list):
        return raw
    if not is_content(raw):
        return (raw,)
    return get(raw, "parts") or ()


def is_sdk_call(request: Mapping[str, Any]) -> bool:
    """Whether the request is keyword arguments of the SDK and not the body of a REST call.

    A request of nothing but ``model`` and ``contents`` is the SDK's: a body names no model.
    """
    if "config" in request:
        return True
    if any(get(request, name) is not None for name in _REST):
        return False
    return "model" in request


def setting(request: Mapping[str, Any], name: str) -> Any:
    """A setting of a request: from the SDK's ``config``, or from the top of a REST body.

    Raises FormatError if the config is no object.
    """
    config = request.get("config")
    if config:
        check_object(config, "config")
    return get(config or request, name)


def tool_list(request: Mapping[str, Any]) -> Sequence[Any]:
    """The tools of a request as they stand there; one that stands alone is a list of one."""
    tools = setting(request, "tools") or ()
    if isinstance(tools, (list, tuple)):
        return tools
    return (tools,)


def with_declarations(
    request: Mapping[str, Any], declarations: Sequence[Mapping[str, Any]]
) -> list[Any]:
    """The tools of a request with more functions, behind those that it declares itself.

    Vertex takes functions in one ``Tool`` alone ("Multiple tools are supported only when they are
    all search tools"), so a second one is made only where the request declares no function.
    """
    tools = list(tool_list(request))
    for at, tool in reversed([*enumerate(tools)]):
        if inspect.isroutine(tool):
            continue
        declared = get(tool, "functionDeclarations")
        if declared is not None:
            tools[at] = _declaring(tool, declared, declarations)
            return tools
    name = "functionDeclarations"
    if is_sdk_call(request):
        name = snake(name)
    return [*tools, {name: list(declarations)}]


def _declaring(
    tool: Any,
    declared: Sequence[Any],
    more: Sequence[Mapping[str, Any]],
) -> Any:
    """A copy of a tool that declares more functions, each in the form of its own."""
    if not isinstance(tool, Mapping):
        typed = type(tool).model_validate({"function_declarations": more})
        more = typed.function_declarations
    return with_field(tool, "functionDeclarations", [*declared, *more])


def is_built_in(tool: Any) -> bool:
    """Whether a tool is one of Google's own and declares no function."""
    return (
        not inspect.isroutine(tool)
        and get(tool, "functionDeclarations") is None
    )


def calls_functions(request: Mapping[str, Any]) -> bool:
    """Whether google-genai is to call functions of this request itself.

    It does for Python functions and MCP sessions, unless it is told not to, or a tool holds
    declarations (``find_afc_incompatible_tool_indexes`` there).
    """
    switch = setting(request, "automaticFunctionCalling")
    if get(switch, "disable"):
        return False
    tools = tool_list(request)
    if any(get(tool, "functionDeclarations") for tool in tools):
        return False
    return any(_is_callable(tool) for tool in tools)


def _is_callable(tool: Any) -> bool:
    """Whether a tool is a Python function or an MCP session."""
    return inspect.isroutine(tool) or hasattr(tool, "call_tool")


# ── what stands in a part ────────────────────────────────────────────────────────────────


def unwrapped(response: Any) -> tuple[str | None, Any]:
    """The result in a response.

    Returns:
        The key that it was wrapped in, None if it was not, and the result itself.
    """
    if isinstance(response, Mapping) and len(response) == 1:
        wrapper = next(iter(response))
        if wrapper in _WRAPPERS:
            return wrapper, response[wrapper]
    return None, response


def response_text(value: Any, path: str) -> str:
    """Text as it is, any other value as compact JSON in its own order of keys."""
    if isinstance(value, str):
        return value
    try:
        return _dumps(value)
    except (TypeError, ValueError) as error:
        raise FormatError(
            path,
            f"not JSON ({error})",
            "Give plain JSON values.",
        ) from None


def _dumps(value: Any) -> str:
    return json.dumps(
        value,
        ensure_ascii=False,
        separators=(",", ":"),
        default=as_google,
    )


def edited(raw: Any, part: Part, item: int, text: str) -> Any:
    """A raw part that shows another text in one place.

    Args:
        raw: the part: a string, a dict or an object of the SDK.
        part: what it was read as.
        item: of a result, which item of its content.
        text: what is to be shown.

    Raises:
        UnsupportedPart: it is reasoning, signed as it stands, or a tool of the server's; or the
            text is blank where a text must not be.
        FormatError: ``text`` is to be the arguments of a call, and no JSON object.
    """
    if isinstance(raw, str):
        return filled(text, "text", "G2")
    if isinstance(part, ToolCall):
        return _with_arguments(raw, text)
    if isinstance(part, ToolResult):
        leaf = part.content[item]
        if isinstance(leaf, Opaque):
            raise cannot_edit(leaf.kind)
        body = _answering(get(raw, "functionResponse"), leaf.at, text)
        return with_field(raw, "functionResponse", body)
    if isinstance(part, Reasoning):
        raise cannot_edit("reasoning")
    return _with_text(raw, text)


def _with_arguments(raw: Any, text: str) -> Any:
    if get(raw, "thoughtSignature"):
        reason = "carries the signature of these very arguments (G8)"
        raise cannot_edit("functionCall", reason)
    call = with_field(get(raw, "functionCall"), "args", arguments_of(text))
    return with_field(raw, "functionCall", call)


def _with_text(raw: Any, text: str) -> Any:
    """A text or a medium that shows another text, without the signature of the old one."""
    kind = next((kind for kind in PARTS if get(raw, kind) is not None), "")
    if not kind or not PARTS[kind].edited:
        raise cannot_edit(kind or "part")
    filled(text, kind, "G2")
    is_dict = isinstance(raw, Mapping)
    if PARTS[kind].edited == "a text":
        part = {"text": text}
        if is_dict:
            return part
        return type(raw).model_validate(part)
    if get(raw, "thoughtSignature") is not None:
        raw = (
            unsigned(raw)
            if is_dict
            else with_field(raw, "thoughtSignature", None)
        )
    return with_field(raw, "text", text)


def _answering(body: Any, at: int, text: str) -> Any:
    """A functionResponse that shows ``text`` in its response, or in one of its parts.

    Parts hold no text but as a file of plain text, so that is what a picture becomes.
    """
    if at == WHOLE:
        return with_field(
            body, "response", _wrapped(get(body, "response"), text)
        )
    parts = list(get(body, "parts"))
    data = b64encode(text.encode("utf-8", "surrogatepass")).decode()
    blob: Any = {"inlineData": {"mimeType": _PLAIN, "data": data}}
    if not isinstance(parts[at], Mapping):
        blob = type(parts[at]).model_validate(blob)
    parts[at] = blob
    return with_field(body, "parts", parts)


def plain_text(blob: Media) -> str | None:
    """The text in a blob of plain text; None if it is another, or holds no UTF-8."""
    if blob.mime != _PLAIN:
        return None
    try:
        return b64decode(blob.data).decode()
    except ValueError:
        return None


def block_of(raw: Any, data: str, path: str) -> Any:
    """A blob's part as it stands on the wire, in containers of its own. Raises FormatError."""
    block = unsigned(raw)
    inline = get(block, "inlineData")
    if inline is not None:
        block = with_field(
            block, "inlineData", with_field(inline, "data", data)
        )
    return block_at(block, path)


def _wrapped(response: Any, text: str) -> Any:
    """``response`` with ``text`` for what the tool gave, so that it reads as ``text`` again.

    JSON in place of a list or an object goes back as one; anything else as a string.
    """
    wrapper, value = unwrapped(response)
    shown_value = _like(value, text)
    if wrapper is not None:
        return {wrapper: shown_value}
    if not isinstance(response, Mapping):
        return shown_value
    # An object that reads as a wrapper, or no object at all, would read as something else.
    if type(shown_value) is dict and unwrapped(shown_value)[0] is None:
        return shown_value
    return {"output": text}


def _like(value: Any, text: str) -> Any:
    """A text as a value of the same type, if it is JSON that is written back as this very text."""
    if not isinstance(value, (list, dict)) or text[:1] not in ("[", "{"):
        return text
    try:
        parsed = json.loads(text)
        is_same_text = type(parsed) is type(value) and _dumps(parsed) == text
    except (ValueError, RecursionError):
        return text
    if is_same_text:
        return parsed
    return text


def kind_of(mime: str) -> Literal["image", "audio", "document"]:
    """The kind that a blob is counted as. A video is counted by its size, as a document is."""
    if mime.startswith("image/"):
        return "image"
    if mime.startswith("audio/"):
        return "audio"
    return "document"


def clip_of(video: Any) -> tuple[float, float]:
    """The clip that Gemini's ``videoMetadata`` asks for.

    Returns:
        Its seconds, 0 for the whole video, and how many frames of each.
    """
    if video is None:
        return 0.0, 1.0
    start_s = _seconds(get(video, "startOffset"))
    end_s = _seconds(get(video, "endOffset"))
    frames_per_s = get(video, "fps")
    if not isinstance(frames_per_s, int | float) or frames_per_s <= 0:
        frames_per_s = 1
    frames_per_s = min(frames_per_s, _MOST_FRAMES_A_SECOND)
    return max(end_s - start_s, 0.0), float(frames_per_s)


def _seconds(duration: Any) -> float:
    """A duration as protobuf writes it, ``"12.5s"``; 0 if it is none."""
    match = _SECONDS.fullmatch(duration) if isinstance(duration, str) else None
    if match:
        return float(match[1])
    return 0.0

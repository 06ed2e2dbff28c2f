"""Fields of Gemini's two spellings: camelCase in REST bodies, snake_case in the SDK.

Names are given in camelCase here. A dict may use either spelling, also mixed; an object of
the SDK has the other one as attributes and is copied by its own ``model_copy``.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from ullage.errors import FormatError
from ullage.wires.base import as_json, check_object, get, snake

__all__ = [
    "check_wrapped",
    "is_built_in",
    "is_content",
    "is_sdk_call",
    "parts_of",
    "setting",
    "tool_list",
    "tool_text",
    "unsigned",
    "with_field",
]

_REST = ("systemInstruction", "generationConfig", "tools", "toolConfig", "safetySettings")


def with_field(value: Any, name: str, new: Any) -> Any:
    """A copy with one field set, in the spelling the field has there.

    A dict set on an object of the SDK becomes an object of that field's type.
    """
    if isinstance(value, Mapping):
        other = snake(name)
        return {**value, other if other in value and name not in value else name: new}
    if isinstance(new, Mapping):
        new = getattr(type(value).model_validate({snake(name): new}), snake(name))
    return value.model_copy(update={snake(name): new})


def unsigned(raw: Any) -> Any:
    """A part without its signature, as a dict in the spelling of the wire."""
    if isinstance(raw, Mapping):
        marks = ("thoughtSignature", "thought_signature")
        return {key: value for key, value in raw.items() if key not in marks}
    return unsigned(raw.model_dump(mode="json", exclude_none=True, by_alias=True))


def check_wrapped(contents: Sequence[Any]) -> None:
    """Raise FormatError if a call or a response stands among the contents and in none of them.

    google-genai joins such parts with those beside them, in an order of its own where dicts
    stand between: what is one step there would be several here.
    """
    for at, raw in enumerate(contents):
        if (type(raw) is dict and "role" in raw) or isinstance(raw, (str, list)) or is_content(raw):
            continue  # the first is almost always so, and quick
        if any(get(raw, name) is not None for name in ("functionCall", "functionResponse")):
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
    return (get(raw, "parts") or ()) if is_content(raw) else (raw,)


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
    """What a request says outside its contents: in the SDK's ``config``, or at its top.

    Raises:
        FormatError: the config is no object.
    """
    config = request.get("config")
    if config:
        check_object(config, "config")
    return get(config or request, name)


def tool_list(request: Mapping[str, Any]) -> Sequence[Any]:
    """The tools of a request as they stand there; one that stands alone is a list of one."""
    tools = setting(request, "tools") or ()
    return tools if isinstance(tools, (list, tuple)) else (tools,)


def is_built_in(tool: Any) -> bool:
    """Whether a tool is one of Google's own and declares no function."""
    return not inspect.isroutine(tool) and get(tool, "functionDeclarations") is None


def calls_functions(request: Mapping[str, Any]) -> bool:
    """Whether google-genai is to call functions of this request itself.

    It does for Python functions and MCP sessions, unless it is told not to, or a tool holds
    declarations (``find_afc_incompatible_tool_indexes`` there).
    """
    tools = tool_list(request)
    called = any(inspect.isroutine(tool) or hasattr(tool, "call_tool") for tool in tools)
    declared = any(get(tool, "functionDeclarations") for tool in tools)
    off = get(setting(request, "automaticFunctionCalling"), "disable")
    return called and not declared and not off


def tool_text(tool: Any, where: str) -> str:
    """A tool as JSON text. Of a function, what its declaration will be made from."""
    if inspect.isroutine(tool):
        return as_json([tool.__name__, str(inspect.signature(tool)), tool.__doc__], where)
    if isinstance(tool, Mapping):
        return as_json(tool, where)
    if hasattr(tool, "model_dump"):
        return as_json(tool.model_dump(mode="json", exclude_none=True, by_alias=True), where)
    return as_json({"type": type(tool).__name__}, where)

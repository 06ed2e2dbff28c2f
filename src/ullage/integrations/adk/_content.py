"""ADK's requests and results as ullage's, and the views back; the recall tools as ADK's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from google.adk.models.llm_request import LlmRequest
from google.adk.tools.base_tool import BaseTool
from google.genai import types

from ullage import AsyncView
from ullage.doors.host import Unfitted, field

__all__ = ["as_messages", "has_functions", "request_of", "show"]


class RecallTool(BaseTool):
    """One of ullage's recall tools, answered on the view that offered it, without a round trip."""

    def __init__(
        self, declaration: types.FunctionDeclaration, view: AsyncView
    ) -> None:
        super().__init__(
            name=declaration.name or "",
            description=declaration.description or "",
        )
        self._declaration = declaration
        self._view = view

    def _get_declaration(self) -> types.FunctionDeclaration:
        return self._declaration

    async def run_async(
        self, *, args: dict[str, Any], tool_context: Any
    ) -> dict[str, Any]:
        """What the call opens, or what is wrong with it."""
        answer = await self._view.recall({"name": self.name, "args": args})
        body = answer["functionResponse"]
        parts = [
            types.FunctionResponsePart.model_validate(part)
            for part in body.get("parts", ())
        ]
        return {**body["response"], **({"parts": parts} if parts else {})}


def request_of(request: LlmRequest) -> dict[str, Any]:
    """The keyword arguments that ADK would give to google-genai, as they are now.

    Args:
        request: ADK's request.
    """
    return {
        "model": request.model or "",
        "contents": list(request.contents),
        "config": request.config or types.GenerateContentConfig(),
    }


def has_functions(request: Mapping[str, Any]) -> bool:
    """Whether a request offers functions: only then may others stand beside them.

    Many models take no functions next to a built-in tool or an output schema.

    Args:
        request: what `request_of` made.
    """
    return any(_declared(tool) for tool in request["config"].tools or ())


def show(view: AsyncView | Unfitted, request: LlmRequest) -> None:
    """Make a request the view. What the request shares with ADK's events is not touched.

    The recall tools join the functions that are there: some backends take one tool only.

    Args:
        view: what fits; an `Unfitted` one changes nothing.
        request: ADK's request, which is changed.
    """
    if isinstance(view, Unfitted):
        return
    tools = view["config"].tools or ()
    agent_tools = [
        _without_ours(tool, view)
        for tool in tools
        if not isinstance(tool, Mapping)
    ] or None
    added = [
        declaration
        for tool in tools
        for declaration in _declared(tool)
        if _is_ours(declaration, view)
    ]
    request.contents = [
        raw
        if isinstance(raw, types.Content)
        else types.Content.model_validate(raw)
        for raw in view["contents"]
    ]
    request.config = view["config"].model_copy(update={"tools": agent_tools})
    offered: list[BaseTool] = [
        RecallTool(types.FunctionDeclaration.model_validate(declaration), view)
        for declaration in added
    ]
    for tool in offered:
        request.tools_dict.pop(tool.name, None)
    request.append_tools(offered)


def _declared(tool: Any) -> Sequence[Any]:
    camel = "functionDeclarations"
    snake = "function_declarations"
    return field(tool, camel) or field(tool, snake) or ()


def _is_ours(declaration: Any, view: AsyncView) -> bool:
    """Whether a function is a recall tool of the view: no other function has such a name."""
    return view.sent.offers and view.sent.words.is_recall(
        field(declaration, "name") or ""
    )


def _without_ours(tool: Any, view: AsyncView) -> Any:
    """A tool whose list of functions may be added to, without the recall tools."""
    declared = _declared(tool)
    if not declared:
        return tool
    agent_functions = [
        declaration
        for declaration in declared
        if not _is_ours(declaration, view)
    ]
    return tool.model_copy(update={"function_declarations": agent_functions})


def as_messages(
    tool: str, result: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A call and its result as messages of the wire.

    Args:
        tool: the tool's name.
        result: what it returned; anything but a dict stands under ``result``.
    """
    response = result if isinstance(result, dict) else {"result": result}
    call = {"functionCall": {"name": tool, "args": {}}}
    answer = {"functionResponse": {"name": tool, "response": response}}
    return {"role": "model", "parts": [call]}, {
        "role": "user",
        "parts": [answer],
    }

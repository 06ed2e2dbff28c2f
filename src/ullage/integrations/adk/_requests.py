"""An LlmRequest as a request of ullage, the view as an LlmRequest, and the recall tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.adk.models.llm_request import LlmRequest
from google.adk.tools.base_tool import BaseTool
from google.genai import types

from ullage.session.aio import AsyncSession
from ullage.wires.base import get

__all__ = ["RecallTool", "has_functions", "request_of", "show"]


class RecallTool(BaseTool):
    """One of ullage's recall tools, answered by a session without a round trip.

    Args:
        declaration: its name, description and parameters.
        session: the session whose requests offer it.
    """

    def __init__(self, declaration: types.FunctionDeclaration, session: AsyncSession) -> None:
        super().__init__(name=declaration.name or "", description=declaration.description or "")
        self._declaration = declaration
        self._session = session

    def _get_declaration(self) -> types.FunctionDeclaration:
        return self._declaration

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> dict[str, Any]:
        """What the call opens, or what is wrong with it."""
        given = await self._session.recall({"name": self.name, "args": args})
        body = given["functionResponse"]
        parts = [types.FunctionResponsePart.model_validate(part) for part in body.get("parts", ())]
        return {**body["response"], **({"parts": parts} if parts else {})}


def request_of(request: LlmRequest) -> dict[str, Any]:
    """The keyword arguments that ADK would give to google-genai, as they are now."""
    return {
        "model": request.model or "",
        "contents": list(request.contents),
        "config": request.config or types.GenerateContentConfig(),
    }


def has_functions(asked: Mapping[str, Any]) -> bool:
    """Whether a request offers functions: only then may others stand beside them.

    Many models take no functions next to a built-in tool or an output schema.
    """
    return any(get(tool, "functionDeclarations") for tool in asked["config"].tools or ())


def show(view: Mapping[str, Any], request: LlmRequest, session: AsyncSession) -> None:
    """Make a request the view. What the request shares with ADK's events is not touched.

    The recall tools join the functions that are there: some backends take one tool only.
    """
    tools = view["config"].tools or ()
    added = [tool for tool in tools if isinstance(tool, Mapping)]
    own = [_copy(tool) for tool in tools if not isinstance(tool, Mapping)]
    request.contents = [_content(raw) for raw in view["contents"]]
    request.config = view["config"].model_copy(update={"tools": own or None})
    offered: list[BaseTool] = [
        RecallTool(types.FunctionDeclaration.model_validate(raw), session)
        for tool in added
        for raw in tool["function_declarations"]
    ]
    for tool in offered:
        request.tools_dict.pop(tool.name, None)
    request.append_tools(offered)


def _content(raw: Any) -> types.Content:
    return raw if isinstance(raw, types.Content) else types.Content.model_validate(raw)


def _copy(tool: Any) -> Any:
    """A tool whose list of functions may be added to."""
    declared = getattr(tool, "function_declarations", None)
    if not declared:
        return tool
    return tool.model_copy(update={"function_declarations": list(declared)})

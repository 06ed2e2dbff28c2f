"""The middleware: what stands around each model call, and the recall tools as LangChain's own.

The messages of the state stay whole: what is sent is made of them at each call. The ledger is in
a private channel of the state, so it is kept, forked and rewound with the thread.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import ExtendedModelResponse, PrivateStateAttr
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.types import Command

from ullage.integrations._base import Entries, limits_of, wire_of
from ullage.integrations.langchain._messages import HOST
from ullage.recall.dispatch import Answer
from ullage.recall.tools import recall_tools
from ullage.session.sessions import AsyncSessions, Sessions
from ullage.stores import open_store
from ullage.values.effects import Record
from ullage.values.toolset import ToolSpec

__all__ = ["UllageMiddleware"]

_MODEL = "ullage:model"


def _merged(state: dict[str, str] | None, new: dict[str, str] | None) -> dict[str, str]:
    return {**(state or {}), **(new or {})}


class _State(AgentState[Any]):
    ullage: NotRequired[Annotated[dict[str, str], PrivateStateAttr, _merged]]  # type: ignore[valid-type]


class UllageMiddleware(AgentMiddleware[Any, Any, Any]):
    """Keeps the model calls of an agent within the window of its model.

    One object may serve many threads, and agents within agents. Put it last in the list, but for
    what marks messages for a prompt cache.

    Args:
        name: its name among the middleware; that of a built-in one takes that one's place in a
            Deep Agent (``"SummarizationMiddleware"``).
        store: see `ullage.Session`. Without one what is set aside is kept in memory; after a
            restart it is found again in the thread's messages.
        settings: of each session, such as ``policy``, ``limits`` and ``budget``; see
            `ullage.Sessions`.

    Raises:
        ConfigError: a setting is not known.
        StoreError: the store cannot be opened.
    """

    state_schema = _State

    def __init__(
        self, *, name: str = "UllageMiddleware", store: Any = None, **settings: Any
    ) -> None:
        super().__init__()
        self._name, self._entries = name, Entries()
        self._settings = {"format": HOST, "recall": "host", **settings}
        self.sessions = Sessions(store=open_store(store), **self._settings)
        self.tools = [self._tool(spec) for spec in recall_tools(settings.get("policy", "default"))]

    @cached_property
    def asessions(self) -> AsyncSessions:
        """The sessions of agents that are awaited; those of others are `sessions`."""
        return AsyncSessions(store=self.sessions.store, **self._settings)

    @property
    def name(self) -> str:
        """See `AgentMiddleware.name`."""
        return self._name

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> ExtendedModelResponse:
        """Call the model with a view that fits; once more where its provider calls it too long.

        Raises:
            FormatError, OverLimitError, StoreError, BudgetExceeded: see `ullage.Session.fit`.
        """
        asked, window = _request_of(request), _window_of(request.model)
        session, new = self._of(self.sessions, request.state, request.runtime, asked, window)
        session.take(new)
        reply = session.call(lambda **view: handler(_shown(request, asked, view)), **asked)
        return self._kept(reply, session, request.state, asked, window)

    async def awrap_model_call(
        self, request: Any, handler: Callable[[Any], Awaitable[Any]]
    ) -> ExtendedModelResponse:
        """See `wrap_model_call`."""
        asked, window = _request_of(request), _window_of(request.model)
        session, new = self._of(self.asessions, request.state, request.runtime, asked, window)
        await session.take(new)
        reply = await session.call(lambda **view: handler(_shown(request, asked, view)), **asked)
        return self._kept(reply, session, request.state, asked, window)

    def _of(
        self, sessions: Any, state: Any, runtime: Any, asked: Mapping[str, Any], window: int
    ) -> tuple[Any, list[Record]]:
        """The session of a conversation, and what the thread knows of it and the session does not.

        A conversation is that which begins with this message, in this thread.
        """
        info, messages = runtime.execution_info, state["messages"]
        thread = info.thread_id if info else None
        key = json.dumps([thread, messages[0].id if messages else None])
        limits = {} if "limits" in self._settings else limits_of(asked["model"], window)
        session = sessions.of(key, parent=thread and json.dumps([thread]), **limits)
        return session, self._entries.unknown(session, state.get("ullage") or {})

    def _kept(
        self, reply: Any, session: Any, state: Any, asked: Mapping[str, Any], window: int
    ) -> ExtendedModelResponse:
        """The reply, and what the thread is to keep of how it came about."""
        held = state.get("ullage") or {}
        new = self._entries.missing(session, held)
        model = json.dumps([asked["model"], window])
        if held.get(_MODEL) != model:
            new[_MODEL] = model
        return ExtendedModelResponse(reply, Command(update={"ullage": new}) if new else None)

    def _tool(self, spec: ToolSpec) -> StructuredTool:
        """A recall tool, as the agent runs it beside its own."""

        def run(runtime: ToolRuntime, **arguments: Any) -> ToolMessage:
            session, new, asked = self._answering(self.sessions, runtime)
            session.take(new)
            return _result(session.open(spec.name, arguments, request=asked), spec, runtime)

        async def arun(runtime: ToolRuntime, **arguments: Any) -> ToolMessage:
            session, new, asked = self._answering(self.asessions, runtime)
            await session.take(new)
            return _result(await session.open(spec.name, arguments, request=asked), spec, runtime)

        schema = dict(spec.parameters)
        return StructuredTool.from_function(
            run, arun, spec.name, spec.description, args_schema=schema
        )

    def _answering(self, sessions: Any, runtime: Any) -> tuple[Any, list[Record], dict[str, Any]]:
        """Whose call it is, and the request it came in answer to.

        After a restart a tool may be the first to run; all about that request is decided already.
        """
        messages = list(runtime.state["messages"])
        while messages and not isinstance(messages.pop(), AIMessage):
            pass
        model, window = json.loads((runtime.state.get("ullage") or {}).get(_MODEL, '["", 0]'))
        asked = {"model": model, "messages": messages}
        return *self._of(sessions, runtime.state, runtime, asked, window), asked


def _request_of(request: Any) -> dict[str, Any]:
    """What of a `ModelRequest` is sent, in the form of `HOST`."""
    model, asked_for = request.model, request.response_format
    schema = {"schema": getattr(asked_for, "schema", None)}
    asked = {
        "model": getattr(model, "model_name", None) or getattr(model, "model", None) or "",
        "system": request.system_message.text if request.system_message else None,
        "messages": list(request.messages),
        "tools": [_definition(tool) for tool in request.tools],
        "tool_choice": request.tool_choice,
        "response_format": {"json_schema": schema} if asked_for else None,
        "max_tokens": getattr(model, "max_tokens", None),
        "thinking": getattr(model, "thinking", None),
    }
    return {key: value for key, value in asked.items() if value is not None}


def _definition(tool: Any) -> dict[str, Any]:
    return tool if isinstance(tool, dict) else convert_to_openai_tool(tool)


def _shown(request: Any, asked: Mapping[str, Any], view: Mapping[str, Any]) -> Any:
    """The request with the view in it."""
    if view.get("tool_choice") == asked.get("tool_choice"):
        return request.override(messages=view["messages"])
    is_claude = wire_of(asked) == "anthropic"  # whose class takes a bare word for a tool's name
    choice = {"type": "none"} if is_claude else "none"
    return request.override(messages=view["messages"], tool_choice=choice)


def _window_of(model: Any) -> int:
    """The window a model's profile tells, 0 if there is none."""
    profile = getattr(model, "profile", None) or {}
    return int(profile.get("max_input_tokens") or 0)


def _result(answer: Answer, spec: ToolSpec, runtime: Any) -> ToolMessage:
    return ToolMessage(
        answer.text if answer.block is None else [answer.block],
        name=spec.name,
        tool_call_id=runtime.tool_call_id,
        status="error" if answer.is_error else "success",
    )

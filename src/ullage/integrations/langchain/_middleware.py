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
from langchain.agents.middleware.types import (
    ExtendedModelResponse,
    PrivateStateAttr,
)
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.types import Command

from ullage import Answer, ToolSpec
from ullage.integrations._base import wire_of, with_bytes
from ullage.integrations._offered import OfferedTool
from ullage.integrations._sessions import (
    Adapter,
    AsyncHostSessions,
    HostSessions,
    answered_request,
    forbids,
    without_none,
)
from ullage.integrations.langchain._messages import HOST

__all__ = ["UllageMiddleware"]


def _merged(
    state: dict[str, Any] | None, update: dict[str, Any] | None
) -> dict[str, Any]:
    return {**(state or {}), **(update or {})}


class _State(AgentState[Any]):
    ullage: NotRequired[Annotated[dict[str, Any], PrivateStateAttr, _merged]]  # type: ignore[valid-type]


class UllageMiddleware(Adapter, AgentMiddleware[Any, Any, Any]):
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
        self,
        *,
        name: str = "UllageMiddleware",
        store: Any = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        self._name = name
        self._settings = settings
        self.sessions = HostSessions(HOST, store=store, **settings)
        self.tools = [self._tool(offered) for offered in self.sessions.offered]

    @cached_property
    def asessions(self) -> AsyncHostSessions:
        """The sessions of agents that are awaited; those of others are `sessions`."""
        return AsyncHostSessions(
            HOST, store=self.sessions.store, **self._settings
        )

    @property
    def name(self) -> str:
        """See `AgentMiddleware.name`."""
        return self._name

    def wrap_model_call(
        self, request: Any, handler: Callable[[Any], Any]
    ) -> ExtendedModelResponse:
        """Call the model with a view that fits; once more where its provider calls it too long.

        Raises:
            FormatError, OverLimitError, StoreError, BudgetExceeded: see `ullage.Session.fit`.
        """
        request, host_request = self._offering(request)
        stored = _held(request.state)
        session = self.sessions.opened(
            **_place(request), stored=stored, **_model_of(request.model)
        )
        reply = session.call(
            lambda **view: handler(_shown(request, host_request, view)),
            **host_request,
        )
        return _kept(reply, self.sessions.missing(session, stored))

    async def awrap_model_call(
        self, request: Any, handler: Callable[[Any], Awaitable[Any]]
    ) -> ExtendedModelResponse:
        """See `wrap_model_call`."""
        request, host_request = self._offering(request)
        stored = _held(request.state)
        model_settings = _model_of(request.model)
        session = await self.asessions.opened(
            **_place(request), stored=stored, **model_settings
        )
        reply = await session.call(
            lambda **view: handler(_shown(request, host_request, view)),
            **host_request,
        )
        return _kept(reply, self.asessions.missing(session, stored))

    def _offering(self, request: Any) -> tuple[Any, dict[str, Any]]:
        """A request with the recall tools under names that no tool of the user's has.

        Returns:
            The request, and what of it is sent, in the form of `HOST`.
        """
        tools, definitions = self.sessions.shown(request.tools, _definition)
        request = request.override(tools=tools)
        return request, _request_of(request, definitions)

    def _tool(self, offered: OfferedTool) -> StructuredTool:
        """A recall tool, as the agent runs it beside its own."""
        spec = offered.spec

        def run(runtime: ToolRuntime, **arguments: Any) -> ToolMessage:
            session = self.sessions.opened(
                **_place(runtime), stored=_held(runtime.state)
            )
            request = answered_request(
                session, runtime.state["messages"], _is_reply
            )
            return _result(
                session.answer(offered.asked, arguments, request=request),
                spec,
                runtime,
            )

        async def arun(runtime: ToolRuntime, **arguments: Any) -> ToolMessage:
            session = await self.asessions.opened(
                **_place(runtime), stored=_held(runtime.state)
            )
            request = answered_request(
                session, runtime.state["messages"], _is_reply
            )
            return _result(
                await session.answer(
                    offered.asked, arguments, request=request
                ),
                spec,
                runtime,
            )

        schema = dict(spec.parameters)
        return StructuredTool.from_function(
            run, arun, spec.name, spec.description, args_schema=schema
        )


def _held(state: Any) -> dict[str, Any]:
    """What the thread keeps of ours."""
    return state.get("ullage") or {}


def _place(source: Any) -> dict[str, Any]:
    """Whose conversation it is: that which begins with this message, in this thread.

    Args:
        source: a request, or the runtime of a tool.
    """
    info = getattr(source, "runtime", source).execution_info
    messages = source.state["messages"]
    thread = info.thread_id if info else None
    key = json.dumps([thread, messages[0].id if messages else None])
    return {"key": key, "parent": thread and json.dumps([thread])}


def _is_reply(message: Any) -> bool:
    return isinstance(message, AIMessage)


def _model_of(model: Any) -> dict[str, Any]:
    """A model's name, and the window its profile tells, 0 if there is none."""
    name = (
        getattr(model, "model_name", None)
        or getattr(model, "model", None)
        or ""
    )
    profile = getattr(model, "profile", None) or {}
    return {
        "model": name,
        "window_tokens": int(profile.get("max_input_tokens") or 0),
    }


def _kept(reply: Any, entries: dict[str, Any]) -> ExtendedModelResponse:
    """The reply, and what the thread is to keep of how it came about."""
    return ExtendedModelResponse(
        reply, Command(update={"ullage": entries}) if entries else None
    )


def _request_of(request: Any, tools: list[dict[str, Any]]) -> dict[str, Any]:
    """What of a `ModelRequest` is sent, in the form of `HOST`, with these definitions."""
    model = request.model
    asked_for = request.response_format
    schema = {"schema": getattr(asked_for, "schema", None)}
    return without_none(
        model=_model_of(model)["model"],
        system=request.system_message.text if request.system_message else None,
        messages=list(request.messages),
        tools=tools,
        tool_choice=request.tool_choice,
        response_format={"json_schema": schema} if asked_for else None,
        max_tokens=getattr(model, "max_tokens", None),
        thinking=getattr(model, "thinking", None),
    )


def _definition(tool: Any) -> dict[str, Any]:
    return tool if isinstance(tool, dict) else convert_to_openai_tool(tool)


def _shown(
    request: Any, host_request: Mapping[str, Any], view: Mapping[str, Any]
) -> Any:
    """The request with the view in it."""
    if not forbids(view, host_request):
        return request.override(messages=view["messages"])
    # The class for Claude takes a bare word for a tool's name.
    is_claude = wire_of(host_request) == "anthropic"
    choice = {"type": "none"} if is_claude else "none"
    return request.override(messages=view["messages"], tool_choice=choice)


def _result(answer: Answer, spec: ToolSpec, runtime: Any) -> ToolMessage:
    return ToolMessage(
        answer.text if answer.block is None else [with_bytes(answer.block)],
        name=spec.name,
        tool_call_id=runtime.tool_call_id,
        status="error" if answer.is_error else "success",
    )

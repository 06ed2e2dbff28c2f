"""The plugin: what stands around each model call, and the recall tools as Strands' own.

``agent.messages`` stays whole: what is sent is made of it at each call. The ledger is in the
agent's state, so a session manager keeps and restores it with the messages.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

from strands.middleware import InvokeModelStage
from strands.plugins import Plugin
from strands.tools.tools import PythonAgentTool
from strands.types.session import decode_bytes_values

from ullage.integrations._offered import OfferedTool
from ullage.integrations._sessions import (
    Adapter,
    AsyncHostSessions,
    answered_request,
    without_none,
)
from ullage.integrations.strands._messages import HOST

__all__ = ["UllageStrandsPlugin"]

_STATE = "ullage"
_KEY = "conversation"


class _RecallTool(PythonAgentTool):
    """A recall tool among those of an agent."""


class _Registry(dict[str, Any]):
    """The tools of an agent. Strands takes no name twice: a recall tool keeps nobody from its."""

    def __contains__(self, name: object) -> bool:
        tool = self.get(str(name))
        return tool is not None and not isinstance(tool, _RecallTool)


class UllageStrandsPlugin(Adapter, Plugin):
    """Keeps the model calls of agents within the windows of their models.

    One object may serve any number of agents; a ref of one opens in no other.

    Args:
        store: see `ullage.AsyncSession`. Without one what is set aside is kept in memory; after a
            restart it is found again in the agent's messages.
        settings: of each session, such as ``policy``, ``limits`` and ``budget``; see
            `ullage.Sessions`.

    Attributes:
        sessions: the sessions, one for each agent.

    Raises:
        ConfigError: a setting is not known.
        StoreError: the store cannot be opened.
    """

    def __init__(self, *, store: Any = None, **settings: Any) -> None:
        super().__init__()
        self.sessions = AsyncHostSessions(HOST, store=store, **settings)

    @property
    def name(self) -> str:
        """See `Plugin.name`."""
        return "ullage"

    def init_agent(self, agent: Any) -> None:
        """See `Plugin.init_agent`: stand around its model calls, and give it the recall tools."""
        agent.add_middleware(InvokeModelStage, self._call)
        registry = agent.tool_registry
        registry.registry = _Registry(registry.registry)
        names = {name.replace("-", "_") for name in registry.registry}
        for offered in self.sessions.offered:
            if offered.spec.name not in names:
                registry.register_tool(self._tool(offered))

    def _tool(self, offered: OfferedTool) -> _RecallTool:
        """A recall tool, as Strands runs it."""
        spec = offered.spec
        definition = {
            "name": spec.name,
            "description": spec.description,
            "inputSchema": {"json": dict(spec.parameters)},
        }
        run = partial(self._recall, offered.asked)
        return _RecallTool(spec.name, definition, run)

    async def _call(self, context: Any, next_fn: Any) -> AsyncIterator[Any]:
        """Call the model with a view that fits; once more where its provider calls it too long."""
        agent = context.agent
        stored = _held(context.agent)
        session = await self.sessions.opened(
            stored[_KEY], stored, **_model_of(context.model)
        )

        tool_specs, definitions = self.sessions.shown(
            context.tool_specs, _definition
        )

        def create(**view: Any) -> Any:
            shown = {"messages": view["messages"], "tool_specs": tool_specs}
            return next_fn(context.replace(**shown))

        request = _request_of(context, definitions)
        async with aclosing(await session.call(create, **request)) as events:
            async for event in events:
                yield event
        if entries := self.sessions.missing(session, stored):
            agent.state.set(_STATE, {**stored, **entries})

    async def _recall(
        self, asked: str, call: Mapping[str, Any], *, agent: Any, **_: Any
    ) -> dict[str, Any]:
        """A recall tool. After a restart it may be the first to run.

        The agent is among what every tool is given of its invocation.
        """
        stored = _held(agent)
        session = await self.sessions.opened(stored[_KEY], stored)
        request = answered_request(
            session,
            agent.messages,
            lambda message: message["role"] == "assistant",
        )
        answer = await session.answer(
            asked, call["input"], call["toolUseId"], request=request
        )
        status = "error" if answer.is_error else "success"
        content = [decode_bytes_values(answer.block or {"text": answer.text})]
        return {
            "toolUseId": call["toolUseId"],
            "status": status,
            "content": content,
        }


def _held(agent: Any) -> dict[str, Any]:
    """What the agent's state keeps of ours; which conversation it is, first of all."""
    stored = agent.state.get(_STATE)
    if not isinstance(stored, dict) or not isinstance(stored.get(_KEY), str):
        stored = {_KEY: uuid.uuid4().hex}
        agent.state.set(_STATE, stored)
    return stored


def _model_of(model: Any) -> dict[str, Any]:
    """A model's name, and its window as it was configured, 0 if it was not."""
    name = _settings(model).get("model_id") or ""
    return {"model": name, "window_tokens": model.context_window_limit or 0}


def _settings(model: Any) -> Mapping[str, Any]:
    return model.get_config() or {}


def _request_of(
    context: Any, definitions: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """What of a call is sent, in the form of `HOST`, with these definitions of its tools."""
    settings = _settings(context.model)
    prompt = context.system_prompt
    if isinstance(prompt, list):
        prompt = "\n".join(
            block["text"] for block in prompt if "text" in block
        )
    return without_none(
        model=settings.get("model_id"),
        system=prompt,
        messages=context.messages,
        tools=[*definitions] or None,
        tool_choice=_choice(context.tool_choice),
        max_tokens=settings.get("max_tokens"),
        thinking=(settings.get("params") or {}).get("thinking"),
    )


def _definition(spec: Mapping[str, Any]) -> dict[str, Any]:
    schema = spec["inputSchema"]["json"]
    return {
        "name": spec["name"],
        "description": spec["description"],
        "input_schema": schema,
    }


def _choice(choice: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A choice as Messages has it: Strands' has one key, its kind."""
    return next(
        ({"type": kind, **named} for kind, named in (choice or {}).items()),
        None,
    )

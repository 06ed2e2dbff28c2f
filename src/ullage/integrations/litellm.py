"""LiteLLM: a callback that makes requests fit, wherever in an application they are made.

    ullage = UllageCallback(store="sqlite")
    litellm.callbacks.append(ullage)
    asked = {"model": model, "messages": messages, "tools": [*mine, *ullage.tools]}
    reply = await litellm.acompletion(**asked, metadata={"session_id": "incident-7"})

LiteLLM's proxy loads one by its name in ``config.yaml``, made of the environment's settings:

    litellm_settings: {callbacks: ullage.integrations.litellm.callback}

Needs the extra ``litellm``. Who makes the calls in one place needs no callback:
``await session.call(litellm.acompletion, **asked)`` also sends once more what was too long.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any
from uuid import uuid4
from weakref import finalize

from ullage import AsyncSession
from ullage.doors.host import AsyncClosing, field
from ullage.integrations._needs import needs
from ullage.integrations._sessions import (
    Adapter,
    AsyncHostSessions,
    PendingCalls,
)

with needs("litellm"):
    from litellm.integrations.custom_logger import CustomLogger

__all__ = ["UllageCallback"]

_CHAT = "acompletion"
_SENT = (
    *("model", "messages", "tools", "tool_choice", "response_format"),
    *("max_tokens", "max_completion_tokens"),
)
"""What of a call stands in the request: what else there is takes no room, or is no one's but
LiteLLM's."""


class UllageCallback(Adapter, CustomLogger, AsyncClosing):  # type: ignore[misc]  # of an environment apart
    """Makes the requests of ``litellm.acompletion`` fit: of an application, a router, the proxy.

    A call belongs to the conversation that its ``metadata`` names as ``session_id``, or its
    ``litellm_session_id``; a call that names none goes as it is.

    Args:
        store: see `ullage.AsyncSession`. One on disk lets a conversation go on after a restart.
        settings: of each session, such as ``policy``, ``limits`` and ``budget``; see
            `ullage.Sessions`.

    Attributes:
        tools: the recall tools, for ``tools`` of a call. A conversation whose first call does not
            list them is offered none, and the default cuts only what its limit asks for.
        sessions: the sessions, by conversation.
        id: what LiteLLM tells it from another by. It tells of streams only one of two callbacks
            of a class whose public texts and numbers are equal.

    Raises:
        ConfigError: a setting is not known.
        StoreError: the store cannot be opened.
    """

    def __init__(self, *, store: Any = None, **settings: Any) -> None:
        super().__init__()
        self.sessions = AsyncHostSessions(
            "openai-chat", store=store, **settings
        )
        self._calls = PendingCalls()
        self.id = uuid4().hex
        self._offered = {
            offered.spec.name: offered for offered in self.sessions.offered
        }
        self._taken: set[str] = set()
        self.tools: list[dict[str, Any]] = [
            self.sessions.definition(offered)
            for offered in self.sessions.free(())
        ]

    def owns(self, call: Any, tools: Iterable[Any] | None = None) -> bool:
        """Whether a tool call is one for `open`, and none of a tool of the caller's.

        Args:
            call: a tool call, as the reply has it.
            tools: those of the call that it came in reply to, yours and ours. None: those of the
                newest call, of whichever conversation. They matter where one of yours has a name
                of ours: then ours is called ``ullage_…``.
        """
        taken = self._taken if tools is None else self._names_beside(tools)
        name = _name_of(call)
        return name in self._offered and name not in taken

    def _names_beside(self, tools: Iterable[Any]) -> set[str]:
        """The names of the caller's own tools."""
        return {_name_of(tool) for tool in tools if not self._is_ours(tool)}

    def _is_ours(self, tool: Any) -> bool:
        """Whether a definition is one of ours, also as an earlier version made it."""
        offered = self._offered.get(_name_of(tool))
        if offered is None:
            return False
        parameters = field(field(tool, "function"), "parameters")
        names = {*(field(parameters, "properties") or ())}
        our_names = [*offered.spec.parameters["properties"]]
        return our_names[0] in names and names.issubset(our_names)

    def _shown(self, tools: Sequence[Any]) -> list[Any]:
        """The tools of a call, ours among them, with ours under names that nobody else has."""
        self._taken = self._names_beside(tools)
        free = self.sessions.free(self._taken)
        if free and not free[0].prefix:
            return [*tools]
        agent_tools = [tool for tool in tools if not self._is_ours(tool)]
        return [*agent_tools, *map(self.sessions.definition, free)]

    async def open(
        self, conversation: str, call: Any, messages: Any = ()
    ) -> dict[str, Any]:
        """The message that answers a call of a recall tool.

        Args:
            conversation: the ``session_id`` of the calls.
            call: the tool call, as the reply has it.
            messages: of the conversation before that reply. After a restart they may be all
                there is to read in.

        Raises:
            StoreError: what was set aside cannot be read.
        """
        session = self._session([None, conversation])
        request = {"messages": list(messages)}
        call_id = str(field(call, "id"))
        arguments = field(field(call, "function"), "arguments")
        offered = self._offered.get(_name_of(call))
        name = _name_of(call) if offered is None else offered.asked
        answer = await session.answer(
            name, arguments, call_id, request=request
        )
        return {
            "role": "tool",
            "tool_call_id": call_id,
            "content": answer.text,
        }

    async def close(self) -> None:
        """Let go of all conversations, and close the store."""
        await self.sessions.close()

    async def async_pre_call_deployment_hook(
        self, kwargs: Mapping[str, Any], call_type: Any
    ) -> dict[str, Any] | None:
        """See `CustomLogger`: before each attempt, when it is known which model serves it.

        Raises:
            FormatError, OverLimitError, StoreError, BudgetExceeded: see `ullage.Session.fit`.
        """
        key = _key(kwargs)
        if (
            getattr(call_type, "value", "") != _CHAT
            or key is None
            or "messages" not in kwargs
        ):
            return None
        request = {
            name: kwargs[name]
            for name in _SENT
            if kwargs.get(name) is not None
        }
        offered = any(map(self._is_ours, request.get("tools", ())))
        if offered:
            request["tools"] = self._shown(request["tools"])
        session = self._session(key, **({} if offered else {"recall": False}))
        place = kwargs["litellm_call_id"]
        view = await self._calls.begin(place, session, request)
        # a stream that is broken off is told to nobody
        finalize(kwargs["litellm_logging_obj"], self._calls.leave, place)
        return {**kwargs, **view}

    async def async_post_call_success_deployment_hook(
        self, request_data: Mapping[str, Any], response: Any, call_type: Any
    ) -> None:
        """See `CustomLogger`: at once behind a call that is not streamed."""
        await self._calls.observe(
            request_data.get("litellm_call_id"), response
        )

    async def async_log_success_event(
        self,
        kwargs: Mapping[str, Any],
        response_obj: Any,
        start_time: Any,
        end_time: Any,
    ) -> None:
        """See `CustomLogger`: a stream, when all of it came."""
        await self._calls.observe(kwargs.get("litellm_call_id"), response_obj)

    async def async_post_call_failure_deployment_hook(
        self,
        request_data: Mapping[str, Any],
        exception: Exception,
        call_type: Any,
        fallback_depth: int | None = None,
    ) -> None:
        """See `CustomLogger`. What was too long is cut deeper by the next attempt, whoever's."""
        place = request_data.get("litellm_call_id")
        self._calls.may_retry(place, exception)
        self._calls.leave(place)

    def _session(self, key: list[Any], **settings: Any) -> AsyncSession:
        return self.sessions.of(json.dumps(key), **settings)


def _name_of(tool: Any) -> str:
    """The name in a definition, or in a call."""
    return str(field(field(tool, "function"), "name") or "")


def _key(kwargs: Mapping[str, Any]) -> list[Any] | None:
    """Whose conversation a call belongs to, and which; behind the proxy each key has its own."""
    metadata: dict[str, Any] = {}
    for name in ("litellm_metadata", "metadata"):
        metadata |= kwargs.get(name) or {}
    conversation = metadata.get("session_id") or kwargs.get(
        "litellm_session_id"
    )
    return (
        [metadata.get("user_api_key"), str(conversation)]
        if conversation
        else None
    )


_SETTINGS = {
    "store": "ULLAGE_STORE",
    "blobs": "ULLAGE_BLOBS",
    "cache": "ULLAGE_CACHE",
    "policy": "ULLAGE_LITELLM_POLICY",
}
"""What the environment says of the callback that LiteLLM's proxy loads."""


@cache
def _of_environment() -> UllageCallback:
    """The callback of this process's environment; where it names no store, in the usual place."""
    settings = {
        name: os.environ[variable]
        for name, variable in _SETTINGS.items()
        if os.environ.get(variable)
    }
    return UllageCallback(**{"store": "sqlite", **settings})


def __getattr__(name: str) -> Any:
    """Make ``callback`` when LiteLLM's proxy asks for it, and not before."""
    if name == "callback":
        return _of_environment()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

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
from collections.abc import Mapping
from functools import cache
from typing import Any
from uuid import uuid4
from weakref import finalize

from ullage import AsyncSession
from ullage.doors.host import AsyncClosing, Portable, field
from ullage.integrations._needs import needs
from ullage.integrations._sessions import AsyncHostSessions, PendingCalls

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


class UllageCallback(Portable, CustomLogger, AsyncClosing):  # type: ignore[misc]  # of an environment apart
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
        self._calls, self.id = PendingCalls(), uuid4().hex
        self._names = {spec.name for spec in self.sessions.tools}
        self.tools: list[dict[str, Any]] = [
            {
                "type": "function",
                "function": {
                    "name": spec.name,
                    "description": spec.description,
                    "parameters": dict(spec.parameters),
                },
            }
            for spec in self.sessions.tools
        ]

    def owns(self, call: Any) -> bool:
        """Whether a tool call is one for `open`, and none of a tool of the caller's.

        Args:
            call: a tool call, as the reply has it.
        """
        return field(field(call, "function"), "name") in self._names

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
        function, call_id = field(call, "function"), str(field(call, "id"))
        name, arguments = (
            str(field(function, "name")),
            field(function, "arguments"),
        )
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
        offered = any(map(self.owns, request.get("tools", ())))
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

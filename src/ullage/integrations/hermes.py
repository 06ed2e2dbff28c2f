"""Hermes: a context engine that makes its conversations fit, and opens what left them.

    context: {engine: ullage}        # Hermes's config.yaml
    plugins: {enabled: [ullage]}

Needs the extra ``hermes``, in the environment that Hermes runs in. Where Hermes asks its engine
for the context of each request (`select_context`), its history stays whole and the window is a
view of it. Hermes 0.19 asks once its threshold is reached, and goes on with what it is given;
what left is opened by the recall tools anyway.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from ullage import Limits, Session, Usage
from ullage.core.errors import ConfigError, UllageError
from ullage.doors.host import field
from ullage.integrations._needs import needs
from ullage.integrations._sessions import HostSessions

with needs("hermes"):
    from agent.context_engine import ContextEngine
    from tools.registry import registry

__all__ = ["UllageEngine", "register"]

_TARGET_SHARE = 0.6
"""A compacted history takes so much of the room below the threshold: the next has room to grow."""
_LEAST_WINDOW_TOKENS = 8_000


class UllageEngine(ContextEngine):  # type: ignore[misc]  # of an environment apart
    """Keeps the conversations of Hermes within the window; see `agent.context_engine`.

    One engine may serve many sessions and threads. A copy shares the store, and has token counts
    of its own.

    Args:
        store: see `ullage.Session`. None: what ``ULLAGE_STORE`` names, else the platform's place
            for it. One on disk opens what left a conversation after Hermes was restarted.
        policy: see `ullage.Session`.
        threshold_percent: the share of the window at which Hermes has its history compacted.
        settings: of each session, such as ``redact``; see `ullage.Sessions`.

    Attributes:
        sessions: the sessions, by conversation.

    Raises:
        ConfigError: a setting is not known, or the share is not between 0 and 1.
        StoreError: the store cannot be opened.
    """

    def __init__(
        self,
        *,
        store: Any = None,
        policy: Any = "default",
        threshold_percent: float = 0.75,
        **settings: Any,
    ) -> None:
        if not 0 < threshold_percent < 1:
            raise ConfigError(
                "threshold_percent",
                f"{threshold_percent} is no share",
                "Give more than 0 and less than 1.",
            )
        store = store or os.environ.get("ULLAGE_STORE") or "sqlite"
        self.sessions = HostSessions(
            "openai-chat", store=store, policy=policy, **settings
        )
        self.threshold_percent = threshold_percent
        self._begin()

    def _begin(self) -> None:
        self._model = ""
        self._session_id = ""
        self._root = ""
        self._view: Any = None
        self._shown = self.sessions.free(())
        self.context_length = self.threshold_tokens = 0
        self.on_session_reset()

    def __deepcopy__(self, memo: Any) -> UllageEngine:
        """An engine for another agent: the same store and settings, its own counts."""
        twin = object.__new__(type(self))
        twin.sessions = self.sessions
        twin.threshold_percent = self.threshold_percent
        twin._begin()
        return twin

    @property
    def name(self) -> str:
        """What ``context.engine`` names."""
        return "ullage"

    @property
    def saved(self) -> Any:
        """What all requests came to, and would have come to without ullage.

        See `ullage.Sessions.saved`.
        """
        return self.sessions.saved

    # ── sessions ─────────────────────────────────────────────────────────────────────

    def on_session_start(self, session_id: str, **kwargs: Any) -> None:
        """Begin a conversation, or go on with one that Hermes gave a new id."""
        is_new_id = kwargs.get("boundary_reason") == "compression"
        earlier = str(kwargs.get("old_session_id") or "")
        goes_on = is_new_id and earlier in (self._session_id, self._root)
        self._session_id = str(session_id)
        # what left a conversation opens under its first id
        if not goes_on:
            self._root = str(kwargs.get("conversation_id") or session_id)
        self._model = str(kwargs.get("model") or self._model)
        self._view = None

    def on_session_end(self, session_id: str, messages: Any) -> None:
        """Let go of a conversation; what left it stays in the store."""
        self.sessions.drop(self._root or str(session_id))
        self._view = None

    def on_session_reset(self) -> None:
        """Forget the counts of the last conversation."""
        super().on_session_reset()
        self._view = None

    def update_model(
        self, model: str, context_length: int, *args: Any, **kwargs: Any
    ) -> None:
        """Fit for another model from now on."""
        self._model = str(model)
        self.context_length = int(context_length)
        self.threshold_tokens = int(context_length * self.threshold_percent)

    def update_from_response(self, usage: Mapping[str, Any]) -> None:
        """Take in what a response reported."""
        prompt = _count(usage, "prompt_tokens")
        output = _count(usage, "completion_tokens")
        self.last_prompt_tokens = prompt
        self.last_completion_tokens = output
        self.last_total_tokens = _count(usage, "total_tokens")
        view = self._view
        self._view = None
        if view is None or not prompt:
            return
        cached = _count(usage, "cache_read_tokens")
        written = _count(usage, "cache_write_tokens")
        fresh = max(prompt - cached - written, 0)
        view.observe(
            Usage(
                fresh_tokens=fresh,
                cache_read_tokens=cached,
                cache_write_tokens=written,
                output_tokens=output,
            )
        )

    # ── the window ───────────────────────────────────────────────────────────────────

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Whether the history is to be compacted: not where each request is selected."""
        if _selects():
            return False
        tokens = (
            self.last_prompt_tokens if prompt_tokens is None else prompt_tokens
        )
        return 0 < self.threshold_tokens <= tokens

    def compress(
        self,
        messages: list[dict[str, Any]],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
        force: bool = False,
        memory_context: str = "",
    ) -> list[dict[str, Any]]:
        """Compact a history: what leaves it is kept, and a notice names what opens it.

        Args:
            messages: the history; it is not changed.
            current_tokens: what the request takes with its head and tools, as Hermes counts it.
            focus_topic: nothing is done with it: no model writes what is shown.
            force: whether the user asked for it.
            memory_context: nothing is done with it; Hermes keeps it.

        Returns:
            The history to go on with; the same list where nothing can leave it.
        """
        if not messages:
            return messages
        # what it goes on with is a history of its own, in a room of its own
        key = f"{self._root}\0{uuid4().hex}"
        limits = self._limits_for(messages, current_tokens)
        session = self._session(key, limits)
        request = self._request_of(messages)
        try:
            view = session.fit(request)
            if force and view["messages"] == messages:
                session.compact(request)
                view = session.fit(request)
        except UllageError:
            return messages  # Hermes says that nothing was gained
        finally:
            session.release()
            self.sessions.drop(key)
        self.compression_count += 1
        return list(view["messages"])

    def _limits_for(
        self, messages: Sequence[Any], current_tokens: int | None
    ) -> Limits:
        """The room of a compacted history: below the threshold, beside the head and the tools."""
        window = max(self.context_length, _LEAST_WINDOW_TOKENS)
        threshold = self.threshold_tokens or int(
            window * self.threshold_percent
        )
        chars = sum(
            len(json.dumps(message, default=str)) for message in messages
        )
        head = max((current_tokens or 0) - chars // 4, 0)
        room = int((threshold - min(head, threshold // 2)) * _TARGET_SHARE)
        return Limits(window_tokens=max(room, 1_000), output_reserve_tokens=0)

    def select_context(
        self,
        request_messages: list[dict[str, Any]],
        *,
        conversation_messages: Any = None,
        incoming_message: Any = None,
        budget_tokens: int = 0,
    ) -> list[dict[str, Any]] | None:
        """The messages of one request: a view of the whole history, which Hermes keeps.

        Args:
            request_messages: as they would be sent; not changed.
            conversation_messages: not read.
            incoming_message: not read.
            budget_tokens: the model's window, 0 where Hermes does not know it.

        Returns:
            The messages to send; None: send them as they are.
        """
        window = budget_tokens or self.context_length
        limits = Limits(window_tokens=window) if window else None
        session = self._session(self._root, limits)
        request = self._request_of(request_messages)
        try:
            self._view = session.fit(request)
        except UllageError:
            return None
        session.release()
        return list(self._view["messages"])

    def _session(self, key: str, limits: Limits | None) -> Session:
        """The session of a conversation; without recall where Hermes shows none of its tools."""
        without: dict[str, Any] = {} if self._shown else {"recall": False}
        return self.sessions.of(
            key,
            tenant=self._root,
            model=self._model,
            limits=limits,
            **without,
        )

    def _request_of(self, messages: Any) -> dict[str, Any]:
        """A request of these messages, with the recall tools as Hermes shows them."""
        tools = [self.sessions.definition(tool) for tool in self._shown]
        return {"model": self._model, "messages": messages, "tools": tools}

    # ── recall ───────────────────────────────────────────────────────────────────────

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """The recall tools, under names that no other tool of Hermes has: it leaves out the later.

        Hermes asks when it makes an agent, and whenever its tools change.
        """
        names = [tool.spec.name for tool in self.sessions.offered]
        taken = {name for name in names if registry.get_entry(name)}
        self._shown = self.sessions.free(taken)
        specs = [tool.spec for tool in self._shown]
        return [
            {
                "name": spec.name,
                "description": spec.description,
                "parameters": dict(spec.parameters),
            }
            for spec in specs
        ]

    def handle_tool_call(
        self, name: str, args: Mapping[str, Any], **kwargs: Any
    ) -> str:
        """Answer a call of a recall tool, as JSON: Hermes reads no other text."""
        asked = {tool.spec.name: tool.asked for tool in self.sessions.offered}
        if name not in asked:
            return json.dumps({"error": f"ullage has no tool {name}"})
        session = self.sessions.of(
            self._root, tenant=self._root, model=self._model
        )
        messages = list(kwargs.get("messages") or ())
        request = {"model": self._model, "messages": messages}
        try:
            answer = session.answer(asked[name], args, request=request)
        except UllageError as error:
            return json.dumps({"error": str(error)})
        return json.dumps(
            {"error" if answer.is_error else "result": answer.text},
            ensure_ascii=False,
        )


def _selects() -> bool:
    """Whether this Hermes asks its engine for the context of each request."""
    return hasattr(ContextEngine, "select_context")


def _count(usage: Mapping[str, Any], name: str) -> int:
    """A number of tokens that a response reported; 0 where it is none."""
    value = field(usage, name)
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return max(value, 0) if is_count else 0


def register(ctx: Any) -> None:
    """What Hermes calls once the plugin is enabled (entry point ``hermes_agent.plugins``).

    Args:
        ctx: the plugin's context.
    """
    ctx.register_context_engine(UllageEngine())

"""Ollama's own chat: one message with one text, whatever the number of rounds.

So the texts of two rounds are parted by an empty line, where no white space parts them. A stream is
lines of JSON: each is a piece of the message, calls come whole, and the last line has the counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ullage.wires.hidden_turns.dialect import (
    Dialect,
    Stream,
    joint,
    object_at,
    objects_at,
)
from ullage.wires.hidden_turns.pieces import add, summed, whole
from ullage.wires.ollama.blocks import TEXTS

_CALLS = "tool_calls"
_END = {"role": "assistant", "content": ""}


class OllamaDialect(Dialect):
    """The format of ``/api/chat``."""

    added = (
        *("eval_count", "eval_duration"),
        *("prompt_eval_duration", "load_duration", "total_duration"),
    )
    end_stop = "stop"
    sends_call_ids = False

    def stop_of(self, reply: Mapping[str, Any]) -> str:
        """See `Dialect.stop_of`. A reply that calls tools ends as any other."""
        return str(reply.get("done_reason") or "")

    def shown(self, message: Any) -> Any:
        """See `Dialect.shown`."""
        calls = objects_at(message, _CALLS)
        kept = [call for call in calls if not self.owns(call)]
        if len(kept) == len(calls):
            return message
        new = {name: value for name, value in message.items() if name != _CALLS}
        if kept:
            return {**new, _CALLS: kept}
        return new if any(new.get(name) for name in TEXTS) else None

    def untold(self, message: Any) -> Any:
        """See `Dialect.untold`."""
        if not message.get("content"):
            return message
        new = {**message, "content": ""}
        return new if new.get("thinking") or new.get(_CALLS) else None

    def joined(
        self, replies: Sequence[Mapping[str, Any]], said: Sequence[Any], note: str
    ) -> dict[str, Any]:
        """See `Dialect.joined`."""
        message: dict[str, Any] = dict(_END)
        for each in (*said, *([{"content": note}] if note else ())):
            message = _behind(message, each)
        used: dict[str, Any] = summed(replies, self.added)
        return {**used, "message": message}


def _behind(before: dict[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """One message with what another says behind it."""
    new = {**before, **after, "role": "assistant"}
    for name in TEXTS:
        one, other = before.get(name), after.get(name)
        if one or other:
            new[name] = (one or "") + joint(one or "", other or "") + (other or "")
    return new


class OllamaStream(Stream):
    """The lines of a stream of ``/api/chat``."""

    def __init__(self, dialect: Any, request: Mapping[str, Any]) -> None:
        super().__init__(dialect, request)
        self._ends: dict[str, str] = {}

    def _clear(self) -> None:
        self._message: dict[str, Any] = {}
        self._calls: list[dict[str, Any]] = []
        self._last: dict[str, Any] | None = None

    def feed(self, event: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """See `Stream.feed`."""
        if not isinstance(event.get("message"), dict):
            return (event,)
        told: dict[str, Any] = event["message"]
        if self.is_muted:
            told = {name: value for name, value in told.items() if name != "content"}
        message = self._shown(told)
        add(
            self._message,
            {name: value for name, value in told.items() if name != _CALLS},
        )
        is_last = bool(event.get("done"))
        self._last = event if is_last else self._last
        if message is event["message"] and not (is_last and self.holds):
            return (event,)
        says = any(message.get(name) for name in (*TEXTS, _CALLS))
        if is_last and self.holds:
            base = _beside_counts(event)
            return ({**base, "message": message, "done": False},) if says else ()
        return ({**event, "message": message},) if says or is_last else ()

    def speaks(self, event: Mapping[str, Any]) -> bool:
        """See `Stream.speaks`."""
        return bool(object_at(event, "message").get("content"))

    def _shown(self, told: dict[str, Any]) -> dict[str, Any]:
        """What the client gets of a piece of the message: itself if it needs no change."""
        message = self._parted(told)
        calls = objects_at(told, _CALLS)
        self._calls += calls
        kept = [call for call in calls if not self.owns(call)]
        if len(kept) == len(calls):
            return message
        self.hides = True
        message = {name: value for name, value in message.items() if name != _CALLS}
        return {**message, _CALLS: kept} if kept else message

    def _parted(self, told: dict[str, Any]) -> dict[str, Any]:
        """A piece whose texts stand apart from those of the rounds before."""
        for name in TEXTS:
            text = told.get(name)
            if isinstance(text, str) and text:
                before = "" if self._message.get(name) else self._ends.get(name, "")
                between = joint(before, text)
                told = {**told, name: between + text} if between else told
                self._ends[name] = text[-1]
        return told

    def reply(self) -> dict[str, Any] | None:
        """See `Stream.reply`."""
        if self._last is None:
            return None
        message = {**_END, **whole(self._message)}
        if self._calls:
            message[_CALLS] = self._calls
        return {**self._last, "message": message}

    def closing(self, reply: dict[str, Any], note: str) -> list[dict[str, Any]]:
        """See `Stream.closing`."""
        events = []
        if note:
            text = joint(self._ends.get("content", ""), note) + note
            said = {"role": "assistant", "content": text}
            events.append({**_beside_counts(reply), "message": said, "done": False})
        return [*events, {**reply, "message": dict(_END)}]


def _beside_counts(event: Mapping[str, Any]) -> dict[str, Any]:
    """What every line of a stream has beside the message."""
    return {name: event[name] for name in ("model", "created_at") if name in event}


OllamaDialect.stream = OllamaStream
DIALECT = OllamaDialect

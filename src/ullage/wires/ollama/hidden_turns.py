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
        public_calls = [call for call in calls if not self.owns(call)]
        if len(public_calls) == len(calls):
            return message
        cleaned = _without(message, _CALLS)
        if public_calls:
            return {**cleaned, _CALLS: public_calls}
        has_text = any(cleaned.get(name) for name in TEXTS)
        if has_text:
            return cleaned
        return None

    def untold(self, message: Any) -> Any:
        """See `Dialect.untold`."""
        if not message.get("content"):
            return message
        if message.get("thinking") or message.get(_CALLS):
            return {**message, "content": ""}
        return None

    def joined(
        self,
        replies: Sequence[Mapping[str, Any]],
        messages: Sequence[Any],
        note: str,
    ) -> dict[str, Any]:
        """See `Dialect.joined`."""
        joined: dict[str, Any] = dict(_END)
        for message in messages:
            joined = _followed_by(joined, message)
        if note:
            joined = _followed_by(joined, {"content": note})
        used: dict[str, Any] = summed(replies, self.added)
        return {**used, "message": joined}


def _without(message: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A message without one of its fields."""
    return {key: value for key, value in message.items() if key != name}


def _followed_by(
    message: dict[str, Any], next_message: Mapping[str, Any]
) -> dict[str, Any]:
    """One message that says what two say, in order."""
    joined = {**message, **next_message, "role": "assistant"}
    for name in TEXTS:
        text = message.get(name) or ""
        next_text = next_message.get(name) or ""
        if text or next_text:
            joined[name] = text + joint(text, next_text) + next_text
    return joined


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
        piece: Any = event.get("message")
        if not isinstance(piece, dict):
            return (event,)
        if self.is_muted:
            piece = _without(piece, "content")
        message = self._shown(piece)
        add(self._message, _without(piece, _CALLS))
        is_last = bool(event.get("done"))
        if is_last:
            self._last = event
        is_held_back = is_last and self.holds
        if message is event["message"] and not is_held_back:
            return (event,)
        says = any(message.get(name) for name in (*TEXTS, _CALLS))
        if is_held_back and says:
            return (
                {**_beside_counts(event), "message": message, "done": False},
            )
        if is_held_back or not (says or is_last):
            return ()
        return ({**event, "message": message},)

    def speaks(self, event: Mapping[str, Any]) -> bool:
        """See `Stream.speaks`."""
        return bool(object_at(event, "message").get("content"))

    def _shown(self, piece: dict[str, Any]) -> dict[str, Any]:
        """What the client gets of a piece of the message: itself if it needs no change."""
        message = self._parted(piece)
        calls = objects_at(piece, _CALLS)
        self._calls += calls
        public_calls = [call for call in calls if not self.owns(call)]
        if len(public_calls) == len(calls):
            return message
        self.hides = True
        message = _without(message, _CALLS)
        if public_calls:
            message[_CALLS] = public_calls
        return message

    def _parted(self, piece: dict[str, Any]) -> dict[str, Any]:
        """A piece whose texts stand apart from those of the rounds before."""
        for name in TEXTS:
            text = piece.get(name)
            if not isinstance(text, str) or not text:
                continue
            begins_round = not self._message.get(name)
            end = self._ends.get(name, "") if begins_round else ""
            between = joint(end, text)
            if between:
                piece = {**piece, name: between + text}
            self._ends[name] = text[-1]
        return piece

    def reply(self) -> dict[str, Any] | None:
        """See `Stream.reply`."""
        if self._last is None:
            return None
        message = {**_END, **whole(self._message)}
        if self._calls:
            message[_CALLS] = self._calls
        return {**self._last, "message": message}

    def closing(
        self, reply: dict[str, Any], note: str
    ) -> list[dict[str, Any]]:
        """See `Stream.closing`."""
        end = {**reply, "message": dict(_END)}
        if not note:
            return [end]
        text = joint(self._ends.get("content", ""), note) + note
        message = {"role": "assistant", "content": text}
        return [
            {**_beside_counts(reply), "message": message, "done": False},
            end,
        ]


def _beside_counts(event: Mapping[str, Any]) -> dict[str, Any]:
    """What every line of a stream has beside the message."""
    return {
        name: event[name] for name in ("model", "created_at") if name in event
    }


OllamaDialect.stream = OllamaStream
DIALECT = OllamaDialect

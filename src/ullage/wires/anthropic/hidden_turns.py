"""Anthropic Messages: blocks and their indexes; results stand in the user's next message.

The usage of ``message_start`` has been given out before a second round is known, so that of
``message_delta`` says all: the prompt of the last round, the output of all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ullage.core.values.messages import Message
from ullage.core.values.numbers import number_of
from ullage.wires.base import MARKERS
from ullage.wires.hidden_turns.dialect import Dialect, Stream, object_at, objects_at
from ullage.wires.hidden_turns.pieces import Pieces, add, summed, whole

_THOUGHTS = {"thinking": "signature", "redacted_thinking": "data"}
_PROMPT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class AnthropicDialect(Dialect):
    """The Messages format."""

    added = ("output_tokens", "output_tokens_details", "server_tool_use")
    calls_stop, end_stop = "tool_use", "end_turn"

    def is_held(self, request: Mapping[str, Any]) -> bool:
        """See `Dialect.is_held`: where a message thread is created or continued."""
        return bool(request.get("thread"))

    is_thread = is_held

    def going_on_from(
        self, request: Mapping[str, Any], reply_id: str
    ) -> dict[str, Any]:
        """See `Dialect.going_on_from`."""
        thread = {**object_at(request, "thread"), "previous_message_id": reply_id}
        return {**request, "thread": thread}

    def next_round(
        self,
        request: Mapping[str, Any],
        turns: Sequence[Any],
        results: Sequence[Any],
        replies: Sequence[Mapping[str, Any]],
    ) -> dict[str, Any]:
        """See `Dialect.next_round`.

        Each reply of a thread can be continued once, so a thread that was continued goes on from
        the last reply; one that was created is created anew. Code that runs in a container waits
        there for the results, so that the container is named.
        """
        if self.wire.previous(request):
            request = self.going_on_from(request, str(replies[-1].get("id") or ""))
            new = self.wire.compose(request, list(results), ())
        else:
            new = super().next_round(request, turns, results, replies)
        return _in_container(new, _container_of(replies))

    def stop_of(self, reply: Mapping[str, Any]) -> str:
        """See `Dialect.stop_of`."""
        return str(reply.get("stop_reason") or "")

    def shown(self, message: Any) -> Any:
        """See `Dialect.shown`."""
        content = message["content"]
        if not isinstance(content, list) or not any(map(self.hides, content)):
            return message
        blocks = [block for block in content if not self.hides(block)]
        return {**message, "content": blocks} if blocks else None

    def untold(self, message: Any) -> Any:
        """See `Dialect.untold`."""
        blocks = [block for block in message["content"] if not _is_text(block)]
        if len(blocks) == len(message["content"]):
            return message
        return {**message, "content": blocks} if blocks else None

    def hides(self, block: Any) -> bool:
        """Whether a block is a private call."""
        is_call = isinstance(block, Mapping) and block.get("type") == "tool_use"
        return is_call and self.owns(block)

    def joined(
        self, replies: Sequence[Mapping[str, Any]], said: Sequence[Any], note: str
    ) -> dict[str, Any]:
        """See `Dialect.joined`."""
        last = replies[-1]
        content = [block for message in said for block in message["content"]]
        if note:
            content.append({"type": "text", "text": note})
        new = {**last, "id": replies[0].get("id"), "content": content}
        if container := _container_of(replies):
            new["container"] = container
        usage = summed([reply.get("usage") for reply in replies], self.added)
        return {**new, "stop_reason": self.stop_for(last, said) or None, "usage": usage}

    def deferred(
        self, waiting: Sequence[Any], raw: Any, message: Message | None
    ) -> list[Any]:
        """See `Dialect.deferred`: first in the user's next message (A5, A6)."""
        if raw is None or raw.get("role") != "user":
            return super().deferred(waiting, raw, message)
        content = raw["content"]
        blocks = (
            [{"type": "text", "text": content}] if isinstance(content, str) else content
        )
        return [{**raw, "content": [*waiting, *blocks]}]

    def seals(self, message: Any) -> list[str]:
        """See `Dialect.seals`."""
        return [
            seal for block in objects_at(message, "content") if (seal := _seal(block))
        ]

    def loose(self, rounds: Sequence[Sequence[Any]]) -> list[str]:
        """See `Dialect.loose`: what was signed behind a hidden turn (A15)."""
        return [
            seal
            for said in rounds[1:]
            for message in said
            for seal in self.seals(message)
        ]

    def without(self, run: Sequence[Any], is_loose: Callable[[str], bool]) -> list[Any]:
        """See `Dialect.without`."""
        kept = []
        for message in run:
            if any(is_loose(seal) for seal in self.seals(message)):
                blocks = [
                    block for block in message["content"] if not is_loose(_seal(block))
                ]
                message = {**message, "content": blocks} if blocks else None
            if message is not None:
                kept.append(message)
        return kept

    def marked(self, turns: Sequence[Any], run: Sequence[Any]) -> list[Any]:
        """See `Dialect.marked`: on the last block that may carry one (A21)."""
        marks = [mark for message in run for mark in _marks(message)]
        content = turns[-1]["content"] if turns else None
        if not marks or not isinstance(content, list):
            return list(turns)
        at = next(
            (n for n in reversed(range(len(content))) if not _seal(content[n])), None
        )
        if at is None:
            return list(turns)
        blocks = [*content[:at], {**content[at], **marks[-1]}, *content[at + 1 :]]
        return [*turns[:-1], {**turns[-1], "content": blocks}]


def _container_of(replies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The container that the newest of some replies names; an empty object if none does."""
    named = [
        container for reply in replies if (container := object_at(reply, "container"))
    ]
    return named[-1] if named else {}


def _in_container(request: dict[str, Any], used: Mapping[str, Any]) -> dict[str, Any]:
    """The request in a container, unless it names one itself."""
    asked = request.get("container")
    if (
        not used
        or isinstance(asked, str)
        or (isinstance(asked, dict) and asked.get("id"))
    ):
        return request
    container = {**asked, "id": used["id"]} if isinstance(asked, dict) else used["id"]
    return {**request, "container": container}


def _is_text(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "text"


def _seal(block: Any) -> str:
    """What reasoning is signed with; ``""`` of anything else."""
    kind = block.get("type") if isinstance(block, Mapping) else None
    found = block.get(_THOUGHTS[kind]) if kind in _THOUGHTS else None
    return found if isinstance(found, str) else ""


def _marks(message: Any) -> list[dict[str, Any]]:
    blocks = objects_at(message, "content")
    found = ({key: block[key] for key in MARKERS & block.keys()} for block in blocks)
    return [mark for mark in found if mark]


# ── the stream ───────────────────────────────────────────────────────────────────────────


class AnthropicStream(Stream):
    """Events of the Messages format.

    Of a thread the end is kept back: what the next request names is to be known before it comes.
    """

    _next = 0

    @property
    def holds(self) -> bool:
        """See `Stream.holds`."""
        return super().holds or self.dialect.is_thread(self.request)

    def _clear(self) -> None:
        self._message: dict[str, Any] | None = None
        self._blocks: dict[int, dict[str, Any]] = {}
        self._at: dict[int, int | None] = {}
        self._ending: dict[str, Any] = {}
        self._is_over = False

    def feed(self, event: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """See `Stream.feed`. Pings, errors and what is not known pass."""
        kind = event.get("type")
        if kind == "message_start":
            self._message = object_at(event, "message")
            return (event,) if self.is_first else ()
        if kind in ("message_delta", "message_stop"):
            self._end(event)
            return () if self.holds else (event,)
        index = event.get("index")
        if not isinstance(index, int):
            return (event,)
        if kind == "content_block_start":
            self._start(index, object_at(event, "content_block"))
        elif kind == "content_block_delta" and index in self._blocks:
            _add(self._blocks[index], object_at(event, "delta"))
        at = self._at.get(index, index)
        if at is None:
            return ()
        return (event,) if at == index else ({**event, "index": at},)

    def speaks(self, event: Mapping[str, Any]) -> bool:
        """See `Stream.speaks`."""
        is_start = event.get("type") == "content_block_start"
        return is_start and _is_text(event.get("content_block"))

    def _start(self, index: int, block: Mapping[str, Any]) -> None:
        self._blocks[index] = dict(block)
        if self.dialect.hides(block):
            self.hides, self._at[index] = True, None
        elif self.is_muted and _is_text(block):
            self._at[index] = None
        else:
            self._at[index], self._next = self._next, self._next + 1

    def _end(self, event: dict[str, Any]) -> None:
        if event["type"] == "message_stop":
            self._is_over = True
            return
        # several may come, and counts are those until now
        before = self._ending
        self._ending = {**before, **event}
        for name in ("delta", "usage"):
            self._ending[name] = {**object_at(before, name), **object_at(event, name)}

    def reply(self) -> dict[str, Any] | None:
        """See `Stream.reply`."""
        if self._message is None or not self._is_over:
            return None
        ending = {
            k: v for k, v in self._ending.items() if k not in ("type", "delta", "usage")
        }
        said = [_settled(block) for block in self._blocks.values()]
        counts = {
            k: v for k, v in self._ending.get("usage", {}).items() if v is not None
        }
        usage = {**object_at(self._message, "usage"), **counts}
        delta = self._ending.get("delta", {})
        return {**self._message, **ending, **delta, "content": said, "usage": usage}

    def closing(self, reply: dict[str, Any], note: str) -> list[dict[str, Any]]:
        """See `Stream.closing`."""
        usage = reply.get("usage") or {}
        names = [
            *self._ending.get("usage", {}),
            *(name for name in _PROMPT if name in usage),
        ]
        counts = {name: usage.get(name) for name in names}
        delta = {**self._ending.get("delta", {}), "stop_reason": reply["stop_reason"]}
        if reply.get("container"):
            delta["container"] = reply["container"]
        ending = {
            **self._ending,
            "type": "message_delta",
            "delta": delta,
            "usage": counts,
        }
        return [*_note(self._next, note), ending, {"type": "message_stop"}]


def _add(block: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Add a delta to its block: texts by their names, a citation to the others."""
    fields = {
        name: value for name, value in delta.items() if name not in ("type", "citation")
    }
    if delta.get("citation") is not None:
        fields["citations"] = [delta["citation"]]
    add(block, fields)


def _settled(block: dict[str, Any]) -> dict[str, Any]:
    """A whole block; the input of a call that was cut off stays as it began, empty."""
    given = block.get("partial_json")
    new: dict[str, Any] = whole({k: v for k, v in block.items() if k != "partial_json"})
    text = "".join(given) if isinstance(given, Pieces) else ""
    if text:
        try:
            new["input"] = json.loads(text, parse_float=number_of)
        except ValueError:
            new.setdefault("input", {})
    return new


def _note(index: int, text: str) -> list[dict[str, Any]]:
    if not text:
        return []
    begin = {
        "type": "content_block_start",
        "content_block": {"type": "text", "text": ""},
    }
    delta = {
        "type": "content_block_delta",
        "delta": {"type": "text_delta", "text": text},
    }
    return [
        {**event, "index": index}
        for event in (begin, delta, {"type": "content_block_stop"})
    ]


AnthropicDialect.stream = AnthropicStream
DIALECT = AnthropicDialect

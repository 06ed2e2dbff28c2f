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
from ullage.wires.hidden_turns.dialect import (
    Dialect,
    Stream,
    object_at,
    objects_at,
)
from ullage.wires.hidden_turns.pieces import Pieces, add, summed, whole

_THOUGHTS = {"thinking": "signature", "redacted_thinking": "data"}
_PROMPT = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
)


class AnthropicDialect(Dialect):
    """The Messages format."""

    added = ("output_tokens", "output_tokens_details", "server_tool_use")
    calls_stop = "tool_use"
    end_stop = "end_turn"

    def is_held(self, request: Mapping[str, Any]) -> bool:
        """See `Dialect.is_held`: where a message thread is created or continued."""
        return bool(request.get("thread"))

    is_thread = is_held

    def going_on_from(
        self,
        request: Mapping[str, Any],
        reply_id: str,
    ) -> dict[str, Any]:
        """See `Dialect.going_on_from`."""
        thread = {
            **object_at(request, "thread"),
            "previous_message_id": reply_id,
        }
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
        the last reply; one that was created is created again. Code that runs in a container waits
        there for the results, so that the container is named.
        """
        if self.wire.previous(request):
            reply_id = str(replies[-1].get("id") or "")
            request = self.going_on_from(request, reply_id)
            round_request = self.wire.compose(request, list(results), ())
        else:
            round_request = super().next_round(
                request, turns, results, replies
            )
        return _in_container(round_request, _container_of(replies))

    def stop_of(self, reply: Mapping[str, Any]) -> str:
        """See `Dialect.stop_of`."""
        return str(reply.get("stop_reason") or "")

    def shown(self, message: Any) -> Any:
        """See `Dialect.shown`."""
        content = message["content"]
        if not isinstance(content, list):
            return message
        return _with_blocks(message, [b for b in content if not self.hides(b)])

    def untold(self, message: Any) -> Any:
        """See `Dialect.untold`."""
        content = message["content"]
        return _with_blocks(message, [b for b in content if not _is_text(b)])

    def hides(self, block: Any) -> bool:
        """Whether a block is a private call."""
        is_call = (
            isinstance(block, Mapping) and block.get("type") == "tool_use"
        )
        return is_call and self.owns(block)

    def joined(
        self,
        replies: Sequence[Mapping[str, Any]],
        messages: Sequence[Any],
        note: str,
    ) -> dict[str, Any]:
        """See `Dialect.joined`."""
        ending = replies[-1]
        content = []
        for message in messages:
            content += message["content"]
        if note:
            content.append({"type": "text", "text": note})
        reply = {
            **ending,
            "id": replies[0].get("id"),
            "content": content,
            "stop_reason": self.stop_for(ending, messages) or None,
            "usage": summed(
                [reply.get("usage") for reply in replies], self.added
            ),
        }
        container = _container_of(replies)
        if container:
            reply["container"] = container
        return reply

    def deferred(
        self,
        waiting: Sequence[Any],
        raw: Any,
        message: Message | None,
    ) -> list[Any]:
        """See `Dialect.deferred`: first in the user's next message (A5, A6)."""
        if raw is None or raw.get("role") != "user":
            return super().deferred(waiting, raw, message)
        blocks = raw["content"]
        if isinstance(blocks, str):
            blocks = [{"type": "text", "text": blocks}]
        return [{**raw, "content": [*waiting, *blocks]}]

    # ── reasoning and cache markers ──────────────────────────────────────────────────

    def seals(self, message: Any) -> list[str]:
        """See `Dialect.seals`."""
        seals = []
        for block in objects_at(message, "content"):
            seal = _seal(block)
            if seal:
                seals.append(seal)
        return seals

    def loose(self, rounds: Sequence[Sequence[Any]]) -> list[str]:
        """See `Dialect.loose`: what was signed behind a hidden turn (A15)."""
        seals = []
        for messages in rounds[1:]:
            for message in messages:
                seals += self.seals(message)
        return seals

    def without(
        self, run: Sequence[Any], is_loose: Callable[[str], bool]
    ) -> list[Any]:
        """See `Dialect.without`."""
        messages = []
        for message in run:
            if not any(is_loose(seal) for seal in self.seals(message)):
                messages.append(message)
                continue
            blocks = [b for b in message["content"] if not is_loose(_seal(b))]
            if blocks:
                messages.append({**message, "content": blocks})
        return messages

    def marked(self, turns: Sequence[Any], run: Sequence[Any]) -> list[Any]:
        """See `Dialect.marked`: on the last block that may carry one (A21)."""
        marks = []
        for message in run:
            marks += _marks(message)
        content = turns[-1]["content"] if turns else None
        if not marks or not isinstance(content, list):
            return list(turns)
        for at in reversed(range(len(content))):
            if not _seal(content[at]):
                break
        else:
            return list(turns)
        blocks = list(content)
        blocks[at] = {**content[at], **marks[-1]}
        return [*turns[:-1], {**turns[-1], "content": blocks}]


def _with_blocks(message: Any, blocks: list[Any]) -> Any:
    """A message with fewer blocks: itself if none was left out, None if none is left."""
    if len(blocks) == len(message["content"]):
        return message
    if not blocks:
        return None
    return {**message, "content": blocks}


def _container_of(replies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The container that the newest of some replies names; an empty object if none does."""
    for reply in reversed(replies):
        container = object_at(reply, "container")
        if container:
            return container
    return {}


def _in_container(
    request: dict[str, Any], container: Mapping[str, Any]
) -> dict[str, Any]:
    """The request in a container, unless there is none or it names one itself."""
    setting = request.get("container")
    if not container or isinstance(setting, str):
        return request
    if not isinstance(setting, dict):
        return {**request, "container": container["id"]}
    if setting.get("id"):
        return request
    return {**request, "container": {**setting, "id": container["id"]}}


def _is_text(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "text"


def _seal(block: Any) -> str:
    """The signature of reasoning, or its sealed text; ``""`` of any other block."""
    kind = block.get("type") if isinstance(block, Mapping) else None
    if kind not in _THOUGHTS:
        return ""
    seal = block.get(_THOUGHTS[kind])
    if isinstance(seal, str):
        return seal
    return ""


def _marks(message: Any) -> list[dict[str, Any]]:
    """The cache markers of a message's blocks, each by its field."""
    marks = []
    for block in objects_at(message, "content"):
        mark = {key: block[key] for key in MARKERS & block.keys()}
        if mark:
            marks.append(mark)
    return marks


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
            if self.is_first:
                return (event,)
            return ()
        if kind in ("message_delta", "message_stop"):
            self._end(event)
            if self.holds:
                return ()
            return (event,)
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
        if at == index:
            return (event,)
        return ({**event, "index": at},)

    def speaks(self, event: Mapping[str, Any]) -> bool:
        """See `Stream.speaks`."""
        is_start = event.get("type") == "content_block_start"
        return is_start and _is_text(event.get("content_block"))

    def _start(self, index: int, block: Mapping[str, Any]) -> None:
        """Take in a new block, and decide where the client has it: None if it does not."""
        self._blocks[index] = dict(block)
        if self.dialect.hides(block):
            self.hides = True
            self._at[index] = None
        elif self.is_muted and _is_text(block):
            self._at[index] = None
        else:
            self._at[index] = self._next
            self._next += 1

    def _end(self, event: dict[str, Any]) -> None:
        if event["type"] == "message_stop":
            self._is_over = True
            return
        # Several may come, and counts are those until now.
        earlier = self._ending
        self._ending = {**earlier, **event}
        for name in ("delta", "usage"):
            self._ending[name] = {
                **object_at(earlier, name),
                **object_at(event, name),
            }

    def reply(self) -> dict[str, Any] | None:
        """See `Stream.reply`."""
        if self._message is None or not self._is_over:
            return None
        ending = dict(self._ending)
        ending.pop("type", None)
        delta = ending.pop("delta", {})
        usage = object_at(self._message, "usage").copy()
        for name, count in ending.pop("usage", {}).items():
            if count is not None:
                usage[name] = count
        return {
            **self._message,
            **ending,
            **delta,
            "content": [_settled(block) for block in self._blocks.values()],
            "usage": usage,
        }

    def closing(
        self, reply: dict[str, Any], note: str
    ) -> list[dict[str, Any]]:
        """See `Stream.closing`."""
        usage = reply.get("usage") or {}
        names = list(self._ending.get("usage", {}))
        names += [name for name in _PROMPT if name in usage]
        delta = {
            **self._ending.get("delta", {}),
            "stop_reason": reply["stop_reason"],
        }
        if reply.get("container"):
            delta["container"] = reply["container"]
        ending = {
            **self._ending,
            "type": "message_delta",
            "delta": delta,
            "usage": {name: usage.get(name) for name in names},
        }
        return [*_note(self._next, note), ending, {"type": "message_stop"}]


def _add(block: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Add a delta to its block: texts by their names, a citation to the others."""
    fields = dict(delta)
    fields.pop("type", None)
    citation = fields.pop("citation", None)
    if citation is not None:
        fields["citations"] = [citation]
    add(block, fields)


def _settled(block: dict[str, Any]) -> dict[str, Any]:
    """A whole block; the input of a call that was cut off stays as it began, empty."""
    fields = dict(block)
    pieces = fields.pop("partial_json", None)
    settled: dict[str, Any] = whole(fields)
    text = "".join(pieces) if isinstance(pieces, Pieces) else ""
    if text:
        try:
            settled["input"] = json.loads(text, parse_float=number_of)
        except ValueError:
            settled.setdefault("input", {})
    return settled


def _note(index: int, text: str) -> list[dict[str, Any]]:
    """The events of a block with a text; none for an empty one."""
    if not text:
        return []
    return [
        {
            "type": "content_block_start",
            "content_block": {"type": "text", "text": ""},
            "index": index,
        },
        {
            "type": "content_block_delta",
            "delta": {"type": "text_delta", "text": text},
            "index": index,
        },
        {"type": "content_block_stop", "index": index},
    ]


AnthropicDialect.stream = AnthropicStream
DIALECT = AnthropicDialect

"""Amazon Bedrock Converse: blocks and their indexes; results stand in the user's next message.

A stream ends with two events, ``messageStop`` and ``metadata``, which has the usage. A block of
text or of reasoning has no event that begins it.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ullage.core.values.messages import Message
from ullage.core.values.numbers import number_of
from ullage.wires.bedrock_converse.blocks import is_cache_point
from ullage.wires.hidden_turns.dialect import (
    Dialect,
    Stream,
    object_at,
    objects_at,
)
from ullage.wires.hidden_turns.pieces import summed

_ENDING = ("messageStop", "metadata")
_INDEX = "contentBlockIndex"
_PADDING = "p"
"""A field of no meaning that Bedrock adds to each event."""


class ConverseDialect(Dialect):
    """The Converse format."""

    added = ("outputTokens",)
    total = "totalTokens"
    calls_stop = "tool_use"
    end_stop = "end_turn"

    def stop_of(self, reply: Mapping[str, Any]) -> str:
        """See `Dialect.stop_of`."""
        return str(reply.get("stopReason") or "")

    def shown(self, message: Any) -> Any:
        """See `Dialect.shown`."""
        return _with(message, lambda block: not self.hides(block))

    def untold(self, message: Any) -> Any:
        """See `Dialect.untold`."""
        return _with(message, lambda block: not _is_text(block))

    def hides(self, block: Any) -> bool:
        """Whether a block is a private call."""
        if not isinstance(block, Mapping):
            return False
        call = block.get("toolUse")
        return isinstance(call, Mapping) and self.owns(call)

    def joined(
        self,
        replies: Sequence[Mapping[str, Any]],
        messages: Sequence[Any],
        note: str,
    ) -> dict[str, Any]:
        """See `Dialect.joined`."""
        final = replies[-1]
        content = [
            block for message in messages for block in message["content"]
        ]
        if note:
            content.append({"text": note})
        message = object_at(object_at(final, "output"), "message")
        usages = [reply.get("usage") for reply in replies]
        metrics = [reply.get("metrics") for reply in replies]
        return {
            **final,
            "output": {"message": {**message, "content": content}},
            "stopReason": self.stop_for(final, messages),
            "usage": summed(usages, self.added, self.total),
            "metrics": summed(metrics, ("latencyMs",)),
        }

    def deferred(
        self, waiting: Sequence[Any], raw: Any, message: Message | None
    ) -> list[Any]:
        """See `Dialect.deferred`: first in the user's next message (B2, B3)."""
        if raw is None or raw.get("role") != "user":
            return super().deferred(waiting, raw, message)
        return [{**raw, "content": [*waiting, *raw["content"]]}]

    def seals(self, message: Any) -> list[str]:
        """See `Dialect.seals`."""
        seals = [_seal(block) for block in objects_at(message, "content")]
        return [seal for seal in seals if seal]

    def loose(self, rounds: Sequence[Sequence[Any]]) -> list[str]:
        """See `Dialect.loose`: what was signed behind a hidden turn."""
        seals: list[str] = []
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
            cleaned = _with(message, lambda block: not is_loose(_seal(block)))
            if cleaned is not None:
                messages.append(cleaned)
        return messages

    def marked(self, turns: Sequence[Any], run: Sequence[Any]) -> list[Any]:
        """See `Dialect.marked`: a cache point at the end."""
        blocks = [
            block
            for message in run
            for block in objects_at(message, "content")
        ]
        points = [block for block in blocks if is_cache_point(block)]
        if not points or not turns:
            return list(turns)
        *earlier, newest = turns
        return [
            *earlier,
            {**newest, "content": [*newest["content"], points[-1]]},
        ]


def _with(message: Any, stays: Callable[[Any], bool]) -> Any:
    """A message with some of its blocks; itself with all, None with none but cache points."""
    blocks = [block for block in message["content"] if stays(block)]
    if len(blocks) == len(message["content"]):
        return message
    while blocks and is_cache_point(blocks[0]):
        del blocks[0]
    if blocks:
        return {**message, "content": blocks}
    return None


def _is_text(block: Any) -> bool:
    return isinstance(block, Mapping) and isinstance(block.get("text"), str)


def _seal(block: Any) -> str:
    """What reasoning is signed with; ``""`` of anything else."""
    body = (
        block.get("reasoningContent") if isinstance(block, Mapping) else None
    )
    if not isinstance(body, Mapping):
        return ""
    signature = object_at(body, "reasoningText").get("signature")
    seal = body.get("redactedContent") or signature
    if isinstance(seal, str):
        return seal
    return ""


# ── the stream ───────────────────────────────────────────────────────────────────────────


class ConverseStream(Stream):
    """Events of the Converse format."""

    _next = 0

    def _clear(self) -> None:
        self._role = "assistant"
        self._has_begun = False
        self._blocks: dict[int, _Block] = {}
        self._at: dict[int, int | None] = {}
        self._ending: dict[str, dict[str, Any]] = {}

    def feed(self, event: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """See `Stream.feed`. Exceptions and what is not known pass."""
        kind = next(iter(event), "")
        body = object_at(event, kind)
        if kind == "messageStart":
            self._has_begun = True
            self._role = str(body.get("role") or "assistant")
            if self.is_first:
                return (event,)
            return ()
        if kind in _ENDING:
            ending = self._ending.setdefault(kind, {})
            ending.update(body)
            ending.pop(_PADDING, None)
            if self.holds:
                return ()
            return (event,)
        index = body.get(_INDEX)
        if not isinstance(index, int):
            return (event,)
        if index not in self._blocks:
            self._start(index, body)
        self._blocks[index].add(body)
        shown_index = self._at[index]
        if shown_index is None:
            return ()
        if shown_index == index:
            return (event,)
        return ({kind: {**body, _INDEX: shown_index}},)

    def speaks(self, event: Mapping[str, Any]) -> bool:
        """See `Stream.speaks`."""
        delta = object_at(object_at(event, "contentBlockDelta"), "delta")
        return bool(delta.get("text"))

    def _start(self, index: int, body: Mapping[str, Any]) -> None:
        """Register a block with its first event, under the index that the client sees."""
        self._blocks[index] = _Block()
        call = object_at(object_at(body, "start"), "toolUse")
        is_text = "text" in object_at(body, "delta")
        if call and self.owns(call):
            self.hides = True
            self._at[index] = None
        elif self.is_muted and is_text:
            self._at[index] = None
        else:
            self._at[index] = self._next
            self._next += 1

    def reply(self) -> dict[str, Any] | None:
        """See `Stream.reply`."""
        stop = self._ending.get("messageStop")
        if not self._has_begun or stop is None:
            return None
        blocks = [block.whole() for _, block in sorted(self._blocks.items())]
        content = [block for block in blocks if block]
        return {
            "output": {"message": {"role": self._role, "content": content}},
            **stop,
            **self._ending.get("metadata", {}),
        }

    def closing(
        self, reply: dict[str, Any], note: str
    ) -> list[dict[str, Any]]:
        """See `Stream.closing`."""
        stop = self._ending.get("messageStop", {})
        stop = {**stop, "stopReason": reply["stopReason"]}
        events: list[dict[str, Any]] = [
            *_note(self._next, note),
            {"messageStop": stop},
        ]
        metadata = self._ending.get("metadata")
        if metadata is not None:
            counts = {name: reply.get(name) for name in ("usage", "metrics")}
            events.append({"metadata": {**metadata, **counts}})
        return events


class _Block:
    """One block of a round, as it comes."""

    def __init__(self) -> None:
        self._start: dict[str, Any] = {}
        self._texts: dict[str, list[str]] = {}
        self._items: list[Any] = []
        self._citations: list[Any] = []

    def add(self, body: Mapping[str, Any]) -> None:
        """Add what one event says of the block."""
        self._start = self._start or object_at(body, "start")
        delta = object_at(body, "delta")
        if isinstance(delta.get("text"), str):
            self._add("text", delta["text"])
        if isinstance(delta.get("citation"), dict):
            self._citations.append(delta["citation"])
        if isinstance(delta.get("toolResult"), list):
            self._items += delta["toolResult"]
        call = object_at(delta, "toolUse")
        self._add("input", call.get("input"))
        source = object_at(object_at(delta, "image"), "source")
        self._add("bytes", source.get("bytes"))
        reasoning = object_at(delta, "reasoningContent")
        for name in ("text", "signature", "redactedContent"):
            self._add(f"reasoning {name}", reasoning.get(name))

    def _add(self, name: str, piece: Any) -> None:
        if isinstance(piece, str):
            self._texts.setdefault(name, []).append(piece)

    def _text(self, name: str) -> str:
        return "".join(self._texts.get(name, ()))

    def whole(self) -> dict[str, Any]:
        """The block as if unstreamed; an empty one of a block that said nothing."""
        if "toolUse" in self._start:
            return {
                "toolUse": {
                    **self._start["toolUse"],
                    "input": self._arguments(),
                }
            }
        if "toolResult" in self._start:
            return {
                "toolResult": {
                    **self._start["toolResult"],
                    "content": self._items,
                }
            }
        if "image" in self._start:
            source = {"bytes": _joined(self._texts.get("bytes", ()))}
            return {"image": {**self._start["image"], "source": source}}
        reasoning = self._reasoning()
        if reasoning:
            return {"reasoningContent": reasoning}
        text = self._text("text")
        if self._citations:
            return {
                "citationsContent": {
                    "content": [{"text": text}],
                    "citations": self._citations,
                }
            }
        if text:
            return {"text": text}
        return {}

    def _reasoning(self) -> dict[str, Any]:
        """The content of a block of reasoning; an empty one of any other block."""
        if "reasoning redactedContent" in self._texts:
            sealed = _joined(self._texts["reasoning redactedContent"])
            return {"redactedContent": sealed}
        if (
            "reasoning text" in self._texts
            or "reasoning signature" in self._texts
        ):
            thought = {"text": self._text("reasoning text")}
            signature = self._text("reasoning signature")
            if signature:
                thought["signature"] = signature
            return {"reasoningText": thought}
        return {}

    def _arguments(self) -> Any:
        """The input of a call; an empty one of a call that was cut off."""
        text = self._text("input") or "{}"
        try:
            return json.loads(text, parse_float=number_of)
        except ValueError:
            return {}


def _joined(pieces: Sequence[str]) -> str:
    """Base64 of the bytes whose base64 came in pieces, each for itself."""
    if len(pieces) == 1:
        return pieces[0]
    try:
        data = b"".join(b64decode(piece) for piece in pieces)
        return b64encode(data).decode()
    except Error:
        return "".join(pieces)


def _note(index: int, text: str) -> list[dict[str, Any]]:
    if not text:
        return []
    delta = {"delta": {"text": text}, _INDEX: index}
    return [
        {"contentBlockDelta": delta},
        {"contentBlockStop": {_INDEX: index}},
    ]


ConverseDialect.stream = ConverseStream
DIALECT = ConverseDialect

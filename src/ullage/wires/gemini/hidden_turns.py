"""Google Gemini: every chunk is a reply of its own; calls come whole.

The signature of a step sits on its first call (G7). Where that one is private, the client's first
call gets what passes for a signature, should the private one never come back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ullage.core.values.messages import Message
from ullage.wires.base import get
from ullage.wires.gemini.format import Gemini
from ullage.wires.gemini.models import UNCHECKED
from ullage.wires.hidden_turns.dialect import (
    Dialect,
    Stream,
    index_of,
    object_at,
    objects_at,
)
from ullage.wires.hidden_turns.pieces import summed

_FORMAT = Gemini()


class GeminiDialect(Dialect):
    """The generateContent format."""

    added = (
        "candidatesTokenCount",
        "thoughtsTokenCount",
        "candidatesTokensDetails",
    )
    total = "totalTokenCount"
    several = "candidates"

    def is_single(self, request: Mapping[str, Any]) -> bool:
        """See `Dialect.is_single`."""
        count = get(_FORMAT.settings(request), "candidateCount") or 1
        return bool(count == 1)

    def stop_of(self, reply: Mapping[str, Any]) -> str:
        """See `Dialect.stop_of`: of the first candidate."""
        candidates = reply.get("candidates")
        if not candidates:
            return ""
        return str(candidates[0].get("finishReason") or "")

    def shown(self, message: Any) -> Any:
        """See `Dialect.shown`."""
        step = _Step(self)
        parts = step.public_parts(message["parts"])
        if not step.hides:
            return message
        if parts:
            return {**message, "parts": parts}
        return None

    def untold(self, message: Any) -> Any:
        """See `Dialect.untold`."""
        parts = [part for part in message["parts"] if not _is_spoken(part)]
        if len(parts) == len(message["parts"]):
            return message
        if parts:
            return {**message, "parts": parts}
        return None

    def joined(
        self,
        replies: Sequence[Mapping[str, Any]],
        messages: Sequence[Any],
        note: str,
    ) -> dict[str, Any]:
        """See `Dialect.joined`."""
        opening = replies[0]
        ending = replies[-1]
        parts = []
        for message in messages:
            parts += message["parts"]
        if note:
            parts.append({"text": note})
        head, *alternatives = ending.get("candidates") or [{}]
        candidate = {**head, "content": _content(parts)}
        reply = {
            **ending,
            "candidates": [candidate, *map(self.other, alternatives)],
        }
        if "responseId" in opening:
            reply["responseId"] = opening["responseId"]
        usages = [reply.get("usageMetadata") for reply in replies]
        usage = summed(usages, self.added, self.total)
        if usage is not None:
            reply["usageMetadata"] = usage
        return reply

    def other(self, candidate: Mapping[str, Any]) -> Mapping[str, Any]:
        """See `Dialect.other`."""
        content = object_at(candidate, "content")
        if not content.get("parts"):
            return candidate
        return {**candidate, "content": self.shown(content) or _content([])}

    def deferred(
        self,
        waiting: Sequence[Any],
        raw: Any,
        message: Message | None,
    ) -> list[Any]:
        """See `Dialect.deferred`: with the client's own responses (G3)."""
        if message is None or not message.results:
            return super().deferred(waiting, raw, message)
        return [{**raw, "parts": [*waiting, *raw["parts"]]}]


def _content(parts: Sequence[Any]) -> dict[str, Any]:
    """A content of the model's."""
    return {"role": "model", "parts": parts}


class _Step:
    """The parts of one content, in order, as the client gets them.

    Attributes:
        hides: whether a private call was among them.
    """

    def __init__(self, dialect: GeminiDialect) -> None:
        self._owns = dialect.owns
        self._is_private = False
        self._is_signed = False
        self._calls = 0
        self.hides = False

    def public_parts(self, parts: Iterable[Any]) -> list[Any]:
        """The parts that the client gets, as it gets them."""
        public = []
        for part in parts:
            public_part = self.public_part(part)
            if public_part is not None:
                public.append(public_part)
        return public

    def public_part(self, part: Any) -> Any:
        """A part: itself, the first call signed anew, or None of a private call.

        A call without a name goes on with the one before it.
        """
        call = part.get("functionCall") if isinstance(part, Mapping) else None
        if not isinstance(call, Mapping):
            return part
        begins = bool(call.get("name"))
        if begins:
            self._is_private = self._owns(part)
        has_signature = bool(part.get("thoughtSignature"))
        if self._is_private:
            self.hides = True
            self._is_signed = self._is_signed or has_signature
            return None
        self._calls += begins
        is_first_call = begins and self._calls == 1
        if has_signature or not self._is_signed or not is_first_call:
            return part
        return {**part, "thoughtSignature": UNCHECKED}


# ── the stream ───────────────────────────────────────────────────────────────────────────


class GeminiStream(Stream):
    """Chunks of the generateContent format."""

    def __init__(self, dialect: Any, request: Mapping[str, Any]) -> None:
        super().__init__(dialect, request)
        self._identity: dict[str, Any] = {}

    def _clear(self) -> None:
        self._fields: dict[str, Any] = {}
        self._candidates: dict[int, _Candidate] = {}

    def feed(self, event: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """See `Stream.feed`. Of a chunk that ends a round what it says is given at once."""
        if not self._identity and "responseId" in event:
            self._identity = {"responseId": event["responseId"]}
        if self.is_muted and self.speaks(event):
            silent = [_silent(candidate) for candidate in event["candidates"]]
            event = {**event, "candidates": silent}
        self._fields = {**self._fields, **event}

        candidates = objects_at(event, "candidates")
        results = [self._shown(candidate) for candidate in candidates]
        if self.is_first and _are_same(results, candidates):
            return (event,)
        public = [candidate for candidate in results if candidate is not None]
        if not public:
            return ()
        chunk = {**event, **self._identity, "candidates": public}
        chunk.pop(
            "usageMetadata", None
        )  # of a part of the reply, and the end tells it
        return (chunk,)

    def speaks(self, event: Mapping[str, Any]) -> bool:
        """See `Stream.speaks`."""
        for candidate in objects_at(event, "candidates"):
            parts = objects_at(object_at(candidate, "content"), "parts")
            if any(_is_spoken(part) for part in parts):
                return True
        return False

    def _shown(self, candidate: dict[str, Any]) -> dict[str, Any] | None:
        """A candidate as the client gets it: itself if it needs no change, None for nothing."""
        index = index_of(candidate)
        state = self._candidates.setdefault(index, _Candidate(self.dialect))
        parts = state.add(candidate)
        if state.step.hides:
            self.hides = True
        is_held = self.holds and candidate.get("finishReason") is not None
        if parts is None and not is_held:
            return candidate
        if parts is None:
            parts = objects_at(object_at(candidate, "content"), "parts")
        if not parts:
            return None
        public = dict(candidate)
        public.pop("finishReason", None)
        public["content"] = _content(parts)
        return public

    def reply(self) -> dict[str, Any] | None:
        """See `Stream.reply`."""
        candidates = []
        for _, state in sorted(self._candidates.items()):
            candidate = state.whole()
            if "finishReason" not in candidate:
                return None
            candidates.append(candidate)
        if candidates:
            return {**self._fields, "candidates": candidates}
        if "promptFeedback" in self._fields:
            return self._fields
        return None

    def closing(
        self, reply: dict[str, Any], note: str
    ) -> list[dict[str, Any]]:
        """See `Stream.closing`."""
        candidates = []
        for at, candidate in enumerate(reply["candidates"]):
            text = "" if at else note
            content = _content([{"text": text}])
            candidates.append({**candidate, "content": content})
        return [{**reply, "candidates": candidates}]


class _Candidate:
    """One candidate of a round, as it comes."""

    def __init__(self, dialect: GeminiDialect) -> None:
        self.step = _Step(dialect)
        self._fields: dict[str, Any] = {}
        self._parts: list[Any] = []

    def add(self, candidate: Mapping[str, Any]) -> list[Any] | None:
        """Take in what came of it: the parts for the client, None if those need no change."""
        self._fields = {**self._fields, **candidate}
        parts = objects_at(object_at(candidate, "content"), "parts")
        for part in parts:
            self._add(part)
        public = self.step.public_parts(parts)
        if _are_same(public, parts):
            return None
        return public

    def _add(self, part: Mapping[str, Any]) -> None:
        """Text goes behind text of its kind; what is signed stays a part of its own (G8)."""
        if part == {"text": ""}:
            return
        newest = self._parts[-1] if self._parts else {}
        are_plain = _is_plain(part) and _is_plain(newest)
        # What is signed has a field more, and so is never joined to anything.
        if are_plain and part.get("thought") == newest.get("thought"):
            self._parts[-1] = {**newest, "text": newest["text"] + part["text"]}
        else:
            self._parts.append(part)

    def whole(self) -> dict[str, Any]:
        """The candidate as if unstreamed."""
        return {**self._fields, "content": _content(self._parts)}


def _is_spoken(part: Any) -> bool:
    """Whether a part is text for the client, and no thought."""
    if not isinstance(part, Mapping) or part.get("thought"):
        return False
    return bool(part.get("text"))


def _silent(candidate: Mapping[str, Any]) -> dict[str, Any]:
    """A candidate of a chunk without its text."""
    content = object_at(candidate, "content")
    parts = [
        part for part in objects_at(content, "parts") if not _is_spoken(part)
    ]
    return {**candidate, "content": {**content, "parts": parts}}


def _are_same(results: Sequence[Any], items: Sequence[Any]) -> bool:
    """Whether two lists hold the very same objects."""
    if len(results) != len(items):
        return False
    return all(
        result is item for result, item in zip(results, items, strict=True)
    )


def _is_plain(part: Mapping[str, Any]) -> bool:
    return isinstance(part.get("text"), str) and part.keys() <= {
        "text",
        "thought",
    }


GeminiDialect.stream = GeminiStream
DIALECT = GeminiDialect

"""Google Gemini: every chunk is a reply of its own; calls come whole.

The signature of a step sits on its first call (G7). Where that one is private, the client's first
call gets what passes for a signature, should the private one never come back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

    added = ("candidatesTokenCount", "thoughtsTokenCount", "candidatesTokensDetails")
    total, several = "totalTokenCount", "candidates"

    def is_single(self, request: Mapping[str, Any]) -> bool:
        """See `Dialect.is_single`."""
        return (get(_FORMAT.settings(request), "candidateCount") or 1) == 1

    def stop_of(self, reply: Mapping[str, Any]) -> str:
        """See `Dialect.stop_of`: of the first candidate."""
        candidates = reply.get("candidates")
        return str((candidates[0].get("finishReason") if candidates else None) or "")

    def shown(self, message: Any) -> Any:
        """See `Dialect.shown`."""
        step = _Step(self)
        parts = [
            part for each in message["parts"] if (part := step.shown(each)) is not None
        ]
        if not step.hides:
            return message
        return {**message, "parts": parts} if parts else None

    def untold(self, message: Any) -> Any:
        """See `Dialect.untold`."""
        parts = [part for part in message["parts"] if not _is_said(part)]
        if len(parts) == len(message["parts"]):
            return message
        return {**message, "parts": parts} if parts else None

    def joined(
        self,
        replies: Sequence[Mapping[str, Any]],
        said: Sequence[Any],
        note: str,
    ) -> dict[str, Any]:
        """See `Dialect.joined`."""
        last = replies[-1]
        parts = [part for message in said for part in message["parts"]]
        content = {
            "role": "model",
            "parts": [*parts, *([{"text": note}] if note else ())],
        }
        head, *others = last.get("candidates") or [{}]
        candidates = [{**head, "content": content}, *map(self.other, others)]
        new = {**last, "candidates": candidates}
        if "responseId" in replies[0]:
            new["responseId"] = replies[0]["responseId"]
        usages = [reply.get("usageMetadata") for reply in replies]
        usage = summed(usages, self.added, self.total)
        return {**new, "usageMetadata": usage} if usage is not None else new

    def other(self, candidate: Mapping[str, Any]) -> Mapping[str, Any]:
        """See `Dialect.other`."""
        content = object_at(candidate, "content")
        if not content.get("parts"):
            return candidate
        return {
            **candidate,
            "content": self.shown(content) or {"role": "model", "parts": []},
        }

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


class _Step:
    """The parts of one content, in order, as the client gets them."""

    def __init__(self, dialect: GeminiDialect) -> None:
        self._owns = dialect.owns
        self._is_private = self._is_signed = False
        self._calls = 0
        self.hides = False

    def shown(self, part: Any) -> Any:
        """A part: itself, the first call signed anew, or None of a private call.

        A call without a name goes on with the one before it.
        """
        call = part.get("functionCall") if isinstance(part, Mapping) else None
        if not isinstance(call, Mapping):
            return part
        if call.get("name"):
            self._is_private = self._owns(part)
        self.hides = self.hides or self._is_private
        signature = part.get("thoughtSignature")
        if self._is_private:
            self._is_signed = self._is_signed or bool(signature)
            return None
        self._calls += bool(call.get("name"))
        if signature or not self._is_signed or self._calls > 1 or not call.get("name"):
            return part
        return {**part, "thoughtSignature": UNCHECKED}


# ── the stream ───────────────────────────────────────────────────────────────────────────


class GeminiStream(Stream):
    """Chunks of the generateContent format."""

    def __init__(self, dialect: Any, request: Mapping[str, Any]) -> None:
        super().__init__(dialect, request)
        self._kept: dict[str, Any] = {}

    def _clear(self) -> None:
        self._last: dict[str, Any] = {}
        self._candidates: dict[int, _Candidate] = {}

    def feed(self, event: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """See `Stream.feed`. Of a chunk that ends a round what it says is given at once."""
        if not self._kept and "responseId" in event:
            self._kept = {"responseId": event["responseId"]}
        if self.is_muted and self.speaks(event):
            event = {
                **event,
                "candidates": [_untold(each) for each in event["candidates"]],
            }
        self._last = {**self._last, **event}
        candidates = objects_at(event, "candidates")
        shown = [self._shown(candidate) for candidate in candidates]
        if self.is_first and all(
            one is other for one, other in zip(shown, candidates, strict=True)
        ):
            return (event,)
        given = [candidate for candidate in shown if candidate is not None]
        if not given:
            return ()
        new = {**event, **self._kept, "candidates": given}
        new.pop("usageMetadata", None)  # of a part of the reply, and the end tells it
        return (new,)

    def speaks(self, event: Mapping[str, Any]) -> bool:
        """See `Stream.speaks`."""
        contents = (
            object_at(each, "content") for each in objects_at(event, "candidates")
        )
        return any(
            _is_said(part) for each in contents for part in objects_at(each, "parts")
        )

    def _shown(self, candidate: dict[str, Any]) -> dict[str, Any] | None:
        """What the client gets of a candidate: itself if it needs no change, None for nothing."""
        known = self._candidates.setdefault(
            index_of(candidate), _Candidate(self.dialect)
        )
        parts = known.add(candidate)
        self.hides = self.hides or known.step.hides
        is_held = self.holds and candidate.get("finishReason") is not None
        if parts is None and not is_held:
            return candidate
        if parts is None:
            parts = objects_at(object_at(candidate, "content"), "parts")
        if not parts:
            return None
        new = {
            name: value for name, value in candidate.items() if name != "finishReason"
        }
        return {**new, "content": {"role": "model", "parts": parts}}

    def reply(self) -> dict[str, Any] | None:
        """See `Stream.reply`."""
        found = [known.whole() for _, known in sorted(self._candidates.items())]
        if any("finishReason" not in candidate for candidate in found):
            return None
        if not found:
            return self._last if "promptFeedback" in self._last else None
        return {**self._last, "candidates": found}

    def closing(self, reply: dict[str, Any], note: str) -> list[dict[str, Any]]:
        """See `Stream.closing`."""
        candidates = [
            {
                **candidate,
                "content": {"role": "model", "parts": [{"text": "" if at else note}]},
            }
            for at, candidate in enumerate(reply["candidates"])
        ]
        return [{**reply, "candidates": candidates}]


class _Candidate:
    """One candidate of a round, as it comes."""

    def __init__(self, dialect: GeminiDialect) -> None:
        self.step = _Step(dialect)
        self._whole: dict[str, Any] = {}
        self._parts: list[Any] = []

    def add(self, candidate: Mapping[str, Any]) -> list[Any] | None:
        """Take in what came of it: the parts for the client, None if those need no change."""
        self._whole = {**self._whole, **candidate}
        parts = objects_at(object_at(candidate, "content"), "parts")
        for part in parts:
            self._add(part)
        shown = [self.step.shown(part) for part in parts]
        if all(one is other for one, other in zip(shown, parts, strict=True)):
            return None
        return [part for part in shown if part is not None]

    def _add(self, part: Mapping[str, Any]) -> None:
        """Text goes behind text of its kind; what is signed stays a part of its own (G8)."""
        last = self._parts[-1] if self._parts else {}
        if part == {"text": ""}:
            return
        if (
            _is_plain(part)
            and _is_plain(last)
            and part.get("thought") == last.get("thought")
        ):
            self._parts[-1] = {**last, "text": last["text"] + part["text"]}
        else:
            self._parts.append(part)

    def whole(self) -> dict[str, Any]:
        """The candidate as if unstreamed."""
        return {**self._whole, "content": {"role": "model", "parts": self._parts}}


def _is_said(part: Any) -> bool:
    """Whether a part is text for the client, and no thought."""
    is_text = isinstance(part, Mapping) and bool(part.get("text"))
    return is_text and not part.get("thought")


def _untold(candidate: Mapping[str, Any]) -> dict[str, Any]:
    """A candidate of a chunk without its text."""
    content = object_at(candidate, "content")
    parts = [part for part in objects_at(content, "parts") if not _is_said(part)]
    return {**candidate, "content": {**content, "parts": parts}}


def _is_plain(part: Mapping[str, Any]) -> bool:
    return isinstance(part.get("text"), str) and part.keys() <= {"text", "thought"}


GeminiDialect.stream = GeminiStream
DIALECT = GeminiDialect

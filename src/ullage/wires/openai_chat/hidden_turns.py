"""OpenAI Chat Completions: one message with one text, whatever the number of rounds.

So the texts of two rounds are parted by an empty line, where no white space parts them. Of several
choices none is continued: private calls are left out of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ullage.wires.gemini.models import UNCHECKED
from ullage.wires.hidden_turns.dialect import (
    Dialect,
    Stream,
    index_of,
    joint,
    object_at,
    objects_at,
)
from ullage.wires.hidden_turns.pieces import add, summed, whole

_TEXTS = ("content", "refusal", "reasoning_content", "reasoning")
_SAID = ("content", "refusal")
_LISTS = ("reasoning_details", "annotations")


class ChatDialect(Dialect):
    """The Chat Completions format."""

    added = ("completion_tokens", "completion_tokens_details", "cost", "cost_details")
    total, several = "total_tokens", "choices"
    calls_stop, end_stop = "tool_calls", "stop"

    def is_single(self, request: Mapping[str, Any]) -> bool:
        """See `Dialect.is_single`."""
        return (request.get("n") or 1) == 1

    def is_held(self, request: Mapping[str, Any]) -> bool:
        """See `Dialect.is_held`: a stored completion can be fetched again by its id."""
        return request.get("store") is not False

    def kept(self, reply: dict[str, Any]) -> dict[str, Any]:
        """See `Dialect.kept`."""
        choices = objects_at(reply, "choices")
        shown = [self.other(choice) for choice in choices]
        return reply if shown == choices else {**reply, "choices": shown}

    def stop_of(self, reply: Mapping[str, Any]) -> str:
        """See `Dialect.stop_of`: of the first choice."""
        choices = reply.get("choices")
        return str((choices[0].get("finish_reason") if choices else None) or "")

    def shown(self, message: Any) -> Any:
        """See `Dialect.shown`."""
        calls = objects_at(message, "tool_calls")
        kept = [call for call in calls if not self.owns(call)]
        if len(kept) == len(calls):
            return message
        new = {name: value for name, value in message.items() if name != "tool_calls"}
        if kept:
            return {**new, "tool_calls": resigned(calls, kept)}
        return new if any(new.get(name) for name in (*_TEXTS, *_LISTS)) else None

    def untold(self, message: Any) -> Any:
        """See `Dialect.untold`."""
        if not any(message.get(name) for name in _SAID):
            return message
        new = {
            name: None if name in _SAID else value for name, value in message.items()
        }
        others = (*_TEXTS, *_LISTS, "tool_calls")
        return new if any(new.get(name) for name in others) else None

    def joined(
        self, replies: Sequence[Mapping[str, Any]], said: Sequence[Any], note: str
    ) -> dict[str, Any]:
        """See `Dialect.joined`."""
        first, last = replies[0], replies[-1]
        message: dict[str, Any] = {"role": "assistant", "content": None}
        for each in (*said, *([{"content": note}] if note else ())):
            message = _behind(message, each)
        head, *others = last["choices"]
        choice = {
            **head,
            "message": message,
            "finish_reason": self.stop_for(last, said) or None,
        }
        kept = {name: first[name] for name in ("id", "created") if name in first}
        new = {**last, **kept, "choices": [choice, *map(self.other, others)]}
        usage = summed(
            [reply.get("usage") for reply in replies],
            self.added,
            self.total,
        )
        return {**new, "usage": usage} if usage is not None else new

    def other(self, choice: Mapping[str, Any]) -> dict[str, Any]:
        """See `Dialect.other`."""
        message = self.shown(object_at(choice, "message")) or {
            "role": "assistant",
            "content": None,
        }
        stop = self.stop_for({"choices": [choice]}, [message]) or None
        return {**choice, "message": message, "finish_reason": stop}


def _behind(before: dict[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """One message with what another says behind it."""
    new = {**before, **after, "role": "assistant"}
    for name in _TEXTS:
        one, other = before.get(name), after.get(name)
        if isinstance(one, str) and (other is None or isinstance(other, str)):
            new[name] = one + joint(one, other or "") + (other or "")
    for name in _LISTS:
        if isinstance(before.get(name), list):
            new[name] = [*before[name], *(after.get(name) or ())]
    return new


def resigned(calls: Sequence[Any], kept: Sequence[Any]) -> list[Any]:
    """Calls of which the first was left out; Gemini had signed that one, and no other (C12).

    The next one gets what passes for a signature, should the first never come back.
    """
    google = _google(calls[0])
    if not google.get("thought_signature") or kept[0] is calls[0]:
        return list(kept)
    if _google(kept[0]).get("thought_signature"):
        return list(kept)
    extra = {"google": {"thought_signature": UNCHECKED}}
    return [{**kept[0], "extra_content": extra}, *kept[1:]]


def _google(call: Mapping[str, Any]) -> Mapping[str, Any]:
    return object_at(object_at(call, "extra_content"), "google")


# ── the stream ───────────────────────────────────────────────────────────────────────────


class ChatStream(Stream):
    """Chunks of the Chat Completions format."""

    def __init__(self, dialect: Any, request: Mapping[str, Any]) -> None:
        super().__init__(dialect, request)
        self._wants_usage = bool(
            object_at(request, "stream_options").get("include_usage")
        )
        self._kept: dict[str, Any] = {}
        self._ends: dict[tuple[int, str], str] = {}
        self._numbers: dict[int, int] = {}

    def _clear(self) -> None:
        self._last: dict[str, Any] = {}
        self._usage: Any = None
        self._choices: dict[int, _Choice] = {}
        self._ending: dict[int, dict[str, Any]] = {}

    def feed(self, event: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """See `Stream.feed`. A chunk with usage alone is for those who asked for it."""
        if not isinstance(event.get("choices"), list):
            return (event,)
        if self.is_muted and self.speaks(event):
            event = {
                **event,
                "choices": [_untold(choice) for choice in event["choices"]],
            }
        told = objects_at(event, "choices")
        if not self._kept:
            self._kept = {
                name: event[name] for name in ("id", "created") if name in event
            }
        self._last = {**self._last, **event}
        self._usage = event.get("usage") or self._usage
        if not told:
            is_usage = event.get("usage") is not None
            is_kept = (
                (self.holds or not self._wants_usage) if is_usage else not self.is_first
            )
            return () if is_kept else (event,)
        choices = [self._shown(choice) for choice in told]
        given = [choice for choice in choices if choice is not None]
        if self.is_first and all(map(_is, choices, told)):
            return (event,)
        return ({**event, **self._kept, "choices": given},) if given else ()

    def speaks(self, event: Mapping[str, Any]) -> bool:
        """See `Stream.speaks`."""
        deltas = (object_at(choice, "delta") for choice in objects_at(event, "choices"))
        return any(delta.get(name) for delta in deltas for name in _SAID)

    def _shown(self, choice: dict[str, Any]) -> dict[str, Any] | None:
        """What the client gets of a choice: itself if it needs no change, None for nothing."""
        index, delta = index_of(choice), object_at(choice, "delta")
        known = self._choices.setdefault(index, _Choice(self))
        new = known.delta(delta, index)
        stop = choice.get("finish_reason")
        known.add(choice)
        if stop is not None and self.holds:
            self._ending[index] = {**choice, "delta": {}}
            stop = None
        if self.is_muted and not new and stop is None:
            return None
        if new is delta and stop == choice.get("finish_reason"):
            return choice
        says = any(value is not None for name, value in new.items() if name != "role")
        is_opening = "role" in new
        if not says and not is_opening and stop is None:
            return None
        return {**choice, "delta": new, "finish_reason": stop}

    def numbered(self, choice: int) -> int:
        """The client's number for the next call of a choice."""
        at = self._numbers.get(choice, 0)
        self._numbers[choice] = at + 1
        return at

    def parted(self, choice: int, delta: dict[str, Any]) -> dict[str, Any]:
        """A delta whose texts stand apart from those of the rounds before."""
        for name in _TEXTS:
            text = delta.get(name)
            if isinstance(text, str) and text:
                before = (
                    ""
                    if self._choices[choice].has_said(name)
                    else self._ends.get((choice, name), "")
                )
                between = joint(before, text)
                delta = {**delta, name: between + text} if between else delta
                self._ends[choice, name] = text[-1]
        return delta

    def reply(self) -> dict[str, Any] | None:
        """See `Stream.reply`."""
        choices = [known.whole() for _, known in sorted(self._choices.items())]
        if not choices or any(
            choice.get("finish_reason") is None for choice in choices
        ):
            return None
        new = {**self._last, "object": "chat.completion", "choices": choices}
        return {**new, "usage": self._usage} if self._usage is not None else new

    def closing(self, reply: dict[str, Any], note: str) -> list[dict[str, Any]]:
        """See `Stream.closing`."""
        base = {**self._last, **self._kept}
        base = {name: value for name, value in base.items() if name != "usage"}
        stops = {
            index_of(choice): choice["finish_reason"] for choice in reply["choices"]
        }
        if note:
            note = joint(self._ends.get((0, "content"), ""), note) + note
        said = {"index": 0, "delta": {"content": note}, "finish_reason": None}
        ends = [
            {**choice, "finish_reason": stops[index]}
            for index, choice in sorted(self._ending.items())
        ]
        events = [{**base, "choices": [said]}] if note else []
        events += [{**base, "choices": [end]} for end in ends]
        if self._wants_usage and reply.get("usage") is not None:
            events.append({**base, "choices": [], "usage": reply["usage"]})
        return events


def _untold(choice: Any) -> Any:
    """A choice of a chunk without its text."""
    delta = object_at(choice, "delta")
    return {
        **choice,
        "delta": {name: delta[name] for name in delta if name not in _SAID},
    }


def _is(one: Any, other: Any) -> bool:
    return one is other


class _Choice:
    """One choice of a round, as it comes."""

    def __init__(self, stream: ChatStream) -> None:
        self._stream, self._whole = stream, dict[str, Any]()
        self._message: dict[str, Any] = {}
        self._calls: list[dict[str, Any]] = []
        self._at: dict[int, int] = {}
        self._numbers: list[int | None] = []

    def has_said(self, name: str) -> bool:
        """Whether anything of this text came already."""
        return bool(self._message.get(name))

    def delta(self, delta: dict[str, Any], index: int) -> dict[str, Any]:
        """What the client gets of a delta: itself if it needs no change."""
        new = delta
        if not self._stream.is_first:
            new = {name: value for name, value in delta.items() if name != "role"}
        new = self._stream.parted(index, new)
        calls = objects_at(delta, "tool_calls")
        if calls:
            shown = [
                each for call in calls if (each := self._call(call, index)) is not None
            ]
            if len(shown) < len(calls) or not all(map(_is, shown, calls)):
                new = {
                    name: value for name, value in new.items() if name != "tool_calls"
                }
                new = {**new, "tool_calls": shown} if shown else new
        add(
            self._message, {name: delta[name] for name in delta if name != "tool_calls"}
        )
        return new

    def add(self, choice: Mapping[str, Any]) -> None:
        """Take in what a choice has beside its delta."""
        add(self._whole, {name: choice[name] for name in choice if name != "delta"})

    def _call(self, piece: dict[str, Any], choice: int) -> dict[str, Any] | None:
        """A piece of a call under the client's number; None of a private call."""
        at = self._slot(piece)
        if at == len(self._calls):
            self._calls.append({})
            self._numbers.append(self._number(piece, choice))
        add(self._calls[at], {name: piece[name] for name in piece if name != "index"})
        number = self._numbers[at]
        if number is None:
            return None
        if at and self._numbers.index(number) == at and "id" in piece:
            piece = self._signed(piece, at)
        return (
            piece
            if piece.get("index", number) == number
            else {**piece, "index": number}
        )

    def _number(self, piece: Mapping[str, Any], choice: int) -> int | None:
        if self._stream.owns(piece):
            self._stream.hides = True
            return None
        return self._stream.numbered(choice)

    def _signed(self, piece: dict[str, Any], at: int) -> dict[str, Any]:
        """The first piece of a call, signed anew where the first call was left out."""
        if any(number is not None for number in self._numbers[:at]):
            return piece
        (new,) = resigned([*self._calls[:at], piece], [piece])
        return new  # type: ignore[no-any-return]

    def _slot(self, piece: Mapping[str, Any]) -> int:
        """Which call a piece is of. Some servers give every call the same index, or none."""
        index, name = piece.get("index"), piece.get("id")
        index = index if isinstance(index, int) else -1
        at = self._at.get(index, -1)
        if at < 0 or (name and self._calls[at].get("id") not in (name, None)):
            at = self._at[index] = len(self._calls)
        return at

    def whole(self) -> dict[str, Any]:
        """The choice as if unstreamed."""
        message = {"role": "assistant", "content": None, **self._message}
        if self._calls:
            message["tool_calls"] = self._calls
        found: dict[str, Any] = whole({**self._whole, "message": message})
        return found


ChatDialect.stream = ChatStream
DIALECT = ChatDialect

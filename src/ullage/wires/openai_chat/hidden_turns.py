"""OpenAI Chat Completions: one message with one text, whatever the number of rounds.

So the texts of two rounds are parted by an empty line, where no white space parts them. Of several
choices none is continued: private calls are left out of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
_SPOKEN = ("content", "refusal")
_LISTS = ("reasoning_details", "annotations")


class ChatDialect(Dialect):
    """The Chat Completions format."""

    added = (
        "completion_tokens",
        "completion_tokens_details",
        "cost",
        "cost_details",
    )
    total = "total_tokens"
    several = "choices"
    calls_stop = "tool_calls"
    end_stop = "stop"

    def is_single(self, request: Mapping[str, Any]) -> bool:
        """See `Dialect.is_single`."""
        return (request.get("n") or 1) == 1

    def is_held(self, request: Mapping[str, Any]) -> bool:
        """See `Dialect.is_held`: a stored completion can be fetched again by its id."""
        return request.get("store") is not False

    def kept(self, reply: dict[str, Any]) -> dict[str, Any]:
        """See `Dialect.kept`."""
        choices = objects_at(reply, "choices")
        public = [self.other(choice) for choice in choices]
        if public == choices:
            return reply
        return {**reply, "choices": public}

    def stop_of(self, reply: Mapping[str, Any]) -> str:
        """See `Dialect.stop_of`: of the first choice."""
        choices = reply.get("choices")
        if not choices:
            return ""
        return str(choices[0].get("finish_reason") or "")

    def shown(self, message: Any) -> Any:
        """See `Dialect.shown`."""
        calls = objects_at(message, "tool_calls")
        public = [call for call in calls if not self.owns(call)]
        if len(public) == len(calls):
            return message
        rest = _but(message, "tool_calls")
        if public:
            return {**rest, "tool_calls": signed_anew(calls, public)}
        if _has_any(rest, (*_TEXTS, *_LISTS)):
            return rest
        return None

    def untold(self, message: Any) -> Any:
        """See `Dialect.untold`."""
        if not _has_any(message, _SPOKEN):
            return message
        silent = dict(message)
        for name in _SPOKEN:
            if name in silent:
                silent[name] = None
        return (
            silent
            if _has_any(silent, (*_TEXTS, *_LISTS, "tool_calls"))
            else None
        )

    def joined(
        self,
        replies: Sequence[Mapping[str, Any]],
        messages: Sequence[Any],
        note: str,
    ) -> dict[str, Any]:
        """See `Dialect.joined`."""
        opening = replies[0]
        ending = replies[-1]
        message: dict[str, Any] = {"role": "assistant", "content": None}
        for addition in messages:
            message = _extended(message, addition)
        if note:
            message = _extended(message, {"content": note})
        head, *alternatives = ending["choices"]
        choice = {
            **head,
            "message": message,
            "finish_reason": self.stop_for(ending, messages) or None,
        }
        reply = {**ending, **_identity(opening)}
        reply["choices"] = [choice, *map(self.other, alternatives)]
        usages = [reply.get("usage") for reply in replies]
        usage = summed(usages, self.added, self.total)
        if usage is not None:
            reply["usage"] = usage
        return reply

    def other(self, choice: Mapping[str, Any]) -> dict[str, Any]:
        """See `Dialect.other`."""
        message = self.shown(object_at(choice, "message"))
        if not message:
            message = {"role": "assistant", "content": None}
        stop = self.stop_for({"choices": [choice]}, [message])
        return {**choice, "message": message, "finish_reason": stop or None}


def _but(fields: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The fields of an object without some."""
    return {name: value for name, value in fields.items() if name not in names}


def _has_any(fields: Mapping[str, Any], names: Iterable[str]) -> bool:
    """Whether one of these fields is there and not empty."""
    return any(fields.get(name) for name in names)


def _identity(reply: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a reply that stay those of the first round."""
    return {name: reply[name] for name in ("id", "created") if name in reply}


def _extended(
    message: dict[str, Any], addition: Mapping[str, Any]
) -> dict[str, Any]:
    """One message with what another says behind it."""
    extended = {**message, **addition, "role": "assistant"}
    for name in _TEXTS:
        text = message.get(name)
        more = addition.get(name)
        if isinstance(text, str) and (more is None or isinstance(more, str)):
            more = more or ""
            extended[name] = text + joint(text, more) + more
    for name in _LISTS:
        items = message.get(name)
        if isinstance(items, list):
            extended[name] = [*items, *(addition.get(name) or ())]
    return extended


def signed_anew(calls: Sequence[Any], public: Sequence[Any]) -> list[Any]:
    """The public calls of a message, the first signed where its signature was left out.

    Gemini signs the first call of a step and no other (C12). Where that one is private, the next
    one gets what passes for a signature, should the first never come back.

    Args:
        calls: every call of the message.
        public: those of them that the client gets, at least one.
    """
    has_signature = bool(_google(calls[0]).get("thought_signature"))
    if not has_signature or public[0] is calls[0]:
        return list(public)
    if _google(public[0]).get("thought_signature"):
        return list(public)
    extra = {"google": {"thought_signature": UNCHECKED}}
    return [{**public[0], "extra_content": extra}, *public[1:]]


def _google(call: Mapping[str, Any]) -> Mapping[str, Any]:
    return object_at(object_at(call, "extra_content"), "google")


# ── the stream ───────────────────────────────────────────────────────────────────────────


class ChatStream(Stream):
    """Chunks of the Chat Completions format."""

    def __init__(self, dialect: Any, request: Mapping[str, Any]) -> None:
        super().__init__(dialect, request)
        options = object_at(request, "stream_options")
        self._wants_usage = bool(options.get("include_usage"))
        self._identity: dict[str, Any] = {}
        self._ends: dict[tuple[int, str], str] = {}
        self._numbers: dict[int, int] = {}

    def _clear(self) -> None:
        self._fields: dict[str, Any] = {}
        self._usage: Any = None
        self._choices: dict[int, _Choice] = {}
        self._ending: dict[int, dict[str, Any]] = {}

    def feed(self, event: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """See `Stream.feed`. A chunk with usage alone is for those who asked for it."""
        if not isinstance(event.get("choices"), list):
            return (event,)
        if self.is_muted and self.speaks(event):
            silent = [_silent(choice) for choice in event["choices"]]
            event = {**event, "choices": silent}
        if not self._identity:
            self._identity = _identity(event)
        self._fields = {**self._fields, **event}
        self._usage = event.get("usage") or self._usage

        choices = objects_at(event, "choices")
        if not choices:
            if self._holds_back(event):
                return ()
            return (event,)
        results = [self._shown(choice) for choice in choices]
        if self.is_first and _are_same(results, choices):
            return (event,)
        public = [choice for choice in results if choice is not None]
        if not public:
            return ()
        return ({**event, **self._identity, "choices": public},)

    def _holds_back(self, event: Mapping[str, Any]) -> bool:
        """Whether a chunk without choices is not for the client now."""
        if event.get("usage") is None:
            return not self.is_first
        return self.holds or not self._wants_usage

    def speaks(self, event: Mapping[str, Any]) -> bool:
        """See `Stream.speaks`."""
        for choice in objects_at(event, "choices"):
            if _has_any(object_at(choice, "delta"), _SPOKEN):
                return True
        return False

    def _shown(self, choice: dict[str, Any]) -> dict[str, Any] | None:
        """The choice as the client gets it: itself if it needs no change, None for nothing."""
        index = index_of(choice)
        delta = object_at(choice, "delta")
        state = self._choices.setdefault(index, _Choice(self))
        public = state.delta(delta, index)
        stop = choice.get("finish_reason")
        state.add(choice)
        if stop is not None and self.holds:
            self._ending[index] = {**choice, "delta": {}}
            stop = None
        if self.is_muted and not public and stop is None:
            return None
        if public is delta and stop == choice.get("finish_reason"):
            return choice
        is_opening = "role" in public
        if stop is None and not is_opening and not _has_values(public):
            return None
        return {**choice, "delta": public, "finish_reason": stop}

    def numbered(self, choice: int) -> int:
        """The client's number for the next call of a choice."""
        number = self._numbers.get(choice, 0)
        self._numbers[choice] = number + 1
        return number

    def parted(self, choice: int, delta: dict[str, Any]) -> dict[str, Any]:
        """A delta whose texts stand apart from those of the rounds before.

        Args:
            choice: the index of its choice.
            delta: what came, as the client gets it; itself is returned where nothing parts them.
        """
        for name in _TEXTS:
            text = delta.get(name)
            if not isinstance(text, str) or not text:
                continue
            end = ""
            if not self._choices[choice].has_text(name):
                end = self._ends.get((choice, name), "")
            space = joint(end, text)
            if space:
                delta = {**delta, name: space + text}
            self._ends[choice, name] = text[-1]
        return delta

    def reply(self) -> dict[str, Any] | None:
        """See `Stream.reply`."""
        choices = []
        for _, state in sorted(self._choices.items()):
            choice = state.whole()
            if choice.get("finish_reason") is None:
                return None
            choices.append(choice)
        if not choices:
            return None
        reply = {
            **self._fields,
            "object": "chat.completion",
            "choices": choices,
        }
        if self._usage is not None:
            reply["usage"] = self._usage
        return reply

    def closing(
        self, reply: dict[str, Any], note: str
    ) -> list[dict[str, Any]]:
        """See `Stream.closing`."""
        base = _but({**self._fields, **self._identity}, "usage")
        events = []
        if note:
            end = self._ends.get((0, "content"), "")
            delta = {"content": joint(end, note) + note}
            choice = {"index": 0, "delta": delta, "finish_reason": None}
            events.append({**base, "choices": [choice]})
        stops = {}
        for choice in reply["choices"]:
            stops[index_of(choice)] = choice["finish_reason"]
        for index, choice in sorted(self._ending.items()):
            ending = {**choice, "finish_reason": stops[index]}
            events.append({**base, "choices": [ending]})
        if self._wants_usage and reply.get("usage") is not None:
            events.append({**base, "choices": [], "usage": reply["usage"]})
        return events


def _silent(choice: Any) -> Any:
    """A choice of a chunk without its text."""
    delta = object_at(choice, "delta")
    return {**choice, "delta": _but(delta, *_SPOKEN)}


def _has_values(delta: Mapping[str, Any]) -> bool:
    """Whether a delta says more than a role."""
    return any(value is not None for value in _but(delta, "role").values())


class _Choice:
    """One choice of a round, as it comes.

    A call is known by its place in this choice. The client numbers the calls of all rounds, and
    has no number for a private one.
    """

    def __init__(self, stream: ChatStream) -> None:
        self._stream = stream
        self._fields: dict[str, Any] = {}
        self._message: dict[str, Any] = {}
        self._calls: list[dict[str, Any]] = []
        self._at: dict[int, int] = {}
        self._numbers: list[int | None] = []

    def has_text(self, name: str) -> bool:
        """Whether anything of the text in this field came already."""
        return bool(self._message.get(name))

    def delta(self, delta: dict[str, Any], index: int) -> dict[str, Any]:
        """Take in a delta, and give what the client gets of it.

        Args:
            delta: what came.
            index: the index of this choice.

        Returns:
            The delta itself if the client gets it unchanged.
        """
        public = delta if self._stream.is_first else _but(delta, "role")
        public = self._stream.parted(index, public)
        calls = objects_at(delta, "tool_calls")
        if calls:
            public_calls = []
            for piece in calls:
                public_piece = self._call(piece, index)
                if public_piece is not None:
                    public_calls.append(public_piece)
            if not _are_same(public_calls, calls):
                public = _but(public, "tool_calls")
                if public_calls:
                    public["tool_calls"] = public_calls
        add(self._message, _but(delta, "tool_calls"))
        return public

    def add(self, choice: Mapping[str, Any]) -> None:
        """Take in what a choice has beside its delta."""
        add(self._fields, _but(choice, "delta"))

    def _call(
        self, piece: dict[str, Any], choice: int
    ) -> dict[str, Any] | None:
        """A piece of a call under the client's number; None of a private call."""
        at = self._slot(piece)
        if at == len(self._calls):
            self._calls.append({})
            self._numbers.append(self._number(piece, choice))
        add(self._calls[at], _but(piece, "index"))
        number = self._numbers[at]
        if number is None:
            return None
        is_first_piece = self._numbers.index(number) == at and "id" in piece
        if at and is_first_piece:
            piece = self._signed(piece, at)
        if piece.get("index", number) == number:
            return piece
        return {**piece, "index": number}

    def _number(self, piece: Mapping[str, Any], choice: int) -> int | None:
        if self._stream.owns(piece):
            self._stream.hides = True
            return None
        return self._stream.numbered(choice)

    def _signed(self, piece: dict[str, Any], at: int) -> dict[str, Any]:
        """The first piece of a call, signed anew where the first call was left out."""
        if any(number is not None for number in self._numbers[:at]):
            return piece
        signed: list[dict[str, Any]] = signed_anew(
            [*self._calls[:at], piece], [piece]
        )
        return signed[0]

    def _slot(self, piece: Mapping[str, Any]) -> int:
        """Which call a piece is of. Some servers give every call the same index, or none."""
        index = piece.get("index")
        call_id = piece.get("id")
        if not isinstance(index, int):
            index = -1
        at = self._at.get(index, -1)
        if at >= 0:
            known_id = self._calls[at].get("id")
            if not call_id or known_id is None or known_id == call_id:
                return at
        # Another id under the same index is another call.
        at = len(self._calls)
        self._at[index] = at
        return at

    def whole(self) -> dict[str, Any]:
        """The choice as if unstreamed."""
        message = {"role": "assistant", "content": None, **self._message}
        if self._calls:
            message["tool_calls"] = self._calls
        choice: dict[str, Any] = whole({**self._fields, "message": message})
        return choice


def _are_same(results: Sequence[Any], items: Sequence[Any]) -> bool:
    """Whether two lists hold the very same objects."""
    if len(results) != len(items):
        return False
    return all(
        result is item for result, item in zip(results, items, strict=True)
    )


ChatDialect.stream = ChatStream
DIALECT = ChatDialect

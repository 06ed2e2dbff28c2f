"""What a request has in common with the one before it, from the front.

A request is a head (tools, then system) and a list of messages:

    before   ████████████████████████████▓▓▓▓▓▓▓▓▓▓
    now      ████████████████████████████░░░░░░░░░░░░░░░
             └── common prefix ─────────┘└ rewritten ┘ = what was there before and is lost

Messages are compared by identity, then by value without their cache markers, so a message must
not be changed in place between two calls; of the first message that differs, what its texts have
in common counts. It depends on no provider: one comparison serves every price profile.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from ullage.core.values.texts import common_chars

CountText: TypeAlias = Callable[[str], int]
Wire: TypeAlias = Mapping[str, Any]


class MeasuredRequest(Struct, frozen=True, kw_only=True, gc=False):
    """One request, measured against the one before it.

    Attributes:
        head_tokens: its tools and system text.
        common_tokens: what it begins with as the one before did.
        rewritten_tokens: what the one before held behind that.
        blocks: how many content blocks its messages have.
    """

    prompt_tokens: int
    head_tokens: int
    common_tokens: int
    rewritten_tokens: int
    blocks: int


_HEADS = (
    "tools",
    "system",
    "instructions",
    "systemInstruction",
    "system_instruction",
)


def head_of(request: Wire) -> str:
    """The text of a request's head, tools first, as JSON; empty if there is none."""
    config = request.get("config")
    fields = {**config, **request} if isinstance(config, Mapping) else request
    parts = [fields[key] for key in _HEADS if fields.get(key)]
    blocks = [
        block
        for part in parts
        for block in (part if isinstance(part, list) else [part])
    ]
    return _text([_bare_block(block) for block in blocks]) if blocks else ""


class Prefix:
    """Follows one session, request by request.

    A call costs one look at each message that is shared with the request before, and a
    count of each that is new.

    Attributes:
        breaks: requests that rewrote something already sent.
        rewritten_tokens: what they rewrote; ``rewritten_share``, its shares of the request before.
    """

    def __init__(self, count: CountText) -> None:
        self._count = count
        self._head = ""
        self._head_tokens = 0
        self._messages: list[Wire] = []
        self._sizes: list[int] = []
        self._total = 0
        self._blocks: list[int] = []
        self.breaks = self.rewritten_tokens = 0
        self.rewritten_share = 0.0

    def measure(
        self, messages: Sequence[Wire], head: str = ""
    ) -> MeasuredRequest:
        """Take in one request: its messages in wire form, and its head as text (`head_of`)."""
        previous_tokens = self._total
        common = self._take(messages, head)
        if common < previous_tokens:
            self.breaks += 1
            self.rewritten_tokens += previous_tokens - common
            self.rewritten_share += (
                previous_tokens - common
            ) / previous_tokens
        return MeasuredRequest(
            prompt_tokens=self._total,
            head_tokens=self._head_tokens,
            common_tokens=common,
            rewritten_tokens=previous_tokens - common,
            blocks=sum(self._blocks),
        )

    def _take(self, messages: Sequence[Wire], head: str) -> int:
        """Make this the request before; the tokens it has in common with the old one."""
        same = 0
        if head == self._head:
            same = self._same(messages)
            common = self._head_tokens + sum(self._sizes[:same])
            if same < len(self._messages) and same < len(messages):
                common += self._shared(self._messages[same], messages[same])
        else:
            shared = _common(self._head, head)
            common = (
                min(self._count(shared), self._head_tokens) if shared else 0
            )
            self._head_tokens = self._count(head) if head else 0
            self._head = head
        self._sizes[same:] = (
            message_tokens(_bare(message), self._count)
            for message in messages[same:]
        )
        self._blocks[same:] = map(_blocks_of, messages[same:])
        self._messages = list(messages)
        self._total = self._head_tokens + sum(self._sizes)
        return min(common, self._total)

    def _same(self, messages: Sequence[Wire]) -> int:
        """How many leading messages are the same as before."""
        same = 0
        for earlier, later in zip(self._messages, messages, strict=False):
            if (
                earlier is not later
                and earlier != later
                and _bare(earlier) != _bare(later)
            ):
                break
            same += 1
        return same

    def _shared(self, earlier: Wire, later: Wire) -> int:
        """Tokens of the texts with which two differing messages begin alike."""
        tokens = 0
        for earlier_text, later_text in zip(
            _texts(_bare(earlier)), _texts(_bare(later)), strict=False
        ):
            same = _common(earlier_text, later_text)
            tokens += self._count(same) if same else 0
            if earlier_text != later_text:
                break
        return tokens


def message_tokens(message: object, count: CountText) -> int:
    """The tokens of one message, by the judge: its texts and 4 of framing, no ids and no keys."""
    return 4 + sum(map(count, _texts(message)))


def _texts(value: Any) -> Iterator[str]:
    """The texts of a message in order; a number or the like as one digit."""
    if isinstance(value, Mapping):
        value = [item for key, item in value.items() if key not in _UNREAD]
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)
    else:
        yield value if isinstance(value, str) else "0"


_UNREAD = frozenset(
    ("id", "tool_call_id", "tool_use_id", "type", "role", "signature", "data")
)


def _common(text: str, next_text: str) -> str:
    """The characters two texts begin with alike."""
    return text[: common_chars(text, next_text)]


def _bare(message: Wire) -> Wire:
    """The message without cache markers, at their places only: never inside arguments.

    One text block is the same as its text: clients turn one into the other for a marker.
    """
    content = message.get("content")
    if not isinstance(content, list):
        return message
    content = [_bare_block(block) for block in content]
    only = content[0] if len(content) == 1 else None
    if isinstance(only, dict) and only.keys() == {"type", "text"}:
        content = only["text"]
    return {**message, "content": content}


def _bare_block(block: Any) -> Any:
    if not isinstance(block, dict):
        return block
    inner = block.get("content")
    if isinstance(inner, list):
        block = {**block, "content": [_bare_block(item) for item in inner]}
    if "cache_control" in block:
        block = {
            key: value
            for key, value in block.items()
            if key != "cache_control"
        }
    return block


def _text(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (
        UnicodeEncodeError
    ):  # a lone surrogate: only the standard library escapes it
        return json.dumps(value, separators=(",", ":"), ensure_ascii=True)


def _blocks_of(message: Wire) -> int:
    """How many blocks a message has where a cache counts them: parts, and calls beside them."""
    content = message.get("parts", message.get("content"))
    parts = len(content) if isinstance(content, list) else int(bool(content))
    return max(parts + len(message.get("tool_calls") or ()), 1)

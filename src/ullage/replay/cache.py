"""What a provider's prompt cache would have charged: a simulator.

A request is a head (tools, then system) and a list of messages. What it shares with the
request before, from the front, can be read from the cache; what follows is new, or has to be
written again (`metrics` M3):

    before   ████████████████████████████▓▓▓▓▓▓▓▓▓▓
    now      ████████████████████████████░░░░░░░░░░░░░░░
             └── common prefix ─────────┘└ rewritten ┘ = what stood there before and is lost

    prompt = cached + written + fresh        each token in exactly one class
    cached   read from the cache: the common prefix, as far as an entry reaches
    written  not in the cache before, in it now
    fresh    not cached at all: below the minimum, or past the last whole step

Where an entry may end differs. Automatic caches hit any prefix, in whole steps. Explicit
ones hit only where an earlier request had set a marker: assumed are one after the head and
one at the end of every request, so a cut in mid-history falls back to the end of the last
request that lies wholly before it.

Assumed throughout: all gaps are shorter than the time to live; an entry overtaken by a
rewrite is not looked for again; a provider's limit on how far a marker looks back is not
reached. The price is flat: no tier for long prompts. Messages are compared by identity, then
by value without their cache markers, so a message must not be changed in place between two
calls; within the first message that differs, the common characters count.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from blake3 import blake3
from msgspec import Struct

from ullage.errors import ConfigError

__all__ = ["PROFILES", "CacheSimulator", "Call", "Profile", "Totals", "head_of", "usd"]

CountText: TypeAlias = Callable[[str], int]
Wire: TypeAlias = Mapping[str, Any]


class Profile(Struct, frozen=True, kw_only=True):
    """The terms of one provider's cache, as factors of its input price.

    Attributes:
        name: what to call it.
        write: price of a token written to the cache.
        read: price of a token read from it.
        min_tokens: the shortest prefix that is cached.
        step_tokens: prefixes are cached in whole steps of so many tokens.
        hits: ``"prefix"``: any common prefix; ``"entry"``: only up to where an earlier
            request ended, or the head; ``"never"``: there is no cache.
        as_of: when the terms were read, ISO date.
        source: where.
    """

    name: str
    write: float
    read: float
    min_tokens: int
    step_tokens: int = 1
    hits: Literal["prefix", "entry", "never"] = "prefix"
    as_of: str
    source: str


def _known(*profiles: Profile) -> dict[str, Profile]:
    return {profile.name: profile for profile in profiles}


_ANTHROPIC = "platform.claude.com, prompt caching"
_OPENAI = "developers.openai.com, prompt caching"

PROFILES: dict[str, Profile] = _known(
    Profile(name="anthropic-5m", write=1.25, read=0.1, min_tokens=1024, hits="entry",
            as_of="2026-11-21", source=f"{_ANTHROPIC}; Sonnet 4.5 to Sonnet 5"),
    Profile(name="anthropic-1h", write=2.0, read=0.1, min_tokens=1024, hits="entry",
            as_of="2026-11-21", source=f"{_ANTHROPIC}; Sonnet 4.5 to Sonnet 5"),
    Profile(name="anthropic-5.5", write=1.25, read=0.05, min_tokens=512, hits="entry",
            as_of="2026-11-21", source=f"{_ANTHROPIC}; Opus 5.5, Sonnet 5.5"),
    Profile(name="openai-5", write=1.0, read=0.1, min_tokens=1024, step_tokens=128,
            as_of="2026-11-21", source=f"{_OPENAI}; GPT-5 to GPT-5.5"),
    Profile(name="openai-5.6", write=1.25, read=0.1, min_tokens=1024, hits="entry",
            as_of="2026-11-21", source=f"{_OPENAI}; GPT-5.6 and later"),
    Profile(name="gemini-implicit", write=1.0, read=0.1, min_tokens=2048,
            as_of="2026-11-21", source="ai.google.dev and Vertex AI, context caching"),
    Profile(name="none", write=1.0, read=1.0, min_tokens=0, hits="never",
            as_of="2026-11-21", source="no cache: every token at the input price"),
)  # fmt: skip
"""The profiles that ship, by name. Terms change: each has its date and source."""


class Call(Struct, frozen=True, kw_only=True, gc=False):
    """What one request did to the cache, in tokens."""

    prompt_tokens: int
    cached_tokens: int
    written_tokens: int
    fresh_tokens: int
    rewritten_tokens: int

    @property
    def broke(self) -> bool:
        """Something that had been sent before was not sent again at its place."""
        return self.rewritten_tokens > 0


class Totals(Struct, frozen=True, kw_only=True):
    """The sum of many calls under one profile, in tokens."""

    profile: Profile
    calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0
    fresh_tokens: int = 0
    rewritten_tokens: int = 0
    breaks: int = 0
    peak_tokens: int = 0

    def plus(self, call: Call) -> Totals:
        """These totals and one call more."""
        return self + Totals(
            profile=self.profile,
            calls=1,
            prompt_tokens=call.prompt_tokens,
            cached_tokens=call.cached_tokens,
            written_tokens=call.written_tokens,
            fresh_tokens=call.fresh_tokens,
            rewritten_tokens=call.rewritten_tokens,
            breaks=int(call.broke),
            peak_tokens=call.prompt_tokens,
        )

    def __add__(self, other: Totals) -> Totals:
        if self.profile != other.profile:
            names = f"{self.profile.name!r} and {other.profile.name!r}"
            remedy = "Sum each profile by itself."
            raise ConfigError("profile", f"totals under {names} cannot be added", remedy)
        return Totals(
            profile=self.profile,
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            written_tokens=self.written_tokens + other.written_tokens,
            fresh_tokens=self.fresh_tokens + other.fresh_tokens,
            rewritten_tokens=self.rewritten_tokens + other.rewritten_tokens,
            breaks=self.breaks + other.breaks,
            peak_tokens=max(self.peak_tokens, other.peak_tokens),
        )


def usd(
    totals: Totals,
    input_price_per_mtok: float,
    output_tokens: int = 0,
    output_price_per_mtok: float = 0.0,
) -> float:
    """What the calls cost in US dollars, at prices in US dollars per million tokens."""
    profile = totals.profile
    paid = (
        totals.fresh_tokens
        + profile.write * totals.written_tokens
        + profile.read * totals.cached_tokens
    )
    return (paid * input_price_per_mtok + output_tokens * output_price_per_mtok) / 1e6


_HEADS = ("tools", "system", "instructions", "systemInstruction", "system_instruction")


def head_of(request: Wire) -> str:
    """The text of a request's head, tools first, as JSON; empty if there is none."""
    config = request.get("config")
    fields = {**config, **request} if isinstance(config, Mapping) else request
    parts = [fields[key] for key in _HEADS if fields.get(key)]
    blocks = [block for part in parts for block in (part if isinstance(part, list) else [part])]
    return _text([_bare_block(block) for block in blocks]) if blocks else ""


class CacheSimulator:
    """Follows one session, request by request, against one profile.

    A call costs one look at each message that is shared with the request before, and a
    count of each that is new.
    """

    def __init__(self, profile: Profile | str, count: CountText) -> None:
        """Start with an empty cache.

        Args:
            profile: a profile, or the name of one in `PROFILES`.
            count: the tokens of a text; messages are counted as their JSON.

        Raises:
            ConfigError: there is no profile of that name.
        """
        self.profile = profile if isinstance(profile, Profile) else _profile(profile)
        self.totals = Totals(profile=self.profile)
        self._count = count
        self._counts: dict[bytes, int] = {}
        self._head = ""
        self._head_tokens = 0
        self._messages: list[Wire] = []
        self._sizes: list[int] = []
        self._total = 0
        self._entries: list[int] = []

    def call(self, messages: Sequence[Wire], head: str = "") -> Call:
        """One request: its messages in wire form, and its head as text (`head_of`)."""
        before = self._total
        common = self._take(messages, head)
        cached = self._hit(common)
        written = self._write(cached)
        call = Call(
            prompt_tokens=self._total,
            cached_tokens=cached,
            written_tokens=written,
            fresh_tokens=self._total - cached - written,
            rewritten_tokens=before - common,
        )
        self.totals = self.totals.plus(call)
        return call

    def _take(self, messages: Sequence[Wire], head: str) -> int:
        """Make this the request before; the tokens it has in common with the old one."""
        same = 0
        if head == self._head:
            same = self._same(messages)
            common = self._head_tokens + sum(self._sizes[:same])
            if same < len(self._messages) and same < len(messages):
                common += self._shared(_text(_bare(self._messages[same])), messages[same])
        else:
            shared = _common(self._head, head)
            common = min(self._count(shared), self._head_tokens) if shared else 0
            self._head, self._head_tokens = head, self._count(head) if head else 0
        self._measure(messages, same)
        return min(common, self._total)

    def _same(self, messages: Sequence[Wire]) -> int:
        """How many leading messages are the same as before."""
        same = 0
        for old, new in zip(self._messages, messages, strict=False):
            if old is not new and old != new and _bare(old) != _bare(new):
                break
            same += 1
        return same

    def _shared(self, old: str, new: Wire) -> int:
        """Tokens of the characters two differing messages have in common."""
        shared = _common(old, _text(_bare(new)))
        return self._count(shared) if shared else 0

    def _measure(self, messages: Sequence[Wire], same: int) -> None:
        """The tokens of each message; those not shared are looked up, or counted."""
        known = {
            id(message): size
            for message, size in zip(self._messages[same:], self._sizes[same:], strict=True)
        }
        sizes = self._sizes[:same]
        for message in messages[same:]:
            size = known.get(id(message))
            sizes.append(self._size(message) if size is None else size)
        self._messages, self._sizes = list(messages), sizes
        self._total = self._head_tokens + sum(sizes)

    def _size(self, message: Wire) -> int:
        text = _text(_bare(message))
        digest = blake3(text.encode("utf-8", "surrogatepass")).digest(16)
        if digest not in self._counts:
            self._counts[digest] = self._count(text)
        return self._counts[digest]

    def _hit(self, common: int) -> int:
        """How much of the common prefix can be read."""
        profile = self.profile
        if profile.hits == "never":
            return 0
        self._entries = [end for end in self._entries if end <= common]
        if profile.hits == "entry":
            reach = max(self._entries, default=0)
        else:
            reach = _steps(common, profile.step_tokens)
        return reach if reach >= max(profile.min_tokens, 1) else 0

    def _write(self, cached: int) -> int:
        """How much is in the cache now and was not before."""
        profile = self.profile
        end = _steps(self._total, profile.step_tokens)
        if profile.hits == "never" or end < max(profile.min_tokens, 1):
            return 0
        for entry in (self._head_tokens, self._total):
            if entry >= profile.min_tokens and entry not in self._entries:
                self._entries.append(entry)
        return max(end - cached, 0)


def _profile(name: str) -> Profile:
    if name not in PROFILES:
        remedy = f"Use one of {', '.join(map(repr, PROFILES))}."
        raise ConfigError("profile", f"there is no cache profile {name!r}", remedy)
    return PROFILES[name]


def _steps(tokens: int, step: int) -> int:
    return tokens - tokens % step


def _common(one: str, other: str) -> str:
    """The characters two texts begin with alike, found by halving: the comparing is in C."""
    same, most = 0, min(len(one), len(other))
    while same < most:
        middle = (same + most + 1) // 2
        if one[same:middle] == other[same:middle]:
            same = middle
        else:
            most = middle - 1
    return one[:same]


def _bare(message: Wire) -> Wire:
    """The message without cache markers, at their places only: never inside arguments.

    One text block is the same as its text: clients turn one into the other for a marker.
    """
    content = message.get("content")
    if not isinstance(content, list):
        return message
    if _marked(content):
        content = [_bare_block(block) for block in content]
    only = content[0] if len(content) == 1 else None
    if isinstance(only, dict) and only.keys() == {"type", "text"}:
        content = only["text"]
    return {**message, "content": content}


def _marked(blocks: Iterable[Any]) -> bool:
    return any(block is not _bare_block(block) for block in blocks)


def _bare_block(block: Any) -> Any:
    if not isinstance(block, dict):
        return block
    inner = block.get("content")
    if isinstance(inner, list) and _marked(inner):
        block = {**block, "content": [_bare_block(item) for item in inner]}
    if "cache_control" in block:
        block = {key: value for key, value in block.items() if key != "cache_control"}
    return block


def _text(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # a lone surrogate: only the standard library escapes it
        return json.dumps(value, separators=(",", ":"), ensure_ascii=True)

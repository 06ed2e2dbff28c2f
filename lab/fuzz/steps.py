"""A history before it is written down: what is said, asked and answered, in no wire's words.

`draw` makes the steps of one history. Which features it may have is drawn first, for the
whole history, so that rare ones meet; each writer says which of them the wire really got.
"""

from __future__ import annotations

import json
from base64 import b64encode
from random import Random

from msgspec import Struct

EVERYWHERE = (
    "parallel calls",
    "empty output",
    "large output",
    "json output",
    "large arguments",
    "media from the user",
    "document or sound",
    "signed reasoning",
    "text and call",
    "interrupted",
    "unknown part",
    "several messages",
    "broken",
)
_NOT_IN_OLLAMA = ("document or sound", "signed reasoning", "unknown part")
FEATURES: dict[str, tuple[str, ...]] = {
    "anthropic": (
        *EVERYWHERE,
        "error",
        "media in a result",
        "sealed reasoning",
        "bound reasoning",
        "manual thinking",
        "server tool",
        "paused server tool",
        "mixed server tool",
        "compaction",
        "note",
        "cache marker",
    ),
    "openai-chat": (
        *EVERYWHERE,
        "open reasoning",
        "repeated ids",
        "custom tool",
        "note",
    ),
    "openai-responses": (
        *EVERYWHERE,
        "media in a result",
        "open reasoning",
        "server tool",
        "hosted call",
        "approval",
        "late approval",
        "repeated ids",
        "late result",
        "never answered",
        "compaction",
        "compaction trigger",
        "custom tool",
        "note",
    ),
    "gemini": (
        *EVERYWHERE,
        "error",
        "media in a result",
        "open reasoning",
        "server tool",
        "repeated ids",
        "no ids",
    ),
    "ollama": (
        *(name for name in EVERYWHERE if name not in _NOT_IN_OLLAMA),
        "media in a result",
        "open reasoning",
        "repeated ids",
        "no ids",
        "no names",
        "note",
    ),
    "bedrock-converse": (
        *(name for name in EVERYWHERE if name != "several messages"),
        "error",
        "media in a result",
        "sealed reasoning",
        "bound reasoning",
        "manual thinking",
        "cache marker",
    ),
}
"""What the histories of each format may hold. "Signed" is a signature or sealed text."""

_SHARES = {
    "bound reasoning": 0.7,
    "manual thinking": 0.65,
    "signed reasoning": 0.6,
    "large arguments": 0.7,
    "compaction trigger": 0.8,
    "document or sound": 0.6,
    "media from the user": 0.55,
    "cache marker": 0.6,
    "broken": 0.3,
}
"""How often a feature is wanted, where that is not about every second time."""

TOOLS = ("read_file", "bash", "grep", "web_fetch", "lookup")
_SEEDS = (
    "def f(x):\n    return x + 1\n",
    "2026-11-21 ERROR connection refused by host 10.0.0.7\n",
    "名前は「猫」である。\n",
    "🙂👩‍👩‍👧 naïve café e\u0301\n",
    "\x00\x1b[31mred\x1b[0m\r\n",
    "aGVsbG8gd29ybGQ",
    "the same line of a log, again and again\n",
)
_SIZES = (420, 600, 900, 1_400)
_POOL = tuple(
    (seed * (size // len(seed) + 1))[:size]
    for seed in _SEEDS
    for size in _SIZES
)
_LARGE = tuple((seed * 500)[:6_500] for seed in _SEEDS[:2])
_ROWS = tuple(
    json.dumps(
        [
            {"n": n, "name": f"row {n} of a table with long names"}
            for n in range(rows)
        ]
    )
    for rows in (6, 9, 14)
)
_WRITTEN = "new text\n" * 70
_SAID = (
    "Let me look.",
    "I see: the cache is stale. " * 6,
    "It may be that, or not. " * 40,
)


class Media(Struct, frozen=True):
    """An image, a document or a sound, as base64."""

    kind: str
    mime: str
    data: str


_PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x02\x58\x00\x00\x01\x90\x08\x02\x00\x00\x00"
IMAGE = Media("image", "image/png", b64encode(_PNG + b"pixels" * 20).decode())
DOCUMENT = Media(
    "document",
    "application/pdf",
    b64encode(b"%PDF-1.4 " + b"page" * 40).decode(),
)
SOUND = Media("audio", "audio/wav", b64encode(b"RIFF" + b"wave" * 60).decode())


class Call(Struct, frozen=True):
    """One call and its result.

    Attributes:
        late: how many steps later the result comes: 0 in its place, -1 never.
        items: 0: the result is a text; else it is a list with that many texts.
    """

    tool: str
    arguments: dict[str, str]
    output: str
    failed: bool = False
    media: Media | None = None
    items: int = 0
    late: int = 0
    custom: bool = False


class Step(Struct, frozen=True):
    """What the user says, if anything, and one reply with the results of its calls.

    Attributes:
        number: which step of the history this is.
        server: "", "whole", "paused" or "mixed": a tool of the server's in this reply.
        more: features of this step that need no more than their name.
    """

    number: int
    user: str | None
    media: Media | None
    thought: str
    said: str
    calls: tuple[Call, ...]
    server: str
    more: frozenset[str]


class Page:
    """What a writer writes on: messages, where requests were sent, features really there."""

    def __init__(self, number: int) -> None:
        self.messages: list[dict] = []
        self.lengths: list[int] = []
        self.features: set[str] = set()
        self.number = number
        self.count = 0

    def name(self, prefix: str) -> str:
        """A name used once in this history, the same whenever it is written."""
        self.count += 1
        return f"{prefix}{self.number:x}x{self.count}"

    def sent(self) -> None:
        """A request was sent here: a reply begins."""
        if self.messages:
            self.lengths.append(len(self.messages))


def opaque(page: Page, prefix: str) -> str:
    """Something only the provider can read, in the letters of base64; used once."""
    return page.name(prefix) + "AbCd0+/9" * 12 + "=="


def draw(random: Random, format: str) -> tuple[list[Step], frozenset[str]]:
    """The steps of one history, and the features it was to have."""
    wanted = frozenset(
        name
        for name in FEATURES[format]
        if random.random() < _SHARES.get(name, 0.45)
    )
    steps: list[Step] = []
    open_before = True
    for number in range(random.choice((3, 3, 3, 4, 4, 5, 6))):
        step = _step(random, wanted, number, open_before)
        steps.append(step)
        open_before = not any(call.late == 0 for call in step.calls)
    return steps, wanted


def _step(
    random: Random, wanted: frozenset[str], number: int, must_speak: bool
) -> Step:
    def has(name: str, share: float = 0.5) -> bool:
        return name in wanted and random.random() < share

    count = random.choice((0, 1, 1, 1, 1))
    if count and has("parallel calls", 0.6):
        count = random.choice((2, 2, 3))
    calls = tuple(_call(random, has) for _ in range(count))
    speaks = must_speak or random.random() < 0.2
    user: str | None = None
    if not number:
        user = "Find out why the tests fail."
    elif speaks:
        user = f"and now {random.randrange(10**6)}"
    media: Media | None = None
    if number and has("media from the user", 0.5):
        is_other = has("document or sound", 0.7)
        media = random.choice((DOCUMENT, SOUND) if is_other else (IMAGE,))
    thought = random.choice(
        [t for t in ("", "signed", "sealed", "open") if _may(t, wanted)]
    )
    said = random.choice(_SAID)
    if count and not has("text and call", 0.7):
        said = ""
    kinds = ("server tool", "paused server tool", "mixed server tool")
    server = next(
        (kind for kind in random.sample(kinds, 3) if has(kind, 0.35)), ""
    )
    more = frozenset(name for name in _PLAIN if has(name, 0.4))
    return Step(number, user, media, thought, said, calls, server, more)


_PLAIN = (
    "interrupted",
    "unknown part",
    "several messages",
    "compaction",
    "note",
    "cache marker",
    "approval",
    "late approval",
    "hosted call",
)


def _may(thought: str, wanted: frozenset[str]) -> bool:
    return not thought or f"{thought} reasoning" in wanted


def _call(random: Random, has) -> Call:
    mark = random.randrange(10**9)
    arguments = {"path": random.choice(("a.py", "b.py", f"{mark}"))}
    if has("large arguments", 0.5):
        arguments["text"] = f"{mark}\n{_WRITTEN}"
    late = 0
    if has("late result", 0.35):
        late = random.choice((1, 2, 3))
    elif has("never answered", 0.3):
        late = -1
    media = None
    if has("media in a result", 0.4):
        media = DOCUMENT if has("document or sound", 0.3) else IMAGE
    return Call(
        random.choice(TOOLS),
        arguments,
        _output(random, has, mark),
        failed=has("error", 0.4),
        media=media,
        items=random.choice((0, 0, 1, 2)),
        late=late,
        custom=has("custom tool", 0.5),
    )


def _output(random: Random, has, mark: int) -> str:
    if has("empty output", 0.25):
        return ""
    if has("large output", 0.2):
        return f"{mark}\n{random.choice(_LARGE)}"
    if has("json output", 0.2):
        return f'[{{"n": {mark}}}, {random.choice(_ROWS)[1:]}'
    if random.random() < 0.2:
        return f"ok {mark}"
    return f"{mark}\n{random.choice(_POOL)}"

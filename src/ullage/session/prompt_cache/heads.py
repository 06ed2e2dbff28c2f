"""Heads: what of a request stands before its messages, as a fingerprint, and what of it changed.

    header ──head_print──▶ HeadPrint ─┐
                                      ├─ changed_head ─▶ cause and place
    the request before ──▶ HeadPrint ─┘

A fingerprint holds digests, the names of tools and the name of the model; no text. So whoever has
the fingerprint alone, on another worker, still knows which tool came and about where a system
prompt changed. Whoever has both texts knows the character.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from blake3 import blake3
from msgspec import Struct

from ullage.core.history import canon
from ullage.core.turn.request import Header
from ullage.core.values.cache_breaks import Cause
from ullage.core.values.edits import without_surrogates
from ullage.core.values.receipts import name_of
from ullage.core.values.texts import common_chars

_MARK_BYTES = 4
_MARK_CHARS = 256
_MOST_MARKS = 64
_MOST_NAMED = 3
_NESTED = (
    "config",
    "generationConfig",
    "generation_config",
    "additionalModelRequestFields",
)
"""Fields that hold settings, as the wires call them."""
_THINKING = frozenset(
    (
        "thinking",
        "reasoning",
        "reasoning_effort",
        "reasoning_config",
        "effort",
        "output_config",
        "thinkingConfig",
        "thinking_config",
        "think",
    )
)
_SETTINGS = frozenset(
    (
        "tool_choice",
        "toolChoice",
        "toolConfig",
        "tool_config",
        "parallel_tool_calls",
        "text",
        "response_format",
        "responseSchema",
        "response_schema",
        "verbosity",
        "speed",
    )
)
"""Settings that providers count to the beginning of a prompt (`provider-rules` §3.1, §3.2)."""

_encode = msgspec.msgpack.Encoder().encode


class HeadPrint(Struct, frozen=True, array_like=True):
    """The fingerprint of what stands before the messages of a request.

    Attributes:
        model: the model.
        system_chars: how many characters the system prompt has.
        step_chars: how many characters each mark is of.
        marks: digests of the pieces of the system prompt, four bytes each.
        tools: the name and digest of each tool of the client's, in order.
        recall: a digest of the recall tools in the request; empty: there are none.
        settings: the name and digest of each setting that is part of the prompt.
    """

    model: str
    system_chars: int = 0
    step_chars: int = _MARK_CHARS
    marks: bytes = b""
    tools: tuple[tuple[str, bytes], ...] = ()
    recall: bytes = b""
    settings: tuple[tuple[str, bytes], ...] = ()

    @property
    def digest(self) -> bytes:
        """What names it, 8 bytes."""
        return blake3(_encode(self)).digest(8)


class HeadChange(NamedTuple):
    """What changed of a head, the part first that stands first in a prompt.

    Attributes:
        cause: which part.
        place: where in it, in words.
        start_share: the share of the head that stands before it, from 0 to 1.
    """

    cause: Cause
    place: str
    start_share: float = 0.0


def head_print(header: Header, recall: bytes, model: str) -> HeadPrint:
    """The fingerprint of a head.

    Args:
        header: what stood around the messages of a request.
        recall: names the recall tools in it; empty for none.
        model: the model that it is for.
    """
    system = system_text(header)
    tools = _tool_texts(header)
    step_chars = _MARK_CHARS
    while len(system) > step_chars * _MOST_MARKS:
        step_chars *= 2
    digests = [
        (name_of(name), _mark(text))
        for name, text in zip(header[4].head.tools, tools, strict=False)
    ]
    settings = [
        (name, _mark(_json(value))) for name, value in _settings(header)
    ]
    return HeadPrint(
        model=without_surrogates(name_of(model)),
        system_chars=len(system),
        step_chars=step_chars,
        marks=_marks(system, step_chars),
        tools=tuple(digests),
        recall=recall,
        settings=tuple(settings),
    )


def is_same_head(header: Header, other: Header) -> bool:
    """Whether two headers have the same fingerprint, recall tools left out; no digest is made."""
    if header is other:
        return True
    envelope = header[4]
    twin = other[4]
    return (
        envelope.model == twin.model
        and envelope.head.texts == twin.head.texts
        and envelope.head.tools == twin.head.tools
        and dict(_settings(header)) == dict(_settings(other))
    )


def changed_head(
    earlier: HeadPrint, later: HeadPrint, texts: tuple[str, str] | None = None
) -> HeadChange | None:
    """What changed between two heads; None: nothing that is part of a prompt.

    Args:
        earlier: of the request before.
        later: of this one.
        texts: the two system prompts, where both are at hand.
    """
    if earlier.model != later.model:
        place = f"from {earlier.model or 'an unnamed one'} to {later.model}"
        return HeadChange("model", place)
    if earlier.tools != later.tools:
        return HeadChange("tools", _tools_place(earlier.tools, later.tools))
    if earlier.recall != later.recall:
        return HeadChange("recall", _recall_place(earlier, later))
    if _system_changed(earlier, later, texts):
        return _system_change(earlier, later, texts)
    if earlier.settings != later.settings:
        return _settings_change(earlier.settings, later.settings)
    return None


def system_text(header: Header) -> str:
    """The system prompt of a request, its blocks one behind the other."""
    head = header[4].head
    texts = head.texts[: len(head.texts) - len(head.tools)]
    return texts[0] if len(texts) == 1 else "".join(texts)


# ── fingerprints ─────────────────────────────────────────────────────────────────────────


def _tool_texts(header: Header) -> Sequence[str]:
    head = header[4].head
    return head.texts[len(head.texts) - len(head.tools) :]


def _settings(header: Header) -> Iterator[tuple[str, Any]]:
    """The settings that are part of a prompt, by their names."""
    fields = header[0]
    containers = [fields, *(fields.get(name) for name in _NESTED)]
    for container in containers:
        if not isinstance(container, Mapping):
            continue
        for name, value in container.items():
            if name in _THINKING or name in _SETTINGS:
                yield name, value


def _json(value: Any) -> str:
    try:
        return canon.canonical_json(value)
    except (TypeError, ValueError, RecursionError):
        return ""  # no JSON: what cannot be written cannot be compared


def _mark(text: str) -> bytes:
    return blake3(text.encode("utf-8", "surrogatepass")).digest(_MARK_BYTES)


def _marks(text: str, step_chars: int) -> bytes:
    starts = range(0, len(text), step_chars)
    return b"".join(
        [_mark(text[start : start + step_chars]) for start in starts]
    )


# ── what changed ─────────────────────────────────────────────────────────────────────────


def _tools_place(
    earlier: Sequence[tuple[str, bytes]], later: Sequence[tuple[str, bytes]]
) -> str:
    """Which tools came, went or changed."""
    old = dict(earlier)
    new = dict(later)
    changes = {
        "added": [name for name in new if name not in old],
        "removed": [name for name in old if name not in new],
        "changed": [
            name for name in new if name in old and new[name] != old[name]
        ],
    }
    parts = [
        f"{_names(names)} {verb}" for verb, names in changes.items() if names
    ]
    return f"({', '.join(parts)})" if parts else "(another order)"


def _names(names: Sequence[str]) -> str:
    quoted = [f"`{name}`" for name in names[:_MOST_NAMED]]
    more = len(names) - len(quoted)
    text = ", ".join(quoted)
    return f"{text} and {more:,} more" if more else text


def _recall_place(earlier: HeadPrint, later: HeadPrint) -> str:
    if not earlier.recall:
        return "(they are offered from here on)"
    if not later.recall:
        return "(they are not offered any more)"
    return "(they have other names from here on)"


def _system_changed(
    earlier: HeadPrint, later: HeadPrint, texts: tuple[str, str] | None
) -> bool:
    if texts is not None:
        return texts[0] != texts[1]
    if earlier.system_chars != later.system_chars:
        return True
    return earlier.marks != later.marks


def _system_change(
    earlier: HeadPrint, later: HeadPrint, texts: tuple[str, str] | None
) -> HeadChange:
    """Where a system prompt changed: the character, or the piece that it is in."""
    if texts is not None:
        start = common_chars(*texts)
        share = start / max(len(texts[1]), 1)
        return HeadChange("system", f"at character {start + 1:,}", share)
    if earlier.step_chars != later.step_chars:
        return HeadChange("system", "")
    pairs = zip(_pieces(earlier.marks), _pieces(later.marks), strict=False)
    number = 0
    for mark, twin in pairs:
        if mark != twin:
            break
        number += 1
    start = number * later.step_chars
    stop = (number + 1) * later.step_chars
    place = f"between characters {start + 1:,} and {stop:,}"
    share = start / max(later.system_chars, 1)
    return HeadChange("system", place, min(share, 1.0))


def _pieces(marks: bytes) -> list[bytes]:
    starts = range(0, len(marks), _MARK_BYTES)
    return [marks[start : start + _MARK_BYTES] for start in starts]


def _settings_change(
    earlier: Sequence[tuple[str, bytes]], later: Sequence[tuple[str, bytes]]
) -> HeadChange:
    old = dict(earlier)
    new = dict(later)
    names = [
        name for name in sorted({*old, *new}) if old.get(name) != new.get(name)
    ]
    thinking = [name for name in names if name in _THINKING]
    if thinking:
        return HeadChange("thinking", f"({_names(thinking)})", 1.0)
    return HeadChange("settings", _names(names), 1.0)

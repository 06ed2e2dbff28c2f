"""What adapters for frameworks share: a ledger in a host's state, blocks of content, counts.

Entries      a conversation's ledger as entries of the state its framework keeps
read_parts   content as most frameworks have it: a text, or blocks as a provider has them
show_text    such a content with one of its texts shown otherwise
counted      usage as most frameworks report it, cached tokens among those of the prompt
wire_of      the wire that a model is really asked on
limits_of    the window of a model that only its framework knows
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

from ullage.session.core import SessionCore
from ullage.tokens.catalog import lookup
from ullage.values.effects import KINDS, Record
from ullage.values.limits import Limits
from ullage.values.messages import Part, Reasoning, Text
from ullage.values.model_names import plain_name
from ullage.values.usage import Usage
from ullage.wires import BLOCKS
from ullage.wires.base import content_at, field, plain, sealed_bytes
from ullage.wires.block import Block, fields, filled, read_part, replaced, table

__all__ = [
    "Entries",
    "counted",
    "entry_of",
    "is_thought",
    "limits_of",
    "read_parts",
    "record_of",
    "show_text",
    "thought",
    "wire_of",
]

# ── a ledger in the state of a framework ─────────────────────────────────────────────────

_ENTRY = re.compile(
    rf"ullage:([0-9a-f]{{32}}):({'|'.join(KINDS)}):(0|[1-9][0-9]{{0,5}})(?::(.+))?", re.DOTALL
)


def entry_of(record: Record) -> tuple[str, str]:
    """A record as an entry of a state: its key and its value, both text."""
    name = f":{record.name}" if record.name else ""
    key = f"ullage:{record.key.hex()}:{record.kind}:{record.n}{name}"
    return key, b64encode(record.data).decode()


def record_of(key: str, value: Any) -> Record | None:
    """The record in an entry of a state; None if it is none of ours.

    Whoever may write to the state can write nonsense there; `Session.take` passes it over.
    """
    found = _ENTRY.fullmatch(key)
    if found is None or not isinstance(value, str):
        return None
    with suppress(ValueError):
        data = b64decode(value, validate=True)
        return Record(bytes.fromhex(found[1]), found[2], int(found[3]), data, found[4] or "")
    return None


class Entries:
    """The ledgers of sessions, as entries of the states in which a framework carries them.

    A state may be older than its session (it was rewound, or the step that should have written
    it failed) or newer (another process wrote it). Whoever asks both questions of every call
    keeps the two equal.
    """

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[SessionCore, dict[str, Any]] = WeakKeyDictionary()

    def unknown(self, session: SessionCore, state: Mapping[str, Any]) -> list[Record]:
        """What the state holds and the session does not know: for `Session.take`."""
        known = self._known.setdefault(session, {})
        new = {key: value for key, value in state.items() if known.get(key) != value}
        known.update(new)
        return [record for item in new.items() if (record := record_of(*item)) is not None]

    def missing(self, session: SessionCore, state: Mapping[str, Any]) -> dict[str, str]:
        """What the session decided and the state does not hold: to be written to it."""
        known = self._known.setdefault(session, {})
        known.update(map(entry_of, session.news()))
        return {key: value for key, value in known.items() if state.get(key) != value}


# ── content ──────────────────────────────────────────────────────────────────────────────

_DATA = ("base64", "data", "url", "file_id")
_WIRES = {**BLOCKS["openai-responses"], **BLOCKS["openai-chat"], **BLOCKS["anthropic"]}
"""Blocks of the wires under one roof."""
_NEUTRAL = {
    **_WIRES,
    **table(
        Block("image", media=("image",), data=_DATA, mime="mime_type", edited="a text"),
        Block("audio", media=("audio",), data=_DATA, mime="mime_type", edited="a text"),
        Block("video", media=("document",), data=_DATA, mime="mime_type", edited="a text"),
        Block("document", media=("document",), data=_DATA, mime="mime_type", edited="a text"),
    ),
}
"""The same, and media as frameworks write them for all of them."""
_CALLS = fields("tool_use tool_call tool_call_chunk function_call custom_tool_call")
_THOUGHTS = fields("thinking redacted_thinking reasoning reasoning_content")


def read_parts(content: Any, where: str) -> list[Part]:
    """A content as parts: text, media, reasoning; a call in it is left to whoever lists calls.

    Args:
        content: a string, None, or a list of strings and blocks.
        where: what it is called in an error.

    Raises:
        FormatError: it is none of these.
    """
    found = content_at(content, where, _part)
    return [part for part in found if part is not None]


def _part(raw: Any, at: int, where: str) -> Any:
    if isinstance(raw, str):
        return Text(raw, at)
    block = plain(raw, where)
    kind = str(block.get("type"))
    if kind in _CALLS:
        return None
    rows = _WIRES if "source" in block else _NEUTRAL
    return thought(block, at) if kind in _THOUGHTS else read_part(rows, block, at, where)


def is_thought(block: Any) -> bool:
    """Whether a block of a content holds reasoning."""
    return field(block, "type") in _THOUGHTS


def thought(block: Mapping[str, Any], at: int) -> Reasoning:
    """A block of reasoning, of any provider's form: what is sealed in it binds it."""
    inner = block.get("reasoning_content")
    said = inner if isinstance(inner, Mapping) else block
    sealed = next(filter(None, map(said.get, _SEALED)), None) or field(
        block.get("extras"), "signature"
    )
    text = next((t for name in _SAID if isinstance(t := said.get(name), str)), "")
    summary = said.get("summary")
    parts = (field(each, "text") for each in summary) if isinstance(summary, list) else ()
    text = text or "\n".join(part for part in parts if isinstance(part, str))
    return Reasoning(text, at, bool(sealed), sealed_bytes(sealed, 0))


_SEALED = ("signature", "data", "encrypted_content", "redacted_content")
_SAID = ("thinking", "reasoning", "text")


def show_text(content: Any, at: int, text: str) -> Any:
    """A content with another text at a place; the content itself is not changed.

    Raises:
        UnsupportedPart: no text may stand there.
    """
    if not isinstance(content, list):
        return text
    shown = list(content)
    shown[at] = replaced(shown[at], _NEUTRAL, filled(text, "text", "blank text"))
    return shown


# ── counts and models ────────────────────────────────────────────────────────────────────


def counted(
    prompt: Any, output: Any, *, read: Any = 0, written: Any = 0, reasoning: Any = 0
) -> Usage | None:
    """Usage as most frameworks report it: the prompt's tokens with those of the cache in them.

    Args:
        prompt: all tokens of the prompt.
        output: of the reply, reasoning included.
        read: of the prompt, read from cache.
        written: of the prompt, written to cache.
        reasoning: of the output.

    Returns:
        None where nothing was counted, or what was counted cannot be.
    """
    counts = [count or 0 for count in (prompt, output, read, written, reasoning)]
    if not all(isinstance(count, int) for count in counts) or not counts[0]:
        return None
    all_tokens, output_tokens, from_cache, to_cache, thoughts = counts
    return Usage(
        fresh_tokens=all_tokens - from_cache - to_cache,
        cache_read_tokens=from_cache,
        cache_write_tokens=to_cache,
        output_tokens=output_tokens,
        reasoning_tokens=thoughts,
    )


def wire_of(request: Mapping[str, Any]) -> str:
    """The wire on which a framework asks this request's model: its rules of reasoning hold."""
    name = plain_name(str(request.get("model") or ""))
    for maker, wire in _MAKERS.items():
        if maker in name:
            return wire
    return "openai-responses" if _OPENAI.match(name) else "openai-chat"


def limits_of(model: str, window_tokens: int) -> dict[str, Limits]:
    """The setting of a session for a model that its framework knows and we do not; else none.

    Args:
        model: its name.
        window_tokens: what the framework says of it, 0 for nothing.
    """
    known = lookup(model).known or not window_tokens
    return {} if known else {"limits": Limits(window_tokens=window_tokens)}


_MAKERS = {"claude": "anthropic", "gemini": "gemini"}
_OPENAI = re.compile(r"gpt-[5-9]|o\d")

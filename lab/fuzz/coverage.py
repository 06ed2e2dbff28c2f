"""Rule × feature × kind of edit: what was put to the test, and what cannot be.

A rule is exercised by an edit where its *subject* stands near the edit in a view: in a message
that is not the caller's own any more, or at most two away from one. `SUBJECTS` says what the
subject of each rule is, by the marks that `marks_of` reads off a message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from lab.fuzz.steps import FEATURES

Cell: TypeAlias = tuple[str, str]
"""A rule and a kind of edit."""

Row: TypeAlias = tuple[str, str, str, str]
"""Format, rule, feature, kind of edit."""

EDITS = (
    "truncated",
    "pruned",
    "stubbed",
    "condensed",
    "cut",
    "reasoning",
    "repaired",
)
"""A result cut when first seen; set aside; arguments set aside; a run condensed; a text cut to
fit; reasoning left out; a broken history mended."""

_ANY = frozenset(
    ("user", "assistant", "tool", "model", "system", "developer", "item")
)

SUBJECTS: dict[str, dict[str, frozenset[str]]] = {
    "anthropic": {
        "A0": _ANY,
        "A1": frozenset(("user",)),
        "A3": frozenset(("tool_use",)),
        "A4": frozenset(("tool_result",)),
        "A5": frozenset(("tool_result",)),
        "A6": frozenset(("several answers",)),
        "A7": frozenset(("tool_use",)),
        "A8": frozenset(("tool_use",)),
        "A9": frozenset(("text", "string")),
        "A13": frozenset(("thinking", "redacted_thinking")),
        "A18": frozenset(("server_tool_use", "web_search_tool_result")),
        "A19": frozenset(("server_tool_use",)),
        "A20": frozenset(("system",)),
        "A21": frozenset(("marker",)),
        "A23": _ANY,
    },
    "openai-chat": {
        "C0": _ANY,
        "C1": frozenset(("tool_calls",)),
        "C2": frozenset(("tool",)),
        "C3": frozenset(("tool",)),
        "C4": frozenset(("tool_calls",)),
        "C5": frozenset(("assistant",)),
        "C6": frozenset(("tool_calls",)),
        "C7": frozenset(("tool_calls",)),
        "C8": frozenset(("tool",)),
    },
    "openai-responses": {
        "R0": _ANY,
        "R1": frozenset(
            (
                "function_call",
                "custom_tool_call",
                "shell_call",
                "computer_call",
            )
        ),
        "R2": frozenset(
            (
                "function_call_output",
                "custom_tool_call_output",
                "mcp_approval_response",
            )
        ),
        "R3": frozenset(("reasoning",)),
        "R4": frozenset(("reasoning",)),
        "R5": frozenset(("id",)),
        "R6": frozenset(("id",)),
        "R7": frozenset(("reasoning",)),
        "R8": frozenset(("encrypted_content",)),
        "R14": frozenset(("compaction_trigger",)),
    },
    "gemini": {
        "G1": _ANY,
        "G2": _ANY,
        "G3": frozenset(("functionResponse",)),
        "G4": frozenset(("functionCall",)),
        "G5": frozenset(("functionResponse",)),
        "G6": frozenset(("functionResponse",)),
        "G7": frozenset(("functionCall",)),
        "G8": frozenset(("thoughtSignature",)),
        "G11": frozenset(("user",)),
    },
    "ollama": {
        "O0": _ANY,
        "O1": frozenset(("tool_calls",)),
        "O2": frozenset(("tool",)),
        "O3": frozenset(("tool",)),
        "O4": frozenset(("tool_calls",)),
        "O5": frozenset(("images",)),
    },
    "bedrock-converse": {
        "B0": _ANY,
        "B1": frozenset(("user",)),
        "B2": frozenset(("user",)),
        "B3": frozenset(("toolUse",)),
        "B4": frozenset(("toolResult",)),
        "B5": frozenset(("toolUse",)),
        "B6": frozenset(("text",)),
        "B7": frozenset(("toolUse",)),
        "B10": frozenset(("cachePoint",)),
        "B12": frozenset(("document",)),
        "B13": frozenset(("reasoningContent",)),
    },
}
"""What must stand near an edit for a rule to have a say in it: any of these marks."""

ABOUT_THE_HEAD = {
    "C10": "stream_options stand beside the messages",
    "R10": "so do the two ways of holding history at the server",
    "G12": "so does cachedContent",
    "O6": "so does the form of the answer",
    "B8": "so does toolConfig",
    "B9": "so does the model, which says whether a reply may be begun",
    "B11": "so does the setting of thinking",
}
"""Rules that no edit of messages can touch, with the reason: they are in no row."""

_EVERY = "*"
IMPOSSIBLE: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "openai-chat",
        _EVERY,
        _EVERY,
        "reasoning",
        "no reasoning is bound to its prefix here",
    ),
    (
        "openai-responses",
        _EVERY,
        _EVERY,
        "reasoning",
        "an edit leaves its reasoning be (R11)",
    ),
    (
        "gemini",
        _EVERY,
        _EVERY,
        "reasoning",
        "signatures are not bound to what precedes them",
    ),
    (
        "ollama",
        _EVERY,
        _EVERY,
        "reasoning",
        "no reasoning is bound to its prefix here",
    ),
    *(
        (
            "anthropic",
            "A13",
            "manual thinking",
            kind,
            "where that may be done, all thinking goes",
        )
        for kind in ("pruned", "stubbed")
    ),
    (
        "bedrock-converse",
        _EVERY,
        "manual thinking",
        "stubbed",
        "a reply is one message, so each call stands with its thinking",
    ),
    (
        "bedrock-converse",
        "B13",
        "bound reasoning",
        "stubbed",
        "no thinking stands before a call that is changed, or behind it",
    ),
)
"""Format, rule, feature, kind of edit, and why such a cell cannot be filled; ``*`` is any."""

_MARKED = frozenset(
    ("id", "encrypted_content", "thoughtSignature", "tool_calls", "images")
)


def marks_of(message: Any) -> set[str]:
    """What a message of any format holds: its role or type, its blocks' types, its fields."""
    marks = {message.get("role") or "item", str(message.get("type") or "item")}
    marks.update(_MARKED.intersection(message))
    parts = message.get("parts") or message.get("content")
    if isinstance(parts, str):
        marks.add("string")
    elif isinstance(parts, list):
        answers = 0
        for part in parts:
            kind = part.get("type")
            marks.update((kind,) if kind else part)
            answers += kind == "tool_result" or "toolResult" in part
            if "cache_control" in part:
                marks.add("marker")
        if answers > 1:
            marks.add("several answers")
    return marks


def exercised(format: str, near: list[Any], kinds: Iterable[str]) -> set[Cell]:
    """The rules whose subject is among these messages, with each kind of edit made."""
    marks = set[str]().union(*map(marks_of, near))
    rules = [
        rule
        for rule, subject in SUBJECTS[format].items()
        if not marks.isdisjoint(subject)
    ]
    return {(rule, kind) for rule in rules for kind in kinds}


def rows_of(
    format: str, features: Iterable[str], cells: set[Cell]
) -> Iterator[Row]:
    """The rows of the table that one history adds to."""
    for feature in features:
        for rule, kind in cells:
            yield format, rule, feature, kind


def reason(row: Row) -> str:
    """Why a cell cannot be filled; empty where it can."""
    for *pattern, why in IMPOSSIBLE:
        if all(
            wanted in (_EVERY, name)
            for wanted, name in zip(pattern, row, strict=True)
        ):
            return why
    return ""


def every_row() -> Iterator[Row]:
    """Every rule of a format with every feature and every kind of edit."""
    for format, subjects in SUBJECTS.items():
        for rule in subjects:
            for feature in FEATURES[format]:
                for kind in EDITS:
                    yield format, rule, feature, kind


def empty(seen: Counter[Row]) -> list[Row]:
    """The cells that could be filled and are not."""
    return [row for row in every_row() if not seen[row] and not reason(row)]


def table(seen: Counter[Row]) -> Iterator[str]:
    """For each format and rule the least filled cell and the number of cells, as lines."""
    for format, subjects in SUBJECTS.items():
        for rule in subjects:
            rows = [
                row
                for row in every_row()
                if row[:2] == (format, rule) and not reason(row)
            ]
            least = min(rows, key=seen.__getitem__)
            filled = sum(bool(seen[row]) for row in rows)
            counted = (
                f"{filled:4} of {len(rows):4} cells, least {seen[least]:,}"
            )
            yield f"{format:17} {rule:4} {counted}: {least[2]} × {least[3]}"

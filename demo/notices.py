"""Notices, read as a model reads them: the visible words alone.

Where something left the view there is a notice, and in it, literally, the call that reads
it: ``get_continuation(tool_call_id="k3x…", offset=0)``. This module finds such calls in any
visible text and takes the pages they return apart. It knows nothing of ullage's inside; the
wording is in the regular expressions below and nowhere else in the demo.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

__all__ = [
    "CONTINUATION",
    "GREP",
    "RECALL",
    "Call",
    "calls",
    "lines_of",
    "may_call",
    "page",
    "read_all",
]

CONTINUATION = "get_continuation"
GREP = "tool_output_cache_grep"
READ = "tool_output_cache"
RECALL = frozenset((CONTINUATION, GREP, READ))

_CALL = re.compile(
    r"\b(get_continuation|tool_output_cache_grep|tool_output_cache)"
    r'\(((?:[^()"\n]|"(?:[^"\\\n]|\\.)*")*)\)'
)
_ARGUMENT = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|(\d[\d_,]*))')
_BARE = re.compile(r"\bref=([0-9a-z]{16})\b")
_REFS = ("tool_call_id", "ref_id", "ref")
_MORE = re.compile(r"\n(\[[^\n]*get_continuation[^\n]*offset=(\d+)[^\n]*)\Z")
_HEAD = re.compile(r"ref=[0-9a-z]{16} offset=\d+ of (\w+) ?(\S*)")
_MAX_PAGES = 10_000


class Call(Struct, frozen=True):
    """A recall call that a visible text spells out.

    Attributes:
        name: the recall tool, with a prefix if the notice shows one.
        ref: what it opens.
        offset: the character to read on from, 0 where the call names none.
    """

    name: str
    ref: str
    offset: int = 0

    def arguments(self) -> dict[str, Any]:
        """The arguments of a continuation, exactly as the notice gives them."""
        return {"tool_call_id": self.ref, "offset": self.offset}


def calls(text: str) -> list[Call]:
    """Every recall call a text spells out, in order, each once.

    An account of many steps says once how to read and then gives bare refs, ``ref=k3x…``:
    each stands for a continuation from the start.
    """
    found: list[tuple[int, Call]] = []
    plain = text.replace('\\"', '"')
    for match in _CALL.finditer(plain):
        given = {
            m[1]: m[2] if m[2] is not None else m[3]
            for m in _ARGUMENT.finditer(match[2])
        }
        ref = next((given[name] for name in _REFS if name in given), "")
        if ref:
            offset = int(
                given.get("offset", "0").replace(",", "").replace("_", "")
            )
            found.append((match.start(), Call(match[1], ref, offset)))
    found += [
        (match.start(), Call(CONTINUATION, match[1]))
        for match in _BARE.finditer(plain)
    ]
    return list(
        dict.fromkeys(
            call for _, call in sorted(found, key=lambda pair: pair[0])
        )
    )


def lines_of(found: str, tool: str, path: str) -> str:
    """The lines that a search by words found in results of a tool about a path.

    They stand under heads such as ``ref=k3x… offset=10 of read_file src/tide.py``, where a long
    path begins with ``…``.
    """
    lines, is_wanted = list[str](), False
    for line in found.split("\n"):
        head = _HEAD.match(line)
        if head is not None:
            is_wanted = head[1] == tool and path.endswith(
                head[2].removeprefix("…")
            )
        elif is_wanted:
            lines.append(line)
    return "\n".join(lines)


def may_call(text: str) -> bool:
    """Whether it is worth looking for calls in a text: a quick look."""
    return CONTINUATION in text or READ in text or "ref=" in text


def page(text: str) -> tuple[str, int | None]:
    """What a continuation returned: the original's own characters, and where to read on.

    The last line of a page that is not the last one is a notice; the original's text ends
    right before the line break in front of it.
    """
    more = _MORE.search(text)
    return (
        (text, None) if more is None else (text[: more.start()], int(more[2]))
    )


def read_all(
    call: Call, recall: Callable[[str, Mapping[str, Any]], str]
) -> str:
    """Follow a notice's call page by page until no notice remains.

    Args:
        call: where to begin; its offset counts.
        recall: runs a recall tool by name and arguments, returns the text.

    Returns:
        The original from the call's offset on.
    """
    parts: list[str] = []
    offset: int | None = call.offset
    while offset is not None and len(parts) < _MAX_PAGES:
        text, following = page(
            recall(CONTINUATION, {"tool_call_id": call.ref, "offset": offset})
        )
        parts.append(text)
        offset = (
            following if following is not None and following > offset else None
        )
    return "".join(parts)

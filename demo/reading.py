"""What the investigator picks out of a tool result: hits, definitions, imports, callers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from demo.agenda import Question
from demo.evidence import Shown
from demo.status import Address

__all__ = ["callers", "definition", "hits", "modules", "region"]

_AROUND_LINES = 40
_HIT = re.compile(r"^(\S+\.py):(\d+):(.*)$", re.MULTILINE)
_IMPORT = re.compile(
    r"^ *(\d+)\|(?:import (\w[\w.]*)|from (\.*[\w.]*) import (\w+))",
    re.MULTILINE,
)
_WELL_KNOWN = frozenset(
    (
        *(
            "__future__",
            "abc",
            "array",
            "builtins",
            "errno",
            "io",
            "itertools",
            "math",
            "os",
        ),
        *(
            "re",
            "struct",
            "sys",
            "time",
            "types",
            "typing",
            "warnings",
            "zlib",
        ),
    )
)


def hits(results: Sequence[Shown]) -> list[tuple[Address, str]]:
    """The hits of every search among some results: place and text."""
    texts = [shown.text for shown in results if shown.name == "search"]
    found = [match for text in texts for match in _HIT.finditer(text)]
    return [(Address(m[1], int(m[2])), m[3]) for m in found]


def definition(question: Question, results: Sequence[Shown]) -> Address | None:
    """The hit whose path agrees best with the dotted name; then the least indented."""
    parts = question.name.split(".")

    def distance(hit: tuple[Address, str]) -> tuple[int, int]:
        place, text = hit
        names = re.sub(r"(/__init__)?\.py$", "", place.path).split("/")[1:]
        same = sum(1 for a, b in zip(parts, names, strict=False) if a == b)
        return len(names) - 2 * same, len(text) - len(text.lstrip())

    found = hits(results)
    return min(found, key=distance)[0] if found else None


def modules(path: str, text: str) -> dict[str, int]:
    """The first modules a file imports, as paths to try, with the line of each import."""
    found: dict[str, int] = {}
    for match in _IMPORT.finditer(text):
        target = match[2] or match[3]
        name = target if target.strip(".") else f"{target}{match[4]}"
        tried = _module_path(path, name)
        if tried and tried != path:
            found.setdefault(tried, int(match[1]))
    return dict(list(found.items())[:3])


def _module_path(path: str, name: str) -> str | None:
    """The file a module's name most likely means, seen from the file that imports it."""
    folder, root = path.rpartition("/")[0], path.split("/")[0]
    dots = len(name) - len(name.lstrip("."))
    if dots:
        base = folder.split("/")
        return (
            "/".join([*base[: len(base) - dots + 1], *name[dots:].split(".")])
            + ".py"
        )
    top = name.split(".")[0]
    if top in _WELL_KNOWN or top.startswith("_"):
        return None
    inside = root == "site" and top == path.split("/")[1]
    return f"{'site' if inside else 'stdlib'}/{name.replace('.', '/')}.py"


def callers(results: Sequence[Shown], own: str) -> list[Address]:
    """The first three files, other than its own, that use it outside a comment."""
    first: dict[str, Address] = {}
    for place, text in hits(results):
        if place.path != own and not text.lstrip().startswith(("#", '"', "'")):
            first.setdefault(place.path, place)
    return list(first.values())[:3]


def region(place: Address) -> dict[str, Any]:
    """The arguments that read a file around a line."""
    start = max(place.line - _AROUND_LINES, 1)
    return {
        "path": place.path,
        "start_line": start,
        "end_line": place.line + _AROUND_LINES,
    }

"""Texts as they are quoted in a line of our own."""

from __future__ import annotations


def on_one_line(text: str, chars: int) -> str:
    """The beginning of a text, spaces and line ends made one space each; ``…`` where it is cut."""
    read_chars = 8 * chars
    line = " ".join(text[:read_chars].split())
    is_whole = len(text) <= read_chars and len(line) <= chars
    return line if is_whole else f"{line[:chars]}…"


def common_chars(text: str, other: str) -> int:
    """How many characters two texts begin with alike.

    Found by halving, for the comparing is in C.

    Args:
        text: one of them.
        other: the other one.
    """
    same = 0
    most = min(len(text), len(other))
    while same < most:
        middle = (same + most + 1) // 2
        if text[same:middle] == other[same:middle]:
            same = middle
        else:
            most = middle - 1
    return same

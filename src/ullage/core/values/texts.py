"""Texts as they are quoted in a line of our own."""

from __future__ import annotations


def on_one_line(text: str, chars: int) -> str:
    """The beginning of a text, spaces and line ends made one space each; ``…`` where it is cut."""
    words = " ".join(text[: 8 * chars].split())
    return (
        words if len(words) <= chars and len(text) <= 8 * chars else f"{words[:chars]}…"
    )

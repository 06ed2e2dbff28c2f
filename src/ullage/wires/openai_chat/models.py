"""How the reasoning of models that are asked in Chat Completions is bound."""

from __future__ import annotations

from ullage.wires.gemini.models import SIGNING
from ullage.wires.models import Family

FAMILIES = (
    Family("no reasoning", r"^(?:gpt|o\d|chatgpt)"),
    Family("signed calls, compatible", SIGNING),
    Family("reasoning in the open", ""),
)
"""Bound to nothing but its own part (C12), or sent in the open."""

"""What the name of a Gemini says: whether it signs its calls (G7)."""

from __future__ import annotations

import re
from typing import Any

from ullage.wires.format import Family

__all__ = ["FAMILIES", "signs_calls", "signs_no_calls"]

_SIGNING = re.compile(r"gemini-(?:[3-9]|\d\d)")
_NOT_SIGNING = re.compile(r"gemini-[12](?!\d)")

FAMILIES = (Family("signed calls", _SIGNING.pattern), Family("optional signatures", ""))
"""A signature is bound to its own part alone (G7, G8)."""


def signs_calls(model: Any) -> bool:
    """Whether it is a Gemini that signs its calls: 3 or later."""
    return isinstance(model, str) and _SIGNING.search(model) is not None


def signs_no_calls(model: Any) -> bool:
    """Whether it is a Gemini that asks for no signature of a call: before 3."""
    return isinstance(model, str) and _NOT_SIGNING.search(model) is not None

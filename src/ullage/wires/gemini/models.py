"""Facts that the name of a Gemini tells: whether it signs its calls."""

from __future__ import annotations

import re
from typing import Any

from ullage.wires.models import Family

SIGNING = r"gemini-(?:[3-9]|\d\d)"
"""The models that sign their calls, as a regular expression (G7)."""
UNCHECKED = "skip_thought_signature_validator"
"""The text that Gemini takes in place of a signature of its own (G10)."""

FAMILIES = (
    Family("signed calls", SIGNING),
    Family("optional signatures", ""),
)
"""A signature is bound to its own part alone (G7, G8)."""


def signs_calls(model: Any) -> bool:
    """Whether it is a Gemini that signs its calls: 3 or later (G7)."""
    return isinstance(model, str) and re.search(SIGNING, model) is not None


def signs_no_calls(model: Any) -> bool:
    """Whether it is a Gemini that asks for no signature of a call: before 3."""
    return (
        isinstance(model, str)
        and re.search(r"gemini-[12](?!\d)", model) is not None
    )

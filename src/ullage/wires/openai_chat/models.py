"""What the name of a model says that is asked by way of Chat Completions."""

from __future__ import annotations

import re
from typing import Any

from ullage.values.model_names import plain_name
from ullage.wires.format import Family

__all__ = ["FAMILIES", "is_gpt_6_2"]

_GPT_6_2 = re.compile(r"^gpt-6[.-]2(?!\d)")

FAMILIES = (
    Family("no reasoning", r"^(?:gpt|o\d|chatgpt)"),
    Family("signed calls, compatible", r"gemini-(?:[3-9]|\d\d)"),
    Family("reasoning in the open", ""),
)
"""Reasoning is bound to nothing but its own part (C12), or sent in the open."""


def is_gpt_6_2(model: Any) -> bool:
    """Whether it is of the GPT-6.2 family, which takes no tools here (C11)."""
    return isinstance(model, str) and _GPT_6_2.search(plain_name(model)) is not None

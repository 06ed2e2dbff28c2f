"""What a model's name says about the rules it keeps."""

from __future__ import annotations

import re
from typing import Any

from ullage.values.model_names import plain_name

__all__ = ["claude", "is_gpt_6_2", "signs_calls", "signs_no_calls", "takes_no_system_messages"]

_CLAUDE = re.compile(r"claude-(?:([a-z]+)-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
_SIGNING = re.compile(r"gemini-(?:[3-9]|\d\d)")
_NOT_SIGNING = re.compile(r"gemini-[12](?!\d)")
_GPT_6_2 = re.compile(r"^gpt-6[.-]2(?!\d)")


def claude(model: Any) -> tuple[str, tuple[int, int]] | None:
    """Family and version of a Claude, such as ("opus", (4, 6)); None of any other model."""
    found = _CLAUDE.search(model) if isinstance(model, str) else None
    return (found[1] or "", (int(found[2]), int(found[3] or 0))) if found else None


def takes_no_system_messages(model: Any) -> bool:
    """Whether it is a Claude whose system text stands beside the messages alone.

    They may stand among them for Opus from 4.8 on, and from 5 on for all but Sonnet 5
    (`provider-rules` §1.A).
    """
    found = claude(model)
    if found is None:
        return False
    family, version = found
    return version < ((4, 8) if family == "opus" else (5, 0)) or found == ("sonnet", (5, 0))


def is_gpt_6_2(model: Any) -> bool:
    """Whether it is of the GPT-6.2 family."""
    return isinstance(model, str) and _GPT_6_2.search(plain_name(model)) is not None


def signs_calls(model: Any) -> bool:
    """Whether it is a Gemini that signs its calls: 3 or later."""
    return isinstance(model, str) and _SIGNING.search(model) is not None


def signs_no_calls(model: Any) -> bool:
    """Whether it is a Gemini that asks for no signature of a call: before 3."""
    return isinstance(model, str) and _NOT_SIGNING.search(model) is not None

"""How errors are reported: kind, place and numbers, and no word of a client's.

The words of an error can quote a request: a role that is none, the name of a tool. They are for
who sent it. What goes into reports and from there into logs is made of what we know by ourselves.
"""

from __future__ import annotations

import re

from ullage.core.errors import (
    ConfigError,
    FormatError,
    OverLimitError,
    StoreError,
)
from ullage.doors.exchange.values import Passed

_STEPS = re.compile(r"[^.\[\]]+")
_MOST_CHARS = 200
_FIELD_NAMES = (
    "args arguments body cache_control call_id content contents data documents file fileData "
    "file_data file_id function functionCall functionDeclarations functionResponse "
    "function_call generationConfig id image_url inlineData input input_audio instructions "
    "max_output_tokens max_tokens messages metadata mimeType mime_type model name output "
    "parameters params parts previous_response_id reasoning request requests response role "
    "schema signature source summary system systemInstruction system_instruction text "
    "thinking thought thoughtSignature tool_call_id tool_calls tool_choice tool_result "
    "tool_use tool_use_id tools type url "
)
_FIELDS = frozenset(_FIELD_NAMES.split())
"""Fields of the wires. A client may name one of its own, so what stands in no list is left out."""


_REASONS: tuple[tuple[type[Exception], Passed], ...] = (
    (FormatError, "content"),
    (OverLimitError, "limit"),
    (StoreError, "store"),
    (ConfigError, "settings"),
)


def reason_of(error: Exception) -> Passed:
    """Why a request is sent as it came, by the error that was met; others are bugs in ullage."""
    return next(
        (reason for kind, reason in _REASONS if isinstance(error, kind)),
        "error",
    )


def problem_of(error: Exception) -> str:
    """The report of an error, without a word of the request."""
    kind = type(error).__name__
    if isinstance(error, FormatError):
        return f"{kind} at {place_of(error.where)}"
    if isinstance(error, OverLimitError):
        return f"{kind}: {error.need_tokens:,} tokens, {error.limit_tokens:,} allowed"
    if isinstance(error, StoreError):
        return f"{kind}: {error.store}, {error.operation}"
    if isinstance(error, ConfigError):
        return f"{kind}: {error.setting}"
    return kind


def place_of(location: str) -> str:
    """A place in a request, with ``…`` for each name that is none of the wires'."""
    return _STEPS.sub(_step, location[:_MOST_CHARS])


def _step(match: re.Match[str]) -> str:
    step = match[0]
    return step if step.isdecimal() or step in _FIELDS else "…"

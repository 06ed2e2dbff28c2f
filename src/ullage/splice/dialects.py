"""The dialect of each wire."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ullage.splice.anthropic import Anthropic
from ullage.splice.chat import Chat
from ullage.splice.dialect import Dialect
from ullage.splice.gemini import Gemini
from ullage.splice.responses import Responses
from ullage.wires import Format

DIALECTS: Mapping[str, type[Dialect]] = {
    "anthropic": Anthropic,
    "openai-chat": Chat,
    "openai-responses": Responses,
    "gemini": Gemini,
}
"""The dialects by the name of their wire."""


def dialect_of(wire: Format, owns: Callable[[Any], bool]) -> Dialect:
    """The dialect of a format, for calls that are private if ``owns`` says so."""
    return DIALECTS[wire.wire](wire, owns)

"""A second, small checker of requests, written from the provider rules alone.

Whoever wrote it had not seen `ullage.wires.rules`, and it imports nothing from there.
One file a format; `broken` gives the ids of the rules a request breaks (A.., C.., R.., G.., B..).
Where the text can be read in two ways, both readings stand beside the code that takes one;
what was settled later, between the two checkers, is in docs/validator.md.
"""

from collections.abc import Callable
from typing import Any

from tests.second_reading import (
    anthropic,
    chat,
    converse,
    gemini,
    ollama,
    responses,
)

READINGS: dict[str, Callable[[dict[str, Any]], set[str]]] = {
    "anthropic": anthropic.broken,
    "openai-chat": chat.broken,
    "openai-responses": responses.broken,
    "gemini": gemini.broken,
    "ollama": ollama.broken,
    "bedrock-converse": converse.broken,
}


def broken(format: str, request: dict[str, Any]) -> set[str]:
    """The ids of the rules which `request`, a whole body in `format`, breaks."""
    return READINGS[format](request)

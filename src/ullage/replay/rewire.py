"""A recorded run on another wire, so that one recording tries every format."""

from __future__ import annotations

from msgspec.structs import replace

from ullage.replay.readers import FormatName, Run
from ullage.wires import FORMATS
from ullage.wires.convert import convert

__all__ = ["MODELS", "on_wire"]

MODELS = {
    "openai-chat": "gpt-4.1",
    "openai-responses": "gpt-4.1",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-pro",
}
"""The model of a run whose recording names none, by format."""


def on_wire(run: Run, format: FormatName) -> Run:
    """The run as it would have been on another provider's wire; itself if it is there.

    What the other wire cannot hold is described in a line of text in its place
    (`ullage.convert`). Counts and times of the recording belong to its messages and are
    left out, as is its model.

    Raises:
        FormatError: a message is not what its format says it is.
    """
    if run.format == format:
        return run
    wire, other = FORMATS[run.format], FORMATS[format]
    given = {**run.request, wire.key: run.messages}
    made = convert(given, format, format=run.format, model=MODELS[format], lossy="describe")
    beside = {key: value for key, value in made.items() if key != other.key}
    messages = other.history(made)
    return replace(run, format=format, request=beside, messages=messages, usage={}, stamps={})

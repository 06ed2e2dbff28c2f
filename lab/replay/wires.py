"""A recorded run as it would have been on another provider's wire."""

from __future__ import annotations

from msgspec.structs import replace

from ullage.tools.replay.calls import model_of
from ullage.tools.replay.readers import FormatName, Run
from ullage.wires import FORMATS
from ullage.wires.convert import convert


def on_wire(run: Run, format: FormatName) -> Run:
    """The run as it would have been on another provider's wire; itself if it is there.

    What the other wire cannot hold is described in a line of text in its place
    (`ullage.convert`). The times of the recording belong to its messages and are left out,
    as is its model.

    Raises:
        FormatError: a message is not what its format says it is.
    """
    if run.format == format:
        return run
    wire, other = FORMATS[run.format], FORMATS[format]
    given = {**run.request, wire.key: run.messages}
    model = model_of(replace(run, format=format, request={}))
    made = convert(
        given, format, format=run.format, model=model, lossy="describe"
    )
    beside = {key: value for key, value in made.items() if key != other.key}
    messages = other.history(made)
    return replace(
        run, format=format, request=beside, messages=messages, stamps={}
    )

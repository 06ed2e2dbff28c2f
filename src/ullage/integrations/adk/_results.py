"""A tool's result cut before ADK keeps it (multi-stage §2, `truncate_tool_output_callback`)."""

from __future__ import annotations

from typing import Any

from ullage.loop.services import window_of
from ullage.stages.policy import Policy
from ullage.values.edits import Replace, storable
from ullage.values.effects import Output
from ullage.values.events import Event
from ullage.values.notices import Words
from ullage.wires import FORMATS

__all__ = ["Shortened", "shorten_result"]

_WIRE = FORMATS["gemini"]


class Shortened:
    """A result as it is to be kept.

    Attributes:
        response: what stands in its place; None if it may stay as it is.
        outputs: the originals of what was cut, for a store.
        events: what was done.
    """

    def __init__(self) -> None:
        self.response: dict[str, Any] | None = None
        self.outputs: list[Output] = []
        self.events: list[Event] = []


def shorten_result(result: Any, tool: str, policy: Policy, words: Words) -> Shortened:
    """What the stages of a policy's first sight leave of a result.

    Args:
        result: what the tool gave. Never changed.
        tool: its name.
        policy: whose stages are asked.
        words: the wording of the session.

    Raises:
        FormatError: the result is no JSON.
    """
    response = result if isinstance(result, dict) else {"result": result}
    raws = [
        {"role": "model", "parts": [{"functionCall": {"name": tool, "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": tool, "response": response}}]},
    ]
    builder = window_of(raws, _WIRE, words)
    window = builder.window
    done = Shortened()
    for stage in policy.at_first_sight:
        cuts = stage(window)
        for cut in cuts if isinstance(cuts, (list, tuple)) else ():
            edit = storable(cut.edit)
            if isinstance(edit, Replace) and builder.apply(edit) is not None:
                done.outputs += cut.outputs
                done.events.append(
                    Event(kind=edit.kind, where=f"{tool} result", why=edit.why, ref=edit.ref)
                )
    changes = window.changed.get(1)
    if changes:
        message = _WIRE.edit(raws[1], window.transcript.messages[1], changes)
        done.response = dict(message["parts"][0]["functionResponse"]["response"])
    return done

"""The stages, one plain function a file of the same name; ``default`` strings them together.

truncate    first sight      one result is too large: a view of it
record      pressure         what is old becomes a record of what was done, in rare deep batches
prune       pressure         old results go, for something short in their place
compact     pressure         a range becomes a summary a model may add to
emergency   guard            whatever it takes, never an illegal view

Whoever writes a stage finds here all it needs:

    def forget_pages(window, /, *, older_than=6):
        stop = window.transcript.turn_start(window.size) - older_than
        cuts = (placeholder(window, at) for at in window.results(0, max(stop, 0)))
        return [cut for cut in cuts if cut is not None]

    policy = Policy(name="mine-1", under_pressure=(partial(forget_pages, older_than=4),))

`Stage` says what a stage is given and has to be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ullage.on_demand import names

__all__ = [
    "DEFAULT",
    "LIMIT_CHARS",
    "SUMMARISED",
    "Address",
    "Batch",
    "Cut",
    "Drop",
    "Edit",
    "Location",
    "Measure",
    "Output",
    "Placed",
    "Policy",
    "Replace",
    "Skipped",
    "Stage",
    "Summary",
    "Transcript",
    "Window",
    "ends_of",
    "fingerprint",
    "kind_of",
    "leaves_of",
    "level",
    "on_one_line",
    "placeholder",
    "ref_of",
]

if TYPE_CHECKING:
    from ullage.history.canon import ref_of
    from ullage.history.measures import Measure
    from ullage.history.shown import Placed
    from ullage.history.transcript import Location, Transcript, leaves_of
    from ullage.history.window import Window
    from ullage.stages.default import DEFAULT, SUMMARISED
    from ullage.stages.kinds import LIMIT_CHARS, kind_of
    from ullage.stages.placeholders import placeholder
    from ullage.stages.policy import Policy, Stage
    from ullage.stages.prints import fingerprint
    from ullage.stages.shorten import ends_of, level
    from ullage.values.edits import Address, Batch, Cut, Drop, Edit, Replace, Skipped, Summary
    from ullage.values.effects import Output
    from ullage.values.texts import on_one_line
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "ullage.history.canon": "ref_of",
            "ullage.history.measures": "Measure",
            "ullage.history.shown": "Placed",
            "ullage.history.transcript": "Location Transcript leaves_of",
            "ullage.history.window": "Window",
            "ullage.stages.default": "DEFAULT SUMMARISED",
            "ullage.stages.kinds": "LIMIT_CHARS kind_of",
            "ullage.stages.placeholders": "placeholder",
            "ullage.stages.policy": "Policy Stage",
            "ullage.stages.prints": "fingerprint",
            "ullage.stages.shorten": "ends_of level",
            "ullage.values.edits": "Address Batch Cut Drop Edit Replace Skipped Summary",
            "ullage.values.effects": "Output",
            "ullage.values.texts": "on_one_line",
        },
    )

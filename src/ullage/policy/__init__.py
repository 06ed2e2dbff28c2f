"""What is cut, when, and in which words. A stage is a plain function in a file of its name;
``default`` strings them together.

truncate    first sight      one result is too large: a view of it
record      pressure         what is old becomes a record of what was done, in rare deep batches
prune       pressure         old results go, for something short in their place
compact     pressure         a range becomes a summary a model may add to
emergency   guard            whatever it takes, never an illegal view

Whoever writes a stage finds here all it needs:

    def forget_pages(window, /, *, older_than=6):
        stop = window.transcript.turn_start(window.size) - older_than
        cuts = (
            placeholder(window, at)
            for at in window.results(0, max(stop, 0))
        )
        return [cut for cut in cuts if cut is not None]

    policy = Policy(name="mine-1", under_pressure=(partial(forget_pages, older_than=4),))

`Stage` says what a stage is given and has to be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ullage.core.on_demand import names

__all__ = [
    "DEFAULT",
    "LIMIT_CHARS",
    "SUMMARISED",
    "Address",
    "Batch",
    "Drop",
    "Edit",
    "Location",
    "Measure",
    "Output",
    "Placed",
    "Policy",
    "ProposedEdit",
    "Replace",
    "ReplaceSpan",
    "Skipped",
    "Stage",
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
    from ullage.core.contract.kinds import LIMIT_CHARS, kind_of
    from ullage.core.contract.policy import Policy, Stage
    from ullage.core.history.canon import ref_of
    from ullage.core.history.measures import Measure
    from ullage.core.history.shown import Placed
    from ullage.core.history.transcript import Location, Transcript, leaves_of
    from ullage.core.history.window import Window
    from ullage.core.values.edits import (
        Address,
        Batch,
        Drop,
        Edit,
        ProposedEdit,
        Replace,
        ReplaceSpan,
        Skipped,
    )
    from ullage.core.values.effects import Output
    from ullage.core.values.texts import on_one_line
    from ullage.policy.stages.default import DEFAULT, SUMMARISED
    from ullage.policy.stages.fingerprints import fingerprint
    from ullage.policy.stages.placeholders import placeholder
    from ullage.policy.stages.shorten import ends_of, level
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "ullage.core.history.canon": "ref_of",
            "ullage.core.history.measures": "Measure",
            "ullage.core.history.shown": "Placed",
            "ullage.core.history.transcript": "Location Transcript leaves_of",
            "ullage.core.history.window": "Window",
            "ullage.policy.stages.default": "DEFAULT SUMMARISED",
            "ullage.core.contract.kinds": "LIMIT_CHARS kind_of",
            "ullage.policy.stages.placeholders": "placeholder",
            "ullage.core.contract.policy": "Policy Stage",
            "ullage.policy.stages.fingerprints": "fingerprint",
            "ullage.policy.stages.shorten": "ends_of level",
            "ullage.core.values.edits": "Address Batch Drop Edit ProposedEdit Replace "
            "ReplaceSpan Skipped",
            "ullage.core.values.effects": "Output",
            "ullage.core.values.texts": "on_one_line",
        },
    )

"""A stage of one's own in a policy of one's own."""

from collections.abc import Sequence
from functools import partial

import ullage


def only_newest(
    window: ullage.Window, /, *, newest: int = 3
) -> Sequence[ullage.ProposedEdit]:
    found: list[ullage.ProposedEdit] = []
    for location in list(window.results(0, window.size))[:-newest]:
        output = window.transcript.output(location)
        if output is not None and location[1:] not in window.shown(
            location[0]
        ):
            place = window.transcript.address(location)
            shown = window.words.placeholder(output.ref, output.text)
            replace = ullage.Replace(
                place, output.ref, shown, "pruned", "newer ones came"
            )
            found.append(ullage.ProposedEdit(replace, (output,)))
    return found


policy = ullage.Policy(
    name="mine-1", under_pressure=(partial(only_newest, newest=2),)
)
session = ullage.Session("gpt-5.4", policy=policy)

"""A stage that tries everything: arbitrary cuts, most of which no view can show.

What the engine makes of them is legal and can be opened, whatever a stage does. It shows that of a
store, a format or a host as well: `check_policy(…, repairs=True)`, or a session with such a policy.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from ullage import (
    Address,
    Edit,
    Output,
    ProposedEdit,
    Replace,
    ReplaceSpan,
    Window,
)
from ullage.core.contract.ranges import set_aside
from ullage.policy import Drop, Location, leaves_of
from ullage.stores import ref_of

__all__ = ["anything"]

_Chance: TypeAlias = random.Random
_ELSEWHERE = "of another session"


def anything(
    window: Window, /, *, seed: int = 0, most_cuts: int = 4
) -> Sequence[ProposedEdit]:
    """Arbitrary cuts of what stands in a window, and of what does not.

    Ranges anywhere, empty, reversed, overlapping, of no history; texts of every place, with
    and without their ref, blank, or no JSON; outputs missing, too many, or under the ref of another
    content; reasoning left out anywhere. It is pure: the same window gives the same cuts. Asked
    again where cuts of its own were made, it makes none.

    Args:
        window: the window at the boundary at hand.
        seed: which of the many such stages it is.
        most_cuts: how many cuts it proposes at once, at most.
    """
    mark = f"anything {seed} at {window.size}"
    if not window.size or any(edit.why == mark for edit in _shown(window)):
        return ()
    chance = random.Random(
        f"{mark} {window.transcript.chain[window.size].hex()}"
    )
    kinds: tuple[Callable[[Window, _Chance, str], ProposedEdit], ...] = (
        _leaf,
        _leaf,
        _range,
        _range,
        _run,
    )
    return [
        chance.choice(kinds)(window, chance, mark)
        for _ in range(chance.randint(0, most_cuts))
    ]


def _shown(window: Window) -> Sequence[Edit]:
    """Every edit that is shown."""
    leaves = (
        edit for at in range(window.size) for edit in window.shown(at).values()
    )
    return [*leaves, *(placed.edit for placed in window.summaries)]


def _leaf(window: Window, chance: _Chance, mark: str) -> ProposedEdit:
    """A cut of one leaf, or of a place where there is none."""
    spot = _spot(window, chance)
    original = window.transcript.output(spot) if spot is not None else None
    if spot is None or original is None:
        address = Address(
            "text", "no digest", chance.randint(-1, 2), chance.randint(-1, 2)
        )
        ref = ref_of(_ELSEWHERE)
        return ProposedEdit(
            Replace(address, ref, _text(chance, ref), "pruned", mark), ()
        )
    place = window.transcript.address(spot)
    if chance.random() < 0.1:
        place = replace(
            place, ordinal=place.ordinal + chance.randint(-1, 1), item=9
        )
    ref = original.ref if chance.random() < 0.8 else ref_of(_ELSEWHERE)
    edit = Replace(place, ref, _text(chance, ref), "pruned", mark)
    return ProposedEdit(edit, _outputs(chance, [original]))


def _spot(window: Window, chance: _Chance) -> Location | None:
    """Any leaf in the window."""
    messages = window.transcript.messages
    index = chance.randrange(window.size)
    leaves = [
        (index, number, item) for number, item, _ in leaves_of(messages[index])
    ]
    return chance.choice(leaves) if leaves else None


def _range(window: Window, chance: _Chance, mark: str) -> ProposedEdit:
    """A summary of a range, which may be no range."""
    start, stop = _ends(window, chance)
    ref = ref_of(_ELSEWHERE)
    outputs: Sequence[Output] = ()
    if start < stop <= window.size:
        outputs = set_aside(window, start, stop)
        ref = outputs[-1].ref if chance.random() < 0.7 else ref
    chain = window.transcript.chain
    edit = ReplaceSpan(
        chain[start] if chance.random() < 0.95 else b"no chain",
        chain[stop],
        _text(chance, ref),
        ref,
        mark,
        kind=chance.choice(("condensed", "compacted", "pruned")),
        retain=chance.choice(("", "", " ", "what a model chose to keep")),
        keeps=tuple(chance.choices(chain, k=chance.choice((0, 0, 1, 3)))),
        later=chance.choice(((), (), (" ", "later", ""))),
    )
    return ProposedEdit(edit, _outputs(chance, outputs))


def _run(window: Window, chance: _Chance, mark: str) -> ProposedEdit:
    """Reasoning left out of a range."""
    start, stop = _ends(window, chance)
    chain = window.transcript.chain
    return ProposedEdit(Drop(chain[start], chain[stop], mark), ())


def _ends(window: Window, chance: _Chance) -> tuple[int, int]:
    """Two places of the history, nearly always in order."""
    ends = [chance.randint(0, window.size), chance.randint(0, window.size)]
    start, stop = ends if chance.random() < 0.1 else sorted(ends)
    return start, stop


def _text(chance: _Chance, ref: str) -> str:
    """What is shown: nothing, no ref, a ref, another ref, an object, half of one."""
    texts = (
        "",
        " \n",
        "gone",
        f"gone, ref={ref}",
        f"ref={ref_of(_ELSEWHERE)}",
        "{}",
        '{"x"',
    )
    return chance.choice(texts)


def _outputs(chance: _Chance, outputs: Sequence[Output]) -> tuple[Output, ...]:
    """Some of what is taken out, and what is not."""
    chosen = [output for output in outputs if chance.random() < 0.7]
    if chance.random() < 0.2:
        chosen.append(Output(ref_of(_ELSEWHERE), _ELSEWHERE))
    if chance.random() < 0.2:
        chosen.append(
            Output(ref_of(_ELSEWHERE), "under the ref of another content")
        )
    if chance.random() < 0.2 and outputs:
        chosen.insert(0, Output(outputs[0].ref, "in place of the original"))
    return tuple(chosen)

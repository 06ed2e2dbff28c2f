"""Stages that make any legal edit anywhere: the formats' guards are tested, not our habits.

Each is a plain function as every stage is (`ullage.core.contract.policy`), and like them a function
of the
window alone: what is random is drawn from the number of the policy and the place at hand, so
that a cold start decides the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from random import Random

from ullage.core.contract.policy import Policy
from ullage.core.contract.ranges import summarised
from ullage.core.history.transcript import Location, leaves_of
from ullage.core.history.window import Window
from ullage.core.values.edits import ProposedEdit, Replace
from ullage.core.values.messages import Text, ToolCall
from ullage.policy.stages.condense import AccountRoom, Range, condense
from ullage.policy.stages.default import DEFAULT
from ullage.policy.stages.emergency import emergency, reach
from ullage.policy.stages.placeholders import placeholder
from ullage.policy.stages.shorten import shorten
from ullage.policy.stages.shrink import cut_to

_WORTH_CHARS = 350
_ROOM_CHARS = (300, 450, 700, 1_500)


@lru_cache(maxsize=64)
def policy_of(number: int) -> Policy:
    """The policy of a number: 0 is the default one, any other edits at random."""
    if not number:
        return DEFAULT
    stages = [
        partial(stage, seed=number)
        for stage in (prune_any, cut_any, condense_any)
    ]
    Random(number).shuffle(stages)
    return Policy(
        name=f"any-{number}",
        on_arrival=(partial(truncate_any, seed=number),),
        under_pressure=tuple(stages),
        guard=partial(emergency),
    )


def truncate_any(window: Window, /, *, seed: int) -> Sequence[ProposedEdit]:
    """Fresh results cut to any length; which and how far depends on the result alone."""
    cuts = []
    for spot in window.results(window.fresh, window.size):
        leaf, output = (
            window.transcript.leaf(spot),
            window.transcript.output(spot),
        )
        if (
            not isinstance(leaf, Text)
            or output is None
            or len(leaf.text) < _WORTH_CHARS
        ):
            continue
        random = Random(f"{seed}/{output.ref}")
        if random.random() < 0.4:
            room = random.choice(_ROOM_CHARS)
            shown = shorten(leaf.text, room, output.ref, window.words)
            if shown is not None:
                place = window.transcript.address(spot)
                edit = Replace(
                    place, output.ref, shown, "truncated", "by chance"
                )
                cuts.append(ProposedEdit(edit, (output,)))
    return cuts


def prune_any(window: Window, /, *, seed: int) -> Sequence[ProposedEdit]:
    """Any results and arguments set aside, wherever they stand."""
    share = Random(f"{seed}/prune/{window.size}").choice(
        (0, 0, 0, 0.2, 0.5, 1.0)
    )
    if not share:
        return ()
    spots = (
        spot
        for spot in _spots(window)
        if _draw(seed, window.size, spot) < share
    )
    return [
        cut for spot in spots if (cut := placeholder(window, spot)) is not None
    ]


def cut_any(window: Window, /, *, seed: int) -> Sequence[ProposedEdit]:
    """Any texts, results and arguments cut to any size."""
    if Random(f"{seed}/cut/{window.size}").random() < 0.8:
        return ()
    cuts = []
    for spot in _spots(window, texts=True):
        drawn, tokens = (
            _draw(seed, window.size, spot),
            window.leaf_tokens(spot),
        )
        if drawn > 0.75 and tokens > 1:
            cut = cut_to(
                window, spot, tokens, max(1, int(tokens * (drawn - 0.75) * 4))
            )
            if cut is not None:
                cuts.append(cut)
    return cuts


@lru_cache(
    maxsize=4_096
)  # seeding hashes, and a place is asked again by the other stages
def _draw(seed: int, size: int, spot: Location) -> float:
    """A number from 0 to 1 for a spot, in a window of a size."""
    return Random(f"{seed}/{size}/{spot}").random()


def _spots(window: Window, *, texts: bool = False) -> list[Location]:
    """The visible results, and the calls that are not signed; other texts too, if asked.

    What was cut before is left out, so that a stage asked again has nothing to add.
    """
    transcript, found = window.transcript, []
    for index in range(window.size):
        if window.hidden(index):
            continue
        results = set(window.results(index, index + 1))
        for number, item, leaf in leaves_of(transcript.messages[index]):
            spot, is_text = (index, number, item), isinstance(leaf, Text)
            edit = window.shown(index).get((number, item))
            if edit is not None and edit.was_sent:
                continue
            if (
                (spot in results and (is_text or not texts))
                or (isinstance(leaf, ToolCall) and not window.signed(index))
                or (texts and is_text)
            ):
                found.append(spot)
    return found


def condense_any(window: Window, /, *, seed: int) -> Sequence[ProposedEdit]:
    """Any run of messages condensed that begins and ends where the transcript lets it.

    A run grows and never shrinks: what was condensed stays so.
    """
    random = Random(f"{seed}/condense/{window.size}")
    if random.random() < 0.6:
        return ()
    from_, to, room_chars = (
        random.random(),
        random.random(),
        random.choice((600, 2_000)),
    )
    transcript, size = window.transcript, window.size
    old = summarised(window)
    least, end = reach(window)
    begins = (
        [old[0]]
        if old
        else [i for i in range(least, size) if transcript.may_split(i)]
    )
    if not begins:
        return ()
    begin = begins[int(from_ * len(begins))]
    wanted = begin + 1 + int(to * (size - begin))
    stops = [i for i in range(wanted, min(end + 1, size)) if window.may_cut(i)]
    if not stops and end == size and transcript.closed(size):
        stops = [size]
    stop = stops[0] if stops else begin
    if stop <= (old[1] if old else begin):
        return ()
    room = AccountRoom(
        room_chars, room_chars // 2, window.limit_tokens, "by chance"
    )
    made = condense(window, Range(begin, stop), room)
    return () if made is None else made.cuts

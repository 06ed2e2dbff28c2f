"""The user's hand in one history: which decisions stand there, and what follows from them.

    ledger + chain ──▶ UserDecisions ──▶ undone   batches that are not shown
                                     ├─▶ due      decisions that no batch carries out yet
                                     └─▶ pins     what no stage may take out of the view

It is a pure function of a transcript and a ledger, so every worker comes to the same. A decision
holds in the histories whose chain goes through its place. The newest decision is asked first: an
undo that stands takes an earlier decision out, be it an undo itself.

A batch that carries out a decision is taken back with it, and so are the batches which a policy
made at the same place because of it. What was decided at later places stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ullage.core.history import canon
from ullage.core.history.ledger import Entry, Ledger
from ullage.core.history.transcript import Location, Transcript, leaves_of
from ullage.core.values.decisions import EVERY_ITEM, Decision, LedgerRef, Target
from ullage.core.values.edits import Batch, Replace, ReplaceSpan

_NAME_CHARS = 8


class Pins(Struct, frozen=True):
    """What stays in the view, by its index in one history.

    Attributes:
        messages: messages that no summary may hide.
        whole: of these the messages of which no leaf may be shown otherwise.
        leaves: single leaves that may not be shown otherwise.
        lines: the lines of a leaf that what is shown in its place must hold.
    """

    messages: frozenset[int] = frozenset()
    whole: frozenset[int] = frozenset()
    leaves: frozenset[Location] = frozenset()
    lines: Mapping[Location, tuple[tuple[int, int], ...]] = {}

    def __bool__(self) -> bool:
        return bool(self.messages)

    def also(self, spots: Sequence[Location]) -> Pins:
        """These and some leaves more."""
        messages = self.messages.union(spot[0] for spot in spots)
        return replace(self, messages=messages, leaves=self.leaves.union(spots))

    def covers(self, spot: Location) -> bool:
        """Whether a leaf is to stay whole."""
        return spot[0] in self.whole or spot in self.leaves


class DecisionEntry(Struct, frozen=True):
    """A decision as it is in the ledger.

    Attributes:
        name: its short name.
        ref: where the ledger keeps it.
        decision: what was decided.
        carried_out: the batches that carry it out; none: it is still to be.
        length: how many messages there were when it was decided.
    """

    name: str
    ref: LedgerRef
    decision: Decision
    carried_out: tuple[LedgerRef, ...]
    length: int


class UserDecisions(Struct, frozen=True):
    """What users decided of one history.

    Attributes:
        decisions: the decisions that stand, oldest first.
        due: of these the decisions that are to be carried out.
        undone: the batches that are not shown.
        pins: what stays in the view.
    """

    decisions: tuple[DecisionEntry, ...] = ()
    due: tuple[DecisionEntry, ...] = ()
    undone: frozenset[LedgerRef] = frozenset()
    pins: Pins = Pins()


EMPTY = UserDecisions()


def name_of(made: LedgerRef) -> str:
    """The short name of a decision (``d…``) or a batch (``b…``): the same on every worker."""
    digest = canon.ref_of(f"{made.key.hex()} {made.kind} {made.n}")
    return made.kind[0] + digest[:_NAME_CHARS]


def hand_of(
    transcript: Transcript, ledger: Ledger, *, is_frozen: bool = False
) -> UserDecisions:
    """The decisions that stand in a history. In nearly every history there are none.

    Args:
        transcript: the history.
        ledger: what is known of it.
        is_frozen: whether what was sent must stay as it is now: then an undo waits.
    """
    if not ledger.by_user:
        return EMPTY
    entered = tuple(entered_in(transcript, ledger))
    if not entered:
        return EMPTY
    standing = _standing(entered)
    due = tuple(one for one in standing if not one.carried_out)
    waiting = {one.name for one in due if is_frozen and one.decision.verb == "undo"}
    effective = [one for one in standing if one.name not in waiting]
    undone = _undone(entered, effective, ledger)
    return UserDecisions(
        decisions=standing,
        due=due,
        undone=undone,
        pins=_pins(transcript, effective, ledger),
    )


def entered_in(transcript: Transcript, ledger: Ledger) -> Iterator[DecisionEntry]:
    """Every decision of a history, whether or not it stands, oldest first."""
    places = {key: transcript.find(key) for key in ledger.by_user}
    keys = [key for key, place in places.items() if place is not None]
    keys.sort(key=lambda key: places[key] or 0)
    carried = dict[str, tuple[LedgerRef, ...]]()
    for key in keys:
        for n, batch in enumerate(ledger.at(key).batches):
            if batch.decision:
                earlier = carried.get(batch.decision, ())
                carried[batch.decision] = (*earlier, LedgerRef("batch", key, n))
    for key in keys:
        for n, decision in enumerate(ledger.at(key).decisions):
            made = LedgerRef("decision", key, n)
            name = name_of(made)
            yield DecisionEntry(
                name, made, decision, carried.get(name, ()), places[key] or 0
            )


def _standing(entered: tuple[DecisionEntry, ...]) -> tuple[DecisionEntry, ...]:
    """Those that no later decision takes back."""
    taken_back = set[LedgerRef]()
    standing = list[DecisionEntry]()
    for one in reversed(entered):
        if one.ref in taken_back:
            continue
        standing.append(one)
        if one.decision.undoes is not None:
            taken_back.add(one.decision.undoes)
    return tuple(reversed(standing))


def _undone(
    entered: tuple[DecisionEntry, ...], effective: list[DecisionEntry], ledger: Ledger
) -> frozenset[LedgerRef]:
    """The batches that are not shown: undone themselves, or with the decision they carry out."""
    undone = set[LedgerRef]()
    targets = {
        one.decision.undoes for one in effective if one.decision.undoes is not None
    }
    undone.update(made for made in targets if made.kind == "batch")
    for one in entered:
        for batch in one.carried_out if one.ref in targets else ():
            undone.update(with_consequences(batch, ledger.at(batch.key)))
    return frozenset(undone)


def with_consequences(batch: LedgerRef, entry: Entry) -> Iterator[LedgerRef]:
    """A batch that carries out a decision, and what a policy made at its place because of it."""
    yield batch
    for n in range(batch.n + 1, len(entry.batches)):
        if entry.batches[n].decision:
            return
        yield LedgerRef("batch", batch.key, n)


def batch_of(made: LedgerRef, ledger: Ledger) -> Batch | None:
    """The batch that the ledger keeps there, or None."""
    batches = ledger.at(made.key).batches
    return batches[made.n] if made.kind == "batch" and made.n < len(batches) else None


def shown_under(key: bytes, ledger: Ledger, hand: UserDecisions) -> Sequence[Batch]:
    """The batches under a key, without those that are undone."""
    batches, undone = ledger.at(key).batches, hand.undone
    if not undone:
        return batches
    return [
        it for n, it in enumerate(batches) if LedgerRef("batch", key, n) not in undone
    ]


# ── what stays ───────────────────────────────────────────────────────────────────────────


def _pins(
    transcript: Transcript, effective: list[DecisionEntry], ledger: Ledger
) -> Pins:
    """What stays. Of two decisions about the same leaf the later one counts."""
    pins = _Growing(set(), set(), set(), {})
    end = transcript.decision_key(len(transcript))
    for one in effective:
        target, undoes = one.decision.target, one.decision.undoes
        if target is not None and _is_restored_at(one, end):
            pins.pin(spots_of(transcript, target), target)
        if one.decision.verb == "pin" and target is not None:
            pins.pin(spots_of(transcript, target), target)
        elif one.decision.verb == "drop" and target is not None:
            pins.drop(spots_of(transcript, target), target)
        elif undoes is not None and (batch := batch_of(undoes, ledger)) is not None:
            pins.pin_again(transcript, batch)
    messages, whole, leaves, lines = pins
    return Pins(frozenset(messages), frozenset(whole), frozenset(leaves), lines)


def _is_restored_at(one: DecisionEntry, key: bytes) -> bool:
    """Whether something came back in its place just here: then the same request shows it again."""
    is_in_place = one.decision.verb == "restore" and one.decision.when != "end"
    return is_in_place and any(made.key == key for made in one.carried_out)


class _Growing(NamedTuple):
    """`Pins`, as decision after decision is taken in."""

    messages: set[int]
    whole: set[int]
    leaves: set[Location]
    lines: dict[Location, tuple[tuple[int, int], ...]]

    def pin(self, spots: Sequence[Location], target: Target) -> None:
        """Take in a pin."""
        self.messages.update(spot[0] for spot in spots)
        if target.lines is not None:
            for spot in spots:
                self.lines[spot] = (*self.lines.get(spot, ()), target.lines)
        elif target.leaf is None:
            self.whole.update(spot[0] for spot in spots)
        else:
            self.leaves.update(spots)

    def drop(self, spots: Sequence[Location], target: Target) -> None:
        """Take in a drop: what was pinned of it before is not any more."""
        self.leaves.difference_update(spots)
        for spot in spots:
            self.lines.pop(spot, None)
            self.whole.discard(spot[0])
            if target.leaf is None:
                self.messages.discard(spot[0])

    def pin_again(self, transcript: Transcript, batch: Batch) -> None:
        """Take in an undo: what its batch had taken out stays for as long as there is room."""
        for edit in batch.edits:
            if isinstance(edit, Replace) and (spot := transcript.locate(edit.address)):
                self.leaves.add(spot)
                self.messages.add(spot[0])
            elif isinstance(edit, ReplaceSpan):
                start, stop = transcript.find(edit.after), transcript.find(edit.upto)
                if start is not None and stop is not None:
                    self.messages.update(range(start, stop))
                    self.whole.update(range(start, stop))


def index_of(transcript: Transcript, message: bytes) -> int | None:
    """The index of the message behind which the chain is this; None where it is not here."""
    length = transcript.find(message)
    return length - 1 if length else None


def spots_of(transcript: Transcript, target: Target) -> list[Location]:
    """The leaves that a target means, in a history that holds it; none elsewhere."""
    index = index_of(transcript, target.message)
    if index is None:
        return []
    spots = [
        (index, number, item)
        for number, item, _ in leaves_of(transcript.messages[index])
    ]
    leaf = target.leaf
    if leaf is None:
        return spots
    place = transcript.locate(
        replace(leaf, item=0) if leaf.item == EVERY_ITEM else leaf
    )
    if place is None or place[0] != index:
        return []
    return (
        [spot for spot in spots if spot[:2] == place[:2]]
        if leaf.item == EVERY_ITEM
        else [place]
    )

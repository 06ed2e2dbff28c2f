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

from collections.abc import (
    Callable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ullage.core.history import canon
from ullage.core.history.ledger import Entry, Ledger
from ullage.core.history.transcript import Location, Transcript, leaves_of
from ullage.core.values.decisions import (
    EVERY_ITEM,
    Decision,
    LedgerRef,
    Target,
)
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

    def also(self, locations: Sequence[Location]) -> Pins:
        """These and some leaves more."""
        messages = self.messages.union(location[0] for location in locations)
        return replace(
            self, messages=messages, leaves=self.leaves.union(locations)
        )

    def covers(self, location: Location) -> bool:
        """Whether a leaf is to stay whole."""
        return location[0] in self.whole or location in self.leaves


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
        firm: of that what a pin keeps; what an undo brought back leaves the window before it.
    """

    decisions: tuple[DecisionEntry, ...] = ()
    due: tuple[DecisionEntry, ...] = ()
    undone: frozenset[LedgerRef] = frozenset()
    pins: Pins = Pins()
    firm: Pins = Pins()


EMPTY = UserDecisions()


def name_of(ref: LedgerRef) -> str:
    """The short name of a decision (``d…``) or a batch (``b…``): the same on every worker."""
    digest = canon.ref_of(f"{ref.key.hex()} {ref.kind} {ref.n}")
    return ref.kind[0] + digest[:_NAME_CHARS]


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
    due = tuple(entry for entry in standing if not entry.carried_out)
    waiting = set[str]()
    if is_frozen:
        waiting.update(
            entry.name for entry in due if entry.decision.verb == "undo"
        )
    effective = [entry for entry in standing if entry.name not in waiting]
    undone = _undone(entered, effective, ledger)
    asked = [entry for entry in effective if entry.decision.undoes is None]
    return UserDecisions(
        decisions=standing,
        due=due,
        undone=undone,
        pins=_pins(transcript, effective, ledger),
        firm=_pins(transcript, asked, ledger),
    )


def entered_in(
    transcript: Transcript, ledger: Ledger
) -> Iterator[DecisionEntry]:
    """Every decision of a history, whether or not it stands, oldest first."""
    lengths: dict[bytes, int] = {}
    for key in ledger.by_user:
        length = transcript.find(key)
        if length is not None:
            lengths[key] = length
    keys = sorted(lengths, key=lambda key: lengths[key])
    batches = _batches_of_decisions(keys, ledger)
    for key in keys:
        for n, decision in enumerate(ledger.at(key).decisions):
            ref = LedgerRef("decision", key, n)
            name = name_of(ref)
            yield DecisionEntry(
                name=name,
                ref=ref,
                decision=decision,
                carried_out=batches.get(name, ()),
                length=lengths[key],
            )


def _batches_of_decisions(
    keys: Sequence[bytes], ledger: Ledger
) -> dict[str, tuple[LedgerRef, ...]]:
    """The batches that carry out decisions, by the name of the decision."""
    batches: dict[str, tuple[LedgerRef, ...]] = {}
    for key in keys:
        for n, batch in enumerate(ledger.at(key).batches):
            if batch.decision:
                earlier = batches.get(batch.decision, ())
                batches[batch.decision] = (
                    *earlier,
                    LedgerRef("batch", key, n),
                )
    return batches


def _standing(entered: tuple[DecisionEntry, ...]) -> tuple[DecisionEntry, ...]:
    """Those that no later decision takes back."""
    taken_back = set[LedgerRef]()
    standing = list[DecisionEntry]()
    for entry in reversed(entered):
        if entry.ref in taken_back:
            continue
        standing.append(entry)
        if entry.decision.undoes is not None:
            taken_back.add(entry.decision.undoes)
    return tuple(reversed(standing))


def _undone(
    entered: tuple[DecisionEntry, ...],
    effective: list[DecisionEntry],
    ledger: Ledger,
) -> frozenset[LedgerRef]:
    """The batches that are not shown: undone themselves, or with the decision they carry out."""
    targets = {entry.decision.undoes for entry in effective}
    undone = set[LedgerRef]()
    for target in targets:
        if target is not None and target.kind == "batch":
            undone.add(target)
    for entry in entered:
        if entry.ref in targets:
            for batch in entry.carried_out:
                undone.update(with_consequences(batch, ledger.at(batch.key)))
    return frozenset(undone)


def with_consequences(batch: LedgerRef, entry: Entry) -> Iterator[LedgerRef]:
    """A batch that carries out a decision, and what a policy made at its place because of it."""
    yield batch
    for n in range(batch.n + 1, len(entry.batches)):
        if entry.batches[n].decision:
            return
        yield LedgerRef("batch", batch.key, n)


def batch_of(ref: LedgerRef, ledger: Ledger) -> Batch | None:
    """The batch that the ledger keeps there, or None."""
    if ref.kind != "batch":
        return None
    batches = ledger.at(ref.key).batches
    return batches[ref.n] if ref.n < len(batches) else None


def shown_under(
    key: bytes, ledger: Ledger, hand: UserDecisions
) -> Sequence[Batch]:
    """The batches under a key, without those that are undone."""
    batches = ledger.at(key).batches
    if not hand.undone:
        return batches
    standing = list[Batch]()
    for n, batch in enumerate(batches):
        if LedgerRef("batch", key, n) not in hand.undone:
            standing.append(batch)
    return standing


# ── what stays ───────────────────────────────────────────────────────────────────────────


def _pins(
    transcript: Transcript, effective: list[DecisionEntry], ledger: Ledger
) -> Pins:
    """What stays. Of two decisions about the same leaf the later one counts."""
    pins = _Growing(set(), set(), set(), {})
    end = transcript.decision_key(len(transcript))
    for entry in effective:
        verb = entry.decision.verb
        target = entry.decision.target
        undoes = entry.decision.undoes
        if target is not None:
            locations = locations_of(transcript, target)
            if verb == "pin" or _is_restored_at(entry, end):
                pins.pin(locations, target)
            if verb == "drop":
                pins.drop(transcript, locations, target)
        elif undoes is not None:
            batch = batch_of(undoes, ledger)
            if batch is not None:
                pins.pin_again(transcript, batch)
    return Pins(
        messages=frozenset(pins.messages),
        whole=frozenset(pins.whole),
        leaves=frozenset(pins.leaves),
        lines=pins.lines,
    )


def _is_restored_at(entry: DecisionEntry, key: bytes) -> bool:
    """Whether something came back in its place just here: then the same request shows it again."""
    if entry.decision.verb != "restore" or entry.decision.when == "end":
        return False
    return any(batch.key == key for batch in entry.carried_out)


class _Growing(NamedTuple):
    """`Pins`, as decision after decision is taken in."""

    messages: set[int]
    whole: set[int]
    leaves: set[Location]
    lines: dict[Location, tuple[tuple[int, int], ...]]

    def pin(self, locations: Sequence[Location], target: Target) -> None:
        """Take in a pin."""
        self.messages.update(location[0] for location in locations)
        if target.lines is not None:
            for location in locations:
                self.lines[location] = (
                    *self.lines.get(location, ()),
                    target.lines,
                )
        elif target.leaf is None:
            self.whole.update(location[0] for location in locations)
        else:
            self.leaves.update(locations)

    def drop(
        self,
        transcript: Transcript,
        locations: Sequence[Location],
        target: Target,
    ) -> None:
        """Take in a drop: what was pinned of it before is not any more; the rest still is."""
        for index in self.whole.intersection(one[0] for one in locations):
            self.whole.discard(index)
            for number, item, _ in leaves_of(transcript.messages[index]):
                self.leaves.add((index, number, item))
        self.leaves.difference_update(locations)
        for location in locations:
            self.lines.pop(location, None)
            if target.leaf is None:
                self.messages.discard(location[0])

    def pin_again(self, transcript: Transcript, batch: Batch) -> None:
        """Take in an undo: what its batch had taken out stays for as long as there is room."""
        for edit in batch.edits:
            if isinstance(edit, Replace):
                location = transcript.locate(edit.address)
                if location is not None:
                    self.leaves.add(location)
                    self.messages.add(location[0])
            elif isinstance(edit, ReplaceSpan):
                start = transcript.find(edit.after)
                stop = transcript.find(edit.upto)
                if start is not None and stop is not None:
                    self.messages.update(range(start, stop))
                    self.whole.update(range(start, stop))


def index_of(transcript: Transcript, message: bytes) -> int | None:
    """The index of the message behind which the chain is this; None where it is not here."""
    length = transcript.find(message)
    return length - 1 if length else None


def locations_of(transcript: Transcript, target: Target) -> list[Location]:
    """The leaves that a target means, in a history that holds it; none elsewhere."""
    index = index_of(transcript, target.message)
    if index is None:
        return []
    locations = [
        (index, number, item)
        for number, item, _ in leaves_of(transcript.messages[index])
    ]
    leaf = target.leaf
    if leaf is None:
        return locations
    is_every = leaf.item == EVERY_ITEM
    address = replace(leaf, item=0) if is_every else leaf
    match = transcript.locate(address)
    if match is None or match[0] != index:
        return []
    if not is_every:
        return [match]
    return [location for location in locations if location[:2] == match[:2]]


def parting(
    transcript: Transcript,
    hidden: Callable[[int], bool],
    start: int,
    stop: int,
    shown: Set[int],
) -> set[int]:
    """The messages of the user's that keep replies apart which a summary leaves in the view.

    Where one reply would stand directly behind another, no wire has a place for the calls of the
    second (G4), and some refuse it (B2). So the newest message of the user's that stood between
    them is shown, too, though it was hidden. The summary's text stands behind them all; where
    nothing stands before them it stands in front, and the last of them may be a reply as well.

    Args:
        transcript: the history.
        hidden: whether a summary is shown in place of a message.
        start: the first message that the summary stands for.
        stop: one past the last.
        shown: the messages of these that it leaves in the view, by index.
    """
    messages = transcript.messages
    before = start - 1
    while before >= 0 and messages[before].role == "system":
        before -= 1
    is_first = before < 0
    previous = None if is_first or hidden(before) else before
    parted = set[int]()
    for index in sorted(shown):
        role = messages[index].role
        if role == "system":
            continue  # what the system said is laid behind the summary
        if role == "assistant" and previous is not None:
            own = transcript.reply(index, index + 1)
            if previous < own.start and messages[previous].role == role:
                parted.update(_newest_said(transcript, previous + 1, index))
        previous = index
    if not is_first or previous is None:
        return parted
    if messages[previous].role == "assistant":
        parted.update(_newest_said(transcript, previous + 1, stop))
    return parted


def _newest_said(
    transcript: Transcript, start: int, stop: int
) -> Iterator[int]:
    """The newest message of a range in which the user speaks, and nothing is answered."""
    for index in range(stop - 1, start - 1, -1):
        message = transcript.messages[index]
        is_plain = not message.is_control and not message.results
        if message.role == "user" and is_plain:
            yield index
            return

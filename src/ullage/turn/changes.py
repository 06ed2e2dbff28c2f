"""Messages that changed at an old place: a result that was pending, an answer moved to its call.

What is in the window goes by its place, and so does what is old. A message that was not there when
the history was last shown is new all the same, wherever it stands: it is in the next view as at
first sight, and from then on as old as its change.

    shown      what the history held lately, as marks, under the key of its first reply (`remember`)
    seen       which messages were not among these though old ones follow (`changed`), under the
               place of the request in which that was seen

Both are in the ledger, so every worker and every later view comes to the same (`arrived`). Without
a ledger nobody can tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ullage.history import canon
from ullage.history.ledger import MARK_BYTES, Ledger, Shown
from ullage.history.transcript import Transcript, leaves_of
from ullage.values.effects import Record
from ullage.values.messages import Message, Text

_EVERY_REPLIES = 8
"""What a history holds is kept anew after so many replies, and with every decision."""
_EVERY_SHARE = 1 / 64
"""Or after this share of all replies, if that is more, for the whole history is written then."""


def key_of(transcript: Transcript) -> bytes | None:
    """The key under which it is kept what a history held; None before the first reply."""
    begins = transcript.first("begins")
    for index in () if begins is None else range(begins, len(transcript)):
        message = transcript.messages[index]
        if message.role == "assistant" and not message.only_thought:
            return canon.extend(transcript.chain[index + 1], b"shown")
    return None


def arrived(transcript: Transcript, ledger: Ledger) -> Mapping[int, int]:
    """The messages that are newer than their place, and how many were there before they changed."""
    found: dict[int, int] = {}
    for key in dict.fromkeys(transcript.chain) if ledger.has_changes else ():
        for seen in ledger.at(key).seen:
            for message, before in seen.changed:
                length, place = transcript.find(message), transcript.find(before)
                if length and place:
                    found[length - 1] = max(place, found.get(length - 1, 0))
    return found


def changed(transcript: Transcript, ledger: Ledger) -> tuple[tuple[bytes, bytes], ...]:
    """The messages that changed at an old place since the history was shown, for the ledger."""
    shown = _shown(transcript, ledger)
    if shown is None or transcript.find(shown.chain) is not None:
        return ()  # it only grew
    marks, were = _marks(transcript), shown.each()
    found = {**_moved(marks, were, shown), **_new(transcript, marks, were)}
    known, chain = arrived(transcript, ledger), transcript.chain
    return tuple(
        (chain[index + 1], chain[before])
        for index, before in sorted(found.items())
        if index not in known and not transcript.messages[index].only_thought
    )


def remember(
    transcript: Transcript, ledger: Ledger, *, is_decided: bool
) -> tuple[Ledger, tuple[Record, ...]]:
    """The ledger with what the history holds now, where that is due, and the record of it.

    Args:
        transcript: the history.
        ledger: with everything that was decided in it.
        is_decided: whether something was decided just now.
    """
    key, shown = key_of(transcript), _shown(transcript, ledger)
    if key is None:
        return ledger, ()
    length = 0 if shown is None else (transcript.find(shown.chain) or 0)
    replies = transcript.marked("begins", length, len(transcript))
    every = max(_EVERY_REPLIES, int(transcript.count("begins", 0, len(transcript)) * _EVERY_SHARE))
    if not is_decided and len(replies) < every:
        return ledger, ()
    marks = b"".join(_marks(transcript))
    newer = tuple(sorted(arrived(transcript, ledger).items()))
    new = Shown(marks, transcript.chain[-1], newer)
    if new == shown:
        return ledger, ()
    ledger, record = ledger.with_shown(key, new)
    return ledger, (record,)


def _shown(transcript: Transcript, ledger: Ledger) -> Shown | None:
    """What the history held when it was shown lately, if that is known."""
    key = key_of(transcript)
    return None if key is None else ledger.at(key).shown


def _marks(transcript: Transcript) -> list[bytes]:
    return [digest[:MARK_BYTES] for digest in transcript.digests]


def _new(transcript: Transcript, marks: Sequence[bytes], were: Sequence[bytes]) -> dict[int, int]:
    """The messages that were not there though a reply behind them was: they came just now."""
    pairs = enumerate(zip(marks, were, strict=False))
    shared = next((at for at, (mark, was) in pairs if mark != was), min(len(marks), len(were)))
    known, found = set(were), dict[int, int]()
    replies = [at for at in transcript.marked("begins", shared, len(marks)) if marks[at] in known]
    if not replies:
        return found
    before, texts = transcript.decision_index(len(marks)), _texts(transcript)
    for index in range(shared, replies[-1]):
        if marks[index] not in known and _is_news(transcript.messages[index], texts):
            found[index] = before
    return found


def _moved(marks: Sequence[bytes], were: Sequence[bytes], shown: Shown) -> dict[int, int]:
    """What was newer than its place already, where it stands now."""
    found: dict[int, int] = {}
    for index, length in shown.changed:
        earlier = set(were[:length])
        before = 1 + max((at for at, mark in enumerate(marks) if mark in earlier), default=-1)
        place = next((at for at, mark in enumerate(marks) if mark == were[index]), before)
        if place < before:
            found[place] = before
    return found


def _texts(transcript: Transcript) -> Counter[str]:
    """How often each text stands in a history."""
    leaves = (leaf for message in transcript.messages for *_, leaf in leaves_of(message))
    return Counter(leaf.text for leaf in leaves if isinstance(leaf, Text))


def _is_news(message: Message, texts: Counter[str]) -> bool:
    """Whether a message says something: not where its texts all stand elsewhere as well.

    A client that takes old results out of its history leaves the same line in place of each.
    """
    if message.stands or message.only_thought:
        return False
    leaves = [leaf for *_, leaf in leaves_of(message)]
    return any(not isinstance(leaf, Text) or texts[leaf.text] == 1 for leaf in leaves)

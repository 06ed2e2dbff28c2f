"""Messages that changed at an old place: a result that was pending, an answer moved to its call.

What is in the window goes by its place, and so does what is old. A message that was not there when
the history was last shown is new all the same, wherever it stands: it is in the next view as on
arrival, and from then on as old as its change.

    shown      what the history held lately, as marks, under the key of its first reply (`remember`)
    seen       which messages were not among these though old ones follow (`changed`), under the
               place of the request in which that was seen

Both are in the ledger, so every worker and every later view comes to the same (`arrived`). Without
a ledger nobody can tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ullage.core.history import canon
from ullage.core.history.ledger import MARK_BYTES, Ledger, Shown
from ullage.core.history.transcript import Transcript, leaves_of
from ullage.core.values.effects import Record
from ullage.core.values.messages import Message, Text

_MOST_REPLIES = 8
"""What a history holds is kept anew after so many replies, and with every decision; more often
while it has few. Where replies are observed, it is kept with each of them (`note_answered`)."""
_MOST_SHARE = 1 / 64
"""Or after this share of all replies, if that is more, for the whole history is written then."""
_MANY_MESSAGES = 2_000
"""From so many on it is not kept with each reply: the record of all of them is long."""


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
    found = {**_moved(marks, were, shown), **_new(transcript, ledger, marks, were)}
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
    key, length = key_of(transcript), len(transcript)
    if key is None or not (is_decided or _is_due(transcript, ledger)):
        return ledger, ()
    return _noted(transcript, length, ledger, key)


def note_answered(
    transcript: Transcript, length: int, ledger: Ledger
) -> tuple[Ledger, tuple[Record, ...]]:
    """The ledger with what a view that was answered was made of, and the record of it.

    It is kept with what the provider reported of the reply, and costs no step of its own.

    Args:
        transcript: the history, which may have gone on since.
        length: how many messages the view was made of.
        ledger: with everything that is known of it.
    """
    key = key_of(transcript)
    if key is None or length > _MANY_MESSAGES:
        return ledger, ()
    return _noted(transcript, length, ledger, key)


def _is_due(transcript: Transcript, ledger: Ledger) -> bool:
    """Whether so many replies came since it was kept what the history held."""
    shown = _shown(transcript, ledger)
    length = 0 if shown is None else (transcript.find(shown.chain) or 0)
    replies = transcript.count("begins", 0, len(transcript))
    new = transcript.marked("begins", length, len(transcript))
    most = max(_MOST_REPLIES, int(replies * _MOST_SHARE))
    if new and ledger.at(transcript.decision_key(new[-1])).observed:
        return len(new) >= most
    return len(new) >= min(max(replies // 4, 1), most)


def _noted(
    transcript: Transcript, length: int, ledger: Ledger, key: bytes
) -> tuple[Ledger, tuple[Record, ...]]:
    """The ledger with what a history of this length holds, and the record of it if that is new."""
    marks = b"".join(_marks(transcript)[:length])
    newer = tuple(sorted(arrived(transcript, ledger).items()))
    newer = tuple((index, before) for index, before in newer if index < length)
    new = Shown(marks, transcript.chain[length], newer)
    if new == ledger.at(key).shown:
        return ledger, ()
    ledger, record = ledger.with_shown(key, new)
    return ledger, (record,)


def _shown(transcript: Transcript, ledger: Ledger) -> Shown | None:
    """What the history held when it was shown lately, if that is known."""
    key = key_of(transcript)
    return None if key is None else ledger.at(key).shown


def _marks(transcript: Transcript) -> list[bytes]:
    return [digest[:MARK_BYTES] for digest in transcript.digests]


def _new(
    transcript: Transcript,
    ledger: Ledger,
    marks: Sequence[bytes],
    were: Sequence[bytes],
) -> dict[int, int]:
    """The messages that were not there, though replies stand behind them.

    They stand before a reply that was there. Where none was, the next reply may have come since the
    history was shown: a result that stands before it is new too. A message of the user's is not,
    for a rewound history goes on with one; nor is anything in a history that the ledger knows.
    """
    pairs = enumerate(zip(marks, were, strict=False))
    shared = next(
        (at for at, (mark, was) in pairs if mark != was), min(len(marks), len(were))
    )
    replies = transcript.marked("begins", shared, len(marks))
    known = set(were)
    known_replies = [at for at in replies if marks[at] in known]
    entries = map(ledger.at, transcript.chain[shared + 1 :])
    was_here = any(entry.batches or entry.observed for entry in entries)
    if not replies or (was_here and not known_replies):
        return {}
    before, texts = transcript.decision_index(len(marks)), _texts(transcript)
    found = dict[int, int]()
    for index in range(shared, known_replies[-1] if known_replies else replies[0]):
        message = transcript.messages[index]
        may_be = bool(known_replies or message.results)
        if may_be and marks[index] not in known and _is_news(message, texts):
            found[index] = before
    return found


def _moved(
    marks: Sequence[bytes], were: Sequence[bytes], shown: Shown
) -> dict[int, int]:
    """What was newer than its place already, where it stands now."""
    found: dict[int, int] = {}
    for index, length in shown.changed:
        earlier = set(were[:length])
        before = 1 + max(
            (at for at, mark in enumerate(marks) if mark in earlier), default=-1
        )
        place = next(
            (at for at, mark in enumerate(marks) if mark == were[index]), before
        )
        if place < before:
            found[place] = before
    return found


def _texts(transcript: Transcript) -> Counter[str]:
    """In how many messages of a history each text stands."""
    return Counter(
        text for message in transcript.messages for text in _texts_of(message)
    )


def _texts_of(message: Message) -> set[str]:
    return {leaf.text for *_, leaf in leaves_of(message) if isinstance(leaf, Text)}


def _is_news(message: Message, texts: Counter[str]) -> bool:
    """Whether a message says something: not where its texts all stand elsewhere as well.

    A client that takes old results out of its history leaves the same line in place of each.
    """
    if message.is_pinned or message.only_thought:
        return False
    is_more_than_text = any(
        not isinstance(leaf, Text) for *_, leaf in leaves_of(message)
    )
    return is_more_than_text or any(texts[text] == 1 for text in _texts_of(message))

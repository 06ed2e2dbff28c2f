"""Messages that changed at an old place: a result that was pending, an answer moved to its call.

What is in the window goes by its place, and so does what is old. A message that was not there when
the history was last shown is new anyway, wherever it stands: it is in the next view as on
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
from ullage.core.history.ledger import MARK_BYTES, HistoryRecord, Ledger
from ullage.core.history.transcript import Transcript, leaves_of
from ullage.core.values.effects import Record
from ullage.core.values.messages import Message, Text

_MOST_REPLIES = 8
"""What a history holds is kept again after so many replies, and with every decision; more often
while it has few. Where replies are observed, it is kept with each of them (`note_answered`)."""
_MOST_SHARE = 1 / 64
"""Or after this share of all replies, if that is more, for the whole history is written then."""
_MANY_MESSAGES = 2_000
"""From so many on it is not kept with each reply: the record of all of them is long."""


def key_of(transcript: Transcript) -> bytes | None:
    """The key under which it is kept what a history held; None before the first reply."""
    start = transcript.first("begins")
    if start is None:
        return None
    for index in range(start, len(transcript)):
        message = transcript.messages[index]
        if message.role == "assistant" and not message.only_thought:
            return canon.extend(transcript.chain[index + 1], b"shown")
    return None


def arrived(transcript: Transcript, ledger: Ledger) -> Mapping[int, int]:
    """The messages that are newer than their place, and how many were there before they changed."""
    ages: dict[int, int] = {}
    if not ledger.has_changes:
        return ages
    for key in dict.fromkeys(transcript.chain):
        for seen in ledger.at(key).seen:
            for message, change in seen.changed:
                length = transcript.find(message)
                place = transcript.find(change)
                if length and place:
                    index = length - 1
                    ages[index] = max(place, ages.get(index, 0))
    return ages


def changed(
    transcript: Transcript, ledger: Ledger
) -> tuple[tuple[bytes, bytes], ...]:
    """The messages that changed at an old place since the history was shown, for the ledger."""
    shown = _shown(transcript, ledger)
    if shown is None or transcript.find(shown.chain) is not None:
        return ()  # it only grew
    marks = _marks(transcript)
    earlier_marks = shown.message_marks()
    ages = _moved(marks, earlier_marks, shown)
    ages.update(_added(transcript, ledger, marks, earlier_marks))
    recorded = arrived(transcript, ledger)
    chain = transcript.chain
    changes: list[tuple[bytes, bytes]] = []
    for index, age in sorted(ages.items()):
        if (
            index not in recorded
            and not transcript.messages[index].only_thought
        ):
            changes.append((chain[index + 1], chain[age]))
    return tuple(changes)


def remember(
    transcript: Transcript, ledger: Ledger, *, is_decided: bool
) -> tuple[Ledger, tuple[Record, ...]]:
    """The ledger with what the history holds now, where that is due, and the record of it.

    Args:
        transcript: the history.
        ledger: with everything that was decided in it.
        is_decided: whether something was decided just now.
    """
    key = key_of(transcript)
    if key is None:
        return ledger, ()
    if not is_decided and not _is_due(transcript, ledger):
        return ledger, ()
    return _noted(transcript, len(transcript), ledger, key)


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
    start = 0
    if shown is not None:
        start = transcript.find(shown.chain) or 0
    length = len(transcript)
    replies = transcript.count("begins", 0, length)
    recent = transcript.marked("begins", start, length)
    most = max(_MOST_REPLIES, int(replies * _MOST_SHARE))
    if recent and ledger.at(transcript.decision_key(recent[-1])).observed:
        return len(recent) >= most
    fewest = max(replies // 4, 1)
    return len(recent) >= min(fewest, most)


def _noted(
    transcript: Transcript, length: int, ledger: Ledger, key: bytes
) -> tuple[Ledger, tuple[Record, ...]]:
    """The ledger with what a history of this length holds, and the record of it if that is new."""
    marks = b"".join(_marks(transcript)[:length])
    ages: list[tuple[int, int]] = []
    for index, age in sorted(arrived(transcript, ledger).items()):
        if index < length:
            ages.append((index, age))
    shown = HistoryRecord(marks, transcript.chain[length], tuple(ages))
    if shown == ledger.at(key).shown:
        return ledger, ()
    ledger, record = ledger.with_shown(key, shown)
    return ledger, (record,)


def _shown(transcript: Transcript, ledger: Ledger) -> HistoryRecord | None:
    """What the history held when it was shown lately, if that is known."""
    key = key_of(transcript)
    if key is None:
        return None
    return ledger.at(key).shown


def _marks(transcript: Transcript) -> list[bytes]:
    return [digest[:MARK_BYTES] for digest in transcript.digests]


def _added(
    transcript: Transcript,
    ledger: Ledger,
    marks: Sequence[bytes],
    earlier_marks: Sequence[bytes],
) -> dict[int, int]:
    """The messages that were not there, though replies stand behind them.

    They stand before a reply that was there. Where none was, the next reply may have come since the
    history was shown: a result that stands before it is new too. A message of the user's is not,
    for a rewound history goes on with one; nor is anything in a history that the ledger knows.
    """
    shared = _shared_length(marks, earlier_marks)
    replies = transcript.marked("begins", shared, len(marks))
    known_marks = set(earlier_marks)
    known_replies = [index for index in replies if marks[index] in known_marks]
    if not replies:
        return {}
    if not known_replies and _is_known(ledger, transcript.chain[shared + 1 :]):
        return {}
    stop = known_replies[-1] if known_replies else replies[0]
    age = transcript.decision_index(len(marks))
    counts = _text_counts(transcript)
    ages: dict[int, int] = {}
    for index in range(shared, stop):
        message = transcript.messages[index]
        if marks[index] in known_marks or not (
            known_replies or message.results
        ):
            continue
        if _is_news(message, counts):
            ages[index] = age
    return ages


def _shared_length(
    marks: Sequence[bytes], earlier_marks: Sequence[bytes]
) -> int:
    """How many leading messages are as they were."""
    pairs = zip(marks, earlier_marks, strict=False)
    for index, (mark, earlier) in enumerate(pairs):
        if mark != earlier:
            return index
    return min(len(marks), len(earlier_marks))


def _is_known(ledger: Ledger, keys: Sequence[bytes]) -> bool:
    """Whether the ledger holds a batch or a report at one of some places."""
    for key in keys:
        entry = ledger.at(key)
        if entry.batches or entry.observed:
            return True
    return False


def _moved(
    marks: Sequence[bytes],
    earlier_marks: Sequence[bytes],
    shown: HistoryRecord,
) -> dict[int, int]:
    """What was newer than its place already, where it stands now."""
    ages: dict[int, int] = {}
    for index, length in shown.changed:
        earlier = set(earlier_marks[:length])
        behind = [at for at, mark in enumerate(marks) if mark in earlier]
        age = behind[-1] + 1 if behind else 0
        mark = earlier_marks[index]
        if mark in marks:
            place = marks.index(mark)
            if place < age:
                ages[place] = age
    return ages


def _text_counts(transcript: Transcript) -> Counter[str]:
    """In how many messages of a history each text stands."""
    counts: Counter[str] = Counter()
    for message in transcript.messages:
        counts.update(_texts_of(message))
    return counts


def _texts_of(message: Message) -> set[str]:
    """The texts of a message, each once."""
    texts: set[str] = set()
    for *_, leaf in leaves_of(message):
        if isinstance(leaf, Text):
            texts.add(leaf.text)
    return texts


def _is_news(message: Message, counts: Counter[str]) -> bool:
    """Whether a message says something: not where its texts all stand elsewhere as well.

    A client that takes old results out of its history leaves the same line in place of each.
    """
    if message.is_permanent or message.only_thought:
        return False
    for *_, leaf in leaves_of(message):
        if not isinstance(leaf, Text) or counts[leaf.text] == 1:
            return True
    return False

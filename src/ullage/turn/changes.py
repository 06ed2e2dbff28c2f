"""Messages that changed at an old place: a result that was pending, an answer moved to its call.

What is in the window goes by its place, and so does what is old. A message that was not there when
the history was last shown is new all the same, wherever it stands: it is in the next view as at
first sight, and from then on as old as its change.

Only who saw the history before can tell (`changed`). What it tells goes to the ledger under the
place of that request, so that every worker and every later view knows (`arrived`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ullage.history.ledger import Ledger
from ullage.history.transcript import Transcript, leaves_of
from ullage.values.messages import Message, Text

if TYPE_CHECKING:
    from ullage.turn.memo import Line


def arrived(transcript: Transcript, ledger: Ledger) -> Mapping[int, int]:
    """The messages that are newer than their place, and how many were there before they changed."""
    found: dict[int, int] = {}
    if not ledger.has_changes:
        return found
    for key in dict.fromkeys(transcript.chain):
        for seen in ledger.at(key).seen:
            for message, before in seen.changed:
                behind, length = transcript.find(message), transcript.find(before)
                if behind and length:
                    found[behind - 1] = max(length, found.get(behind - 1, 0))
    return found


def changed(line: Line, others: Sequence[Line], ledger: Ledger) -> tuple[tuple[bytes, bytes], ...]:
    """The messages of a line that changed since it was last shown, as a ledger keeps them.

    Args:
        line: the history at hand.
        others: the lines it may have been before, the newest first.
        ledger: with what is known of changes already.
    """
    transcript = line.transcript
    walked = 0 if line.builder is None else line.builder.window.size
    if not others or len(transcript.boundaries(walked)) < 2:
        return ()  # no more came than one turn, and that at the end
    known, found = arrived(transcript, ledger), dict[int, int]()
    for other in others:
        for index, before in _since(transcript, other, ledger):
            if index not in known:
                found.setdefault(index, before)
    chain = transcript.chain
    return tuple((chain[index + 1], chain[before]) for index, before in sorted(found.items()))


def _since(new: Transcript, other: Line, ledger: Ledger) -> Iterator[tuple[int, int]]:
    """The messages that are new to another line though old ones follow, and what came before."""
    old = other.transcript
    shared = _shared(new, old)
    was_there = set(old.digests)
    ours = range(shared, len(new))
    replies = [at for at in ours if new.digests[at] in was_there and _speaks(new, at)]
    if not replies:
        return
    before = 1 + max(at for at in ours if new.digests[at] in was_there)
    texts = _texts(new)
    for index in range(shared, replies[-1]):
        if new.digests[index] not in was_there and _is_news(new.messages[index], texts):
            yield index, before
    for index, since in arrived(old, ledger).items():
        yield from _moved(new, old, index, since, shared)


def _moved(
    new: Transcript, old: Transcript, index: int, since: int, shared: int
) -> Iterator[tuple[int, int]]:
    """What was newer than its place in the other line already: it still is, in this one."""
    was_before = set(old.digests[:since])
    before = 1 + max((at for at in range(len(new)) if new.digests[at] in was_before), default=-1)
    for at in range(min(index, shared), len(new)):
        if new.digests[at] == old.digests[index] and at < before:
            yield at, before
            return


def _shared(new: Transcript, old: Transcript) -> int:
    """How many leading messages two histories share."""
    pairs = enumerate(zip(new.digests, old.digests, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(new), len(old)))


def _speaks(transcript: Transcript, index: int) -> bool:
    """Whether the model says this."""
    return transcript.messages[index].role == "assistant"


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

"""The first place at which a view is other than the request that was sent before it.

A prompt is read from its beginning: the model, the tools, the system prompt, the settings, then
the messages. What changed first there is what broke the cache, whoever changed what else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ullage.core.history.hand import name_of
from ullage.core.history.ledger import Ledger
from ullage.core.history.transcript import Transcript
from ullage.core.history.window import Window
from ullage.core.turn.batches import edited_from
from ullage.core.values.cache_breaks import Cause
from ullage.core.values.decisions import LedgerRef
from ullage.core.values.edits import Batch, Drop
from ullage.core.values.effects import Steps
from ullage.session.prompt_cache.heads import (
    HeadChange,
    changed_head,
    head_print,
    is_same_head,
    system_text,
)
from ullage.session.prompt_cache.sent import RecentRequest, head_before
from ullage.session.view import RequestInfo


class ViewChange(NamedTuple):
    """The first place at which a view is other than the request before it.

    Attributes:
        cause: whose doing it is.
        place: where, in words.
        message: the index of the message; -1: it is in the head.
        start_share: of a head, the share before the change.
        name: of a batch or decision.
        standing: the messages behind it that had been sent before; None: all that are not new.
    """

    cause: Cause
    place: str
    message: int = -1
    start_share: float = 0.0
    name: str = ""
    standing: tuple[int, ...] | None = None


def find_change(
    info: RequestInfo, window: Window, ledger: Ledger, before: RecentRequest
) -> Steps[ViewChange | None]:
    """The first change of a view; None: it only goes on from the request before.

    Notes in the view the fingerprint of its head.

    Args:
        info: the view.
        window: its window.
        ledger: of the conversation.
        before: the request before it.
    """
    head = yield from _head_change(info, before)
    if head is not None:
        return ViewChange(head.cause, head.place, start_share=head.start_share)
    changes = list(_message_changes(window, info, before, ledger))
    if not changes:
        return None
    return min(changes, key=lambda change: change.message)


def note_head(info: RequestInfo) -> None:
    """Note in a view the fingerprint of its head, where nobody has yet.

    Args:
        info: the view.
    """
    header = info.raw.header
    if info.head_print is None and header is not None:
        info.head_print = head_print(header, _recall_of(info), info.model)


# ── the head ─────────────────────────────────────────────────────────────────────────────


def _head_change(
    info: RequestInfo, before: RecentRequest
) -> Steps[HeadChange | None]:
    """What changed of the head. Where the two headers are one, nothing is looked at."""
    header = info.raw.header
    earlier = before.head_print
    if header is None:
        return None
    if (
        before.header is not None
        and earlier is not None
        and earlier.recall == _recall_of(info)
        and is_same_head(before.header, header)
    ):
        info.head_print = earlier
        return None
    note_head(info)
    later = info.head_print
    if later is None or not before.sent.head:
        return None
    if later.digest == before.sent.head:
        return None
    earlier = yield from head_before(before)
    if earlier is None:
        return HeadChange("settings", "what stands before the messages")
    texts = None
    if before.header is not None:
        texts = system_text(before.header), system_text(header)
    return changed_head(earlier, later, texts)


def _recall_of(info: RequestInfo) -> bytes:
    """Names the recall tools in a view; empty: there are none."""
    if not info.offers:
        return b""
    words = info.words
    name = f"{words.prefix} {len(words.toolset.tools)}"
    return name.encode("utf-8", "replace")


# ── the messages ─────────────────────────────────────────────────────────────────────────


def _message_changes(
    window: Window, info: RequestInfo, before: RecentRequest, ledger: Ledger
) -> Iterator[ViewChange]:
    """What changed of the messages: by the client, by batches, by what events tell of."""
    change = _client_change(window, info, before, ledger)
    if change is not None:
        yield change
    batches = list(_batch_changes(window, info, before, ledger))
    yield from batches
    if not batches:
        yield from _told_changes(info)


def _client_change(
    window: Window, info: RequestInfo, before: RecentRequest, ledger: Ledger
) -> ViewChange | None:
    """The first message that the client sends otherwise, if it sends on what stood behind it."""
    transcript = window.transcript
    if transcript.find(before.sent.chain) is not None:
        return None  # it only grew
    if before.transcript is None:
        return _recorded_change(transcript, info, ledger)
    digests = transcript.digests
    earlier = before.transcript.digests
    index = 0
    for digest, earlier_digest in zip(digests, earlier, strict=False):
        if digest != earlier_digest:
            break
        index += 1
    tail = frozenset(earlier[index:])
    standing = [at for at in range(index, info.size) if digests[at] in tail]
    if not standing:
        return None  # a rewind, or a branch: nothing is sent twice
    return _changed_message(index, standing)


def _recorded_change(
    transcript: Transcript, info: RequestInfo, ledger: Ledger
) -> ViewChange | None:
    """The first message that the ledger knows to have changed at this place."""
    lengths: list[int] = []
    for seen in ledger.at(info.key).seen:
        for message, _ in seen.changed:
            length = transcript.find(message)
            if length:
                lengths.append(length)
    if not lengths:
        return None
    index = min(lengths) - 1
    end = transcript.turn_start(info.size)
    return _changed_message(index, range(index + 1, end))


def _changed_message(index: int, standing: Iterable[int]) -> ViewChange:
    place = f"message {index + 1:,}, which it had sent before"
    return ViewChange("message", place, index, standing=tuple(standing))


def _batch_changes(
    window: Window, info: RequestInfo, before: RecentRequest, ledger: Ledger
) -> Iterator[ViewChange]:
    """What batches show otherwise that were made since the request before."""
    transcript = window.transcript
    stop = transcript.decision_index(info.size)
    start = transcript.find(before.key)
    if start is None:
        start = stop
    for place in range(start, stop + 1):
        key = transcript.chain[place]
        batches = ledger.at(key).batches
        if not batches:
            continue
        earlier = before.sent.batches if key == before.key else 0
        for number in range(earlier, len(batches)):
            batch = batches[number]
            index = _first_changed(window, batch, ledger)
            if index < min(before.sent.size, info.size):
                handle = LedgerRef("batch", key, number)
                yield _changed_by(batch, name_of(handle), index)


def _changed_by(batch: Batch, name: str, index: int) -> ViewChange:
    place = f"message {index + 1:,} on"
    if batch.decision:
        return ViewChange("decision", place, index, name=batch.decision)
    return ViewChange("batch", place, index, name=name)


def _first_changed(window: Window, batch: Batch, ledger: Ledger) -> int:
    """The index of the first message that a batch shows otherwise; the size of it: none."""
    start = edited_from(window, batch.edits)
    for edit in batch.edits:
        if isinstance(edit, Drop):
            length = window.transcript.find(edit.after)
            if length is not None:
                start = min(start, length)
    if batch.decision:
        for undone in _undone_by(batch.decision, ledger):
            start = min(start, edited_from(window, undone.edits))
    return start


def _undone_by(name: str, ledger: Ledger) -> Iterator[Batch]:
    """The batches that a decision takes back, or shows again."""
    for key in ledger.by_user:
        for number, decision in enumerate(ledger.at(key).decisions):
            handle = LedgerRef("decision", key, number)
            undoes = decision.undoes
            if undoes is None or name_of(handle) != name:
                continue
            if undoes.kind == "batch":
                yield from ledger.at(undoes.key).batches[undoes.n :][:1]
            else:
                yield from _carried_out(name_of(undoes), ledger)


def _carried_out(name: str, ledger: Ledger) -> Iterator[Batch]:
    """The batches that carry out a decision."""
    for key in ledger.by_user:
        for batch in ledger.at(key).batches:
            if batch.decision == name:
                yield batch


_TOLD: dict[str, tuple[Cause, str]] = {
    "changed": ("policy", ""),
    "renamed": ("recall", "(they have other names from here on)"),
    "reasoning": ("batch", "an earlier message on"),
}
"""Events of a view that shows what was sent before otherwise, without a batch of its own."""


def _told_changes(info: RequestInfo) -> Iterator[ViewChange]:
    for event in info.events:
        if event.kind in _TOLD:
            cause, place = _TOLD[event.kind]
            yield ViewChange(cause, place, 0)

"""What a policy would cost if it knew what later replies need: a bound, and no policy.

A session decides when the prefix is broken, and what is left of old messages. An oracle is then
let in at two places where a policy could have kept more for no other break: where the prefix is
broken anyway, and behind a result that has just arrived. It puts a note there with the lines and
the old texts that replies need before the next break and that the views do not show, so long as
they fit the limit. A note in front of the next break stays, one behind it goes.

    before   | head | record | whole turns ...
    break    | head | record | record | NOTE | tail         what the next replies need of records
    later    | head | record | record | NOTE | tail | result | NOTE | ...       of a result, cut
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from lab.replay.carried.recalling import one_page
from lab.replay.carried.sight import Read, View
from lab.replay.carried.sums import Sums
from lab.replay.carried.wants import Wants
from lab.replay.story import Story

_BYTES_PER_TOKEN = 4


class Shown(Struct, frozen=True):
    """One view of a session.

    Attributes:
        length: how many messages of the history it was made of.
        messages: what it shows.
        head_bytes: of its head.
        free_tokens: the limit less its size.
        wants: what the reply to it needs.
    """

    length: int
    messages: Sequence[Read]
    head_bytes: int
    free_tokens: int
    wants: Wants


class _Note(Struct, frozen=True):
    """Lines before the message at a position of a view."""

    position: int
    read: Read


def oracle(story: Story, shown: Sequence[Shown]) -> Sums:
    """Sums over the views of a session with the notes of an oracle in them.

    Args:
        story: the run.
        shown: the views, in order.
    """
    sums, before, notes, common = Sums(), list[Read](), list[_Note](), 0
    for start, stop in _segments(shown):
        if start:
            common = _same(shown[start - 1].messages, shown[start].messages)
        notes = [note for note in notes if note.position <= common]
        free_bytes = shown[stop - 1].free_tokens * _BYTES_PER_TOKEN - sum(
            len(note.read.sent) for note in notes
        )
        notes += _notes(story, shown[start:stop], common, notes, free_bytes)
        for each in shown[start:stop]:
            now = _with(each.messages, notes)
            sums.request(now, before, each.head_bytes)
            sums.reply(each.wants, View(now), one_page(_always))
            before = now
    return sums


def _always(ref: str, view: View) -> bool:
    return True


def _segments(shown: Sequence[Shown]) -> Iterator[tuple[int, int]]:
    """Runs of views each of which goes on from the one before."""
    start = 0
    for at in range(1, len(shown)):
        before, now = shown[at - 1].messages, shown[at].messages
        if _same(before, now) < len(before):
            yield start, at
            start = at
    if shown:
        yield start, len(shown)


def _same(before: Sequence[Read], now: Sequence[Read]) -> int:
    """How many messages two views begin with in common."""
    pairs = enumerate(zip(before, now, strict=False))
    changed = (at for at, (one, other) in pairs if one.sent != other.sent)
    return next(changed, min(len(before), len(now)))


def _with(messages: Sequence[Read], notes: Sequence[_Note]) -> list[Read]:
    """A view with the notes whose place is in it."""
    made = list[Read]()
    at = 0
    for note in sorted(notes, key=lambda note: note.position):
        if note.position > len(messages):
            break
        made += messages[at : note.position]
        made.append(note.read)
        at = note.position
    return made + list(messages[at:])


def _notes(
    story: Story,
    shown: Sequence[Shown],
    first: int,
    old: Sequence[_Note],
    free_bytes: int,
) -> Iterator[_Note]:
    """The notes for what the replies to these views need; ``first`` is where the break was."""
    begin, size = shown[0].length, len(shown[0].messages)
    wanted: dict[int, dict[str, None]] = {}
    for each in shown:
        view = View(_with(each.messages, old))
        for text, index in _missing(story, each, view):
            position = first if index < begin else size + index - begin + 1
            wanted.setdefault(position, {})[text] = None
    for position, texts in sorted(wanted.items()):
        kept = list[str]()
        for text in texts:
            cost = len(text.encode("utf-8", "replace")) + 1
            if cost <= free_bytes:
                kept.append(text)
                free_bytes -= cost
        if kept:
            yield _Note(position, _read("\n".join(kept)))


def _read(text: str) -> Read:
    raw = {"role": "user", "content": text}
    return Read(raw, msgspec.json.encode(raw), text, text)


def _missing(
    story: Story, each: Shown, view: View
) -> Iterator[tuple[str, int]]:
    """What a reply needs and a view does not show, and the message that it was in last."""
    for value in each.wants.values:
        if not view.shows(value) or (
            value.is_far and not view.shows_line(value)
        ):
            plain = value.sources[-1].plain
            line = next(
                line for line in plain.splitlines() if value.atom.text in line
            )
            at = line.index(value.atom.text)
            yield (
                line[max(at - 30, 0) : at + len(value.atom.text) + 30],
                value.source,
            )
    for anchor in each.wants.anchors:
        if not view.shows_whole(anchor.text):
            yield anchor.text, anchor.source

"""A frozen window stays as it was, whatever is written to the working window afterwards."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as with_fields

from tests.history.test_transcript import transcript_of
from tests.history.test_window import METER, history, replace
from ullage import ReplaceSpan
from ullage.core.history.builder import WindowBuilder
from ullage.core.history.canon import ref_of
from ullage.core.history.measures import Measure
from ullage.core.values.edits import Drop
from ullage.core.values.messages import Opaque, Reasoning
from ullage.core.values.notices import Words

OUTPUTS = [
    f"result {number}: " + "a line of it\n" * (number + 1)
    for number in range(8)
]
CHARS = Measure(
    "test.frozen_chars",
    lambda window, index: (
        window.leaf_tokens((index, 0, 0)) if window.leaf_counts(index) else 0
    ),
)


class Conversation:
    """A working window that takes its history in piece by piece, and is edited in between."""

    def __init__(self):
        whole = transcript_of(history(*OUTPUTS))
        self.whole = [*zip(whole.messages, whole.digests, strict=True)]
        self.builder = WindowBuilder(transcript_of([]), METER, Words())
        self.builder.limit(10_000, 10_000)
        self.extend(3)

    @property
    def window(self):
        return self.builder.window

    def extend(self, count):
        transcript = self.window.transcript
        for message, digest in self.whole[len(transcript) :][:count]:
            parts = message.parts
            if message.role == "assistant":
                parts = (Reasoning(f"thought {len(transcript)}", 0), *parts)
            transcript.append(with_fields(message, parts=parts), digest)
        self.builder.extend(len(transcript))

    def replace(self, at):
        at = 2 + 2 * (at % 8)
        if at < self.window.size:
            self.builder.apply(
                replace(self.window, at, f"shown otherwise {at}")
            )

    def drop(self, at):
        chain = self.window.transcript.chain
        start = min(at, self.window.size - 1)
        self.builder.apply(Drop(chain[start], chain[self.window.size], "so"))

    def summarise(self, at):
        chain, stop = self.window.transcript.chain, 1 + 2 * (1 + at % 4)
        if stop <= self.window.size:
            text = f"what came before {stop}"
            self.builder.apply(
                ReplaceSpan(chain[1], chain[stop], text, ref_of(text), "so")
            )

    def reword(self, at):
        """The caller sends a message again that thinks something else."""
        at = 1 + 2 * (at % 8)
        if at < self.window.size:
            message = self.window.transcript.messages[at]
            parts = (
                Reasoning(f"another thought, and a longer one {at}", 0),
                *message.parts[1:],
            )
            self.window.transcript.refresh(
                at, with_fields(message, parts=parts)
            )
            self.builder.refresh(at)

    def settle(self, at):
        self.builder.apply_batches(self.window.transcript.chain[0], at)

    def compact(self, at):
        """The provider compacts: it reads nothing of what came before this any more."""
        transcript = self.window.transcript
        if not self.window.read_from and not self.window.summaries and at > 8:
            part = Opaque("compaction", "what came before", 0, supersedes=True)
            last = transcript.messages[0]
            transcript.append(
                with_fields(last, role="assistant", parts=(part,)), b"c" * 16
            )
            self.builder.extend(len(transcript))

    def count(self, _):
        self.window.count()

    def keep_past(self, _):
        self.builder.keep_past()


def shown(window):
    """All that a window tells, a copy of it."""
    transcript = window.transcript
    indices = range(window.size)
    return (
        (
            window.size,
            window.fresh,
            window.tokens,
            window.summaries,
            dict(window.applied),
        ),
        [window.message_tokens(index) for index in indices],
        [window.hidden(index) for index in indices],
        [dict(window.shown(index)) for index in indices],
        {index: list(changes) for index, changes in window.changed.items()},
        sorted(window.reasoning_dropped),
        window.tally(CHARS).each[:],
        [*transcript.messages[: window.size]],
        [window.leaf_counts(index) for index in indices],
    )


OPERATIONS = [
    name
    for name in vars(Conversation)
    if not name.startswith("_") and name != "window"
]


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(st.sampled_from(OPERATIONS), st.integers(1, 16)), max_size=14
    )
)
def test_it_shows_what_the_working_window_showed_then(operations):
    conversation, twin, frozen = Conversation(), Conversation(), []
    for name, argument in [("extend", 2), *operations]:
        getattr(conversation, name)(argument)
        getattr(twin, name)(argument)  # counted at each step, and never frozen
        unread, read = (
            conversation.builder.freeze(),
            conversation.builder.freeze(),
        )
        frozen.append((unread, read, read.window, shown(read.window)))
        assert shown(read.window) == shown(twin.window)
        assert read.tokens == twin.window.tokens <= read.bound_tokens
    for unread, read, window, then in frozen:
        assert shown(window) == then
        assert read.window is window
        assert shown(unread.window) == then, "nobody had looked at it before"


def test_it_knows_nothing_of_what_came_later():
    conversation = Conversation()
    conversation.extend(2)
    frozen = conversation.builder.freeze().transcript
    conversation.extend(99)
    growing = conversation.window.transcript
    place = growing.address((6, 0, 0))
    assert (growing.locate(place), frozen.locate(place)) == ((6, 0, 0), None)
    assert (growing.find(growing.chain[6]), frozen.find(growing.chain[6])) == (
        6,
        None,
    )
    assert frozen.find(growing.chain[5]) == 5
    assert growing.newest_result("call_2", 17) == (6, 0, 0)
    assert frozen.newest_result("call_2", 17) is None
    assert frozen.newest_result("call_1", 17) == (4, 0, 0)
    assert frozen.marked("begins", 0, 17) == [1, 3]
    assert frozen.boundaries(0) == [1, 3, 5]
    assert (len(frozen), len(frozen.messages), len(frozen.chain)) == (5, 5, 6)
    assert frozen.closed(5) == growing.closed(5)


def test_readers_fill_tables_of_their_own():
    conversation = Conversation()
    conversation.extend(4)
    working = conversation.window
    working._edit_tokens.clear()
    spot = working.location_for(replace(working, 2, "shown otherwise"), 7)
    working._shown[spot[0]] = {
        spot[1:]: replace(working, 2, "shown otherwise")
    }
    conversation.builder._changes.edited.add(spot[0])
    frozen = conversation.builder.freeze()
    shown(frozen.window)
    tables = (
        working.transcript.counts,
        working._edit_tokens,
        working._tallies,
        working._settled,
    )
    assert tables == ({}, {}, {}, {})
    assert frozen.window._tallies == {}
    assert working._sums.uncounted


def test_it_is_read_and_not_written():
    frozen = Conversation().builder.freeze()
    with pytest.raises(AttributeError):
        frozen.window.size = 1
    with pytest.raises(AttributeError):
        _ = frozen.transcript.nothing

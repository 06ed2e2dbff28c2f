"""What the history at hand can give back by itself, without a store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ullage.core.contract.kinds import fields_of
from ullage.core.history import canon
from ullage.core.history.index import index_of
from ullage.core.history.ledger import Ledger
from ullage.core.history.remembered import Remembered
from ullage.core.history.transcript import Location, leaves_of
from ullage.core.history.window import Window
from ullage.core.values.edits import ReplaceSpan
from ullage.core.values.effects import Output
from ullage.core.values.messages import (
    Content,
    Part,
    Text,
    ToolCall,
    ToolResult,
)
from ullage.core.values.notices import pointers
from ullage.core.values.texts import on_one_line
from ullage.session.recall.corpus import Corpus, bare

_ABOUT_CHARS = 32
_MOST_BEGINNINGS = 8
_SPOT_BYTES = 150
_LOOKED = Remembered(32 << 20)
"""What a search looks through and what is in view, between two searches of a turn."""


def find_in_history(
    window: Window, name: str, length: int, *, thorough: bool
) -> Output | None:
    """Find an output in the history of a view.

    Args:
        window: the view, or a window that has grown since then.
        name: a ref, or the id of a tool call, of which the newest result is meant.
        length: how many messages the view was made of.
        thorough: whether to look at every leaf, and at the index behind each summary.
    """
    transcript = window.transcript
    location = window.location_of(name) or transcript.newest_result(
        name, length
    )
    if location is not None:
        return transcript.output(location)
    outputs = _all_outputs(window) if thorough else ()
    return next((output for output in outputs if output.ref == name), None)


def corpus_in_history(window: Window, ref: str | None) -> HistoryCorpus | None:
    """What a search looks through in the history of a view.

    Args:
        window: the view.
        ref: of a summary or a record that is shown: then all messages in whose place it stands.
            None: the whole history, as far as it is not in view.

    Returns:
        None, where no summary has the ref.
    """
    if ref is None:
        return HistoryCorpus(window)
    placed = next(
        (summary for summary in window.summaries if summary.edit.ref == ref),
        None,
    )
    return (
        None
        if placed is None
        else RangeCorpus(window, placed.start, placed.stop)
    )


def find_in_ledger(window: Window, ledger: Ledger, ref: str) -> Output | None:
    """Find the index of messages that a summary stood for once, and a longer one stands for now.

    A history that is first seen long is decided turn by turn, and each decision is an event that
    names its ref. What a later decision took over is in no view and so in no store.

    Args:
        window: the newest window.
        ledger: the decisions of its history.
        ref: of the index.
    """
    for key in dict.fromkeys(window.transcript.chain):
        for batch in ledger.at(key).batches:
            for edit in batch.edits:
                if not isinstance(edit, ReplaceSpan) or edit.ref != ref:
                    continue
                for output in _indexes(
                    window, *(window.range_of(edit) or (0, 0))
                ):
                    if output.ref == ref:
                        return output
    return None


def _all_outputs(window: Window) -> Iterator[Output]:
    """Every output the history at hand can give back."""
    transcript = window.transcript
    for start, stop, _ in window.summaries:
        yield from _indexes(window, start, stop)
    for index, message in enumerate(transcript.messages):
        for number in range(len(message.parts)):
            yield from transcript.outputs(index, number)


class HistoryCorpus(Corpus):
    """All texts of a history, the oldest first: what was said, what calls were given and gave.

    The history at hand holds the originals, so every worker finds the same on every store. Pages of
    recall and the calls for them are left out: they are copies and questions.

    Args:
        window: the view.
        start: the first message.
        stop: one past the last message; None: to the end.
    """

    def __init__(
        self, window: Window, start: int = 0, stop: int | None = None
    ) -> None:
        stop = window.size if stop is None else stop
        spots, texts = _placed_texts(window, start, stop)
        super().__init__(texts, window.transcript.chain[0])
        self._window, self._spots = window, spots

    def ref(self, number: int) -> str:
        """See `Corpus.ref`."""
        output = self._window.transcript.output(self._spots[number])
        return "" if output is None else output.ref

    def about(self, number: int) -> str:
        """See `Corpus.about`. Of a call's arguments also what opens its result.

        Whoever looks for a path or a command finds it in the arguments, and wants the result.
        """
        index, part, _ = self._spots[number]
        transcript = self._window.transcript
        leaf = transcript.messages[index].parts[part]
        if not isinstance(leaf, ToolCall):
            call = transcript.call_for(index, part)
            return (
                transcript.messages[index].role
                if call is None
                else _call_title(call)
            )
        spot = transcript.result_for(index, part)
        result = (
            None
            if spot is None or spot[0] >= self._window.size
            else transcript.output(spot)
        )
        title = _call_title(leaf)
        return (
            title
            if result is None
            else f"{title}, its result: ref={result.ref}"
        )

    def is_left(self, number: int) -> bool:
        """See `Corpus.is_left`."""
        window, spot = self._window, self._spots[number]
        is_read = spot[0] >= window.read_from and not window.hidden(spot[0])
        return not is_read or window.edit_at(spot) is not None

    @property
    def visible_lines(self) -> frozenset[str]:
        """See `Corpus.visible_lines`."""
        texts = tuple(_visible_texts(self._window))
        # a view stays as it is between two searches; a text keeps its hash
        key = self.root, "visible", tuple(map(hash, texts))
        lines: frozenset[str] | None = _LOOKED.get(key)
        if lines is None:
            lines = frozenset(
                bare(line) for text in texts for line in text.split("\n")
            )
            _LOOKED.put(key, lines, sum(map(len, texts)))
        return lines

    @property
    def begins_with(self) -> Sequence[str]:
        """The refs that the user's messages before the first reply name.

        A conversation that is loaded from where it was compacted begins with the summary of what
        came before, and that names its index.
        """
        transcript = self._window.transcript
        stop = next(
            iter(transcript.marked("begins", 0, self._window.size)),
            self._window.size,
        )
        texts = (
            part.text
            for message in transcript.messages[:stop]
            for part in message.parts
            if message.role == "user" and isinstance(part, Text)
        )
        refs = dict.fromkeys(
            pointer.ref for text in texts for pointer in pointers(text)
        )
        return tuple(refs)[:_MOST_BEGINNINGS]


class RangeCorpus(HistoryCorpus):
    """The texts of a range of messages, whether they are in view or not: somebody asks for them."""

    def is_left(self, number: int) -> bool:
        """See `Corpus.is_left`."""
        return True

    @property
    def visible_lines(self) -> frozenset[str]:
        """See `Corpus.visible_lines`."""
        return frozenset()


def _call_title(call: ToolCall) -> str:
    """A call by the name of its tool, and its first argument: of a path the end tells most."""
    fields = fields_of(call.arguments) or {}
    value = next(
        (value for value in fields.values() if isinstance(value, str)), ""
    )
    argument = on_one_line(value, _ABOUT_CHARS)
    if "/" in value and " " not in value.strip():
        argument = (
            value
            if len(value) <= _ABOUT_CHARS
            else f"…{value[-_ABOUT_CHARS:]}"
        )
    return f"{call.name} {argument}".strip()


def _placed_texts(
    window: Window, start: int, stop: int
) -> tuple[Sequence[Location], Sequence[str]]:
    """Where the texts of a range stand, and the texts; the same again is looked up."""
    chain = window.transcript.chain
    key = chain[0], "texts", start, chain[stop], window.words
    placed: tuple[Sequence[Location], Sequence[str]] | None = _LOOKED.get(key)
    if placed is None:
        pairs = list(_texts_of(window, start, stop))
        placed = [spot for spot, _ in pairs], [text for _, text in pairs]
        _LOOKED.put(key, placed, _SPOT_BYTES * len(pairs))
    return placed


def _texts_of(
    window: Window, start: int, stop: int
) -> Iterator[tuple[Location, str]]:
    """The texts of the messages of a range, each with its place."""
    words, messages = window.words, window.transcript.messages
    recalls = set[str]()
    for index in range(start, stop):
        for number, part in enumerate(messages[index].parts):
            if isinstance(part, ToolResult):
                if part.call_id not in recalls:
                    for item, leaf in enumerate(part.content):
                        if isinstance(leaf, Text) and leaf.text:
                            yield (index, number, item), leaf.text
            elif isinstance(part, ToolCall):
                if words.is_recall(part.name, index):
                    recalls.add(part.id)
                else:
                    recalls.discard(part.id)  # ids may come again
                    yield (index, number, 0), part.arguments
            elif isinstance(part, Text) and part.text:
                yield (index, number, 0), part.text


def _text_of(leaf: Part | Content) -> str:
    if isinstance(leaf, ToolCall):
        return leaf.arguments
    return leaf.text if isinstance(leaf, Text) else ""


def _visible_texts(window: Window) -> Iterator[str]:
    """The texts in view."""
    messages = window.transcript.messages
    for index in window.visible_in(window.read_from, window.size):
        for part, item, leaf in leaves_of(messages[index]):
            edit = window.edit_at((index, part, item))
            yield _text_of(leaf) if edit is None else edit.text
    for placed in window.open_summaries:
        yield from placed.edit.texts


def _indexes(window: Window, start: int, stop: int) -> Iterator[Output]:
    """The index of a range, in the words of now and in those of before."""
    for words in (window.words, *window.words.earlier()):
        text = index_of(window.transcript, start, stop, words)
        yield Output(canon.ref_of(text), text)

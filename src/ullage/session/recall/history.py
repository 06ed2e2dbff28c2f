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
_LOCATION_BYTES = 150
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
    if thorough:
        for output in _all_outputs(window):
            if output.ref == name:
                return output
    return None


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
    for placed in window.summaries:
        if placed.edit.ref == ref:
            return RangeCorpus(window, placed.start, placed.stop)
    return None


def find_in_ledger(window: Window, ledger: Ledger, ref: str) -> Output | None:
    """Find the index of messages that a summary stood for once, and a longer one stands for now.

    A history that is first seen long is decided turn by turn, and each decision is an event that
    names its ref. What a later decision took over is in no view and so in no store.

    Args:
        window: the newest window.
        ledger: the decisions of its history.
        ref: of the index.
    """
    for edit in _spans_in(window, ledger):
        if edit.ref != ref:
            continue
        start, stop = window.range_of(edit) or (0, 0)
        for output in _indexes(window, start, stop):
            if output.ref == ref:
                return output
    return None


def _spans_in(window: Window, ledger: Ledger) -> Iterator[ReplaceSpan]:
    """The summaries that a ledger holds for a history, the earliest first."""
    for key in dict.fromkeys(window.transcript.chain):
        for batch in ledger.at(key).batches:
            for edit in batch.edits:
                if isinstance(edit, ReplaceSpan):
                    yield edit


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
        if stop is None:
            stop = window.size
        locations, texts = _placed_texts(window, start, stop)
        super().__init__(texts, window.transcript.chain[0])
        self._window = window
        self._locations = locations

    def ref(self, number: int) -> str:
        """See `Corpus.ref`."""
        location = self._locations[number]
        output = self._window.transcript.output(location)
        return "" if output is None else output.ref

    def about(self, number: int) -> str:
        """See `Corpus.about`. Of a call's arguments also what opens its result.

        Whoever looks for a path or a command finds it in the arguments, and wants the result.
        """
        index, part, _ = self._locations[number]
        transcript = self._window.transcript
        message = transcript.messages[index]
        leaf = message.parts[part]
        if isinstance(leaf, ToolCall):
            title = _call_title(leaf)
            result = self._result_of(index, part)
            if result is None:
                return title
            return f"{title}, its result: ref={result.ref}"
        call = transcript.call_for(index, part)
        if call is None:
            return message.role
        return _call_title(call)

    def _result_of(self, index: int, part: int) -> Output | None:
        """The result of a call, as far as the view has it."""
        transcript = self._window.transcript
        location = transcript.result_for(index, part)
        if location is None or location[0] >= self._window.size:
            return None
        return transcript.output(location)

    def is_left(self, number: int) -> bool:
        """See `Corpus.is_left`."""
        window = self._window
        location = self._locations[number]
        index = location[0]
        is_read = index >= window.read_from and not window.hidden(index)
        return not is_read or window.edit_at(location) is not None

    @property
    def visible_lines(self) -> frozenset[str]:
        """See `Corpus.visible_lines`."""
        texts = tuple(_visible_texts(self._window))
        # a view stays as it is between two searches; a text keeps its hash
        key = self.root, "visible", tuple(map(hash, texts))
        visible: frozenset[str] | None = _LOOKED.get(key)
        if visible is None:
            lines = set[str]()
            for text in texts:
                lines.update(map(bare, text.split("\n")))
            visible = frozenset(lines)
            _LOOKED.put(key, visible, sum(map(len, texts)))
        return visible

    @property
    def begins_with(self) -> Sequence[str]:
        """The refs that the user's messages before the first reply name.

        A conversation that is loaded from where it was compacted begins with the summary of what
        came before, and that names its index.
        """
        transcript = self._window.transcript
        size = self._window.size
        first_reply = next(iter(transcript.marked("begins", 0, size)), size)
        refs = dict[str, None]()
        for message in transcript.messages[:first_reply]:
            if message.role != "user":
                continue
            for part in message.parts:
                if isinstance(part, Text):
                    refs |= {
                        pointer.ref: None for pointer in pointers(part.text)
                    }
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
    texts = (value for value in fields.values() if isinstance(value, str))
    value = next(texts, "")
    is_path = "/" in value and " " not in value.strip()
    if not is_path:
        argument = on_one_line(value, _ABOUT_CHARS)
    elif len(value) <= _ABOUT_CHARS:
        argument = value
    else:
        end = value[-_ABOUT_CHARS:]
        argument = f"…{end}"
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
        locations = [location for location, _ in pairs]
        texts = [text for _, text in pairs]
        placed = locations, texts
        _LOOKED.put(key, placed, _LOCATION_BYTES * len(pairs))
    return placed


def _texts_of(
    window: Window, start: int, stop: int
) -> Iterator[tuple[Location, str]]:
    """The texts of the messages of a range, each with its place."""
    words = window.words
    messages = window.transcript.messages
    recalls = set[str]()
    for index in range(start, stop):
        for number, part in enumerate(messages[index].parts):
            if isinstance(part, ToolCall):
                # ids may come again
                recalls.discard(part.id)
                if words.is_recall(part.name, index):
                    recalls.add(part.id)
                    continue
            elif isinstance(part, ToolResult):
                if part.call_id in recalls:
                    continue
                for item, leaf in enumerate(part.content):
                    if isinstance(leaf, Text) and leaf.text:
                        yield (index, number, item), leaf.text
                continue
            text = _text_of(part)
            # the arguments of a call are looked through even if there are none
            if text or isinstance(part, ToolCall):
                yield (index, number, 0), text


def _text_of(leaf: Part | Content) -> str:
    match leaf:
        case ToolCall():
            return leaf.arguments
        case Text():
            return leaf.text
        case _:
            return ""


def _visible_texts(window: Window) -> Iterator[str]:
    """The texts in view."""
    messages = window.transcript.messages
    for index in window.visible_in(window.read_from, window.size):
        for part, item, leaf in leaves_of(messages[index]):
            edit = window.edit_at((index, part, item))
            if edit is None:
                yield _text_of(leaf)
            else:
                yield edit.text
    for placed in window.open_summaries:
        yield from placed.edit.texts


def _indexes(window: Window, start: int, stop: int) -> Iterator[Output]:
    """The index of a range, in the words of now and in those of before."""
    for words in (window.words, *window.words.earlier()):
        text = index_of(window.transcript, start, stop, words)
        yield Output(canon.ref_of(text), text)

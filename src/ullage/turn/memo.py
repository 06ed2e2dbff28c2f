"""What a session remembers for speed. It can be dropped at any time and changes nothing else.

Callers mutate messages in place: they move cache markers, append to lists, rewrite results.
So a session keeps a snapshot of each message (`ullage.history.snapshots`), and compares every index
at every call: what is as it was is neither parsed nor rendered again.

Several lines of history are kept, because branches alternate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, count
from operator import ne
from typing import Any

from ullage.history import canon
from ullage.history.builder import WindowBuilder
from ullage.history.snapshots import snapshot, snapshot_at
from ullage.history.transcript import Transcript
from ullage.history.window import Window
from ullage.tokens.meter import Meter
from ullage.turn.rendering import Rendering
from ullage.values.effects import Output
from ullage.values.messages import Message
from ullage.values.notices import Words
from ullage.wires import Format, Head
from ullage.wires.repaired import Repaired

__all__ = ["Line", "Memo"]

LINES = 4


class Line:
    """One line of history: copies of its raw messages, and what was worked out from them.

    ``builder`` is set by the turn that opens the line, before anybody reads it. ``begun`` is how
    another line was shown up to where this one left it, or None.
    """

    __slots__ = ("begun", "builder", "copies", "rendering", "transcript")
    builder: WindowBuilder

    def __init__(self, transcript: Transcript) -> None:
        self.copies: list[Any] = []
        self.transcript = transcript
        self.rendering = Rendering()
        self.begun: WindowBuilder | None = None

    def builder_for(self, words: Words, meter: Meter) -> WindowBuilder:
        """What moves a window in these words, which was walked as far as is known."""
        begun, self.begun = self.begun, None
        if begun is not None and begun.window.words == words and begun.window.meter is meter:
            return begun
        return WindowBuilder(self.transcript, meter, words)

    @property
    def window(self) -> Window:
        """The history as it is shown, counted."""
        return self.builder.window


class Memo:
    """The lines of history last seen, the newest first, and the last head and its tokens.

    Attributes:
        lines: lines of history.
        meter: what counts for the model of the newest turn.
        unknown_models: models whose unknown window has been told of.
        repaired: what histories became that were repaired, the newest first.
    """

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.meter = Meter("")
        self.unknown_models: set[str] = set()
        self.repaired: tuple[Repaired, ...] = ()
        self._head: tuple[Any, Any, Head] | None = None
        self._head_tokens: tuple[Head, tuple[dict[str, Any], ...], int] | None = None

    def meter_for(self, model: str, detail: str = "") -> None:
        """Count for this model and this detail of media from now on; another counts anew."""
        if (model, detail) != (self.meter.model, self.meter.detail):
            self.meter = Meter(model, detail)
            self.lines.clear()
            self._head_tokens = None

    def set_aside(self, ref: str) -> Output | None:
        """What was set aside under a ref when a history was repaired, or None."""
        outputs = (output for known in self.repaired for output in known.outputs)
        return next((output for output in outputs if output.ref == ref), None)

    def head(self, request: Mapping[str, Any], wire: Format) -> Head:
        """What stands outside the messages, worked out anew only if it changed."""
        leading = wire.leading(request)
        outside = {key: value for key, value in request.items() if key != wire.key}
        copies = (outside, leading)
        if self._head is not None and self._head[:2] == copies:
            return self._head[2]
        kept = {key: snapshot_at(value, str(key)) for key, value in outside.items()}
        known = snapshot_at(leading, wire.key)
        head = wire.head(request)
        self._head = (kept, known, head)
        return head

    def head_tokens(self, head: Head, tools: tuple[dict[str, Any], ...]) -> int:
        """Tokens of the head and of the tools that are added to it."""
        if self._head_tokens is None or self._head_tokens[:2] != (head, tools):
            texts = (canon.canonical_json(tool) for tool in tools)
            schema_tokens = sum(map(self.meter.text, head.schemas))
            head_tokens = self.meter.head((*head.texts, *texts)) + schema_tokens
            self._head_tokens = (head, tools, head_tokens)
        return self._head_tokens[2]

    def follow(
        self, raws: Sequence[Any], leading: int, wire: Format, root: bytes
    ) -> tuple[Line, bool]:
        """The line that ``raws`` continues, brought up to date; True if it is a new one.

        Args:
            raws: the caller's messages, system text included.
            leading: how many of them are system text outside the chain.
            wire: the format they are in.
            root: the chain of the empty history.

        Raises:
            FormatError: a message is not what its format says it is.
        """
        best, best_shared, anew = None, 0, dict[int, Message]()
        for line in self.lines:
            if line.transcript.chain[0] != root:
                continue
            shared, reworded = _shared(line, raws, leading, wire)
            if shared == len(line.copies):
                for index, message in reworded:
                    line.copies[index] = snapshot(raws[index + leading])
                    line.transcript.refresh(index, message)
                    line.builder.refresh(index)
                _append(line, raws, leading, wire)
                return line, False
            if shared > best_shared:
                best, best_shared, anew = line, shared, dict(reworded)
        line = Line(Transcript(root))
        if best is not None:
            _take_over(line, best, best_shared, anew)
            for index in anew:
                line.copies[index] = snapshot(raws[index + leading])
        _append(line, raws, leading, wire)
        return line, True

    def keep(self, line: Line) -> None:
        """Remember a line as the newest."""
        if not self.lines or self.lines[0] is not line:
            others = [other for other in self.lines if other is not line]
            self.lines = [line, *others][:LINES]

    def outdate(self, window: Window, keys: Iterable[bytes]) -> None:
        """Drop the other lines that went past these keys: the ledger holds more there now."""
        wanted = tuple(keys)
        self.lines = [
            line
            for line in self.lines
            if line.window is window or all(line.transcript.find(key) is None for key in wanted)
        ]

    def forget(self, line: Line) -> None:
        """Drop a line."""
        self.lines = [other for other in self.lines if other is not line]


def _shared(
    line: Line, raws: Sequence[Any], leading: int, wire: Format
) -> tuple[int, list[tuple[int, Message]]]:
    """How many leading messages a line shares with ``raws``, and those worded anew."""
    ours = raws[leading:] if leading else raws
    reworded: list[tuple[int, Message]] = []
    for index in compress(count(), map(ne, line.copies, ours)):
        where = f"{wire.key}[{index + leading}]"
        snapshot_at(ours[index], where)
        message = wire.parse(ours[index], where)
        if canon.digest_of(message) != line.transcript.digests[index]:
            return index, reworded
        reworded.append((index, message))
    return min(len(line.copies), len(ours)), reworded


def _take_over(line: Line, old: Line, shared: int, anew: Mapping[int, Message]) -> None:
    """Take what was worked out for the shared part of another line, but for what is anew."""
    line.copies, line.transcript = old.copies[:shared], old.transcript.upto(shared)
    line.rendering = old.rendering.upto(shared)
    line.begun = old.builder.behind(line.transcript)
    for index, message in anew.items():
        line.transcript.refresh(index, message)
        if line.begun is not None:
            line.begun.refresh(index)


def _append(line: Line, raws: Sequence[Any], leading: int, wire: Format) -> None:
    for index in range(len(line.copies) + leading, len(raws)):
        raw = raws[index]
        where = f"{wire.key}[{index}]"
        copy, message = snapshot_at(raw, where), wire.parse(raw, where)
        line.transcript.append(message, canon.digest_of(message))
        line.copies.append(copy)

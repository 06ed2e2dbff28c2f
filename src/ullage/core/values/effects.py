"""What the pure core may ask of the world, as frozen values.

A turn is a generator: it yields one of these, a driver (`ullage.session.drivers`) does it and sends
the reply back. Nothing else in the core touches a store, a clock or a network.

    effect     reply
    ------     -----
    Find       the records kept under these keys, by (key as given, kind, n, name)
    Commit     the records kept where ours were to go (another worker was first); () if none
    Get        the Output kept under a ref; raises RefNotFound into the generator
    Look       the Shape of what is kept under a ref: how much of it, in which chunks
    Chunk      the text of one of these chunks, so that a huge output is never held whole
    Summarise  the Reply of a model; None if there is no model to ask
    Do         what a function returned that does I/O itself; only rooms that may do so yield it
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, Literal, TypeAlias, TypeVar

from msgspec import Struct

from ullage.core.values.usage import Usage

T = TypeVar("T")

CHUNK_CHARS = 1 << 20
r"""A chunk of an output has so many characters, about a MiB where the text is ASCII. It may end
anywhere, between the halves of a "\r\n" or of an emoji too: readers put together what they need."""


class Output(Struct, frozen=True, gc=False):
    """Something set aside: a tool result's text, or one content block as JSON.

    Attributes:
        ref: its name, derived from its content (`ullage.core.history.canon.ref_of`).
        text: the original, as the caller's own string object.
        kind: ``"text"``, or ``"block"`` for a content block of the format, as JSON text.
    """

    ref: str
    text: str
    kind: Literal["text", "block"] = "text"


KINDS: Mapping[str, Literal["once", "newest"]] = {
    "batch": "once",
    "decision": "once",
    "follows": "once",
    "opened": "once",
    "seen": "once",
    "shown": "newest",
    "outline": "newest",
    "observed": "newest",
    "latest": "newest",
    "splice": "once",
    "thread": "once",
    "sent": "newest",
    "head": "newest",
    "session": "newest",
}
"""Which value a store keeps of each kind of record: the first one, or the newest.

A kind that is not in the table is of a later version, and kept as one that is written once:
nothing of it is replaced by somebody who does not know it.
"""


class Record(Struct, frozen=True, gc=False):
    """One row of the ledger: what was decided or observed at a place in the history.

    A store keeps one value for each (key, kind, n, name). Which one, says `KINDS`. Whoever
    reads a kind that it does not know skips the record.

    Attributes:
        key: the chain at that place, 16 bytes.
        kind: what is recorded; one of `KINDS`, or of a later version.
        n: the batch's number under this key, from 0; 0 for the other kinds.
        data: the value, encoded by `ullage.core.history.ledger`; of a splice by
            `ullage.doors.hidden_turns`, of a thread by `ullage.core.turn.threads`.
        name: distinguishes records of one kind and number, such as by the model they are
            about; ``""`` where there is one only.
    """

    key: bytes
    kind: str
    n: int
    data: bytes
    name: str = ""

    @property
    def is_once(self) -> bool:
        """Whether the first value written is kept; otherwise the newest is."""
        return KINDS.get(self.kind, "once") == "once"

    @property
    def place(self) -> tuple[bytes, str, int, str]:
        """What a store keeps one value for."""
        return self.key, self.kind, self.n, self.name


class ChunkSize(Struct, frozen=True, gc=False):
    r"""How much one chunk of an output holds.

    Attributes:
        chars: its length in characters.
        size_bytes: its length in UTF-8, lone surrogates taking three bytes each.
        newlines: how many "\n" are in it.
    """

    chars: int
    size_bytes: int
    newlines: int

    @staticmethod
    def of(text: str) -> ChunkSize:
        """The size of a text. One that is not ASCII is encoded piece by piece."""
        size_bytes = len(text)
        if not text.isascii():
            size_bytes = sum(len(raw) for _, raw in pieces(text))
        return ChunkSize(len(text), size_bytes, text.count("\n"))


def pieces(text: str) -> Iterator[tuple[ChunkSize, bytes]]:
    """Each chunk of a text: its size, and its UTF-8 (surrogatepass)."""
    for start in range(0, len(text), CHUNK_CHARS):
        piece = text[start : start + CHUNK_CHARS]
        raw = piece.encode("utf-8", "surrogatepass")
        yield ChunkSize(len(piece), len(raw), piece.count("\n")), raw


class Shape(Struct, frozen=True):
    """What there is under a ref, without its text.

    Attributes:
        ref: the ref.
        kind: as of `Output`.
        chunks: the size of each chunk, in order; empty for an empty output.
    """

    ref: str
    kind: Literal["text", "block"]
    chunks: tuple[ChunkSize, ...]

    @staticmethod
    def of(output: Output) -> Shape:
        """An output as one chunk, as it is at hand."""
        chunks = (ChunkSize.of(output.text),) if output.text else ()
        return Shape(output.ref, output.kind, chunks)

    @property
    def chars(self) -> int:
        """The length of the whole in characters."""
        return sum(chunk.chars for chunk in self.chunks)

    @property
    def size_bytes(self) -> int:
        """The length of the whole in UTF-8."""
        return sum(chunk.size_bytes for chunk in self.chunks)


class Find(Struct, frozen=True):
    """Ask for every record kept under any of these keys."""

    keys: tuple[bytes, ...]


class Commit(Struct, frozen=True):
    """Keep these outputs, then these records, before the view is returned.

    The records are kept all or none. If they are, so are the outputs.
    """

    outputs: tuple[Output, ...]
    records: tuple[Record, ...]


class Get(Struct, frozen=True):
    """Ask for what is kept under a ref."""

    ref: str


class Look(Struct, frozen=True):
    """Ask how much is kept under a ref, and in which chunks."""

    ref: str


class Chunk(Struct, frozen=True):
    """Ask for one chunk, numbered from 0, of what is kept under a ref."""

    ref: str
    n: int


class Summarise(Struct, frozen=True, kw_only=True):
    """Ask a model for a summary, without tools.

    Attributes:
        system: the instructions, or ``""``.
        texts: what the user says, a message each; the conversation stands in it as text.
        most_tokens: the most the reply may have.
        model: the model to be asked, or ``""`` for the summariser's own.
        caller: the model of the conversation, for a summariser that has none of its own.
    """

    system: str
    texts: tuple[str, ...]
    most_tokens: int
    model: str = ""
    caller: str = ""


class Do(Struct, frozen=True):
    """Ask for what a function returns.

    An event loop awaits a coroutine function, and runs any other in a thread. Cancelled, it
    waits for the thread.

    Attributes:
        act: without arguments.
    """

    act: Callable[[], Any]


class Reply(Struct, frozen=True, kw_only=True):
    """What a model answered.

    Attributes:
        text: what it said.
        finished: whether it came to its end by itself.
        problem: why there is no reply, ``""`` if there is one. Never content.
        final: there is no use in asking again (the time is up, the budget is spent).
        usage: what was reported.
        model: who answered.
    """

    text: str = ""
    finished: bool = True
    problem: str = ""
    final: bool = False
    usage: Usage = Usage()
    model: str = ""


Effect: TypeAlias = Find | Commit | Get | Look | Chunk | Summarise | Do
Steps: TypeAlias = Generator[Effect, Any, T]

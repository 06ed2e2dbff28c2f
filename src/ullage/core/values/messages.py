"""Messages as every format means them: a role and a tuple of parts.

These are values. They hold the caller's own strings, never copies, and they never hold the
caller's containers: the raw message an edit starts from is always the one in the request at
hand, since the caller may have changed a container that was kept from an earlier one.

``at`` tells a format where a part came from in its raw message (an index into the content
list or the list of calls; ``WHOLE`` when the field was a plain string). No other module
reads it.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from ullage.core.values.authors import Author, Reader

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]

ReasoningRule: TypeAlias = Literal["free", "strip", "frozen"]
"""What an edit means for the reasoning behind it: nothing; it must be left out; or it must
stay as it is while its turn is open, so that no batch may be made then."""

WHOLE = -1
"""The part is the whole field, not an element of a list."""


class Text(Struct, frozen=True, gc=False):
    """Plain text."""

    text: str
    at: int = WHOLE


class Passage(Text, frozen=True, gc=False):
    """A text inside a block that has more: of a document, of something that a search found.

    It is cut where it stands, and its block stays. ``at`` is the place of the block, and ``inner``
    that of the text in the block's own list of texts; ``WHOLE`` where the block holds one string.
    """

    inner: int = WHOLE


class BlockFrame(Struct, frozen=True, gc=False):
    """What a block with passages has beside them: its title, its source, its settings.

    It stands behind its passages and is shown as long as its message is. ``text`` is the block as
    canonical JSON, without its texts. ``tokens`` is as in `Opaque`.
    """

    text: str
    at: int
    tokens: int | None = None


class Reasoning(Struct, frozen=True, gc=False):
    """What the model thought. Signed and encrypted forms are left in the raw message.

    ``bound`` says that a signature ties it to the exact messages before it. ``sealed_bytes`` is
    the size of what is sealed in it, the thought as the model had it: ``text`` is all of it, a
    summary, or nothing.
    """

    text: str
    at: int
    bound: bool = False
    sealed_bytes: int = 0


class Media(Struct, frozen=True, gc=False):
    """An image, document, sound or video. ``data`` is base64 text, a URL or a file id.

    A video's kind is ``"document"``; its type tells. ``detail`` is how finely the block asks to be
    looked at (``"low"``, ``"high"``, ``"original"``…), ``""`` if it does not say; of a video
    ``clip_s`` is how many seconds are asked for, 0 for all, and ``frames_per_s`` how many frames
    of each. ``block`` is the wire's own block without its cache marker, so that what is set aside
    comes back as what it was; its containers are copies, its strings the caller's.
    """

    kind: Literal["image", "document", "audio"]
    mime: str
    data: str
    at: int
    width: int = 0
    height: int = 0
    block: Any = None
    detail: str = ""
    clip_s: float = 0.0
    frames_per_s: float = 1.0


class Opaque(Struct, frozen=True, gc=False):
    """Something we do not look into: carried through untouched.

    ``text`` is its canonical JSON, used for identity and for counting. ``tokens`` is what it
    costs where it is sealed and its text does not tell. ``opens`` is the id under which
    something behind it will belong to it, and ``closes`` that of what it belongs to: a tool of
    the server's and its result, a request and what was done with the approval. The history
    may not be parted between the two. ``deferred`` is as in `ToolCall`. ``supersedes`` says that
    the provider reads nothing that stands before it (a compaction of its own). ``author`` is who
    wrote it where its role does not say, ``reader`` who reads it, and ``words`` what of it are
    the user's words. ``loads`` are the names of tools that a search found: the model may call them
    as long as this stands here.
    """

    kind: str
    text: str
    at: int
    tokens: int | None = None
    opens: str = ""
    closes: str = ""
    deferred: bool = False
    supersedes: bool = False
    author: Author | None = None
    reader: Reader = "model"
    words: str = ""
    loads: tuple[str, ...] = ()


Content: TypeAlias = Text | Media | Opaque | BlockFrame


class ToolCall(Struct, frozen=True, gc=False):
    """The model asks for a tool. ``arguments`` is JSON text (as sent, or canonical).

    ``deferred`` says that the result may come in any later turn (an asynchronous call). ``author``
    is ``"program"`` where code that the model had run makes the call; then that code reads the
    result.
    """

    id: str
    name: str
    arguments: str
    at: int
    deferred: bool = False
    author: Author = "model"


class ToolResult(Struct, frozen=True, gc=False):
    """What a tool answered. ``content`` is one Text when the wire held a string.

    ``name`` is the tool's, where the wire says it beside the result; else ``""``. ``author`` and
    ``reader`` are what the wire says of this result; `ullage.core.history.transcript.Transcript`
    knows its call as well.
    """

    call_id: str
    content: tuple[Content, ...]
    is_error: bool
    at: int
    name: str = ""
    author: Author = "tool"
    reader: Reader = "model"

    @property
    def is_string(self) -> bool:
        """Whether the wire held a string, and not a list of blocks."""
        if len(self.content) != 1:
            return False
        item = self.content[0]
        return isinstance(item, Text) and item.at == WHOLE


Part: TypeAlias = (
    Text | Reasoning | Media | Opaque | BlockFrame | ToolCall | ToolResult
)


class Message(Struct, frozen=True, gc=False):
    """One message: who speaks, and its parts.

    Parts are in wire order but for reasoning, which comes last, and empty text, which is
    left out: callers drop both between two requests, and the number of a part is its address.
    ``before_reply`` says that the model speaks behind it, or nobody does (A20).
    """

    role: Role
    parts: tuple[Part, ...]
    before_reply: bool = False

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of this message, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The tool results of this message, in order."""
        return tuple(
            part for part in self.parts if isinstance(part, ToolResult)
        )

    @property
    def only_thought(self) -> bool:
        """Whether this is reasoning and nothing else."""
        if not self.parts:
            return False
        return all(isinstance(part, Reasoning) for part in self.parts)

    @property
    def is_control(self) -> bool:
        """Whether the host added this for the provider alone, to be the last item (R14)."""
        kinds = [part.kind for part in self.parts if isinstance(part, Opaque)]
        return kinds == ["compaction_trigger"]

    @property
    def supersedes(self) -> bool:
        """Whether the provider reads nothing that stands before this message."""
        return any(
            isinstance(part, Opaque) and part.supersedes for part in self.parts
        )

    @property
    def is_permanent(self) -> bool:
        """Whether nothing may take its place: what the system says holds for all behind it.

        Instructions, tools that were added and settings that were changed are in force until
        the system says otherwise.
        """
        return self.role == "system"

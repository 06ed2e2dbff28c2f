"""Messages as every format means them: a role and a tuple of parts.

These are values. They hold the caller's own strings, never copies, and they never hold the
caller's containers: the raw message an edit starts from is always the one in the request at
hand (`core-feasibility` §3–4: a cached container may have been changed by the caller since).

``at`` tells a format where a part came from in its raw message (an index into the content
list or the list of calls; ``WHOLE`` when the field was a plain string). No other module
reads it.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

__all__ = [
    "WHOLE",
    "Content",
    "Media",
    "Message",
    "Opaque",
    "Part",
    "Reasoning",
    "Role",
    "Text",
    "ToolCall",
    "ToolResult",
]

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]

WHOLE = -1
"""The part is the whole field, not an element of a list."""


class Text(Struct, frozen=True, gc=False):
    """Plain text."""

    text: str
    at: int = WHOLE


class Reasoning(Struct, frozen=True, gc=False):
    """What the model thought. Signed and encrypted forms are left in the raw message.

    ``bound`` says that a signature ties it to the exact messages before it. ``tokens`` is
    what it costs where it is sealed and its text does not tell.
    """

    text: str
    at: int
    bound: bool = False
    tokens: int | None = None


class Media(Struct, frozen=True, gc=False):
    """An image, document or sound. ``data`` is base64 text, a URL or a file id."""

    kind: Literal["image", "document", "audio"]
    mime: str
    data: str
    at: int
    width: int = 0
    height: int = 0


class Opaque(Struct, frozen=True, gc=False):
    """Something we do not look into: carried through untouched.

    ``text`` is its canonical JSON, used for identity and for counting. ``tokens`` is what it
    costs where it is sealed and its text does not tell.
    """

    kind: str
    text: str
    at: int
    tokens: int | None = None


Content: TypeAlias = Text | Media | Opaque


class ToolCall(Struct, frozen=True, gc=False):
    """The model asks for a tool. ``arguments`` is JSON text (as sent, or canonical).

    ``late`` says that the result may come in any later turn (an asynchronous call).
    """

    id: str
    name: str
    arguments: str
    at: int
    late: bool = False


class ToolResult(Struct, frozen=True, gc=False):
    """What a tool answered. ``content`` is one Text when the wire held a string."""

    call_id: str
    content: tuple[Content, ...]
    is_error: bool
    at: int


Part: TypeAlias = Text | Reasoning | Media | Opaque | ToolCall | ToolResult


class Message(Struct, frozen=True, gc=False):
    """One message: who speaks, and the parts in wire order."""

    role: Role
    parts: tuple[Part, ...]
    extra_tokens: int = 0

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of this message, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The tool results of this message, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolResult))

    @property
    def only_thought(self) -> bool:
        """Whether this is reasoning and nothing else."""
        return bool(self.parts) and all(isinstance(part, Reasoning) for part in self.parts)

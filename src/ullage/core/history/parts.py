"""What one message holds: its leaves, what sets it apart, and what a leaf is set aside as."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Literal

from ullage.core.history import canon
from ullage.core.values.messages import (
    BlockFrame,
    Content,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)

Location = tuple[int, int, int]
"""Where a leaf is: message index, part index, item index."""

PlacedLeaf = tuple[int, int, Part | Content]
"""Part index, item index within the part, and what is there."""

Mark = Literal[
    "begins",
    "permanent",
    "bound",
    "asks",
    "user_words",
    "media",
    "compacted",
    "late",
    "loads",
]
"""What sets a message apart:

    begins        a reply begins with it
    permanent     the system says it: nothing takes its place
    bound         it holds reasoning that is bound to what stands before it
    asks          the user speaks in it, and not through a tool alone
    user_words    it holds words of the user, an answer to a tool too
    media         it holds a picture, a document or a sound
    compacted     it holds a compaction of the provider's
    late          it holds a result that came behind a place where a history may be parted: its
                  call may be in a summary
    loads         it defines tools that a search found
"""


def leaves_of(message: Message) -> Iterator[PlacedLeaf]:
    """Everything a message holds, in wire order: each part, or each item of a result."""
    for number, part in enumerate(message.parts):
        if isinstance(part, ToolResult):
            for item, content in enumerate(part.content):
                yield number, item, content
        else:
            yield number, 0, part


def leaf_at(message: Message, location: Location) -> Part | Content | None:
    """The leaf at a location in its message; None if the message is shorter than that."""
    _, number, item = location
    if number >= len(message.parts):
        return None
    part = message.parts[number]
    if not isinstance(part, ToolResult):
        return part
    return part.content[item] if item < len(part.content) else None


def content_of(
    leaf: Part | Content | None,
) -> tuple[str, Literal["text", "block"]] | None:
    """The text a leaf is set aside as, and of what kind; None if it may not be set aside."""
    match leaf:
        case (
            Text(text=text) | ToolCall(arguments=text) | BlockFrame(text=text)
        ):
            return text, "text"
        case Media(block=block) if block is not None:
            return canon.canonical_json(block), "block"
        case Media(kind=kind, mime=mime, data=data):
            described = {"kind": kind, "mime": mime, "data": data}
            return canon.canonical_json(described), "block"
        case Opaque(text=text):
            return text, "block"
        case _:
            return None


def marks_of(
    message: Message, kinds: Set[type], *, begins: bool
) -> Iterator[Mark]:
    """What sets a message apart by itself.

    Args:
        message: the message.
        kinds: the kinds of its parts.
        begins: whether a reply begins with it.
    """
    if begins:
        yield "begins"
    if message.is_permanent:
        yield "permanent"
    if Reasoning in kinds and has_bound_reasoning(message):
        yield "bound"
    if message.role == "user" and ToolResult not in kinds:
        yield "asks"
    if kinds & {Media, ToolResult} and _has_media(message):
        yield "media"


def _has_media(message: Message) -> bool:
    return any(isinstance(leaf, Media) for _, _, leaf in leaves_of(message))


def has_bound_reasoning(message: Message) -> bool:
    """Whether a signature ties some reasoning of a message to what is before it."""
    return any(
        isinstance(part, Reasoning) and part.bound for part in message.parts
    )


def loaded_tools(message: Message) -> list[str]:
    """The names of the tools that are defined in a message."""
    names: list[str] = []
    for _, _, leaf in leaves_of(message):
        if isinstance(leaf, Opaque):
            names += leaf.loads
    return names

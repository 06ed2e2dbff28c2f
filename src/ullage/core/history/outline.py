"""The outline of a history: enough to name its messages in a store, without the caller's history.

    transcript ──outlined──▶ records, one a turn ──read──▶ transcript of stand-ins

A stand-in has the digest of its message, so the chain is the same and every record of the ledger
finds its place; of what was said it has the first characters, after redaction. Whoever looks at a
store, and decides by it, works on these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ullage.core.history import canon
from ullage.core.history.ledger import Ledger
from ullage.core.history.transcript import Transcript
from ullage.core.history.window import Window
from ullage.core.values.edits import without_surrogates
from ullage.core.values.effects import Record
from ullage.core.values.messages import (
    BlockFrame,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from ullage.core.values.receipts import NAME_CHARS, name_of

HEAD_CHARS = 60
"""So much of each text is kept."""
_READ_CHARS = 400
"""So much of a text is looked at: what begins with line ends says little in fewer."""
_OPENS = re.compile(r"\s*<([A-Za-z][\w-]{0,80})(?:\s[^<>]{0,400})?>")
"""A tag that begins a text: a client marks so what it writes into a message of the user's."""
_NAME_CHARS = 8
_PATH = re.compile(
    r'"(?:file_?path|path|file_?name|file|notebook_path|absolute_path|target_file)"'
    r'\s*:\s*("(?:[^"\\]|\\.)*")',
    re.IGNORECASE,
)
"""An argument that names a file, as the tools of agents call it."""
_SUMMARIES = (
    "This session is being continued from a previous conversation",
    "Another language model started to solve this problem and produced a summary",
)
"""How the summary begins to which a client compacts its history: Claude Code's words, Codex's."""
_SEALED = "compaction"
"""The kind of a summary that the provider wrote and sealed: Codex has OpenAI's."""
_ASKS_FOR_SUMMARY = "What did we do so far?"
"""What opencode has the user ask before the summary, which is a reply."""


class Item(Struct, frozen=True, array_like=True):
    """One leaf of a message.

    Attributes:
        head: how it begins, on one line.
        chars: how many characters it has.
        kind: what it is: ``""`` for text, or such as ``image``.
        shown_chars: how many characters were shown of it at first; -1: all.
    """

    head: str
    chars: int
    kind: str = ""
    shown_chars: int = -1


class OutlinedPart(Struct, frozen=True, array_like=True):
    """One part of a message.

    Attributes:
        kind: which.
        items: its leaves; a result may have several.
        id: of a call, or of the call that a result answers.
        name: of the tool.
        file: of a call, the end of the path that it names; ``""``: it names none.
    """

    kind: str
    items: tuple[Item, ...]
    id: str = ""
    name: str = ""
    file: str = ""


class OutlinedMessage(Struct, frozen=True, array_like=True):
    """One message.

    Attributes:
        digest: the digest of the whole message, 16 bytes.
        role: who wrote it.
        parts: its parts.
    """

    digest: bytes
    role: str
    parts: tuple[OutlinedPart, ...]


class Outline(Struct, frozen=True, array_like=True):
    """What was new in a history at a place.

    Attributes:
        length: how many messages there were.
        start: how many an earlier outline holds.
        before: the key of that outline; empty: this is the first.
        root: the chain before the first message, 16 bytes.
        first: the chain behind the first message: it names the conversation.
        title: how the first message of the user begins.
        wire: the format.
        model: the model of the request.
        tokens: of the request, as they were reported or estimated.
        limit_tokens: the most that the request might have; 0: not told.
        messages: those from ``start`` on.
        agent: the agent or program that asks, as it calls itself; ``""``: not known.
        client_session: the client's own name of its session; ``""``: not known.
        subagent: the client's own name of the sub-agent that asks; ``""``: none, or not known.
        is_compacted: whether it begins with what its client summed up of an earlier history.
    """

    length: int
    start: int
    before: bytes
    root: bytes
    first: bytes
    title: str
    wire: str
    model: str
    tokens: int
    limit_tokens: int
    messages: tuple[OutlinedMessage, ...]
    agent: str = ""
    client_session: str = ""
    subagent: str = ""
    is_compacted: bool = False

    @property
    def name(self) -> str:
        """The short name of the conversation, ``c…``; its branches in one client session share it.

        What begins alike in two client sessions has two names.
        """
        begins = self.first.hex()
        if self.client_session:
            begins += f" {self.client_session}"
        return "c" + canon.ref_of(begins)[:_NAME_CHARS]

    def is_of_session(self, name: str) -> bool:
        """Whether it is of the client session of a name, of which the first characters do."""
        return len(name) >= _NAME_CHARS and self.client_session.startswith(
            name
        )

    def begins_as(self, name: str) -> bool:
        """Whether a name is the one that all have which begin so, whatever the client session."""
        return name == "c" + canon.ref_of(self.first.hex())[:_NAME_CHARS]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Outline).decode


def outlined(
    window: Window,
    length: int,
    ledger: Ledger,
    *,
    wire: str,
    tokens: int,
    agent: str = "",
    client_session: str = "",
    subagent: str = "",
) -> tuple[Ledger, tuple[Record, ...]]:
    """The ledger with the outline of a history up to a length, and its record if that is new.

    Args:
        window: shows the history; it may have gone on since.
        length: how many of its messages were sent.
        ledger: what is known of it.
        wire: its format.
        tokens: of the request.
        agent: the agent or program that asks.
        client_session: its own name of the session.
        subagent: its own name of the sub-agent that asks.
    """
    transcript = window.transcript
    key = transcript.decision_key(length)
    if not length or ledger.at(key).outlined >= length:
        return ledger, ()
    earlier, start = _newest_outline(transcript, length, ledger)
    outline = replace(
        whole_outline(window, length, start, wire=wire, tokens=tokens),
        before=earlier,
        agent=name_of(agent),
        client_session=name_of(client_session),
        subagent=name_of(subagent),
    )
    return ledger.with_outlined(key, length), (
        Record(key, "outline", 0, _encode(outline)),
    )


def whole_outline(
    window: Window, length: int, start: int = 0, *, wire: str, tokens: int
) -> Outline:
    """The outline of a history up to a length, which names no earlier one.

    Args:
        window: shows the history; not empty.
        length: how many of its messages are meant.
        start: leave out the messages before this one.
        wire: its format.
        tokens: of the request.
    """
    transcript = window.transcript
    return Outline(
        length=length,
        start=start,
        before=b"",
        root=transcript.chain[0],
        first=transcript.chain[1],
        title=_title(transcript, length),
        wire=wire,
        model=without_surrogates(window.meter.model),
        tokens=tokens,
        limit_tokens=window.limit_tokens,
        messages=tuple(_message(window, at) for at in range(start, length)),
        is_compacted=summed_up(transcript.messages) > 0,
    )


def outline_of(record: Record) -> Outline | None:
    """The outline that a record holds; None where it cannot be read."""
    try:
        return _decode(record.data)
    except (msgspec.MsgspecError, ValueError):
        return None


def outline_among(records: Iterable[Record]) -> Outline | None:
    """The outline that one of some records holds; None where none does.

    Args:
        records: of one place.
    """
    for record in records:
        if record.kind == "outline":
            return outline_of(record)
    return None


def transcript_of(outlines: Sequence[Outline]) -> Transcript:
    """The history that outlines tell of, as stand-ins.

    Args:
        outlines: in order, each behind the one that it names; not empty.
    """
    transcript = Transcript(outlines[0].root)
    for message in messages_of(outlines):
        transcript.append(_stand_in(message), message.digest)
    return transcript


def messages_of(outlines: Sequence[Outline]) -> list[OutlinedMessage]:
    """The messages that outlines tell of; where two of them differ, the later one counts.

    What stands behind a reply may have been said in other words when the next one came.

    Args:
        outlines: in order, each behind the one that it names.
    """
    messages = list[OutlinedMessage]()
    for outline in outlines:
        messages[outline.start :] = outline.messages
    return messages


def _newest_outline(
    transcript: Transcript, length: int, ledger: Ledger
) -> tuple[bytes, int]:
    """The key of the newest earlier outline of a history, and how many messages both have."""
    chain = transcript.chain
    for index in range(transcript.decision_index(length) - 1, 0, -1):
        key = chain[index]
        outlined_length = ledger.at(key).outlined
        if not 0 < outlined_length <= length:
            continue
        if transcript.decision_key(outlined_length) == key:
            return key, index
    return b"", 0


def summed_up(messages: Sequence[Message]) -> int:
    """How long a history is up to its client's summary of an earlier one; 0: it has none.

    The summary stands before the first reply, or is that reply; reminders, and what the user said,
    may stand before it.

    Args:
        messages: of the history.
    """
    asks = False
    for length, message in enumerate(messages, 1):
        if is_sealed_summary(message):
            return length
        if message.role == "assistant":
            return length if asks else 0
        if message.role != "user":
            continue
        texts = _texts_of(message)
        if any(text.startswith(_SUMMARIES) for text in texts):
            return length
        asks = texts == [_ASKS_FOR_SUMMARY]
    return 0


def is_sealed_summary(message: Message) -> bool:
    """Whether a message is a summary of what is left out, which the provider wrote and sealed.

    Args:
        message: of a history.
    """
    kinds = {part.kind for part in message.parts if isinstance(part, Opaque)}
    return _SEALED in kinds


def _texts_of(message: Message) -> list[str]:
    return [
        part.text.lstrip() for part in message.parts if isinstance(part, Text)
    ]


def _title(transcript: Transcript, length: int) -> str:
    """How the first words of the user begin: before what a client wrote, if there are any."""
    first = ""
    for index in transcript.marked("user_words", 0, min(length, 8)):
        for number in range(len(transcript.messages[index].parts)):
            words = transcript.user_words(index, number)
            if words and not _is_in_a_tag(words):
                return head_of(words)
            first = first or words
    return head_of(first)


def _is_in_a_tag(text: str) -> bool:
    """Whether a text is one element, as ``<system-reminder>…</system-reminder>``."""
    opens = _OPENS.match(text)
    return opens is not None and text.rstrip().endswith(f"</{opens[1]}>")


def head_of(text: str) -> str:
    """How a text begins, on one line."""
    line = " ".join(text[:_READ_CHARS].split())
    return without_surrogates(
        line if len(line) <= HEAD_CHARS else line[:HEAD_CHARS] + "…"
    )


def _message(window: Window, index: int) -> OutlinedMessage:
    message = window.transcript.messages[index]
    shown_chars = {}
    for leaf, edit in window.shown(index).items():
        shown_chars[leaf] = len(edit.text)
    parts = [
        _part(part, number, shown_chars)
        for number, part in enumerate(message.parts)
    ]
    digest = window.transcript.digests[index]
    return OutlinedMessage(digest, message.role, tuple(parts))


def _part(
    part: Part, number: int, shown_chars: Mapping[tuple[int, int], int]
) -> OutlinedPart:
    match part:
        case ToolCall(id=id, name=name, arguments=text):
            file = file_in(text[:_READ_CHARS])
            return OutlinedPart(
                "call",
                (_item(text),),
                without_surrogates(id),
                without_surrogates(name),
                file,
            )
        case ToolResult(call_id=id, content=content, name=name):
            items = list[Item]()
            for index, leaf in enumerate(content):
                chars = shown_chars.get((number, index), -1)
                items.append(replace(_content(leaf), shown_chars=chars))
            return OutlinedPart(
                "result",
                tuple(items),
                without_surrogates(id),
                without_surrogates(name),
            )
        case Reasoning():
            return OutlinedPart("reasoning", ())
        case _:
            return OutlinedPart("text", (_content(part),))


def file_in(arguments: str) -> str:
    """The end of the path that the arguments of a call name; ``""``: they name none.

    Args:
        arguments: as JSON text; its beginning is enough.
    """
    match = _PATH.search(arguments)
    if match is None:
        return ""
    try:
        path = msgspec.json.decode(match[1], type=str)
    except msgspec.DecodeError:
        return ""
    return name_of(path[-NAME_CHARS:])


def _content(leaf: object) -> Item:
    match leaf:
        case Text(text=text) | BlockFrame(text=text):
            return _item(text)
        case Media(kind=kind, data=data):
            return Item("", len(data), kind)
        case Opaque(kind=kind, text=text):
            return Item("", len(text), without_surrogates(kind))
        case _:
            return Item("", 0, "part")


def _item(text: str) -> Item:
    return Item(head_of(text), len(text))


def _stand_in(outlined_message: OutlinedMessage) -> Message:
    """A message in the place of the one that is outlined: the same parts, and little text."""
    parts = [
        _stand_in_part(part, at)
        for at, part in enumerate(outlined_message.parts)
    ]
    return Message(outlined_message.role, tuple(parts))  # type: ignore[arg-type]


def _stand_in_part(part: OutlinedPart, at: int) -> Part:
    texts = tuple(
        Text(item.head, number) for number, item in enumerate(part.items)
    )
    if part.kind == "call":
        return ToolCall(part.id, part.name, texts[0].text if texts else "", at)
    if part.kind == "result":
        return ToolResult(
            part.id, texts, is_error=False, at=at, name=part.name
        )
    if part.kind == "reasoning":
        return Reasoning("", at)
    return Text(texts[0].text if texts else "", at)

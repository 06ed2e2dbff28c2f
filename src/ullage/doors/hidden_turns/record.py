"""The record of a reply some of whose turns are hidden from the client, and its keys.

    key    H("splice", chain of the client's history before the reply, what the reply says)
    data   the turns as the provider gave and got them, and deferred results

What a reply says is its texts, one behind the other and without white space, and its calls. So it
is found again where a client joins blocks of text or trims them, drops thinking and nulls, or
writes the arguments of a call again; `says_the_same` then compares the texts themselves.

The *opening*, a record without data under the chain behind the first message, says that the
conversation has hidden turns at all: without it nothing of a request has to be looked through.

Some reasoning cannot stand without the turns that were hidden: signed behind them, or made with a
call that was. Its *mark*, without data too, says so where the hidden is not found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from blake3 import blake3
from msgspec import Struct

from ullage import FormatError, Record
from ullage.doors.host import (
    Message,
    Text,
    ToolCall,
    as_json,
    as_written,
    is_made_up,
    number_of,
)

KIND = "splice"

_SPACE = re.compile(r"\s*")
_loads = msgspec.json.Decoder().decode
_decode = msgspec.json.Decoder(float_hook=number_of).decode
_encode = msgspec.json.Encoder(enc_hook=as_written).encode


class HiddenTurns(Struct, frozen=True):
    """The turns of one reply that its client does not have.

    Attributes:
        turns: raw messages, in the place of what the client has of the reply.
        deferred: wire results of private calls in the last turn, which stood beside calls of the
            client's own: they go where the client's results go.
        model: the model that was requested.
        note: a text of ours in the client's reply.
        reply_id: the id of the last round's reply, where the provider may hold what led to it.
        audible: the range of ``turns`` whose texts the client has; None: it has all.
        reply: the client's reply, where it may fetch it again by its id.
        rounds: the ids of the replies that the client does not know of.
        chain: the chain behind the client's reply, in hex, where its next request leaves out all
            that came before; ``""`` elsewhere.
        opening: the opening key of that conversation, in hex; ``""`` elsewhere.
    """

    # records keep the names that these fields had first: no stored reply may be lost
    turns: list[Any]
    deferred: list[Any] = msgspec.field(name="waiting")
    model: str = ""
    note: str = ""
    reply_id: str = ""
    audible: tuple[int, int] | None = msgspec.field(default=None, name="heard")
    reply: dict[str, Any] | None = None
    rounds: list[str] = []
    chain: str = ""
    opening: str = ""


def key_of(
    chain: bytes, reply: Iterable[Message], *, with_ids: bool = True
) -> bytes | None:
    """The key of a reply's record, 16 bytes; None for one that says nothing.

    Args:
        chain: of the client's history before it.
        reply: its messages as the client has them.
        with_ids: whether the ids of its calls are those that the provider gave.
    """
    texts = list[str]()
    calls = list[Any]()
    for message in reply:
        for part in message.parts:
            if isinstance(part, Text):
                texts += part.text.split()
            elif isinstance(part, ToolCall):
                calls.append(_call(part, with_id=with_ids))
    if not texts and not calls:
        return None
    return _hashed(
        b"reply",
        chain,
        _bytes("".join(texts)),
        *(_bytes(call) for call in calls),
    )


def opening_key(chain: bytes) -> bytes:
    """The key of the opening: any reply of the conversation has hidden turns. 16 bytes.

    Args:
        chain: behind its first message.
    """
    return _hashed(b"opening", chain)


def mark_key(root: bytes, seal: str) -> bytes:
    """The key of the mark of sealed reasoning that cannot stand by itself, 16 bytes.

    Args:
        root: the chain of the empty history.
        seal: its signature, or whatever else is its own.
    """
    return _hashed(b"mark", root, _bytes(seal))


def reply_key(root: bytes, reply_id: str) -> bytes:
    """The key of a reply that the provider holds, by the id that its client has, 16 bytes."""
    return _hashed(b"held", root, _bytes(reply_id))


def private_call_key(root: bytes, call_id: str) -> bytes:
    """The key that says that a call was private, 16 bytes.

    A reply that calls a recall tool and has no such key is no round of ours.
    """
    return _hashed(b"hidden", root, _bytes(call_id))


def _hashed(*fields: bytes) -> bytes:
    digest = blake3(b"ullage splice 1")
    for field in fields:
        digest.update(len(field).to_bytes(8, "big") + field)
    return digest.digest(16)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _call(call: ToolCall, *, with_id: bool) -> str:
    """A call, however its arguments are written."""
    name = call.id if with_id and not is_made_up(call.id, call.name) else ""
    try:
        arguments = as_json(
            _plain(_loads(call.arguments or "{}")), "arguments"
        )
    except (FormatError, msgspec.DecodeError, UnicodeError, RecursionError):
        arguments = call.arguments
    return json.dumps([name, call.name, arguments])


def _plain(value: Any) -> Any:
    """JSON as other languages write it back: without nulls in objects, 1.0 as 1."""
    if isinstance(value, dict):
        return {
            name: _plain(item)
            for name, item in value.items()
            if item is not None
        }
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return (
        int(value)
        if isinstance(value, float) and value.is_integer()
        else value
    )


def says_the_same(
    messages: Sequence[Message], turns: Sequence[Message], note: str
) -> bool:
    """Whether the client's texts are those of the turns but for white space between two of them.

    Args:
        messages: the messages of the reply as the client sent them.
        turns: those that are kept, results of private calls among them.
        note: what the client was told besides.
    """
    text = "".join(_texts(messages))
    at = 0
    for piece in (*_texts(turns), note):
        expected = piece.strip()
        at = _behind_space(text, at)
        if not text.startswith(expected, at):
            return False
        at += len(expected)
    return _behind_space(text, at) == len(text)


def _behind_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _texts(messages: Iterable[Message]) -> list[str]:
    parts = (
        part
        for message in messages
        if message.role == "assistant"
        for part in message.parts
    )
    return [part.text for part in parts if isinstance(part, Text)]


# ── records ──────────────────────────────────────────────────────────────────────────────


def record_of(key: bytes, hidden: HiddenTurns | None) -> Record:
    """The record of hidden turns; of None, one whose key alone says what it is for."""
    return Record(key, KIND, 0, b"{}" if hidden is None else _encoded(hidden))


def hidden_turns_in(
    records: Iterable[Record], key: bytes
) -> HiddenTurns | None:
    """The hidden turns under a key; None if there are none, or a newer version wrote them."""
    for record in records:
        if record.key == key and record.kind == KIND:
            try:
                return msgspec.convert(_decoded(record.data), HiddenTurns)
            except (msgspec.MsgspecError, ValueError, RecursionError):
                return None
    return None


def _encoded(hidden: HiddenTurns) -> bytes:
    try:
        return _encode(hidden)
    except (UnicodeEncodeError, OverflowError):
        # only the standard library writes lone surrogates and any integer
        fields = msgspec.structs.fields(HiddenTurns)
        stored = {
            item.encode_name: getattr(hidden, item.name) for item in fields
        }
        return json.dumps(stored).encode()


def _decoded(data: bytes) -> Any:
    try:
        return _decode(data)
    except msgspec.DecodeError:
        return json.loads(data, parse_float=number_of)

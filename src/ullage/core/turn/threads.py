"""What a message thread began with, and how large it has grown, by the id of its newest reply.

A request that continues a thread has neither the history nor the tools: the provider keeps both.
So what was sent in the request that created it is kept here, one record for each reply:

    key    H("thread", the empty history's chain, id of the reply)
    data   `Thread`

Source: Anthropic, "Message threads" (beta ``message-threads-2026-08-12``).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from blake3 import blake3
from msgspec import Struct

from ullage.core.history import canon
from ullage.core.values.effects import Find, Record, Steps

KIND = "thread"

_encode = msgspec.msgpack.Encoder().encode


class Thread(Struct, frozen=True, array_like=True):
    """A thread as its newest reply left it.

    Attributes:
        recall: whether the recall tools are among its tools.
        prefix: what is before their names.
        names: their names without it.
        tokens: how many tokens it has, as the provider counted them; 0: it did not say.
    """

    recall: bool
    prefix: str = ""
    names: tuple[str, ...] = ()
    tokens: int = 0

    def offers(self, names: Iterable[str]) -> bool:
        """Whether it has recall tools of these names, without the prefix."""
        return self.recall and set(self.names) == set(names)


_decode = msgspec.msgpack.Decoder(Thread).decode


def thread_of(
    wire_name: str, tenant: str, reply_id: str
) -> Steps[Thread | None]:
    """The thread that a reply belongs to; None if nothing is known of it."""
    key = _key(canon.root(wire_name, tenant), reply_id)
    for record in (yield Find((key,))):
        if record.kind == KIND:
            try:
                return _decode(record.data)
            except msgspec.MsgspecError:  # a newer version wrote it
                return None
    return None


def record_of(
    wire_name: str, tenant: str, reply_id: str, thread: Thread
) -> Record:
    """The record of a thread, under its newest reply."""
    return Record(
        _key(canon.root(wire_name, tenant), reply_id), KIND, 0, _encode(thread)
    )


def _key(root: bytes, reply_id: str) -> bytes:
    name = reply_id.encode("utf-8", "surrogatepass")
    return blake3(root + name, derive_key_context="ullage thread 1").digest(16)

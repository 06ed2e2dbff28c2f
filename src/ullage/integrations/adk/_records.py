"""The ledger in ADK's session state, so that ADK's own session service keeps it.

A record is one entry of the state, ``ullage:{chain}:{kind}:{n}``, with ``:{name}`` behind it
if it has a name, its bytes in base64. It is written as a state delta of the event whose callback
it came from; whoever loads the session later, in this process or another, has it. ADK takes back
the state of what is rewound; a record under a chain that no longer exists applies nowhere.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from ullage.history.ledger import Ledger
from ullage.spend.calls import Spent
from ullage.stores import Store
from ullage.stores.threaded import Threaded
from ullage.values.effects import KINDS, Output, Record

__all__ = ["SPENT", "Noted", "entry_of", "record_of", "spent_in"]

SPENT = "ullage:spent:"
"""What stands before an agent's name in the entry of what it has spent.

Each agent writes its own: the events of agents side by side come in any order.
"""

_ENTRY = re.compile(
    rf"ullage:([0-9a-f]{{32}}):({'|'.join(KINDS)}):(0|[1-9][0-9]{{0,5}})(?::(.+))?", re.DOTALL
)


class Noted(Threaded):
    """A store for an event loop that notes which records are new.

    Attributes:
        new: the records that were kept and are not in ADK's session yet.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.new: list[Record] = []

    async def commit(
        self, tenant: str, outputs: Sequence[Output], records: Sequence[Record]
    ) -> tuple[Record, ...]:
        """See `Store.commit`."""
        lost = await super().commit(tenant, outputs, records)
        if not lost:
            self.new += records
        return lost

    async def take(self, tenant: str, records: Sequence[Record]) -> None:
        """Keep records that come from ADK's session."""
        await super().commit(tenant, (), records)


def entry_of(record: Record) -> tuple[str, str]:
    """A record as an entry of the state: its key and its value."""
    name = f":{record.name}" if record.name else ""
    key = f"ullage:{record.key.hex()}:{record.kind}:{record.n}{name}"
    return key, b64encode(record.data).decode()


def record_of(key: str, value: Any) -> Record | None:
    """The record in an entry of the state; None if it is none of ours, or cannot be read.

    Whoever may write to the state can write nonsense there, and a ledger is never trusted to
    be well-formed: what cannot be read is as if it were not there.
    """
    found = _ENTRY.fullmatch(key)
    if found is None or not isinstance(value, str):
        return None
    try:
        record = Record(
            bytes.fromhex(found[1]),
            found[2],
            int(found[3]),
            b64decode(value, validate=True),
            found[4] or "",
        )
        Ledger().with_records((record,))
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return None
    return record


def spent_in(state: Mapping[str, Any]) -> dict[str, Spent]:
    """What each agent has spent by the state; entries that cannot be read say nothing."""
    found = {}
    for key, value in state.items():
        if key.startswith(SPENT) and isinstance(value, Mapping):
            with suppress(msgspec.ValidationError):
                found[key.removeprefix(SPENT)] = msgspec.convert(value, Spent)
    return found

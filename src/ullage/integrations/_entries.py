"""What lasts of conversations as entries of a state that a framework keeps: text by text.

Entries   the ledger of a session: what was decided, what was counted
Account   what the agents of a family of conversations have spent

A state may be older than its session (it was rewound, or the step that should have written it
failed) or newer (another process wrote it); whoever can write to it can write nonsense. Whoever
asks both questions of every call, what is unknown here and what is missing there, keeps the two
equal.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import msgspec

from ullage import AsyncSession, Budget, Record, Session, Spent

AnySession: TypeAlias = Session | AsyncSession
"""A session of either kind."""

_ENTRY = re.compile(
    r"ullage:([0-9a-f]{32}):([a-z]+):(0|[1-9][0-9]{0,5})(?::(.+))?", re.DOTALL
)


def entry_of(record: Record) -> tuple[str, str]:
    """A record as an entry of a state.

    Args:
        record: the record.

    Returns:
        The key, which names the record's place, and its data in base64.
    """
    name = f":{record.name}" if record.name else ""
    key = f"ullage:{record.key.hex()}:{record.kind}:{record.n}{name}"
    return key, b64encode(record.data).decode()


def record_of(key: str, value: Any) -> Record | None:
    """The record in an entry of a state; None if it is none of ours.

    Whoever may write to the state can write nonsense there; `Session.take` passes it over.
    """
    match = _ENTRY.fullmatch(key)
    if match is None or not isinstance(value, str):
        return None
    with suppress(ValueError):
        data = b64decode(value, validate=True)
        return Record(
            bytes.fromhex(match[1]),
            match[2],
            int(match[3]),
            data,
            match[4] or "",
        )
    return None


class Entries:
    """The ledgers of sessions as entries of a framework's state: a text by a text."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[AnySession, dict[str, str]] = (
            WeakKeyDictionary()
        )

    def unknown(
        self, session: AnySession, state: Mapping[str, Any]
    ) -> list[Record]:
        """The records that the state holds and the session lacks, for `Session.take`.

        Args:
            session: the session.
            state: the framework's state; entries of others are passed over.
        """
        cached = self._known.setdefault(session, {})
        items = [
            item for item in state.items() if cached.get(item[0]) != item[1]
        ]
        records = [
            (item, record)
            for item in items
            if (record := record_of(*item)) is not None
        ]
        cached.update(item for item, _ in records)
        return [record for _, record in records]

    def missing(
        self, session: AnySession, state: Mapping[str, Any]
    ) -> dict[str, str]:
        """The entries that the session decided and the state lacks, to be written to it.

        Args:
            session: the session.
            state: the framework's state.
        """
        cached = self._known.setdefault(session, {})
        cached.update(map(entry_of, session.news()))
        return {
            key: value
            for key, value in cached.items()
            if state.get(key) != value
        }


_SPENT = "ullage:spent:"
"""What is put before an agent's name in the entry of what it has spent.

Each agent writes its own: where several work side by side, their states are kept in any order.
"""


class FamilyAccount:
    """What agents have spent of a budget, here and in processes before or beside this one.

    Args:
        budget: theirs; what was spent elsewhere is counted on it.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._elsewhere: dict[str, Spent] = {}

    @property
    def spent(self) -> dict[str, Spent]:
        """What each agent has spent in all."""
        here = self.budget.totals("agent")
        elsewhere = self._elsewhere
        names = dict.fromkeys((*elsewhere, *here))
        return {
            name: elsewhere.get(name, Spent()) + here.get(name, Spent())
            for name in names
        }

    def take(self, state: Mapping[str, Any]) -> None:
        """Count on the budget what a state holds beyond our own totals.

        Args:
            state: the framework's state; an entry that cannot be read counts nothing.
        """
        totals = self.spent
        for key, value in state.items():
            if not key.startswith(_SPENT) or not isinstance(value, Mapping):
                continue
            name = key.removeprefix(_SPENT)
            earlier = totals.get(name, Spent())
            with suppress(msgspec.ValidationError):
                increase = msgspec.convert(value, Spent) - earlier
                if increase.calls > 0:
                    self.budget.carry(increase)
                    self._elsewhere[name] = (
                        self._elsewhere.get(name, Spent()) + increase
                    )

    def missing(self, agent: str, state: Mapping[str, Any]) -> dict[str, Any]:
        """The entry of what an agent has spent, where the state does not hold it.

        Args:
            agent: the agent's name.
            state: the framework's state.
        """
        spent = self.spent.get(agent)
        entry = (
            {}
            if spent is None
            else {f"{_SPENT}{agent}": msgspec.to_builtins(spent)}
        )
        return {
            key: value
            for key, value in entry.items()
            if state.get(key) != value
        }

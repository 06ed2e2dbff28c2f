"""One ADK session: its budget, a session for each agent, and their ledger in its state.

Each agent of an ADK session is shown another conversation (its branch, its instructions, its
tools), so each has an ullage session; they share the tenant, the store and the budget. All of it
can be dropped at any time: what lasts is in ADK's session state, written as a state delta of the
event whose callback it came from.

A record is one entry of the state (`ullage.integrations._base`). ADK takes back the state of what
is rewound; a record under a chain that no longer exists applies nowhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from ullage.integrations._sessions import entry_of, record_of
from ullage.session.aio import AsyncSession
from ullage.session.sessions import AsyncSessions
from ullage.session.view import AsyncView
from ullage.spend.budget import Budget
from ullage.spend.calls import Spent

__all__ = ["Call", "Room"]

_SPENT = "ullage:spent:"
"""What is put before an agent's name in the entry of what it has spent.

Each agent writes its own: the events of agents side by side come in any order.
"""
_NUMBERS = count()


class Call:
    """A call of a model under way: its request as ADK made it, and the view that was sent."""

    def __init__(self, session: AsyncSession, asked: Mapping[str, Any]) -> None:
        self.session, self.asked, self.refusals = session, asked, 0
        self.view: AsyncView | None = None


class Room:
    """What is held of one ADK session.

    Args:
        tenant: whose content this is; a ref opens only what the same ADK session put there.
        sessions: makes the sessions, and holds them.
        budget: makes a budget; takes ``spent``.
        settings: for each session, besides those of ``sessions``.

    Attributes:
        budget: what all agents of it have spent, and may spend.
        calls: the calls under way, by agent and branch.
    """

    def __init__(
        self,
        tenant: str,
        sessions: AsyncSessions,
        budget: Callable[..., Budget],
        **settings: Any,
    ) -> None:
        self.tenant, self.budget = tenant, budget(spent=Spent())
        self.calls: dict[tuple[str, str], Call] = {}
        self._of, self._new_budget, self._settings = sessions.of, budget, settings
        self._number = next(_NUMBERS)
        self._made: WeakValueDictionary[tuple[str, str], AsyncSession] = WeakValueDictionary()
        self._spent: dict[str, Spent] = {}
        self._entries: dict[str, str] = {}

    @property
    def sessions(self) -> tuple[AsyncSession, ...]:
        """The ullage sessions of its agents."""
        return tuple(self._made.values())

    @property
    def spent(self) -> dict[str, Spent]:
        """What each agent has spent, in this process and before it."""
        here = self.budget.totals("agent")
        names = dict.fromkeys((*self._spent, *here))
        return {name: self._spent.get(name, Spent()) + here.get(name, Spent()) for name in names}

    def session_at(self, place: tuple[str, str]) -> AsyncSession | None:
        """The session of an agent in its branch, if there is one."""
        return self._made.get(place)

    async def session_of(
        self, place: tuple[str, str], state: Mapping[str, Any], **settings: Any
    ) -> AsyncSession:
        """The session of an agent in its branch, which knows all that ADK's session holds.

        What ADK's session holds and we do not, after a restart or from another process, begins
        the conversations anew, from their ledger.
        """
        records = {key: found for key, value in state.items() if (found := record_of(key, value))}
        spent = self.spent
        for name, theirs in _spent_in(state).items():
            if theirs.calls > spent.get(name, Spent()).calls:
                spent[name] = theirs
        if not records.keys() <= self._entries.keys() or spent != self.spent:
            self._entries.update(entry_of(record) for record in records.values())
            self._spent, self._number = spent, next(_NUMBERS)
            self.budget = self._new_budget(spent=sum(spent.values(), Spent()))
            self._made.clear()
            self.calls.clear()
        key = json.dumps([self._number, *place])
        given = {**self._settings, **settings, "budget": self.budget, "agent": place[0]}
        session = self._of(key, parent=self.tenant, **given)
        if self._made.get(place) is not session:
            await session.take(records.values())
            self._made[place] = session
        return session

    def give(self, session: AsyncSession, agent: str, state: Any, held: Mapping[str, Any]) -> None:
        """Give ADK's session what is new here, or was lost with an event that never came.

        Args:
            session: the session of the agent.
            agent: whose event it will be; of what was spent it reports its own alone.
            state: ADK's own, which makes a delta of what is set on it.
            held: the state as it is now.
        """
        self._entries.update(map(entry_of, session.news()))
        entries: dict[str, Any] = dict(self._entries)
        if agent in (spent := self.spent):
            entries[f"{_SPENT}{agent}"] = msgspec.to_builtins(spent[agent])
        for key, value in entries.items():
            if held.get(key) != value:
                state[key] = value


def _spent_in(state: Mapping[str, Any]) -> dict[str, Spent]:
    """What each agent has spent by the state; entries that cannot be read say nothing."""
    found = {}
    for key, value in state.items():
        if key.startswith(_SPENT) and isinstance(value, Mapping):
            with suppress(msgspec.ValidationError):
                found[key.removeprefix(_SPENT)] = msgspec.convert(value, Spent)
    return found

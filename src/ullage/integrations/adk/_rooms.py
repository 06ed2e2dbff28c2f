"""What the plugin holds of one ADK session: a budget, a ledger, and a session for each agent.

Each agent of an ADK session is shown another conversation (its branch, its instructions, its
tools), so each has an ullage session of its own; they share the tenant, the store and the
budget. All of it can be dropped at any time: what lasts is in ADK's session state.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import msgspec

from ullage.integrations.adk._records import SPENT, Noted, entry_of, record_of, spent_in
from ullage.session.aio import AsyncSession
from ullage.spend.budget import Budget
from ullage.spend.calls import Spent
from ullage.stores import Store

__all__ = ["Room", "Rooms", "Talk"]


class Talk:
    """One agent's conversation.

    Attributes:
        session: the ullage session.
        asked: the request of the call under way as ADK made it, or None.
        refusals: how often the provider called that request too long.
        awaits_usage: whether that call's usage is still to come.
    """

    def __init__(self, session: AsyncSession) -> None:
        self.session = session
        self.asked: Mapping[str, Any] | None = None
        self.refusals = 0
        self.awaits_usage = False

    def ask(self, asked: Mapping[str, Any] | None) -> None:
        """Another call begins; None: it is not made."""
        self.asked, self.refusals, self.awaits_usage = asked, 0, asked is not None


class Room:
    """What is held of one ADK session.

    Attributes:
        tenant: whose content this is; a ref opens only what the same ADK session put there.
        store: where what is set aside is kept.
        budget: what all agents of it have spent, and may spend.
        talks: the conversations, by agent and branch.
    """

    def __init__(self, tenant: str, store: Store, new_budget: Callable[..., Budget]) -> None:
        self.tenant = tenant
        self.store = Noted(store)
        self.budget = new_budget(spent=Spent())
        self.talks: dict[tuple[str, str], Talk] = {}
        self._new_budget = new_budget
        self._before: dict[str, Spent] = {}
        self._entries: dict[str, str] = {}

    @property
    def sessions(self) -> tuple[AsyncSession, ...]:
        """The ullage sessions of its agents."""
        return tuple(talk.session for talk in self.talks.values())

    @property
    def spent(self) -> dict[str, Spent]:
        """What each agent has spent, in this process and before it."""
        return _both(self._before, self.budget.totals("agent"))

    async def take_in(self, state: Mapping[str, Any]) -> None:
        """Take in what ADK's session holds and we do not: after a restart, or from elsewhere.

        The conversations begin anew then, from the ledger.
        """
        found = {key: value for key, value in state.items() if key not in self._entries}
        records = [record for key in found if (record := record_of(key, found[key])) is not None]
        if records:
            await self.store.take(self.tenant, records)
            self._entries.update(map(entry_of, records))
        newest = _newest(self.spent, spent_in(state))
        if newest != self.spent:
            self._before = newest
            self.budget = self._new_budget(spent=reduce(_sum, newest.values(), Spent()))
        if records or self._before is newest:
            self.talks.clear()

    def give(self, agent: str, state: Any, held: Mapping[str, Any]) -> None:
        """Give ADK's session what is new here, or was lost with an event that never came.

        Args:
            agent: whose event it will be; of what was spent it tells its own alone.
            state: ADK's own, which makes a delta of what is set on it.
            held: the state as it is now.
        """
        new, self.store.new = self.store.new, []
        self._entries.update(map(entry_of, new))
        told: dict[str, Any] = dict(self._entries)
        if agent in (spent := self.spent):
            told[f"{SPENT}{agent}"] = msgspec.to_builtins(spent[agent])
        for key, value in told.items():
            if held.get(key) != value:
                state[key] = value


def _sum(one: Spent, other: Spent) -> Spent:
    usd = (one.cost_usd, other.cost_usd)
    cost = None if None in usd else sum(usd)  # type: ignore[arg-type]
    return Spent(usage=one.usage + other.usage, cost_usd=cost, calls=one.calls + other.calls)


def _both(some: Mapping[str, Spent], others: Mapping[str, Spent]) -> dict[str, Spent]:
    """The sums by agent."""
    agents = dict.fromkeys((*some, *others))
    return {name: _sum(some.get(name, Spent()), others.get(name, Spent())) for name in agents}


def _newest(some: Mapping[str, Spent], others: Mapping[str, Spent]) -> dict[str, Spent]:
    """Of each agent the account that knows of more calls."""
    found = dict(some)
    for name, spent in others.items():
        if spent.calls > found.get(name, Spent()).calls:
            found[name] = spent
    return found


class Rooms:
    """The rooms used last; one that was let go is made anew from ADK's session.

    Args:
        make: makes a room, given its tenant.
        most: how many are held.
    """

    def __init__(self, make: Callable[[str], Room], most: int) -> None:
        self._make = make
        self._most = most
        self._held: OrderedDict[str, Room] = OrderedDict()

    def of(self, session: Any) -> Room:
        """The room of an ADK session."""
        tenant = json.dumps([session.app_name, session.user_id, session.id])
        room = self._held.get(tenant)
        if room is None:
            room = self._held[tenant] = self._make(tenant)
        self._held.move_to_end(tenant)
        while len(self._held) > self._most:
            self._held.popitem(last=False)
        return room

    def clear(self) -> None:
        """Let go of all of them."""
        self._held.clear()

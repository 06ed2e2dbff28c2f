"""The policy that is in force in a history: since when, and with which recall tools.

The ledger holds a `PolicyRecord` at each place where another policy, wording or model family began
to decide. `active_policy` is what all of them come to.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ullage.core.history.ledger import Ledger, PolicyRecord
from ullage.core.turn.openings import (
    Opening,
    announced,
    changed_at,
    cuts_from,
    recall_from,
)
from ullage.core.values.effects import Record
from ullage.core.values.events import Event


class ActivePolicy(Struct, frozen=True):
    """The policy in force at the end of a history, and the places where it changed.

    Attributes:
        record: what is in force at the end.
        changed_at: the chain position at which the policy changed last, or -1.
        superseded: something newer decides here; we add what the guard must.
        is_new: the change is made by this turn.
        recall_from: the chain position from which the recall tools are offered, or -1: nowhere.
        waits: the recall tools are not offered, and are once it saves money.
        cuts_from: the chain position from which what is new is cut on arrival though no
            recall tools are offered, or -1: what the policy does without them.
        announced: the fingerprints that were reported, and show on arrival what the newest shows.
    """

    record: PolicyRecord
    changed_at: int = -1
    superseded: bool = False
    is_new: bool = False
    recall_from: int = 0
    waits: bool = False
    cuts_from: int = -1
    announced: frozenset[str] = frozenset()

    def offers_recall(self, place: int) -> bool:
        """Whether the recall tools are offered at a chain position."""
        return 0 <= self.recall_from <= place


class PolicyResolution(Struct, frozen=True):
    """What `resolve_policy` comes to.

    Attributes:
        active: the policy in force.
        ledger: the ledger with what is to be kept.
        records: what is to be kept.
        events: what is to be told.
        shows_same: the records and events are of a change that shows nothing otherwise.
    """

    active: ActivePolicy
    ledger: Ledger
    records: tuple[Record, ...] = ()
    events: tuple[Event, ...] = ()
    shows_same: bool = False


def active_policy(
    openings: Sequence[Opening], *, may_join: bool
) -> ActivePolicy:
    """The policy that the openings of a history come to.

    Args:
        openings: at least one, in order.
        may_join: whether the recall tools may be offered later where they are not yet.
    """
    newest = openings[-1][1]
    return ActivePolicy(
        newest,
        changed_at(openings),
        recall_from=recall_from(openings),
        waits=may_join and not newest.recall,
        cuts_from=cuts_from(openings),
        announced=announced(openings),
    )

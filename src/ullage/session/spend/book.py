"""The book of a budget: its calls in the order they were booked, each with the sum after it.

One reply is one call, whoever reports it how often. A fuller report of it, or the first one of a
call that was booked by our estimate, takes the place of what was booked before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from ullage.core.values.usage import Usage
from ullage.session.spend.calls import Call, Spent

_LOOKED_BACK = 256
"""Among so many of the newest calls a report is looked for that was booked before."""


class UsageReport(NamedTuple):
    """What was reported of one reply.

    Attributes:
        view: the number of the view that it answers.
        reply: the id the provider gave the reply, ``""`` if it has none.
        usage: what it came to.
        cost_usd: the list price of that; None if a price is not known.
        is_billed: whether anybody bills it.
    """

    view: int
    reply: str
    usage: Usage
    cost_usd: float | None = None
    is_billed: bool = True

    @property
    def named(self) -> tuple[object, ...]:
        """The keys of which another report of the same reply has at least one (`is_of`)."""
        return (
            (self.view, (self.reply, self.usage))
            if self.reply
            else (self.view,)
        )

    def as_call(self, agent: str, model: str, estimated_tokens: int) -> Call:
        """The call that was reported; see `Call`."""
        call = Call(
            agent=agent,
            model=model,
            usage=self.usage,
            cost_usd=self.cost_usd,
            is_billed=self.is_billed,
        )
        return replace(call, estimated_tokens=estimated_tokens)

    def is_full(self, report: UsageReport) -> bool:
        """Whether another report of the same reply tells no more than this one.

        Args:
            report: the other one.
        """
        return self.usage.total_tokens >= report.usage.total_tokens

    def is_of(self, report: UsageReport) -> bool:
        """Whether both reports are of one reply.

        Without an id, those of one view are. With one, a server may give all its replies the same
        id: then those of other views are of other replies, unless they came to the very same.

        Args:
            report: the other one.
        """
        return self.reply == report.reply and (
            self.view == report.view
            or (bool(self.reply) and self.usage == report.usage)
        )


class BookEntry(NamedTuple):
    """One call as it was booked, and the sum with it."""

    number: int
    call: Call | None  # none: spent elsewhere, as before the first of all
    spent: Spent
    account: int = 0  # whose it is; 0: nobody's
    view: int | None = None  # the number of the view it was for
    report: UsageReport | None = None  # none: it is our estimate
    replaces: int | None = None  # the number of the row whose place it takes


class Book:
    """The calls of a budget. Whoever uses it from several threads locks it.

    Args:
        spent: what was spent before the first of them.
    """

    def __init__(self, spent: Spent) -> None:
        self._rows: list[BookEntry] = [BookEntry(0, None, spent)]
        # the keys of every row, and perhaps of one whose booking was interrupted
        self._named: set[object] = set()

    @property
    def spent(self) -> Spent:
        """The sum of all calls so far."""
        return self._rows[-1].spent

    def calls(self, account: int | None = None) -> tuple[Call, ...]:
        """Every call that counts, in the order they were booked.

        Args:
            account: whose; None: everybody's.
        """
        rows = tuple(self._rows)
        replaced = {row.replaces for row in rows}
        return tuple(
            row.call
            for row in rows
            if row.call is not None
            and row.number not in replaced
            and account in (None, row.account)
        )

    def add(
        self,
        call: Call,
        account: int = 0,
        *,
        view: int | None = None,
        report: UsageReport | None = None,
        replaces: BookEntry | None = None,
    ) -> Call:
        """Book a call.

        Args:
            call: the call.
            account: the owner; 0: nobody's.
            view: the number of the view it was for.
            report: what was reported; None: the call is our estimate.
            replaces: the entry whose place it takes.

        Returns:
            The call.
        """
        spent = self.spent
        if replaces and replaces.call:
            spent -= replaces.call.spent
        spent += call.spent
        if report:
            self._named.update(report.named)
        elif view is not None:
            self._named.add(view)
        # one step: an interrupt finds the call booked whole, or not at all
        number = len(self._rows)
        replaced = replaces.number if replaces else None
        self._rows.append(
            BookEntry(number, call, spent, account, view, report, replaced)
        )
        return call

    def carry(self, spent: Spent) -> None:
        """Count what was spent elsewhere; it is not a call of this book.

        Args:
            spent: the sum.
        """
        self._rows.append(BookEntry(len(self._rows), None, self.spent + spent))

    def is_new(self, report: UsageReport) -> bool:
        """Whether nothing was booked that may be of the same reply."""
        return self._named.isdisjoint(report.named)

    def row_of(self, report: UsageReport) -> BookEntry | None:
        """The newest report of the same reply, if there is one."""
        return self._newest(
            report.named,
            lambda row: bool(row.report and row.report.is_of(report)),
        )

    def row_for(self, account: int, view: int) -> BookEntry | None:
        """The newest call of a view, reported or by our estimate, if there is one."""
        return self._newest(
            (view,), lambda row: (row.account, row.view) == (account, view)
        )

    def _newest(
        self, named: Iterable[object], is_wanted: Callable[[BookEntry], bool]
    ) -> BookEntry | None:
        if self._named.isdisjoint(named):
            return None
        newest = islice(reversed(self._rows), _LOOKED_BACK)
        return next(filter(is_wanted, newest), None)

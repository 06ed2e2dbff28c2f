"""Budgets of teams: what each tenant of a proxy may spend in a day or a month.

    budgets = [TeamBudget(name="research", tenants=["research"], usd=500)]
    ledger = TeamBudgets(budgets, store.book_spending)

Before a call, its process reserves in the store the most that it can come to, and hears what all
others have spent and reserved: one step. The reply replaces the reservation by what was reported.
A process that dies leaves its reservation, which lapses, or is given back by the one that takes its
place (`TeamBudgets.resume`). So

    spent ≤ allowance + the most that one call can come to, for each process

What is written are a process's own sums, in place of its earlier ones: done twice, it counts once.
Where the store cannot be asked, a process goes on by what it heard last and what it spends itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial
from os import urandom
from typing import Any, TypeAlias

from ullage.core.errors import StoreError
from ullage.core.locks import Lock
from ullage.core.tokens.catalog import ModelInfo
from ullage.core.values.events import Event
from ullage.core.values.spending import (
    SpendingKey,
    SpendingRow,
    SpendingSum,
)
from ullage.core.values.usage import Usage
from ullage.session.spend.allowance import NOTHING, Claim
from ullage.session.spend.cost import cost_of, cost_usd, price_of, worst_usd
from ullage.session.spend.teams.settings import CurrentPeriod, TeamBudget
from ullage.session.spend.teams.use import (
    BudgetUse,
    exceeded,
    sentence_of,
    share_of,
    unpriced,
    use_of,
    warning_of,
)

__all__ = ["BudgetUse", "TeamBudget", "TeamBudgets", "TeamCall"]

Book: TypeAlias = Callable[[Sequence[SpendingRow]], Any]
"""Writes rows and sums up those of others, as `SpendingStore` does; it may be awaited."""
_Acts: TypeAlias = Generator[Callable[[], Any], Any, Any]

LAPSE_S = 90
"""A reservation lapses after so many seconds, unless `TeamBudgets.renew` renews it."""
_LEFT_ALONE_S, _TIDIED_S = 5.0, 600.0
"""So long a store that failed is not asked again; so often periods that are over are dropped."""


class TeamCall:
    """One request of a client, as far as budgets are concerned. Made by `TeamBudgets.call`.

    Attributes:
        tenant: the owner.
        model: that is asked; empty until something was claimed for it.
        claims: what it has reserved, by what it counts towards.
        wire: the name of its wire; ``""`` if it is not known.
        use: of the budget that is nearest its end; None: none covers it.
        sentence: what the model is told at the end of the request; empty: nothing.
        event: what is to be logged, once in a period; None: nothing.
        is_claimed: whether anything was asked for it.
        is_over: whether it was settled.
    """

    def __init__(self, budgets: TeamBudgets, tenant: str) -> None:
        self.tenant, self.model, self._budgets = tenant, "", budgets
        self.wire = ""
        self.claims: dict[SpendingKey, Claim] = {}
        self.use: BudgetUse | None = None
        self.event: Event | None = None
        self.sentence = ""
        self.is_over = self.is_claimed = False

    def claim(
        self,
        model: str,
        prompt_tokens: int,
        output_tokens: int,
        so_far: Usage | None = None,
    ) -> _Acts:
        """Steps that reserve the most that the request can come to; see `TeamBudgets.claim`."""
        self.is_claimed = True
        return self._budgets.claim(
            self, model, prompt_tokens, output_tokens, so_far
        )

    def settle(self, usage: Usage | None, estimated_tokens: int = 0) -> None:
        """Put what it came to in the place of what it reserved; see `TeamBudgets.settle`."""
        self._budgets.settle(self, usage, estimated_tokens)


class _Account:
    """What this process knows of one budget, tenant and period.

    Attributes:
        spent: by this process.
        claims: of its calls under way.
        others: what other processes spent and reserved, as far as heard.
        version: of the newest row.
        has_warned: whether it was reported that the allowance is nearly spent.
    """

    def __init__(self, budget: TeamBudget, period: CurrentPeriod) -> None:
        self.budget, self.period = budget, period
        self.spent, self.claims = NOTHING, dict[int, Claim]()
        self.calls = self.estimated_calls = self.unpriced_calls = 0
        self.others = SpendingSum()
        self.version = 0
        self.has_warned = False

    def total(self) -> Claim:
        """What all processes have spent."""
        return self.spent + Claim(self.others.tokens, self.others.usd)

    def reserved(self, *, but: TeamCall | None = None) -> Claim:
        """What calls under way may come to, but for one of this process."""
        own = [claim for call, claim in self.claims.items() if call != id(but)]
        elsewhere = Claim(
            self.others.reserved_tokens, self.others.reserved_usd
        )
        return sum(own, elsewhere)

    def row(
        self, key: SpendingKey, writer: str, *, is_written: bool
    ) -> SpendingRow:
        reserved = sum(self.claims.values(), NOTHING)
        return SpendingRow(
            key=key,
            writer=writer,
            version=self.version if is_written else 0,
            tokens=self.spent.tokens,
            usd=self.spent.usd,
            calls=self.calls,
            estimated_calls=self.estimated_calls,
            unpriced_calls=self.unpriced_calls,
            reserved_tokens=reserved.tokens,
            reserved_usd=reserved.usd,
            lapse_s=LAPSE_S,
            limit_tokens=self.budget.tokens,
            limit_usd=self.budget.usd,
            resets_s=self.period.resets_s,
        )


class TeamBudgets:
    """The budgets of teams, for one process: any number of threads and event loops.

    `claim` and `flush` are generators of functions to be called, whose results they are sent; a
    result may have been awaited (`ullage.doors.host.drive`, `adrive`).

    Args:
        budgets: the budgets.
        book: `book_spending` of the store that all processes share.
        now_s: the time, in seconds since 1970.
        is_known: whether a tenant's spending may be written before an upstream took a request of
            theirs: anybody can make up a credential. None: everybody's.
        writer: names the process, 16 characters; None: a new name. No two that live may share one.

    Attributes:
        budgets: the same.
        store_errors: how often the store failed.
    """

    def __init__(
        self,
        budgets: Iterable[TeamBudget],
        book: Book,
        *,
        now_s: Callable[[], float] = time.time,
        is_known: Callable[[str], bool] | None = None,
        writer: str | None = None,
    ) -> None:
        self.budgets, self.store_errors = tuple(budgets), 0
        self._book, self._now_s = book, now_s
        self._is_known = is_known or _is_anybody
        self._writer = writer or urandom(8).hex()
        self._lock = Lock()
        self._accounts: dict[SpendingKey, _Account] = {}
        self._changed: dict[
            SpendingKey, None
        ] = {}  # the store has an older row
        self._asked_again_s = self._tidied_s = 0.0

    def call(self, tenant: str) -> TeamCall:
        """A request of a client's, for which nothing is reserved yet.

        Args:
            tenant: the owner.
        """
        return TeamCall(self, tenant)

    # ── before a call ────────────────────────────────────────────────────────────────

    def claim(
        self,
        call: TeamCall,
        model: str,
        prompt_tokens: int,
        output_tokens: int,
        so_far: Usage | None = None,
    ) -> _Acts:
        """Steps that reserve the most that a call can come to, in each budget that covers it.

        For a further round of the same call it is reserved again, beside what the rounds before
        came to, and never refused: the client has the beginning of its answer.

        Args:
            call: the client's request; it gets what is to be said of its budgets.
            model: that is asked.
            prompt_tokens: the upper estimate of the prompt.
            output_tokens: the room for the answer.
            so_far: what was reported of earlier rounds.

        Raises:
            TeamBudgetExceeded: a budget leaves no room.
        """
        is_begun = bool(call.claims)
        call.model = model
        covering = [
            budget
            for budget in self.budgets
            if budget.covers(call.tenant, model)
        ]
        if not covering:
            return
        price = price_of(model, call.wire)
        amount = _worst(price, prompt_tokens, output_tokens, so_far)
        for budget in covering:
            needs_price = budget.usd and budget.unpriced == "stop"
            if amount is None and needs_price and model and not is_begun:
                now = budget.period_at(self._now_s())
                call.use = use_of(budget, now, NOTHING)
                raise unpriced(budget, model)
        claim = amount or Claim(prompt_tokens + output_tokens)
        with self._lock:
            entries = [self._reserve(call, b, claim) for b in covering]
        if is_begun:
            return
        yield from self._booked(entries)
        with self._lock:
            self._decide(call, entries)

    def _reserve(
        self, call: TeamCall, budget: TeamBudget, claim: Claim
    ) -> tuple[SpendingKey, _Account]:
        """Note a reservation; under the lock."""
        period = budget.period_at(self._now_s())
        tenant = "" if budget.shared else call.tenant
        key = SpendingKey(budget.name, tenant, period.name)
        for earlier in (
            call.claims
        ):  # a round behind midnight counts where its call began
            if earlier.budget == budget.name:
                key = earlier
        account = self._accounts.get(key)
        if account is None:
            account = self._accounts[key] = _Account(budget, period)
        account.claims[id(call)] = claim
        self._change(key, account)
        call.claims = {**call.claims, key: claim}
        return key, account

    def _decide(
        self, call: TeamCall, entries: list[tuple[SpendingKey, _Account]]
    ) -> None:
        """Refuse a call, or note what is to be said of its budgets; under the lock.

        Raises:
            TeamBudgetExceeded: a budget leaves no room.
        """
        now_s, uses = self._now_s(), []
        for _, account in entries:
            budget, spent = account.budget, account.total()
            use = use_of(budget, account.period, spent)
            uses.append((use, budget))
            reserved = account.reserved(but=call)
            is_full = share_of(budget, spent + reserved) >= 1
            if budget.on_exceeded == "stop" and is_full:
                call.use = use
                self._release(call)
                raise exceeded(budget, account.period, spent, reserved, now_s)
            if use.state != "within" and not account.has_warned:
                account.has_warned = True
                call.event = Event(
                    kind="warned",
                    where="budget",
                    why=warning_of(budget, spent),
                )
        call.use, _ = max(uses, key=lambda one: one[0].share)
        sentences = [
            (use.state == "wrap_up", use.share, sentence)
            for use, budget in uses
            if (sentence := sentence_of(budget, use))
        ]
        call.sentence = max(sentences)[-1] if sentences else ""

    # ── after it ─────────────────────────────────────────────────────────────────────

    def settle(
        self, call: TeamCall, usage: Usage | None, estimated_tokens: int = 0
    ) -> None:
        """Put what a call came to in the place of its reservation; `flush` writes it.

        Args:
            call: the call; settled again, it counts once.
            usage: what its provider reported of all its rounds; None: nothing.
            estimated_tokens: what it counts where nothing was reported; 0: it cost nothing.
        """
        with self._lock:
            if call.is_over:
                return
            call.is_over = True
            is_reported = usage is not None and usage.is_count
            if usage is None or not usage.is_count:
                usage = Usage(fresh_tokens=estimated_tokens)
            if usage.total_tokens:
                usd = cost_of(usage, call.model, call.wire)
                for key in call.claims:
                    account = self._accounts[key]
                    account.spent += Claim(usage.total_tokens, usd or 0.0)
                    account.calls += 1
                    account.estimated_calls += not is_reported
                    account.unpriced_calls += usd is None
            self._release(call)

    def _release(self, call: TeamCall) -> None:
        """Give back what a call reserved; under the lock."""
        for key in call.claims:
            account = self._accounts[key]
            account.claims.pop(id(call), None)
            self._change(key, account)
            if not account.claims and not self._may_write(key, account):
                del self._accounts[key], self._changed[key]
        call.claims = {}

    def _change(self, key: SpendingKey, account: _Account) -> None:
        account.version += 1
        self._changed[key] = None

    def flush(self) -> _Acts:
        """Steps that write what has changed since it was last written."""
        with self._lock:
            entries = [(key, self._accounts[key]) for key in self._changed]
        yield from self._booked(entries)
        now_s = self._now_s()
        if now_s >= self._tidied_s:
            self._tidied_s = now_s + _TIDIED_S
            with self._lock:
                for key, account in list(self._accounts.items()):
                    is_over = account.period.resets_s <= now_s
                    if (
                        is_over
                        and not account.claims
                        and key not in self._changed
                    ):
                        del self._accounts[key]

    def renew(self) -> _Acts:
        """Steps that keep from lapsing what calls under way have reserved."""
        with self._lock:
            for key, account in self._accounts.items():
                if account.claims:
                    self._change(key, account)
        yield from self.flush()

    def resume(self, rows: Iterable[SpendingRow]) -> None:
        """Go on from what a process of the same name booked, which is dead; `flush` follows.

        Args:
            rows: of the present periods; those of others are left alone.
        """
        budgets = {budget.name: budget for budget in self.budgets}
        with self._lock:
            for row in rows:
                budget = budgets.get(row.key.budget)
                if row.writer != self._writer or budget is None:
                    continue
                period = CurrentPeriod(row.key.period, row.resets_s)
                account = _Account(budget, period)
                account.spent = Claim(row.tokens, row.usd)
                account.calls = row.calls
                account.estimated_calls = row.estimated_calls
                account.unpriced_calls = row.unpriced_calls
                account.version = row.version
                self._accounts[row.key] = account
                self._change(row.key, account)

    def _booked(self, entries: list[tuple[SpendingKey, _Account]]) -> _Acts:
        """Write the rows of accounts, and hear what others did; a store that fails is left."""
        if not entries or self._now_s() < self._asked_again_s:
            return
        with self._lock:
            rows = [
                account.row(
                    key, self._writer, is_written=self._may_write(key, account)
                )
                for key, account in sorted(entries, key=lambda one: one[0])
            ]
        try:
            sums = yield partial(self._book, rows)
        except StoreError:
            with self._lock:
                self.store_errors += 1
                self._asked_again_s = self._now_s() + _LEFT_ALONE_S
            return
        with self._lock:
            for row, others in zip(rows, sums, strict=True):
                account = self._accounts.get(row.key)
                if account is not None:
                    account.others = others
                    if row.version in (0, account.version):
                        self._changed.pop(row.key, None)

    def _may_write(self, key: SpendingKey, account: _Account) -> bool:
        """Whether a row may be kept: of somebody whom an upstream took before."""
        return (
            not key.tenant
            or account.spent != NOTHING
            or account.others != SpendingSum()
            or self._is_known(key.tenant)
        )

    # ── reading ──────────────────────────────────────────────────────────────────────

    def totals(self) -> list[SpendingRow]:
        """What all processes have spent in the present periods, as far as this one has heard."""
        now_s, rows = self._now_s(), []
        with self._lock:
            for key, account in sorted(self._accounts.items(), key=_key_of):
                total = account.total()
                if account.period.resets_s > now_s and total != NOTHING:
                    reserved = account.reserved()
                    rows.append(
                        SpendingRow(
                            key=key,
                            writer="",
                            tokens=total.tokens,
                            usd=total.usd,
                            reserved_tokens=reserved.tokens,
                            reserved_usd=reserved.usd,
                            limit_tokens=account.budget.tokens,
                            limit_usd=account.budget.usd,
                            resets_s=account.period.resets_s,
                        )
                    )
        return rows


def _key_of(item: tuple[SpendingKey, _Account]) -> SpendingKey:
    return item[0]


def _is_anybody(_: str) -> bool:
    return True


def _worst(
    price: ModelInfo,
    prompt_tokens: int,
    output_tokens: int,
    so_far: Usage | None,
) -> Claim | None:
    """The most that a call can come to, with its earlier rounds; None: no price is known."""
    usd = worst_usd(prompt_tokens, output_tokens, price)
    if usd is None:
        return None
    claim = Claim(prompt_tokens + output_tokens, usd)
    if so_far is None or not so_far.is_count:
        return claim
    return claim + Claim(so_far.total_tokens, cost_usd(so_far, price) or 0.0)

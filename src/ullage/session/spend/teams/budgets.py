"""The budgets of teams in one process: what is reserved, settled and written into the store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
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
from ullage.session.spend.teams.account import TeamAccount
from ullage.session.spend.teams.call import Acts, TeamCall
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

Book: TypeAlias = Callable[[Sequence[SpendingRow]], Any]
"""Writes rows and sums up those of others, as `SpendingStore` does; it may be awaited."""
Entry: TypeAlias = tuple[SpendingKey, TeamAccount]

_LEFT_ALONE_S = 5.0
"""So long a store that failed is not asked again."""
_TIDIED_S = 600.0
"""So often the accounts of periods that are over are dropped."""


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
        self.budgets = tuple(budgets)
        self.store_errors = 0
        self._book = book
        self._now_s = now_s
        self._is_known = is_known or _is_anybody
        self._writer = writer or urandom(8).hex()
        self._lock = Lock()
        self._accounts: dict[SpendingKey, TeamAccount] = {}
        # the keys of which the store has an older row, in the order of the changes
        self._changed: dict[SpendingKey, None] = {}
        self._asked_again_s = 0.0
        self._tidied_s = 0.0

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
    ) -> Acts:
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
            entries = [
                self._reserve(call, budget, claim) for budget in covering
            ]
        if is_begun:
            return
        yield from self._booked(entries)
        with self._lock:
            self._decide(call, entries)

    def _reserve(
        self, call: TeamCall, budget: TeamBudget, claim: Claim
    ) -> Entry:
        """Note a reservation; under the lock."""
        period = budget.period_at(self._now_s())
        tenant = "" if budget.shared else call.tenant
        key = SpendingKey(budget.name, tenant, period.name)
        # a round behind midnight counts where its call began
        for earlier in call.claims:
            if earlier.budget == budget.name:
                key = earlier
        account = self._accounts.get(key)
        if account is None:
            account = self._accounts[key] = TeamAccount(budget, period)
        account.claims[id(call)] = claim
        self._change(key, account)
        call.claims = {**call.claims, key: claim}
        return key, account

    def _decide(self, call: TeamCall, entries: list[Entry]) -> None:
        """Refuse a call, or note what is to be said of its budgets; under the lock.

        Raises:
            TeamBudgetExceeded: a budget leaves no room.
        """
        now_s = self._now_s()
        uses = list[tuple[BudgetUse, TeamBudget]]()
        for _, account in entries:
            budget = account.budget
            spent = account.total()
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
                warning = warning_of(budget, spent)
                call.event = Event(kind="warned", where="budget", why=warning)
        call.use, _ = max(uses, key=_share_in)
        call.sentence = _most_urgent(uses)

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
                    account.add(usage, usd, is_reported=is_reported)
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

    def _change(self, key: SpendingKey, account: TeamAccount) -> None:
        account.version += 1
        self._changed[key] = None

    def flush(self) -> Acts:
        """Steps that write what has changed since it was last written."""
        with self._lock:
            entries = [(key, self._accounts[key]) for key in self._changed]
        yield from self._booked(entries)
        now_s = self._now_s()
        if now_s >= self._tidied_s:
            self._tidied_s = now_s + _TIDIED_S
            self._drop_past(now_s)

    def _drop_past(self, now_s: float) -> None:
        """Forget the accounts of periods that are over, where nothing is left to be written."""
        with self._lock:
            for key, account in list(self._accounts.items()):
                is_over = account.period.resets_s <= now_s
                is_busy = account.claims or key in self._changed
                if is_over and not is_busy:
                    del self._accounts[key]

    def renew(self) -> Acts:
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
                account = TeamAccount(budget, period)
                account.resume(row)
                self._accounts[row.key] = account
                self._change(row.key, account)

    def _booked(self, entries: list[Entry]) -> Acts:
        """Write the rows of accounts, and hear what others did; a store that fails is left."""
        if not entries or self._now_s() < self._asked_again_s:
            return
        with self._lock:
            rows = [
                self._row(key, account)
                for key, account in sorted(entries, key=_key_of)
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
                if account is None:
                    continue
                account.others = others
                if row.version in (0, account.version):
                    self._changed.pop(row.key, None)

    def _row(self, key: SpendingKey, account: TeamAccount) -> SpendingRow:
        is_written = self._may_write(key, account)
        return account.row(key, self._writer, is_written=is_written)

    def _may_write(self, key: SpendingKey, account: TeamAccount) -> bool:
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
        now_s = self._now_s()
        rows = list[SpendingRow]()
        with self._lock:
            for key, account in sorted(self._accounts.items(), key=_key_of):
                is_over = account.period.resets_s <= now_s
                if not is_over and account.total() != NOTHING:
                    rows.append(account.total_row(key))
        return rows


def _key_of(entry: Entry) -> SpendingKey:
    key, _ = entry
    return key


def _share_in(pair: tuple[BudgetUse, TeamBudget]) -> float:
    use, _ = pair
    return use.share


def _most_urgent(uses: list[tuple[BudgetUse, TeamBudget]]) -> str:
    """What the model is told of several budgets: the sentence of the one nearest its end."""
    sentences = list[tuple[bool, float, str]]()
    for use, budget in uses:
        sentence = sentence_of(budget, use)
        if sentence:
            sentences.append((use.state == "wrap_up", use.share, sentence))
    if not sentences:
        return ""
    _, _, sentence = max(sentences)
    return sentence


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

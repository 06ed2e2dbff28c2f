"""Budgets: how many tokens, or how much money, any number of sessions may spend together.

    budget = Budget(tokens=850_000)
    lead, scout = Session(model, budget=budget), Session(model, budget=budget)

Before a call a session *claims* the most it can come to: the upper estimate of its prompt and
what is kept free for the answer. The claim is granted, in one step under a lock, while what is
spent and what others have claimed is below the allowance. `observe` replaces it by what the
provider reported, and `release` gives back that of a call that failed. A call of which nothing is
heard until its session's next `fit`, `close` or end counts as our estimate of its prompt.

So what is ever spent is at most the allowance, the worst case of one call, and one wrap-up for each
session; as long as none uses more than it claimed, and each session makes one call at a time.

Source: multi-stage §3 (Hard Budgeting, Token Auditing), DESIGN §7 and §10, failures F101 to F108.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Never
from weakref import WeakSet

from ullage.core.errors import BudgetExceeded, ConfigError
from ullage.core.locks import Lock
from ullage.core.tokens.catalog import advice
from ullage.core.values.carried import Arguments, Portable
from ullage.core.values.effects import Steps
from ullage.core.values.events import Event
from ullage.core.values.usage import Usage
from ullage.session.spend.account import AbandonedCall, Account, PendingCall
from ullage.session.spend.allowance import (
    NOTHING,
    WRAP_UP,
    Allowance,
    Claim,
    OnExceeded,
    Unit,
    check_amount,
)
from ullage.session.spend.book import Book, BookEntry, UsageReport
from ullage.session.spend.calls import By, Call, Spent, totals
from ullage.session.spend.cost import price_of, priced, worst_usd
from ullage.session.spend.environment import TOKEN_BUDGET, whole_number

WAIT_S = 600.0
"""As long as the vendors' SDKs wait for a reply before they give up a call."""


class Budget(Portable):
    """An allowance shared by any number of sessions, threads and event loops.

    Args:
        tokens: the most tokens in all: prompts and outputs, cached ones included. 0 for no
            limit; alone it makes a budget that only keeps account.
        usd: the most money, at list prices. 0 for no limit.
        warn_at: the share of the allowance at which an event warns, once. 0 never warns.
        on_exceeded: what the next `fit` of a session does when the allowance is used up.
            ``"wrap_up"``: it gives one last view, in which the model is asked to sum up and
            may call no tools; the `fit` after that raises. ``"stop"``: it raises. ``"warn"``:
            an event tells of it, once, and everything goes on.
        words: what the model is asked in the wrap-up.
        spent: what an earlier budget had spent, to go on from.
        wait_s: how long `Session.call`, `run_turn` and adapters wait for the calls of others, as
            long as none of them ends, where those have reserved what is left of the allowance.
            0: they raise at once, as `fit` does.

    Raises:
        ConfigError: an amount is no amount, nothing is given, or the settings contradict.

    It lives in one process, and may be asked from any thread; a fleet has
    `ullage.session.spend.shared`. A copy of it is itself. Pickled, it is another one, which goes on
    from what was spent.
    """

    def __init__(
        self,
        *,
        tokens: int | None = None,
        usd: float | None = None,
        warn_at: float = 0.8,
        on_exceeded: OnExceeded = "wrap_up",
        words: str = WRAP_UP,
        spent: Spent | None = None,
        wait_s: float = WAIT_S,
        **unknown: Never,
    ) -> None:
        for name in unknown:
            remedy = "Budgets are in tokens and usd; the settings are those of ullage.Budget."
            raise ConfigError(
                "budget", f"{name!r} is no unit and no setting", remedy
            )
        if tokens is None and usd is None:
            raise ConfigError(
                "budget", "nothing is given", "Give tokens, usd or both."
            )
        if tokens == 0 and usd == 0:
            raise ConfigError(
                "budget",
                "tokens=0 and usd=0 both mean no limit",
                "Limit one of them, or give tokens=0 alone to keep account only.",
            )
        self.allowance = Allowance(
            tokens=tokens if tokens is not None else 0,
            usd=usd if usd is not None else 0.0,
            warn_at=warn_at,
            on_exceeded=on_exceeded,
            words=words,
        )
        check_amount("wait_s", wait_s, whole=False)
        self.wait_s = wait_s
        self._lock = Lock()
        self._accounts: WeakSet[Account] = WeakSet()
        self._abandoned: deque[AbandonedCall] = deque()
        self._book = Book(spent or Spent())
        self._has_warned = False
        self._has_reported_exceeded = False

    def _made_with(self) -> Arguments:
        allowance = self.allowance
        named = {
            name: getattr(allowance, name)
            for name in allowance.__struct_fields__
        }
        if not allowance.is_limited:
            del named["usd"]
        return (), {**named, "wait_s": self.wait_s, "spent": self.spent}

    @classmethod
    def from_env(cls, name: str = TOKEN_BUDGET, **settings: Any) -> Budget:
        """A budget of as many tokens as an environment variable says; read now, once.

        Unset, empty or 0 means no limit (multi-stage, Configuration); thousands may be
        parted by commas or underscores, as in ``850,000``.

        Args:
            name: the variable.
            settings: the other settings of a budget.

        Raises:
            ConfigError: the variable holds no whole number; its value is not shown.
        """
        return cls(tokens=whole_number(name) or 0, **settings)

    # ── reading ──────────────────────────────────────────────────────────────────────

    @property
    def spent(self) -> Spent:
        """The sum of all calls so far."""
        with self._lock:
            self._book_abandoned()
            return self._book.spent

    @property
    def reserved(self) -> Claim:
        """What the calls under way may come to."""
        with self._lock:
            return self._claimed()

    @property
    def is_used_up(self) -> bool:
        """Whether what is spent has reached the allowance."""
        with self._lock:
            self._book_abandoned()
            return self.allowance.used_up(self._spent()) is not None

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every call of every session, in the order they were reported."""
        with self._lock:
            self._book_abandoned()
            return self._book.calls()

    def calls_of(self, account: Account) -> tuple[Call, ...]:
        """Every call of one session, in the order they were reported.

        Args:
            account: of the session.
        """
        return self._book.calls(account.number)

    def totals(self, by: By) -> dict[str, Spent]:
        """What was spent by each agent, or on each model.

        Args:
            by: ``"agent"`` or ``"model"``.

        Returns:
            The sums by name, in the order each first called.
        """
        return totals(self.calls, by)

    # ── what a session asks ──────────────────────────────────────────────────────────

    def join(self, agent: str, tell: Callable[[Event], None]) -> Account:
        """Open an account. What it has claimed is given back when nobody holds it any more.

        Args:
            agent: the name its calls are listed under.
            tell: takes the events that concern it.
        """
        account = Account(agent, tell, self._abandoned.append)
        with self._lock:
            self._accounts.add(account)
        return account

    def synced(self) -> Steps[None]:
        """Steps that exchange sums with other workers of a shared budget; here there are none."""
        yield from ()

    def begin(self, account: Account) -> None:
        """Prepare a new call: give back what the last one claimed and did not use.

        Args:
            account: who calls.

        Raises:
            BudgetExceeded: the account has had its wrap-up, and there is no room again.
        """
        with self._lock:
            self._end(account)
            if account.wrapped_up and (
                unit := self.allowance.used_up(self._spent())
            ):
                raise self._exceeded(account, unit)
            account.wrapped_up = False
            account.is_calling = True

    def claim(self, account: Account, ask: Callable[[], Claim]) -> bool:
        """Claim what a call may come to, if the allowance is not used up.

        Args:
            account: who calls.
            ask: works out the claim; asked only if something is limited.

        Returns:
            True if the call may be made, False if it must be the wrap-up.

        Raises:
            BudgetExceeded: it may not be made, and there is no wrap-up; or it may not be made
                now, since others have claimed what is left (`BudgetExceeded.can_retry`).
            ConfigError: money is limited and what was spent of it is not known.
        """
        if not self.allowance.is_limited:
            return True
        amount = ask()
        with self._lock:
            if self._book.spent.cost_usd is None and self.allowance.usd:
                raise _unpriced(
                    "a call was counted whose price is not known", ""
                )
            reached = self.allowance.used_up(
                self._spent() + self._claimed(but=account)
            )
            used_up = self.allowance.used_up(self._spent())
            if self.allowance.on_exceeded == "wrap_up" and used_up is not None:
                return False
            if self.allowance.on_exceeded != "warn" and reached is not None:
                raise self._exceeded(account, used_up or reached)
            account.claim = amount
            if used_up is not None and not self._has_reported_exceeded:
                self._has_reported_exceeded = True
                account.tell(
                    Event(
                        kind="warned",
                        where="budget",
                        why=self._describe(used_up, account),
                    )
                )
            return True

    def others(self, account: Account) -> Claim | None:
        """What others have reserved, where that alone prevents a call; else None.

        Args:
            account: who wants to call.
        """
        with self._lock:
            spent = self._spent()
            reserved = self._claimed(but=account)
            if self.allowance.on_exceeded == "warn" or self.allowance.used_up(
                spent
            ):
                return None
            return (
                reserved if self.allowance.used_up(spent + reserved) else None
            )

    def check(self, account: Account) -> None:
        """Check that a call may be made for which nothing can be claimed.

        Args:
            account: who calls.

        Raises:
            BudgetExceeded: the allowance is spent.
        """
        with self._lock:
            unit = self.allowance.used_up(self._spent())
            if unit is not None and self.allowance.on_exceeded != "warn":
                raise self._exceeded(account, unit)

    def claim_wrap_up(
        self, account: Account, amount: Claim, added_tokens: int
    ) -> None:
        """Claim the one wrap-up of an account, which may go over the allowance.

        Args:
            account: who calls.
            amount: the most that the call may come to.
            added_tokens: tokens of the request to sum up.
        """
        with self._lock:
            unit = self.allowance.used_up(self._spent())
            unit = unit or ("tokens" if self.allowance.tokens else "usd")
            account.claim = amount
            account.wrapped_up = True
            place = "after the last message"
            reason = self._describe(unit, account)
            account.tell(
                Event(
                    kind="wrapped_up",
                    where=place,
                    why=reason,
                    tokens_after=added_tokens,
                )
            )

    def send(
        self, account: Account, pending_call: Callable[[], PendingCall]
    ) -> None:
        """Note that a view is handed out; under a limit it counts if nobody reports it.

        Args:
            account: who calls.
            pending_call: works out the call by our estimate.
        """
        if self.allowance.is_limited:
            account.pending = pending_call()

    def is_new(self, report: UsageReport) -> bool:
        """Whether certainly nobody has reported this reply.

        Args:
            report: of the reply.
        """
        with self._lock:
            return self._book.is_new(report)

    def knows(self, report: UsageReport, but: Account) -> bool:
        """Whether another account has reported this reply.

        Args:
            report: of the reply.
            but: the account that asks.
        """
        with self._lock:
            row = self._book.row_of(report)
        return row is not None and row.account != but.number

    def settle(
        self,
        account: Account,
        report: UsageReport,
        model: str,
        estimated_tokens: int,
    ) -> None:
        """Book a call that a provider reported, and give back what it claimed.

        The same report again, after an interrupt, is booked once; a fuller one of the same reply
        takes its place, as does the first one that of our estimate.

        Args:
            account: who called.
            report: what was reported.
            model: the model that was called.
            estimated_tokens: our estimate of its prompt.
        """
        with self._lock:
            # a late report of an earlier view must not free the claim of the newest one
            if account.pending is None or account.pending.view == report.view:
                self._free(account)
            row = self._book.row_of(report)
            if row is not None and row.report is not None:
                if row.report.is_full(report):
                    return
            else:
                row = self._estimate(account, report.view)
            call = report.as_call(account.agent, model, estimated_tokens)
            self._book.add(
                call,
                account.number,
                view=report.view,
                report=report,
                replaces=row,
            )
            self._warn(account)

    def leave_unreported(self, account: Account, call: PendingCall) -> None:
        """Note a reply without usage. If no report follows, our estimate of the prompt is spent.

        Args:
            account: who called.
            call: the call by our estimate.
        """
        with self._lock:
            is_newest = (
                account.pending is None or account.pending.view <= call.view
            )
            is_booked = (
                self._book.row_for(account.number, call.view) is not None
            )
            if account.is_calling and is_newest and not is_booked:
                account.pending = call
                self._claim_estimate(account, call)

    def end(self, account: Account) -> None:
        """Give back the claim of an account that makes no more calls for now.

        Args:
            account: the account.
        """
        with self._lock:
            self._end(account)

    def release(self, account: Account) -> None:
        """Give back the claim of a call that was not made; a wrap-up may be had again.

        Args:
            account: the account.
        """
        with self._lock:
            # a wrap-up whose call failed was not had
            if account.is_calling:
                account.wrapped_up = False
            self._free(account)

    def charge(
        self,
        usage: Usage,
        model: str,
        *,
        agent: str = "",
        reported: bool = True,
        wire: str = "",
    ) -> Call:
        """Count a call that no session made, such as a summary by a model of your own.

        Args:
            usage: what the provider reported.
            model: the model that was called.
            agent: the name it is listed under.
            reported: False if the usage is an estimate.
            wire: the name of its wire; ``""``: the price is the model's.

        Raises:
            ConfigError: a count is negative.
        """
        if not usage.is_count:
            raise ConfigError(
                "usage",
                "a count is negative",
                "Give what the provider reported.",
            )
        with self._lock:
            return self._book.add(
                priced(agent, model, usage, reported=reported, wire=wire)
            )

    def carry(self, spent: Spent) -> None:
        """Count what another process has spent of the same allowance.

        Args:
            spent: the sum.
        """
        with self._lock:
            self._book.carry(spent)

    def most(
        self,
        prompt_tokens: int,
        output_tokens: int,
        model: str,
        wire: str = "",
    ) -> Claim:
        """The most that a call can come to.

        Args:
            prompt_tokens: the upper estimate of its prompt.
            output_tokens: what is kept free for the answer.
            model: the model that is called.
            wire: the name of its wire; ``""``: the price is the model's.

        Raises:
            ConfigError: money is limited and the model's prices are not known.
        """
        tokens = prompt_tokens + output_tokens
        if not self.allowance.usd:
            return Claim(tokens)
        price = price_of(model, wire)
        usd = worst_usd(prompt_tokens, output_tokens, price)
        if usd is None:
            raise _unpriced(f"no price is known for {model!r}", model)
        return Claim(tokens, usd)

    # ── under the lock ───────────────────────────────────────────────────────────────

    def _book_abandoned(self) -> None:
        """Book, by our estimate, the unreported calls of sessions that are gone."""
        while self._abandoned:
            agent, account, pending_call = self._abandoned.popleft()
            self._book.add(
                pending_call.as_call(agent), account, view=pending_call.view
            )

    def _claimed(self, but: Account | None = None) -> Claim:
        claims = (
            account.claim for account in self._accounts if account is not but
        )
        return sum(claims, NOTHING)

    def _spent(self) -> Claim:
        spent = self._book.spent
        return Claim(spent.tokens, spent.cost_usd or 0.0)

    def _free(self, account: Account) -> None:
        account.claim = NOTHING
        account.is_calling = False
        account.pending = None

    def _claim_estimate(
        self, account: Account, pending_call: PendingCall
    ) -> None:
        """Lower the claim of a finished call from the most it could come to to our estimate."""
        if account.claim is NOTHING:
            return
        call = pending_call.as_call(account.agent)
        usd = account.claim.usd if call.cost_usd is None else call.cost_usd
        account.claim = Claim(call.usage.total_tokens, usd)

    def _end(self, account: Account) -> None:
        self._book_abandoned()
        pending_call = account.pending
        if pending_call is not None:
            estimate = self._estimate(account, pending_call.view)
            call = pending_call.as_call(account.agent)
            self._book.add(
                call, account.number, view=pending_call.view, replaces=estimate
            )
            account.pending = None
            tokens = call.usage.total_tokens
            reason = f"nobody reported the last call; {tokens:,} tokens are counted for it, "
            reason += "our estimate"
            account.tell(
                Event(
                    kind="unreported",
                    where="call",
                    why=reason,
                    tokens_after=tokens,
                )
            )
            self._warn(account)
        self._free(account)

    def _estimate(self, account: Account, view: int) -> BookEntry | None:
        """Our estimate for a view, where it is booked and nothing was reported."""
        row = self._book.row_for(account.number, view)
        return row if row is not None and row.report is None else None

    def _warn(self, account: Account) -> None:
        share = self.allowance.warn_at
        unit = self.allowance.used_up(self._spent(), share) if share else None
        if unit is not None and not self._has_warned:
            self._has_warned = True
            account.tell(
                Event(
                    kind="warned",
                    where="budget",
                    why=self._describe(unit, account),
                )
            )

    def _figures(self, unit: Unit, account: Account) -> tuple[float, ...]:
        """The allowance in a unit, what of it is spent, and what others have claimed."""
        amounts = (self.allowance, self._spent(), self._claimed(but=account))
        return tuple(getattr(amount, unit) for amount in amounts)

    def _describe(self, unit: Unit, account: Account) -> str:
        """How much of the allowance is gone, in words."""
        allowed, spent, claimed = self._figures(unit, account)
        share = "the budget is spent"
        if spent < allowed:
            share = "the budget is nearly spent"
        figures = f"{spent:,.12g} of {allowed:,.12g} {unit}"
        if not claimed:
            return f"{share}: {figures}"
        return f"{share}: {figures}, and {claimed:,.12g} are claimed by others"

    def _exceeded(self, account: Account, unit: Unit) -> BudgetExceeded:
        return BudgetExceeded(unit, *self._figures(unit, account))


def _unpriced(problem: str, model: str) -> ConfigError:
    remedy = f"Limit tokens instead of usd, or use a model whose prices are known{advice(model)}."
    return ConfigError("usd", problem, remedy)

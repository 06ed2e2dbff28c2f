"""A budget under any steps of several accounts, in any order: nothing overspent, nothing lost.

Each step is one that a budget takes under its lock, so any order of them is what threads may do.
"""

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec import Struct

from ullage import Budget, BudgetExceeded, Spent, Usage
from ullage.session.spend.account import Account, PendingCall
from ullage.session.spend.allowance import Claim
from ullage.session.spend.book import UsageReport

MODEL = "gpt-4.1"
WORST_TOKENS = 500
"""The most that any call claims, or comes to."""

accounts = st.integers(0, 2)
tokens = st.integers(1, WORST_TOKENS)


class Caller(Struct):
    """What one account has done, as the model has it.

    Attributes:
        account: the budget's.
        claimed: tokens it holds, 0 for none.
        begun: a call is to be made, and nothing is claimed for it yet.
        sent: the number of the view it was given and our estimate of it, or None.
        reported: of each view so far, the tokens that count for it.
        wrapped_up: it has had its wrap-up.
    """

    account: Account
    claimed: int = 0
    begun: bool = False
    sent: tuple[int, int] | None = None
    reported: dict[int, int] = {}
    wrapped_up: bool = False


class OneBudget(RuleBasedStateMachine):
    """Subagents, their parent and a summariser at one budget."""

    on_exceeded = "wrap_up"

    @initialize(
        allowed=st.sampled_from((600, 2_000, 5_000)),
        before=st.sampled_from((0, 100)),
    )
    def begin(self, allowed, before):
        self.allowed, self.view, self.charged = allowed, 0, before
        self.gone, self.wrap_ups = 0, 0
        self.budget = Budget(
            tokens=allowed,
            on_exceeded=self.on_exceeded,
            spent=Spent(usage=Usage(fresh_tokens=before)),
        )
        self.callers = [self.joined() for _ in range(3)]

    def joined(self):
        return Caller(
            self.budget.join("agent", lambda event: None), reported={}
        )

    # ── the model ────────────────────────────────────────────────────────────────────

    @property
    def spent(self):
        counted = sum(sum(caller.reported.values()) for caller in self.callers)
        return self.charged + self.gone + counted

    def others(self, caller):
        return sum(
            other.claimed for other in self.callers if other is not caller
        )

    def unreported(self, caller):
        """A call of which nothing was heard counts as our estimate."""
        if caller.sent is not None:
            view, estimate = caller.sent
            caller.reported.setdefault(view, estimate)
        caller.sent, caller.claimed = None, 0

    # ── a call, step by step ─────────────────────────────────────────────────────────

    @rule(who=accounts)
    def a_call_is_to_be_made(self, who):
        caller = self.callers[who]
        self.unreported(caller)
        if caller.wrapped_up and self.spent >= self.allowed:
            with pytest.raises(BudgetExceeded) as caught:
                self.budget.begin(caller.account)
            assert caught.value.spent == self.spent
            return
        self.budget.begin(caller.account)
        caller.begun, caller.wrapped_up = True, False

    @precondition(lambda self: any(caller.begun for caller in self.callers))
    @rule(who=accounts, asked=tokens)
    def it_is_claimed(self, who, asked):
        caller = self.callers[who]
        if not caller.begun:
            return
        others = self.others(caller)
        claim = lambda: self.budget.claim(caller.account, lambda: Claim(asked))  # noqa: E731
        if self.spent >= self.allowed and self.on_exceeded == "wrap_up":
            assert not claim()
            self.budget.claim_wrap_up(caller.account, Claim(asked), 10)
            caller.wrapped_up, self.wrap_ups = True, self.wrap_ups + 1
        elif (
            self.on_exceeded != "warn" and self.spent + others >= self.allowed
        ):
            with pytest.raises(BudgetExceeded) as caught:
                claim()
            assert caught.value.can_retry == (self.spent < self.allowed)
            caller.begun = False
            return
        else:
            assert claim()
        caller.begun, caller.claimed = False, asked
        self.view += 1
        caller.sent = (self.view, asked // 2 + 1)
        self.budget.send(
            caller.account,
            lambda: PendingCall(self.view, MODEL, asked // 2 + 1),
        )

    @rule(
        who=accounts,
        share=st.sampled_from((0.1, 0.5, 1.0)),
        again=st.booleans(),
    )
    def it_is_reported(self, who, share, again):
        caller = self.callers[who]
        if caller.sent is None:
            return
        used, (view, estimate) = (
            max(1, int(caller.claimed * share)),
            caller.sent,
        )
        report = UsageReport(view, f"reply {view}", Usage(fresh_tokens=used))
        for _ in range(1 + again):
            self.budget.settle(caller.account, report, MODEL, estimate)
        caller.reported[view], caller.sent, caller.claimed = used, None, 0

    @rule(who=accounts, more=st.integers(0, 40))
    def its_newest_reply_is_reported_again(self, who, more):
        """A fuller report of a reply takes the place of the first; a stream ends so."""
        caller = self.callers[who]
        if caller.sent is not None or not caller.reported:
            return
        view = max(caller.reported)
        used = caller.reported[view] + more
        report = UsageReport(view, f"reply {view}", Usage(fresh_tokens=used))
        if caller.account.pending is None:
            self.budget.settle(caller.account, report, MODEL, 1)
            caller.reported[view], caller.claimed = used, 0

    @rule(who=accounts)
    def it_failed(self, who):
        caller = self.callers[who]
        self.budget.release(caller.account)
        if caller.sent is not None or caller.begun:
            caller.wrapped_up = False
        caller.sent, caller.claimed, caller.begun = None, 0, False

    @rule(who=accounts)
    def the_account_ends(self, who):
        caller = self.callers[who]
        self.unreported(caller)
        caller.begun = False
        self.budget.end(caller.account)

    @rule(who=accounts)
    def the_session_is_gone(self, who):
        """And nobody said goodbye."""
        caller = self.callers[who]
        self.unreported(caller)
        self.gone += sum(caller.reported.values())
        del caller.account
        self.callers[who] = self.joined()

    @rule(used=tokens)
    def somebody_else_is_charged(self, used):
        self.budget.charge(Usage(fresh_tokens=used), MODEL)
        self.charged += used

    # ── what holds ───────────────────────────────────────────────────────────────────

    @invariant()
    def the_account_is_right(self):
        if hasattr(self, "budget"):
            assert self.budget.spent.tokens == self.spent
            assert self.budget.reserved.tokens == sum(
                c.claimed for c in self.callers
            )
            assert self.budget.is_used_up == (self.spent >= self.allowed)
            calls = self.budget.calls
            assert sum(call.usage.total_tokens for call in calls) <= self.spent

    @invariant()
    def nothing_is_overspent(self):
        """By more than the worst case of one call, and a wrap-up for each account."""
        if hasattr(self, "budget") and self.on_exceeded != "warn":
            by_calls = (
                self.spent - self.charged + min(self.charged, self.allowed)
            )
            most = self.allowed + WORST_TOKENS * (1 + self.wrap_ups)
            assert by_calls <= most


class Stops(OneBudget):
    on_exceeded = "stop"


class Warns(OneBudget):
    on_exceeded = "warn"


SETTINGS = settings(max_examples=30, stateful_step_count=40, deadline=None)


@pytest.mark.parametrize(
    "machine", [OneBudget, Stops, Warns], ids=lambda one: one.on_exceeded
)
def test_any_steps_of_any_accounts(machine):
    run_state_machine_as_test(machine, settings=SETTINGS)


# ── what is wrong is noticed ─────────────────────────────────────────────────────────────

MUTANTS = {
    "claims of others do not count": ("_claimed", lambda *_, **__: Claim()),
    "what nobody reports is free": ("send", lambda *_: None),
    "a claim is kept when the call is reported": ("_free", lambda *_: None),
    "an estimate stays beside its report": ("_estimate", lambda *_: None),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_budget_that_does_not_keep_account_is_found_out(monkeypatch, name):
    attribute, wrong = MUTANTS[name]
    monkeypatch.setattr(Budget, attribute, wrong)
    only = settings(
        SETTINGS, max_examples=1_000, phases=[Phase.generate], derandomize=True
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(OneBudget, settings=only)

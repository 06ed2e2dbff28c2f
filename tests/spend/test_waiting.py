"""A call that only others' reservations stand in the way of waits for them."""

import asyncio
import threading

import pytest

from tests.loop.replies import asking, reply, request
from tests.loop.test_turn import AsyncScripted, new_session
from ullage import AsyncSession, Budget, BudgetExceeded
from ullage.core.errors import ConfigError
from ullage.doors.loop import arun_turn
from ullage.session.spend import waiting
from ullage.session.spend.allowance import Claim
from ullage.session.spend.waiting import pauses

FORMAT = "openai-chat"
ASKED = {**request(FORMAT, asking(FORMAT)), "max_tokens": 1_000}


class Slow(AsyncScripted):
    """Answers when it is told to; counts how many calls are under way."""

    def __init__(self):
        super().__init__(FORMAT, lambda _, n: reply(FORMAT, "So.", number=n))
        self.under_way, self.most = 0, 0

    async def __call__(self, **view):
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        for _ in range(20):
            await asyncio.sleep(0)
        self.under_way -= 1
        return self.next_reply(view)


def test_parallel_calls_that_reserve_more_than_there_is_are_made_one_after_another():
    """Each may come to a thousand tokens, and comes to 420."""
    budget, client = Budget(tokens=9_000), Slow()

    async def main():
        sessions = [
            new_session(FORMAT, AsyncSession, budget=budget) for _ in range(12)
        ]
        return await asyncio.gather(
            *(session.call(client, **ASKED) for session in sessions)
        )

    assert len(asyncio.run(main())) == 12
    assert budget.spent.calls == 12
    assert client.most < 12, "they would have been refused"
    assert budget.reserved.tokens == 0


def test_turns_of_the_loop_wait_as_well():
    budget, client = Budget(tokens=9_000), Slow()

    async def main():
        asked = [{**ASKED, "messages": asking(FORMAT)} for _ in range(12)]
        sessions = [
            new_session(FORMAT, AsyncSession, budget=budget) for _ in asked
        ]
        turns = (
            arun_turn(client, *pair)
            for pair in zip(sessions, asked, strict=True)
        )
        return await asyncio.gather(*turns)

    assert {outcome.text for outcome in asyncio.run(main())} == {"So."}


def test_a_thread_waits_for_a_thread():
    budget = Budget(tokens=2_000)
    first, second = (new_session(FORMAT, budget=budget) for _ in range(2))
    view, said = first.fit({**ASKED, "max_tokens": 3_000}), []
    other = threading.Thread(
        target=lambda: said.append(
            second.call(lambda **_: reply(FORMAT, "So.", number=2), **ASKED)
        )
    )
    with pytest.raises(BudgetExceeded) as raised:
        second.fit(ASKED)
    assert raised.value.can_retry
    other.start()
    assert not said
    view.observe(reply(FORMAT, "So."))
    other.join(60)
    assert said
    assert budget.spent.calls == 2


def test_a_budget_that_is_spent_is_not_waited_for():
    budget = Budget(tokens=100, on_exceeded="stop")
    session = new_session(FORMAT, budget=budget)
    session.call(lambda **_: reply(FORMAT, "So."), **ASKED)
    with pytest.raises(BudgetExceeded) as raised:
        session.call(lambda **_: reply(FORMAT, "So."), **ASKED)
    assert not raised.value.can_retry


def test_a_reply_without_usage_keeps_nobody_waiting():
    """Its call is over. What it could have come to at most is given back, our estimate is not."""
    budget = Budget(tokens=3_000)
    first, second = (new_session(FORMAT, budget=budget) for _ in range(2))
    bare = {
        key: value
        for key, value in reply(FORMAT, "So.").items()
        if key != "usage"
    }
    first.call(lambda **_: bare, **{**ASKED, "max_tokens": 4_000})
    assert 0 < budget.reserved.tokens < 1_000
    second.call(lambda **_: reply(FORMAT, "So."), **ASKED)
    assert budget.spent.calls == 1


# ── how long ─────────────────────────────────────────────────────────────────────────────


class Clock:
    """Seconds that pass only as they are waited for."""

    def __init__(self, monkeypatch):
        self.now_s = 0.0
        monkeypatch.setattr(waiting.time, "monotonic", lambda: self.now_s)


def waited(budget, session, clock, then=lambda now_s: None):
    """How long a session waits, and what comes of it."""
    steps = pauses(budget, session._account)
    try:
        while True:
            clock.now_s += next(steps)
            then(clock.now_s)
    except StopIteration as stop:
        return clock.now_s, stop.value


def test_it_gives_up_when_nothing_ends_for_so_long(monkeypatch):
    clock, budget = Clock(monkeypatch), Budget(tokens=2_000, wait_s=30)
    first, second = (new_session(FORMAT, budget=budget) for _ in range(2))
    first.fit({**ASKED, "max_tokens": 3_000})
    passed_s, may_try = waited(budget, second, clock)
    assert not may_try
    assert passed_s == pytest.approx(30)


def test_each_call_that_ends_gives_it_more_time(monkeypatch):
    clock, budget = Clock(monkeypatch), Budget(tokens=2_000, wait_s=30)
    *others, last = (new_session(FORMAT, budget=budget) for _ in range(4))
    for other in others:
        budget.claim(other._account, lambda: Claim(700))

    def then(now_s):
        if others and now_s > 20 * (4 - len(others)):
            others.pop().release()

    passed_s, may_try = waited(budget, last, clock, then)
    assert may_try
    assert 20 < passed_s < 31, "one of three was enough"


def test_it_need_not_wait_at_all():
    budget = Budget(tokens=2_000, wait_s=0)
    first, second = (new_session(FORMAT, budget=budget) for _ in range(2))
    first.fit({**ASKED, "max_tokens": 3_000})
    with pytest.raises(BudgetExceeded) as raised:
        second.call(lambda **_: reply(FORMAT, "So."), **ASKED)
    assert raised.value.can_retry


@pytest.mark.parametrize("wait_s", [-1, float("nan"), "1", True])
def test_what_is_no_time_is_refused(wait_s):
    with pytest.raises(ConfigError, match="wait_s"):
        Budget(tokens=1, wait_s=wait_s)

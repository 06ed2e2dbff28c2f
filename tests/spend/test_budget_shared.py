"""Many agents, one budget: what is spent stays within the bound, whoever comes first.

The bound: the allowance, and the most one call can come to, and one wrap-up for each session.
The provider here uses all that a call may use, and no call ends before all have begun.
"""

import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.spending import (
    greedy_reply,
    is_wrap_up,
    most_of,
    new_async_session,
    new_session,
    request,
)
from ullage import Budget, BudgetExceeded
from ullage.session.spend.allowance import Claim

AGENTS, TASKS, LOOPS, ROUNDS = 50, 200, 4, 4


@pytest.fixture(scope="module")
def most():
    """The most tokens that one call of these agents can come to, the wrap-up's words too."""
    session = new_session(budget=Budget(tokens=1))
    session.fit(request())
    session.observe(greedy_reply(session))
    session.fit(request())
    return most_of(session)


def agent(budget, barrier, round_done):
    """One agent in a thread: every round, all call first, and then all are answered."""
    kinds = []
    with new_session(budget=budget) as session:
        for _ in range(ROUNDS):
            try:
                kinds.append(
                    "wrap-up" if is_wrap_up(session.fit(request())) else "call"
                )
            except BudgetExceeded:
                kinds.append("refused")
            barrier.wait()
            if kinds[-1] != "refused":
                session.observe(greedy_reply(session))
            round_done.wait()
    return kinds


def played_in_threads(budget):
    barriers = threading.Barrier(AGENTS), threading.Barrier(AGENTS)
    with ThreadPoolExecutor(AGENTS) as pool:
        return list(
            pool.map(lambda _: agent(budget, *barriers), range(AGENTS))
        )


@pytest.mark.parametrize("mode", ["wrap_up", "stop"])
def test_threads_do_not_overspend_together(mode, most):
    budget = Budget(tokens=20 * most, on_exceeded=mode)
    played = played_in_threads(budget)
    wrap_ups = [kinds.count("wrap-up") for kinds in played]
    calls = sum(kinds.count("call") for kinds in played)
    assert budget.spent.calls == calls + sum(wrap_ups)
    assert calls * most >= budget.allowance.tokens * 0.9
    assert (
        budget.spent.tokens
        <= budget.allowance.tokens + (1 + sum(wrap_ups)) * most
    )
    assert wrap_ups == [1 if mode == "wrap_up" else 0] * AGENTS
    assert budget.reserved == Claim()


@pytest.fixture
def restless():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def was_granted(budget, account):
    try:
        return budget.claim(account, lambda: Claim(1))
    except BudgetExceeded:
        return False


def test_a_claim_is_checked_and_made_in_one_step(restless):
    for _ in range(20):
        budget, ready = (
            Budget(tokens=100, on_exceeded="wrap_up"),
            threading.Barrier(8),
        )

        def claim(accounts, budget=budget, ready=ready):
            ready.wait()
            return [was_granted(budget, account) for account in accounts]

        accounts = [
            [budget.join("", print) for _ in range(25)] for _ in range(8)
        ]
        with ThreadPoolExecutor(8) as pool:
            granted = [
                each for some in pool.map(claim, accounts) for each in some
            ]
        assert granted.count(True) == budget.reserved.tokens == 100


async def task(budget, together):
    session = new_async_session(budget=budget)
    try:
        await session.fit(request())
    except BudgetExceeded:
        session = None
    for _ in range(
        2
    ):  # all tasks of this loop have called, and then those of all loops
        await together.wait()
    if session is None:
        return "refused"
    await session.observe(greedy_reply(session))
    await session.close()
    return "call"


def loop_of(budget, tasks, met):
    """An event loop of its own; its tasks are answered once those of all loops have called."""

    async def played():
        together = asyncio.Barrier(tasks + 1)
        running = [
            asyncio.create_task(task(budget, together)) for _ in range(tasks)
        ]
        await together.wait()
        await asyncio.to_thread(met.wait)
        await together.wait()
        return await asyncio.gather(*running)

    return asyncio.run(played())


@pytest.mark.parametrize("loops", [1, LOOPS])
def test_tasks_of_one_or_several_loops_do_not_overspend_together(loops, most):
    budget = Budget(tokens=20 * most, on_exceeded="stop")
    met = threading.Barrier(loops)
    with ThreadPoolExecutor(loops) as pool:
        ends = list(
            pool.map(
                lambda _: loop_of(budget, TASKS // loops, met), range(loops)
            )
        )
    calls = sum(kinds.count("call") for kinds in ends)
    assert calls == budget.spent.calls
    assert 20 <= calls <= 22
    assert budget.spent.tokens <= budget.allowance.tokens + most
    assert budget.reserved == Claim()

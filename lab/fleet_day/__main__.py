"""The day of a fleet, in short: ``python -m lab.fleet_day --users 200 --seconds 120``.

Users of four teams work through two proxies of two workers each, on one store, before a scripted
provider. Workers are killed throughout, now and then a whole proxy. Then the proxies are upgraded
one after the other, and some quiet work follows, of which everything is counted. At the end the
exit code says whether

- each turn was answered, or stopped by a budget: nothing was lost, and what had left a window was
  opened again from any worker;
- nobody was sent another user's text, and the provider saw none in another's request;
- the budgets held, to a call of each worker and each call whose worker was killed;
- the page, the metrics and ``ullage report`` say of the quiet work what the provider reported.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import click

from lab.fleet_day.accounts import (
    Accounts,
    DayOutcome,
    account_problems,
    budget_problems,
    looked_at,
    reported,
)
from lab.fleet_day.provider import ScriptedProvider
from lab.fleet_day.proxies import Fleet, settings_of
from lab.fleet_day.tally import (
    PROXIES,
    TEAMS,
    TIGHT_TOKENS,
    WORKERS,
    DayTally,
    TeamSums,
    team_of,
)
from lab.fleet_day.users import FleetUser
from tests.stores.postgres.server import Server, is_there


class Pace(NamedTuple):
    """What is killed, and when.

    Attributes:
        deeds: how often something is.
        turns: how many are answered from one time to the next at least.
        pause_s: how long it takes at least.
    """

    deeds: int
    turns: int = 0
    pause_s: float = 0.0


async def _kill(
    fleet: Fleet, tally: DayTally, pace: Pace, over: asyncio.Event
) -> None:
    """Kill a worker again and again; a whole proxy each sixth time; upgrade one in between."""
    rng = random.Random(7)
    for deed in range(1, pace.deeds + 1):
        answered = tally.answered
        await asyncio.sleep(pace.pause_s)
        await _until(partial(_has, tally, answered + pace.turns))
        number = rng.randrange(PROXIES)
        if deed % 6 == 0:
            # what a crashed proxy reserved lapses later, and would hold the tight team up
            await _until(lambda: bool(tally.stopped.get("tight")))
            tally.kills += WORKERS
            await asyncio.to_thread(fleet.crash, number)
        elif deed % 6 == 3:  # as an upgrade does: replies under way end
            await asyncio.to_thread(fleet.stop, number)
            await asyncio.to_thread(fleet.start, number)
        else:
            tally.kills += 1
            fleet.kill(number, rng)
    over.set()


async def _until(holds: Callable[[], bool]) -> None:
    for _ in range(10_000):
        if holds():
            return
        await asyncio.sleep(0.05)


def _has(tally: DayTally, answered: int) -> bool:
    return tally.answered >= answered


async def _started(fleet: Fleet) -> None:
    starts = (asyncio.to_thread(fleet.start, n) for n in range(PROXIES))
    await asyncio.gather(*starts)


async def _stopped(fleet: Fleet) -> list[str]:
    """Stop all proxies; what is wrong with how they ended."""
    stops = (asyncio.to_thread(fleet.stop, n) for n in range(PROXIES))
    codes = await asyncio.gather(*stops)
    return [f"a proxy ended with {code}" for code in codes if code]


async def _day(users: int, pace: Pace, store: str, folder: Path) -> DayOutcome:
    tally = DayTally()
    provider = ScriptedProvider(tally)
    await provider.start()
    limit = TIGHT_TOKENS * max(users // len(TEAMS), 1)
    config = folder / "proxy.toml"
    config.write_text(settings_of(users, limit))
    fleet = Fleet(provider.url, store, config)
    await _started(fleet)
    timeout = aiohttp.ClientTimeout(total=60)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(
        timeout=timeout, connector=connector
    ) as http:
        over = asyncio.Event()
        thinks_s = max(users / 60, 0.1)
        everybody = [FleetUser(n, fleet, tally, http) for n in range(users)]
        await asyncio.gather(
            _kill(fleet, tally, pace, over),
            *(user.work(over, thinks_s) for user in everybody),
        )
        problems = await _stopped(fleet)  # so that all receipts are written
        before = await asyncio.to_thread(reported, store)
        earlier = {t: TeamSums(**_fields(s)) for t, s in tally.teams.items()}
        await _started(fleet)
        asked, broken = tally.requests, sum(tally.broken.values())
        quiet = [u for u in everybody if team_of(u.number) != "tight"]
        await asyncio.gather(*(u.converse(10**6, 4, 0.01) for u in quiet[:40]))
        page = await looked_at(http, fleet)
        requests = tally.requests - asked
        problems += await _stopped(fleet)
    after = await asyncio.to_thread(reported, store)
    await provider.stop()
    charged = {
        team: tally.teams[team].minus(earlier[team])
        for team in TEAMS
        if tally.teams[team].tokens > earlier[team].tokens
    }
    accounts = Accounts(
        *page, _since(after[0], before[0]), _since(after[1], before[1])
    )
    if sum(tally.broken.values()) != broken:
        problems.append("a quiet request broke off")
    problems += account_problems(accounts, charged, requests)
    problems += budget_problems(tally, store, limit)
    problems += _user_problems(tally)
    return DayOutcome(tally, problems)


def _fields(sums: TeamSums) -> dict[str, Any]:
    return {name: getattr(sums, name) for name in sums.__struct_fields__}


def _since(now: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    rest = {name: now[name] - before.get(name, 0) for name in now}
    return {name: value for name, value in rest.items() if value}


def _user_problems(tally: DayTally) -> list[str]:
    """What users met that they should not have."""
    problems = [
        f"{name}: {count}"
        for name, count in (
            ("turns lost", tally.lost),
            ("texts of somebody else", tally.mixed),
            ("secrets that were not opened again", tally.unfound),
        )
        if count
    ]
    if set(tally.stopped) - {"tight"}:
        problems.append(f"stopped without reason: {dict(tally.stopped)}")
    if not tally.stopped.get("tight"):
        problems.append("the tight team was never stopped")
    return problems


@contextmanager
def _store(folder: Path) -> Iterator[str]:
    """A PostgreSQL server of its own; a file where there is none."""
    if not is_there():
        yield str(folder / "kept.db")
        return
    server = Server()
    try:
        yield server.url
    finally:
        server.stop()


def run(users: int, pace: Pace) -> DayOutcome:
    """A day of some users.

    Args:
        users: how many.
        pace: what is killed, and when.
    """
    with tempfile.TemporaryDirectory() as name, _store(Path(name)) as store:
        return asyncio.run(_day(users, pace, store, Path(name)))


@click.command()
@click.option("--users", default=200, show_default=True)
@click.option("--seconds", default=120.0, show_default=True)
@click.option("--kill-every", default=3.0, show_default=True, help="Seconds.")
def main(users: int, seconds: float, kill_every: float) -> None:
    """Let users work through a fleet whose workers are killed, and check the accounts."""
    began_s = time.monotonic()
    deeds = max(int(seconds / kill_every), 6)
    tally, problems = run(users, Pace(deeds, pause_s=kill_every))
    print(
        f"{users} users in {time.monotonic() - began_s:.0f} s: {tally.answered:,} turns of "
        f"{tally.conversations:,} conversations answered, {tally.kills} workers killed, "
        f"{sum(tally.broken.values()):,} tries broken, {tally.opened:,} searches, "
        f"stopped {dict(tally.stopped)}"
    )
    for team, sums in tally.teams.items():
        print(
            f"  {team}: {sums.replies:,} replies, {sums.tokens:,} tokens, ${sums.usd:,.2f}"
        )
    for problem in problems:
        print(f"wrong: {problem}")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()

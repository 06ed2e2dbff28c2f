"""What page, metrics, report and budgets say of a day, beside what the provider charged."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from contextlib import closing
from typing import Any, NamedTuple

from lab.fleet_day.proxies import Fleet
from lab.fleet_day.tally import PROXIES, WORKERS, DayTally
from ullage.stores import open_lasting, spending_of, spending_totals


class Accounts(NamedTuple):
    """What is told of the quiet work: by the page, the metrics and the report, of all teams."""

    page_requests: int
    page_usd: float
    metrics_usd: float
    report_tokens: dict[str, int]
    report_usd: dict[str, float]


def reported(store: str) -> tuple[dict[str, int], dict[str, float]]:
    """Tokens and dollars by team, as ``ullage report`` says."""
    words = ["report", "--since=2d", "--by=tenant", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "ullage", *words, f"--store={store}"],
        capture_output=True,
        text=True,
        check=True,
    )
    tokens, usd = Counter[str](), Counter[str]()
    for line in json.loads(done.stdout)["lines"]:
        sums = line["sums"]
        tokens[line["tenant"]] += sum(sums["sent"].values())
        usd[line["tenant"]] += sums["sent_usd"]
    return dict(tokens), dict(usd)


async def looked_at(http: Any, fleet: Fleet) -> tuple[int, float, float]:
    """Requests and dollars on the pages of all proxies, and dollars in their metrics."""
    requests, usd, metric_usd = 0, 0.0, 0.0
    for url in fleet.urls:
        while True:  # until each reply is counted
            async with http.get(f"{url}/_ullage/metrics") as reply:
                text = await reply.text()
            if not sum(_values(text, "in_flight")):
                break
        async with http.get(f"{url}/_ullage/state") as reply:
            totals = (await reply.json())["totals"]
        requests += totals["requests"]
        usd += totals["cost_usd"]
        metric_usd += sum(_values(text, "team_cost_usd_total"))
    return requests, usd, metric_usd


def _values(text: str, name: str) -> list[float]:
    pattern = rf"^ullage_{name}(?:{{.*}})? (\S+)$"
    return [float(value) for value in re.findall(pattern, text, re.M)]


class DayOutcome(NamedTuple):
    """What came of a day, and what is wrong with it.

    Attributes:
        tally: what happened.
        problems: what does not hold, in words; empty: all of it does.
    """

    tally: DayTally
    problems: list[str]


def budget_problems(tally: DayTally, store: str, limit: int) -> list[str]:
    """What does not hold of the budgets, by the provider's own sums.

    Args:
        tally: what happened.
        store: of the fleet.
        limit: tokens that the tight team may spend.
    """
    problems, workers = [], PROXIES * WORKERS
    with closing(open_lasting(store, None, None)) as opened:
        rows = spending_totals(spending_of(opened).spending())
    booked = {row.key.budget: row for row in rows}
    for team in ("tight", "warned"):
        sums, row = tally.teams[team], booked[team]
        # a call whose worker was killed was charged, and nobody could book it
        unbooked = (tally.broken[team] + tally.kills) * sums.largest_tokens
        if not sums.tokens - unbooked <= row.tokens <= sums.tokens:
            problems.append(
                f"{team}: booked {row.tokens:,}, charged {sums.tokens:,}"
            )
        most = limit + workers * sums.largest_tokens + unbooked
        if team == "tight" and sums.tokens > most:
            problems.append(f"tight: {sums.tokens:,} is over {most:,}")
    total = sum(sums.tokens for sums in tally.teams.values())
    if booked["fleet"].tokens > total:
        problems.append("fleet: more is booked than was charged")
    return problems


def account_problems(
    accounts: Accounts, charged: dict[str, tuple[int, float]], requests: int
) -> list[str]:
    """What the page, the metrics and the report say otherwise than the provider."""
    problems = []
    tokens = {team: sums[0] for team, sums in charged.items()}
    if accounts.report_tokens != tokens:
        problems.append(f"report: {accounts.report_tokens}, sent {tokens}")
    usd = sum(sums[1] for sums in charged.values())
    for name, told in (
        ("page", accounts.page_usd),
        ("metrics", accounts.metrics_usd),
        ("report", sum(accounts.report_usd.values())),
    ):
        if abs(told - usd) > 1e-6:
            problems.append(f"{name}: ${told:.6f}, sent ${usd:.6f}")
    if accounts.page_requests != requests:
        problems.append(f"page: {accounts.page_requests} of {requests}")
    return problems

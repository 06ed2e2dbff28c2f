"""Counters of one worker, and their text for Prometheus.

The text is version 0.0.4 of Prometheus's exposition format. With several workers each has a label
of its own, so that one that begins again resets its own counters only.
"""

from __future__ import annotations

import bisect
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from ullage import __version__
from ullage.doors.exchange.values import Passed
from ullage.doors.proxy.relayed import (
    Relayed,
    client_shown,
    cost_in_usd,
    model_in_logs,
    raw_cost_in_usd,
    raw_tokens,
    tenant_shown,
)
from ullage.stores import SpendingRow
from ullage.wires import is_billed

_BOUNDS_S = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    60.0,
)

TEAM = "team_"
"""How the names begin of what names tenants: it is for whoever may see the pages."""
_MOST_TEAMS = 200
"""So many tenants, models and clients have a line of their own: a client chooses its name."""
_OTHERS = "(others)"
"""The line of the rest."""

_HELP = {
    "requests_total": "Requests, by upstream, wire and what was done.",
    "passed_total": "Requests that went on as they came, by reason.",
    "keepalive_requests_total": "How often a prompt cache was kept from expiring.",
    "keepalive_cost_usd_total": "What that cost, at list price.",
    "refused_total": "Requests that were not passed on: a web page may have sent them.",
    "replies_total": "Replies, by upstream and status.",
    "broken_total": "Replies that ended before their end, or never came.",
    "replays_total": "Requests that were refused as too long and sent again, shorter.",
    "recalls_total": "Calls of recall tools that were answered here.",
    "prompt_tokens_total": "Tokens of prompts, held-out ones left out: as they came, and as sent.",
    "reported_tokens_total": "Tokens that providers reported.",
    "decisions_total": "What was decided in fitted requests, by kind.",
    "cache_rebilled_tokens_total": "Tokens that were sent before and billed again, by cause.",
    "body_bytes_total": "Bytes of the bodies of the same requests: as they came, and went on.",
    "fit_seconds": "From the request's last byte until it was sent on.",
    "head_seconds": "From then until the head of the reply.",
    "stopped_total": "Requests that a budget left no room for, by budget.",
    "cost_usd_total": "Dollars at list price of what providers reported, by model.",
    "unpriced_total": "Replies whose model has no known price; they are in no sum of dollars.",
    "unbilled_total": "Replies that nobody bills: the model runs on a machine of one's own.",
    "budget_store_errors_total": "How often the store of the budgets could not be asked.",
    "build_info": "1, with the version that runs.",
    "start_timestamp_seconds": "When the worker started, in seconds since 1970.",
    "in_flight": "Requests whose reply is not over.",
    "held_body_bytes": "Bytes of request bodies that are held at the moment.",
    "conversations": "Conversations that are warm.",
    "conversations_bytes": "About how many bytes of memory they take.",
    "mistakes_total": "How often an observer of requests failed: a bug in ullage.",
    "connections": "Open connections of clients.",
    "resident_bytes": "Bytes of memory that the process holds.",
    "team_cost_usd_total": "The same dollars by tenant, model and client.",
    "team_raw_usd_total": "Dollars of the same requests without ullage, as reckoned.",
    "team_requests_total": "Requests by tenant and client.",
    "team_budget_used_ratio": "What is spent of a budget in its present period; 1 is all.",
    "team_budget_spent_usd": "Dollars that are spent of it.",
    "team_budget_spent_tokens": "Tokens that are spent of it.",
    "team_budget_reset_timestamp_seconds": "When its period ends, in seconds since 1970.",
}
_HISTOGRAMS = ("fit_seconds", "head_seconds")
_LEFT_OUT = "# What is told by team is left out here: set [access], and scrape with its token."
Labels = tuple[tuple[str, str], ...]


class Metrics:
    """What one worker has counted since it began."""

    def __init__(self) -> None:
        # a counter that begins at 1 has no increase that Prometheus sees
        self._sums: dict[tuple[str, Labels], float] = {
            ("passed_total", (("reason", reason),)): 0.0
            for reason in get_args(Passed)
        }
        self._began_s = time.time()
        self._times: dict[str, tuple[list[int], list[float]]] = {}
        self._teams: set[tuple[str, str]] = set()

    def take(self, relayed: Relayed) -> None:
        """Count a request that is over."""
        report = relayed.report
        upstream = relayed.upstream
        wire = report.wire or "none"
        self._add(
            "requests_total",
            1,
            upstream=upstream,
            wire=wire,
            done=done_with(relayed),
        )
        self._add("broken_total", relayed.is_broken)
        self._add("replays_total", report.is_retried)
        self._add("recalls_total", report.recalled)
        if report.passed is not None:
            self._add("passed_total", 1, reason=report.passed)
        if report.status and not report.is_stopped:
            self._add(
                "replies_total",
                1,
                upstream=upstream,
                status=str(report.status),
            )
        if report.view_tokens and not report.is_held_out:
            self._add("prompt_tokens_total", raw_tokens(relayed), at="came")
            self._add("prompt_tokens_total", report.view_tokens, at="sent")
            self._add("body_bytes_total", relayed.came_bytes, at="came")
            self._add("body_bytes_total", relayed.sent_bytes, at="sent")
        if report.view_tokens:
            self._time("fit_seconds", relayed.fit_s)
        if relayed.head_s:
            self._time("head_seconds", relayed.head_s)
        for event in report.events:
            self._add("decisions_total", 1, kind=event.kind)
            if event.broken is not None:
                self._add(
                    "cache_rebilled_tokens_total",
                    event.broken.tokens,
                    cause=event.broken.cause,
                )
        if report.is_stopped and report.budget is not None:
            self._add("stopped_total", 1, budget=report.budget.budget)
        self._take_cost(relayed)
        if (usage := report.usage) is not None:
            self._add("reported_tokens_total", usage.fresh_tokens, of="fresh")
            self._add(
                "reported_tokens_total",
                usage.cache_read_tokens,
                of="cache_read",
            )
            self._add(
                "reported_tokens_total",
                usage.cache_write_tokens,
                of="cache_write",
            )
            self._add(
                "reported_tokens_total", usage.output_tokens, of="output"
            )

    def _take_cost(self, relayed: Relayed) -> None:
        """Count what a request cost, and whose it was."""
        report = relayed.report
        model = model_in_logs(relayed.report.model)
        usage = report.usage
        cost = cost_in_usd(relayed)
        if usage is not None and not is_billed(report.wire, report.model):
            self._add("unbilled_total", 1)
        if cost:
            self._add("cost_usd_total", cost, model=model)
        if usage is not None and cost is None:
            self._add("unpriced_total", 1)
        if not relayed.tenant and not relayed.client:
            return
        tenant, client = self._team(relayed)
        self._add(f"{TEAM}requests_total", 1, tenant=tenant, client=client)
        whose = {"tenant": tenant, "model": model, "client": client}
        if cost:
            self._add(f"{TEAM}cost_usd_total", cost, **whose)
        raw_cost = raw_cost_in_usd(relayed)
        if raw_cost:
            self._add(f"{TEAM}raw_usd_total", raw_cost, **whose)

    def _team(self, relayed: Relayed) -> tuple[str, str]:
        """The labels of a tenant and a client; beyond `_MOST_TEAMS` one for all others."""
        team = tenant_shown(relayed.tenant), client_shown(relayed.client)
        if team in self._teams or len(self._teams) < _MOST_TEAMS:
            self._teams.add(team)
            return team
        return _OTHERS, _OTHERS

    def lines(
        self,
        gauges: Mapping[str, float],
        worker: str = "",
        budgets: Sequence[SpendingRow] = (),
    ) -> dict[str, list[str]]:
        """Lines of the text, by the name of what they are of.

        Args:
            gauges: what is so right now, by name.
            worker: a label for all of them; empty for none.
            budgets: how far budgets are used; those nearest their end have lines.
        """
        worker_labels: Labels = (("worker", worker),) if worker else ()
        lines_by_name: dict[str, list[str]] = {}
        for (name, labels), value in self._sums.items():
            lines_by_name.setdefault(name, []).append(
                f"ullage_{name}{_braced(labels + worker_labels)} {value:.15g}"
            )
        for name, (counts, (total,)) in self._times.items():
            lines_by_name[name] = list(
                _histogram(name, counts, total, worker_labels)
            )
        for name, value in gauges.items():
            lines_by_name[name] = [
                f"ullage_{name}{_braced(worker_labels)} {value:.10g}"
            ]
        began = f"{_braced(worker_labels)} {self._began_s:.3f}"
        lines_by_name["start_timestamp_seconds"] = [
            f"ullage_start_timestamp_seconds{began}"
        ]
        version: Labels = (("version", __version__), *worker_labels)
        lines_by_name["build_info"] = [
            f"ullage_build_info{_braced(version)} 1"
        ]
        for row in sorted(budgets, key=_unused)[:_MOST_TEAMS]:
            of_budget: Labels = (
                ("budget", row.key.budget),
                ("tenant", tenant_shown(row.key.tenant)),
                *worker_labels,
            )
            for name, value in _of_budget(row).items():
                lines_by_name.setdefault(f"{TEAM}budget_{name}", []).append(
                    f"ullage_{TEAM}budget_{name}{_braced(of_budget)} {value:.15g}"
                )
        return lines_by_name

    def _add(self, name: str, value: float, **labels: str) -> None:
        key = name, tuple(labels.items())
        self._sums[key] = self._sums.get(key, 0) + value

    def _time(self, name: str, seconds: float) -> None:
        counts, total = self._times.setdefault(
            name, ([0] * (len(_BOUNDS_S) + 1), [0.0])
        )
        counts[bisect.bisect_left(_BOUNDS_S, seconds)] += 1
        total[0] += seconds


def _unused(row: SpendingRow) -> float:
    return -row.share


def _of_budget(row: SpendingRow) -> dict[str, float]:
    """What is told of a budget, by the end of its name."""
    return {
        "used_ratio": row.share,
        "spent_usd": row.usd,
        "spent_tokens": row.tokens,
        "reset_timestamp_seconds": row.resets_s,
    }


def merged(
    workers: Iterable[Mapping[str, list[str]]], *, with_teams: bool = True
) -> str:
    """The text of what all workers counted.

    Args:
        workers: the lines of each, by name.
        with_teams: whether whoever asks may see what names tenants.
    """
    names: dict[str, list[str]] = {}
    for lines_by_name in workers:
        for name, lines in lines_by_name.items():
            names.setdefault(name, []).extend(lines)
    text = []
    if not with_teams and any(name.startswith(TEAM) for name in names):
        text.append(_LEFT_OUT)
        names = {
            name: lines
            for name, lines in names.items()
            if not name.startswith(TEAM)
        }
    for name, lines in sorted(names.items()):
        is_histogram = name.endswith("_seconds") and name in _HISTOGRAMS
        kind = "histogram" if is_histogram else "gauge"
        kind = "counter" if name.endswith("_total") else kind
        text.append(f"# HELP ullage_{name} {_HELP[name]}")
        text += [f"# TYPE ullage_{name} {kind}", *lines]
    return "\n".join((*text, ""))


def done_with(relayed: Relayed) -> str:
    """The word for how a request was treated."""
    if relayed.is_dry:
        return "dry-run"
    if relayed.report.is_stopped:
        return "stopped"
    if relayed.report.passed is not None or not relayed.report.view_tokens:
        return "passed"
    return "fitted" if relayed.report.is_changed else "unchanged"


def _histogram(
    name: str, counts: list[int], total: float, worker_labels: Labels
) -> Iterable[str]:
    below = 0
    for bound, count in zip(
        (*map(str, _BOUNDS_S), "+Inf"), counts, strict=True
    ):
        below += count
        yield f"ullage_{name}_bucket{_braced((*worker_labels, ('le', bound)))} {below}"
    yield f"ullage_{name}_sum{_braced(worker_labels)} {total:.10g}"
    yield f"ullage_{name}_count{_braced(worker_labels)} {below}"


def _braced(labels: Labels) -> str:
    if not labels:
        return ""
    return (
        "{"
        + ",".join(f'{name}="{_quoted(value)}"' for name, value in labels)
        + "}"
    )


def _quoted(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

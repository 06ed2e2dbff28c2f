"""A line of JSON for each request: how it went and what it came to. No content, no credential.

A request that the proxy refuses has one too. Anybody who reaches the proxy can have it refuse
requests, so a worker writes no more than `MOST_REFUSALS` such lines a minute.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

from ullage.doors.proxy.metrics import done_with
from ullage.doors.proxy.relayed import (
    Relayed,
    model_in_logs,
    raw_tokens,
    tenant_shown,
)

MOST_REFUSALS = 60
_MINUTE_S = 60


def lines_to(file: TextIO | None = None) -> Callable[[Relayed], None]:
    """A function that writes the log line of a request that is over.

    Args:
        file: where to; None: standard error. Nothing fails if it takes nothing more.
    """

    def tell(relayed: Relayed) -> None:
        _write(file, line_of(relayed))

    return tell


def _write(file: TextIO | None, line: dict[str, Any]) -> None:
    with suppress(OSError, ValueError):
        (file or sys.stderr).write(f"{msgspec.json.encode(line).decode()}\n")


class RefusalLines:
    """Writes the log line of a request that the proxy refuses; of too many how many there were.

    Args:
        file: where to; None: standard error. Nothing fails if it takes nothing more.
        now_s: the time, in seconds since 1970.
    """

    def __init__(
        self,
        file: TextIO | None = None,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._file = file
        self._now_s = now_s
        self._minute = -1
        self._lines = 0
        self._left_out = 0

    def __call__(self, status: int, problem: str) -> None:
        """Write a line, if there is room for one in this minute.

        Args:
            status: of the answer.
            problem: why, in words of ours alone.
        """
        now_s = self._now_s()
        minute = int(now_s // _MINUTE_S)
        if minute != self._minute:
            self._minute = minute
            self._lines = 0
        if self._lines >= MOST_REFUSALS:
            self._left_out += 1
            return
        self._lines += 1
        line: dict[str, Any] = {
            "at": _shown(now_s),
            "done": "refused",
            "status": status,
            "problem": problem,
        }
        if self._left_out:
            line["left_out"] = self._left_out
            self._left_out = 0
        _write(self._file, line)


def _shown(at_s: float) -> str:
    """A time in a line."""
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds")


def line_of(relayed: Relayed) -> dict[str, Any]:
    """What a line says."""
    report = relayed.report
    line: dict[str, Any] = {
        "at": _shown(relayed.began_s),
        "upstream": relayed.upstream,
        "wire": report.wire,
        "model": report.model and model_in_logs(report.model),
        "conversation": report.conversation,
        "tenant": tenant_shown(relayed.tenant),
        "done": done_with(relayed),
        "passed": report.passed,
        "problem": report.problem,
        "status": report.status or relayed.own_status,
        "tries": report.tries,
        "recalled": report.recalled,
        "came_tokens": raw_tokens(relayed),
        "sent_tokens": report.view_tokens,
        "came_bytes": relayed.came_bytes,
        "sent_bytes": relayed.sent_bytes,
        "fit_ms": round(relayed.fit_s * 1_000, 1),
        "head_ms": round(relayed.head_s * 1_000, 1),
        "whole_ms": round(relayed.whole_s * 1_000, 1),
        "decisions": len(report.events),
        "broken": relayed.is_broken,
        "undercounted": report.is_undercounted,
        "without": report.without,
        "held_out": report.is_held_out,
    }
    if report.usage is not None:
        line["input_tokens"] = report.usage.input_tokens
        line["cached_tokens"] = report.usage.cache_read_tokens
        line["output_tokens"] = report.usage.output_tokens
    for event in report.events:
        if event.broken is not None:
            line["cache_broken"] = event.broken.cause
            line["rebilled_tokens"] = event.broken.tokens
    use = report.budget
    if use is not None and (use.state != "within" or report.is_stopped):
        line["budget"] = use.budget
        line["budget_percent"] = use.percent
    return {
        name: value
        for name, value in line.items()
        if value not in (None, "", False, 0, ())
    }

"""A line of JSON for each request: how it went and what it came to. No content, no credential."""

from __future__ import annotations

import sys
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


def lines_to(file: TextIO | None = None) -> Callable[[Relayed], None]:
    """A function that writes the log line of a request that is over.

    Args:
        file: where to; None: standard error. Nothing fails if it takes nothing more.
    """

    def tell(relayed: Relayed) -> None:
        with suppress(OSError, ValueError):
            (file or sys.stderr).write(
                f"{msgspec.json.encode(line_of(relayed)).decode()}\n"
            )

    return tell


def line_of(relayed: Relayed) -> dict[str, Any]:
    """What a line says."""
    report = relayed.report
    line: dict[str, Any] = {
        "at": datetime.fromtimestamp(relayed.began_s, UTC).isoformat(
            timespec="milliseconds"
        ),
        "upstream": relayed.upstream,
        "wire": report.wire,
        "model": report.model and model_in_logs(report.model),
        "conversation": report.conversation,
        "tenant": tenant_shown(relayed.tenant),
        "done": done_with(relayed),
        "passed": report.passed,
        "problem": report.problem,
        "status": report.status,
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

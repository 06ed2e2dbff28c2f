"""Counters of one worker, and their text for Prometheus.

The text is version 0.0.4 of Prometheus's exposition format. With several workers each has a label
of its own, so that one that begins anew resets its own counters only.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping

from ullage.doors.proxy.relayed import Relayed, raw_tokens

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

_HELP = {
    "requests_total": "Requests, by upstream, wire and what was done.",
    "passed_total": "Requests that went on as they came, by reason.",
    "refused_total": "Requests that were not passed on: a web page may have sent them.",
    "replies_total": "Replies, by upstream and status.",
    "broken_total": "Replies that ended before their end, or never came.",
    "replays_total": "Requests that were refused as too long and sent again, shorter.",
    "recalls_total": "Calls of recall tools that were answered here.",
    "prompt_tokens_total": "Estimated tokens of fitted prompts: as they came, and as they went on.",
    "reported_tokens_total": "Tokens that providers reported.",
    "decisions_total": "What was decided in fitted requests, by kind.",
    "cache_anew_tokens_total": "Tokens that were sent before and billed anew, by cause.",
    "body_bytes_total": "Bytes of bodies of fitted requests: as they came, and as they went on.",
    "fit_seconds": "From the request's last byte until it was sent on.",
    "head_seconds": "From then until the head of the reply.",
}
Labels = tuple[tuple[str, str], ...]


class Metrics:
    """What one worker has counted since it began."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, Labels], float] = {}
        self._times: dict[str, tuple[list[int], list[float]]] = {}

    def take(self, relayed: Relayed) -> None:
        """Count a request that is over."""
        report, upstream = relayed.report, relayed.upstream
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
        if report.status:
            self._add(
                "replies_total",
                1,
                upstream=upstream,
                status=str(report.status),
            )
        if report.view_tokens:
            self._add("prompt_tokens_total", raw_tokens(relayed), at="came")
            self._add("prompt_tokens_total", report.view_tokens, at="sent")
            self._add("body_bytes_total", relayed.came_bytes, at="came")
            self._add("body_bytes_total", relayed.sent_bytes, at="sent")
            self._time("fit_seconds", relayed.fit_s)
        if relayed.head_s:
            self._time("head_seconds", relayed.head_s)
        for event in report.events:
            self._add("decisions_total", 1, kind=event.kind)
            if event.broken is not None:
                self._add(
                    "cache_anew_tokens_total",
                    event.broken.tokens,
                    cause=event.broken.cause,
                )
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

    def lines(
        self, gauges: Mapping[str, float], worker: str = ""
    ) -> dict[str, list[str]]:
        """Lines of the text, by the name of what they are of.

        Args:
            gauges: what is so right now, by name.
            worker: a label for all of them; empty for none.
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


def merged(workers: Iterable[Mapping[str, list[str]]]) -> str:
    """The text of what all workers counted."""
    names: dict[str, list[str]] = {}
    for lines_by_name in workers:
        for name, lines in lines_by_name.items():
            names.setdefault(name, []).extend(lines)
    text = []
    for name, lines in sorted(names.items()):
        kind = "histogram" if name.endswith("_seconds") else "gauge"
        kind = "counter" if name.endswith("_total") else kind
        if name in _HELP:
            text.append(f"# HELP ullage_{name} {_HELP[name]}")
        text += [f"# TYPE ullage_{name} {kind}", *lines]
    return "\n".join((*text, ""))


def done_with(relayed: Relayed) -> str:
    """The word for how a request was treated."""
    if relayed.is_dry:
        return "dry-run"
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

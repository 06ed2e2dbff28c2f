"""How good the counts are: ``python -m lab.bench.tokens``.

Three tables. Generated kinds of text against the reference tokenisers of each family (OpenAI:
quicktok, live; the others: figures committed by ``bench.fit_families``); recorded sessions
against the usage their providers reported, if ``ULLAGE_TRACES`` (or ../shared/traces) has
them; and speed. Errors are of the growth between two requests unless said otherwise: minus is
too little. ``calibrated`` is after ten replies, with 4,000 tokens in the prompt unseen by us.
"""

from __future__ import annotations

import gzip
import json
import os
import statistics
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import quicktok
from rich.console import Console
from rich.table import Table

from lab.bench.token_corpus import generated, split
from ullage.core.tokens.calibrate import Calibration
from ullage.core.tokens.estimate import Counter
from ullage.core.tokens.meter import argument_text, overhead_for
from ullage.core.tokens.models import counter_for, family_of

FAMILIES = {
    "Claude 3–4.6": ("claude-opus-4-5", "claude-v3"),
    "Claude 4.7–5": ("claude-opus-5-5", "claude-v4.8"),
    "Gemini": ("gemini-2.5-pro", "gemini"),
}
UNSEEN_TOKENS = 4_000
REPLIES = 10


def kinds_table() -> Table:
    """Errors by kind of content and family."""
    table = Table(title="error of growth, % (chars/4 → cold → calibrated)")
    for heading in ("kind", "OpenAI", *FAMILIES):
        table.add_column(
            heading,
            justify="left" if heading == "kind" else "right",
            no_wrap=True,
        )
    figures = json.loads(
        Path(__file__).with_name("token_figures.json").read_text("utf-8")
    )
    for kind, text in generated().items():
        pieces = split(text)
        cells = [
            _cell(
                pieces,
                counter_for("gpt-5"),
                [_second_opinion(p) for p in pieces],
            )
        ]
        same = figures[kind]["crc"] == zlib.crc32(text.encode())
        for model, family in FAMILIES.values():
            truths = figures[kind][family]
            cells.append(
                _cell(pieces, counter_for(model), truths)
                if same
                else "other text"
            )
        table.add_row(kind, *cells)
    return table


def _second_opinion(text: str) -> int:
    return len(quicktok.get_encoding("o200k_base").encode_ordinary(text))


def _cell(pieces: list[str], counter: Counter, truths: list[int]) -> str:
    """Three errors in per cent."""
    estimates = [counter.count(piece) for piece in pieces]
    total = sum(truths)
    fourth = sum(map(len, pieces)) / 4 / total - 1
    calibration, estimated, reported = Calibration(), 0, UNSEEN_TOKENS
    for estimate, truth in zip(
        estimates[:REPLIES], truths[:REPLIES], strict=True
    ):
        estimated, reported = estimated + estimate, reported + truth
        calibration = calibration.observe(reported, estimated)
    grown = calibration.apply(estimated + sum(estimates[REPLIES:])) - reported
    warm = grown / sum(truths[REPLIES:]) - 1
    return f"{fourth:+.0%} → {sum(estimates) / total - 1:+.0%} → {warm:+.0%}".replace(
        "%", ""
    )


def sessions_table(folder: Path) -> Table:
    """Errors against reported usage, by the harness that made the session."""
    table = Table(
        title="recorded sessions, error against reported usage, %: median (p95)"
    )
    for heading in (
        "harness",
        "replies",
        "chars/4",
        "cold",
        "whole session, cold",
        "whole prompt, calibrated",
        "upper under by >5 %",
    ):
        table.add_column(
            heading, justify="left" if heading == "harness" else "right"
        )
    found: dict[str, dict[str, list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for run in _runs(folder):
        maker = "OpenAI" if family_of(run["model"]) == "openai" else "Claude"
        _measure(run, found[f"{run['harness']}, {maker}"])
    for harness, errors in sorted(found.items()):
        upper = errors["upper"]
        table.add_row(
            harness,
            f"{len(errors['cold']):,}",
            *(
                _spread(errors[name])
                for name in ("fourth", "cold", "session", "warm")
            ),
            f"{sum(error < -0.05 for error in upper) / len(upper):.2%}",
        )
    return table


def _runs(folder: Path) -> Iterator[dict[str, Any]]:
    for kind in ("coding", "customer-service"):
        with gzip.open(
            folder / f"{kind}.jsonl.gz", "rt", encoding="utf-8"
        ) as lines:
            for line in lines:
                run = json.loads(line)
                if (
                    run.get("usage")
                    and family_of(str(run.get("model"))) != "unknown"
                ):
                    yield run


def _measure(run: dict[str, Any], errors: dict[str, list[float]]) -> None:
    """Follows one session reply by reply; begins again where its history shrank."""
    calibration, estimated, before, at = Calibration(), 0, 0, 0
    sums = [0, 0]
    for usage in run["usage"]:
        reported = _prompt_tokens(usage)
        grown = run["messages"][at : usage["message_index"]]
        at = usage["message_index"]
        if reported <= before or not before:
            calibration, estimated = (
                Calibration().observe(reported, reported // 2),
                reported // 2,
            )
            before = reported
            continue
        cold, change = _tokens(grown, run["model"]), reported - before
        estimated, before = estimated + cold, reported
        sums = [sums[0] + cold, sums[1] + change]
        if change >= 100:
            errors["cold"].append(cold / change - 1)
            errors["fourth"].append(_characters(grown) / 4 / change - 1)
        if calibration.replies > REPLIES:
            errors["warm"].append(calibration.apply(estimated) / reported - 1)
        errors["upper"].append(calibration.upper(estimated) / reported - 1)
        calibration = calibration.observe(reported, estimated)
    if sums[1] > 5_000:
        errors["session"].append(sums[0] / sums[1] - 1)


def _prompt_tokens(usage: dict[str, Any]) -> int:
    """The whole prompt, in Anthropic's fields or in OpenAI's."""
    if "prompt_tokens" in usage:
        return int(usage["prompt_tokens"])
    names = (
        "input_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
    )
    return sum(usage.get(name) or 0 for name in names)


def _tokens(messages: list[dict[str, Any]], model: str) -> int:
    """Our cold estimate of what some messages add to a prompt."""
    counter, overhead, total = counter_for(model), overhead_for(model), 0
    for message in messages:
        total += (
            overhead.result if message["role"] == "tool" else overhead.message
        )
        total += sum(counter.count(text) for text in _texts(message))
        for call in message.get("tool_calls") or ():
            function = call["function"]
            given = function["arguments"]
            shown = (
                argument_text(given) if overhead.spoken_arguments else given
            )
            total += (
                overhead.call
                + counter.count(function["name"])
                + counter.count(shown)
            )
    return total


def _characters(messages: list[dict[str, Any]]) -> int:
    total = 0
    for message in messages:
        total += sum(map(len, _texts(message)))
        for call in message.get("tool_calls") or ():
            total += len(call["function"]["name"]) + len(
                call["function"]["arguments"]
            )
    return total


def _texts(message: dict[str, Any]) -> list[str]:
    texts = (message.get("content"), message.get("reasoning_content"))
    return [
        text if isinstance(text, str) else json.dumps(text)
        for text in texts
        if text
    ]


def _spread(errors: list[float]) -> str:
    """Median, and the 95th percentile of the size of the error."""
    if not errors:
        return "–"
    sizes = sorted(abs(error) for error in errors)
    digits = ".2f" if sizes[len(sizes) // 2] < 0.01 else ".1f"
    median = statistics.median(sizes)
    return f"{100 * median:{digits}} ({100 * sizes[int(0.95 * (len(sizes) - 1))]:.1f})"


def speed_table() -> Table:
    """Time of one count."""
    table = Table(title="time of a count")
    for heading in (
        "counter",
        "400 characters, µs",
        "1 MB of mixed text, MB/s",
    ):
        table.add_column(
            heading, justify="left" if heading == "counter" else "right"
        )
    mixed = "".join(generated(60_000).values())[:1_000_000]
    short = next(iter(generated(400).values()))
    for model in ("gpt-5", "claude-opus-4-5", "gemini-2.5-pro"):
        counter = counter_for(model)
        small = _seconds(lambda count=counter.count: count(short), 2_000)
        large = _seconds(lambda count=counter.count: count(mixed), 3)
        speed = len(mixed.encode()) / large / 1e6
        table.add_row(counter.name, f"{small * 1e6:.1f}", f"{speed:.0f}")
    return table


def _seconds(action: Callable[[], object], times: int) -> float:
    """CPU of a single time, the best of five rounds."""
    rounds = []
    for _ in range(5):
        start = time.thread_time()
        for _ in range(times):
            action()
        rounds.append((time.thread_time() - start) / times)
    return min(rounds)


def main() -> None:
    console = Console()
    console.width = max(console.width, 110)
    console.print(kinds_table())
    beside = Path(__file__).parents[3] / "shared" / "traces"
    folder = Path(os.environ.get("ULLAGE_TRACES") or beside)
    if (folder / "coding.jsonl.gz").is_file():
        console.print(sessions_table(folder))
    else:
        console.print(
            "no recorded sessions: set ULLAGE_TRACES to the folder that has them"
        )
    console.print(speed_table())


if __name__ == "__main__":
    main()

"""Replaying runs: our own small ones, and a fixed sample of recorded ones where they are."""

import os
import sys
from itertools import islice
from pathlib import Path

import pytest

from tests import histories
from ullage.core.tokens.models import counter_for
from ullage.tools.replay.cost.prices import PROFILES
from ullage.tools.replay.readers import Run, read
from ullage.tools.replay.rows import row_of, rows_of
from ullage.tools.replay.run import replay_run
from ullage.tools.replay.tables import tables_of

TRACES = Path(
    os.environ.get(
        "ULLAGE_TRACES", Path(__file__).parents[3] / "shared" / "traces"
    )
)
KINDS = (
    "coding",
    "joined",
    "customer-service",
    "data-analysis",
    "records-api",
    "research-web",
)


def small_run(format, turns=24):
    call = histories.Call("bash", "a.py", "a line of output\n" * 300)
    messages = histories.wire(
        format, [histories.Turn(said="next", calls=(call, call))] * turns
    )
    request = {
        key: value
        for key, value in histories.request(format, []).items()
        if key != "messages"
    }
    return Run("small", format, request, messages)


@pytest.mark.parametrize("format", ["openai-chat", "anthropic"])
def test_a_run_larger_than_its_window_is_kept_within_it_and_loses_nothing(
    format,
):
    replayed = replay_run(
        small_run(format), 16_000, profiles=[PROFILES["openai-5"]]
    )
    assert replayed.broken == {}
    assert replayed.over_limit == 0
    assert replayed.raw_peak_tokens > 16_000 > replayed.peak_tokens
    assert replayed.events["pruned"] > 0
    (bill, *_) = replayed.bills
    assert 0 < bill.shown.cost_usd < bill.raw.cost_usd


def test_a_run_that_fits_costs_what_it_cost():
    replayed = replay_run(
        small_run("openai-chat", 2), 64_000, profiles=[PROFILES["openai-5"]]
    )
    assert replayed.tokens == replayed.raw_tokens
    assert replayed.breaks == 0


@pytest.mark.parametrize(
    ("sent_whole", "calls"),
    [(False, 1), (True, 2)],
)
def test_a_request_whose_reply_is_not_in_the_history_was_sent_too(
    sent_whole, calls
):
    messages = [
        {"role": role, "content": "x"}
        for role in ("user", "assistant", "user")
    ]
    run = Run("one", "openai-chat", {}, messages, sent_whole=sent_whole)
    assert replay_run(run, 16_000, profiles=[PROFILES["none"]]).calls == calls


def test_every_column_has_its_heading():
    found = [
        (
            "one",
            replay_run(
                small_run("gemini", 2), 16_000, profiles=[PROFILES["none"]]
            ),
        )
    ]
    rows = rows_of(found, row_of)
    sent, _, _ = tables_of(rows, rows)
    columns = {str(c.header): [*c.cells] for c in sent.columns}
    assert (columns["window"], columns["calls"], columns["gates"]) == (
        ["16k"],
        ["2"],
        ["kept"],
    )


def test_rows_sum_runs_by_file_and_window():
    replayed = replay_run(
        small_run("openai-chat", 4), 16_000, profiles=[PROFILES["none"]]
    )
    rows = rows_of(
        [("one", replayed), ("one", replayed), ("two", replayed)], row_of
    )
    assert [(row.name, row.runs, row.calls) for row in rows] == [
        ("one", 2, 8),
        ("two", 1, 4),
        ("all", 3, 12),
    ]


@pytest.mark.skipif(
    not TRACES.exists(),
    reason="the recorded runs are not here (ULLAGE_TRACES)",
)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("number", "window_tokens"), [(0, 16_000), (1, 64_000)]
)
def test_every_gate_holds_on_a_fixed_sample_of_recorded_runs(
    kind, number, window_tokens
):
    """Two of each kind; all of them are for ``make replay-all``."""
    run = next(islice(read(TRACES / f"{kind}.jsonl.gz"), number, None))
    replayed = replay_run(
        run, window_tokens, profiles=[PROFILES["anthropic-5m"]]
    )
    assert replayed.broken == {}
    assert replayed.over_limit == 0
    assert replayed.peak_tokens <= window_tokens


def test_a_run_is_replayed_where_no_tokeniser_is_installed(monkeypatch):
    monkeypatch.setattr(
        "ullage.core.tokens.models.is_installed", lambda: False
    )
    monkeypatch.setitem(sys.modules, "toktok", None)
    counter_for.cache_clear()
    try:
        replayed = replay_run(
            small_run("openai-chat", 3), 16_000, profiles=[PROFILES["none"]]
        )
    finally:
        counter_for.cache_clear()
    assert (replayed.calls, replayed.broken) == (3, {})

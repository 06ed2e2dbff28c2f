"""The readers and the judge on real recordings, where they are at hand."""

import os
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from lab.replay.caches import CacheSimulator
from ullage.tools.replay.calls import boundaries, is_models
from ullage.tools.replay.readers import read
from ullage.wires.rules.checker import check_of, problems_of

_BESIDE = Path(__file__).parents[2].parent / "shared" / "traces"
TRACES = Path(os.environ.get("ULLAGE_TRACES", _BESIDE))
MOST_RUNS = 60
UNREADABLE = (
    "index.json",
    "inspect-inspect_ai-1-4.json.gz",
)  # a list; no reply in it
# What the recordings themselves break: ids made longer than the API allows, and an empty
# list of content beside calls, which another provider took.
KNOWN = {"C6", "C0"}

ENDS_WITH_A_REPLY = (
    "G11"  # Gemini takes no such request; a recording may end so
)
MENDED = {
    "an empty text is left out",
    "a call without a result is answered by a short error",
}

pytestmark = pytest.mark.skipif(
    not TRACES.is_dir(),
    reason="no recorded runs: set ULLAGE_TRACES to their folder",
)


def recordings():
    files = sorted(TRACES.glob("*.jsonl.gz"))
    return files + sorted(
        f for f in TRACES.glob("native/*") if f.name not in UNREADABLE
    )


@pytest.mark.parametrize("file", recordings(), ids=lambda file: file.name)
def test_every_history_and_every_prefix_before_a_reply_is_legal(file):
    damage, broken, runs = [], Counter(), 0
    for run in islice(read(file, on_damage=damage.append), MOST_RUNS):
        runs += 1
        checker = check_of(run.format)
        for at, message in enumerate(run.messages):
            if is_models(message) and at:
                broken.update({p.rule for p in checker.problems()})
            checker.feed(message)
        broken.update(
            {p.rule for p in checker.problems()} - {ENDS_WITH_A_REPLY}
        )
        assert checker.problems() == problems_of(run.format, run.messages)
        assert not is_models(run.messages[0])
    assert runs
    assert set(broken) <= KNOWN
    assert {d.problem for d in damage} <= MENDED
    assert all(d.grade == "repaired" for d in damage)


def test_a_recorded_session_read_call_by_call_never_breaks_the_cache():
    run = next(iter(read(TRACES / "native" / "claude-code-sregym.jsonl.gz")))
    sim = CacheSimulator("anthropic-5m", lambda text: len(text) // 4)
    for at in boundaries(run):
        sim.call(run.messages[:at])
    assert sim.totals.breaks == 0
    assert sim.totals.cached_tokens > sim.totals.written_tokens
    assert sim.totals.written_tokens == sim.totals.peak_tokens

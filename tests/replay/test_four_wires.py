"""Every gate, every policy, every wire: our own histories, and a few recorded runs."""

import os
from itertools import cycle, islice
from pathlib import Path

import pytest

from lab.reading import results
from lab.replay.wires import on_wire
from tests import histories
from tests.histories import Call, Turn
from ullage.core.errors import FormatError
from ullage.documents import NAMES
from ullage.tools.replay.cost.prices import PROFILES
from ullage.tools.replay.readers import Run, read
from ullage.tools.replay.run import replay_run
from ullage.wires import FORMATS
from ullage.wires.rules.checker import problems_of

TRACES = Path(
    os.environ.get(
        "ULLAGE_TRACES", Path(__file__).parents[3] / "shared" / "traces"
    )
)
FILES = (
    "coding",
    "customer-service",
    "data-analysis",
    "records-api",
    "research-web",
    "sre",
)
MOST_MESSAGES = 60  # the whole sample in seconds
WINDOW, TIMES = 16_000, 3

LONG = Call("bash", "a.py", "a line of output\n" * 700)
WIDE = Call(
    "grep", "b.py", "".join(f"b.py:{n}: found {n * n}\n" for n in range(1_500))
)
FAILED = Call("bash", "c.py", "error: no such file\n" * 90, failed=True)
JSON = Call(
    "lookup",
    "d",
    "[" + ", ".join(f'{{"id": {n}}}' for n in range(3_000)) + "]",
)
TURNS = [
    Turn(user="next", said="Let me look.", calls=(LONG, FAILED)),
    Turn(calls=(WIDE,)),
    Turn(said="The cache is wrong.", calls=(JSON, LONG)),
    Turn(calls=(FAILED, Call("read_file", "e", ""))),
] * TIMES


def written(format):
    """A run of our own with calls side by side, errors, JSON and an empty output."""
    given = histories.request(format, histories.wire(format, TURNS))
    key = FORMATS[format].key
    request = {name: value for name, value in given.items() if name != key}
    return Run("own", format, request, given[key])


def replayed(run, policy):
    return replay_run(run, WINDOW, profiles=[PROFILES["none"]], policy=policy)


@pytest.mark.parametrize("policy", NAMES)
@pytest.mark.parametrize("format", FORMATS)
def test_every_gate_holds_on_every_wire(format, policy):
    found = replayed(written(format), policy)
    assert found.broken == {}
    assert found.over_limit == 0
    assert found.calls == len(TURNS)
    assert found.peak_tokens < WINDOW < found.raw_peak_tokens


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("format", FORMATS)
def test_a_run_on_another_wire_has_the_same_results_and_is_legal(format, to):
    run = written(format)
    other = on_wire(run, to)
    assert other.format == to
    assert (other is run) == (format == to)
    ended = {problem.rule for problem in problems_of(to, other.messages)}
    assert ended <= {"G11"}
    assert len(texts(other)) == len(texts(run)) == 7 * TIMES
    assert texts(other).count(LONG.output) == 2 * TIMES


def texts(run):
    return [
        "".join(texts)
        for message in run.messages
        for _, texts in results(message)
    ]


def test_a_lost_result_is_seen_on_every_wire(monkeypatch):
    """The gates see what they look for: where a notice says nothing, the result is lost."""
    for format, wire in FORMATS.items():
        plain = type(wire).edit

        def dropping(self, raw, message, changes, plain=plain, **more):
            return plain(
                self,
                raw,
                message,
                [(*place, "gone") for *place, _ in changes],
                **more,
            )

        with monkeypatch.context() as patch:
            patch.setattr(type(wire), "edit", dropping)
            assert replayed(written(format), "default").broken["G4"]


def test_what_is_no_message_is_refused_with_its_place():
    run = Run("own", "openai-chat", {}, [{"role": "user", "content": 7}])
    with pytest.raises(FormatError, match=r"messages\[0\]"):
        on_wire(run, "anthropic")


@pytest.mark.skipif(
    not TRACES.exists(),
    reason="the recorded runs are not here (ULLAGE_TRACES)",
)
@pytest.mark.parametrize("file", FILES)
def test_recorded_runs_keep_every_gate_on_every_wire(file):
    """Each file under every policy; each policy on every wire, in one file or another."""
    short = (
        r
        for r in read(TRACES / f"{file}.jsonl.gz")
        if len(r.messages) <= MOST_MESSAGES
    )
    first = FILES.index(file) % len(FORMATS)
    wires = [*FORMATS][first:] + [*FORMATS][:first]
    for run in islice(short, 1):
        for policy, format in zip(NAMES, cycle(wires), strict=False):
            found = replayed(on_wire(run, format), policy)
            assert (found.broken, found.over_limit) == ({}, 0), (
                run.id,
                policy,
                format,
            )

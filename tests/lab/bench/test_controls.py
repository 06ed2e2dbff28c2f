"""The controls of the metric, on errands: they keep silent where all is well, and speak up else."""

import pytest
from msgspec.structs import replace

from lab.bench import controls
from lab.replay.many import tried
from lab.replay.watch import watch_pages
from tests.replay.evidence.conversation import errand
from ullage.tools.replay.cost.prices import PROFILES
from ullage.tools.replay.many import Job
from ullage.tools.replay.run import replay_run

JOB = Job((PROFILES["anthropic-5m"],))


@pytest.fixture(scope="module")
def runs():
    return [errand(seed, turns=20) for seed in (1, 2)]


def troubles(runs):
    return list(controls.ranked(runs, 0.5, JOB, 1))


def test_every_adversary_is_below_recency_and_below_a_floor(runs, capsys):
    assert troubles(runs) == []
    lines = {
        line.split()[0]: line
        for line in capsys.readouterr().out.splitlines()
        if line
    }
    for name in ("last_call", "names_only"):
        assert "far" in lines[name]
        assert "breaks" in lines[name]


def test_who_cheats_and_gets_away_with_it_is_told(runs, monkeypatch):
    monkeypatch.setattr(
        controls, "ADVERSARIES", {**controls.ADVERSARIES, "everything": None}
    )
    monkeypatch.setattr(
        controls, "replays", _with_a_perfect_cheat(controls.replays)
    )
    assert troubles(runs) == [
        "N3: everything is not below recency",
        "floors: everything passes them all",
    ]


def _with_a_perfect_cheat(replays):
    """The replays, and one more policy: the run in a window that holds it all."""

    def more(runs, policies, share, job, jobs):
        known = tuple(name for name in policies if name != "everything")
        found = replays(runs, known, share, job, jobs)
        return found + [("", _all_of(run, share)) for run in runs]

    return more


def _all_of(run, share):
    done = replay_run(
        run, 200_000, profiles=JOB.profiles, watch_of=watch_pages
    )
    return tried(replace(done, policy="everything", share=share))

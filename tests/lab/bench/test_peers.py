"""The bench of peers, with a peer that needs no library: what it finds, and how it fails."""

import sys
from pathlib import Path

import pytest

from lab.bench.peers import environments
from lab.bench.peers.arena import Arena, Entry
from lab.bench.peers.catalog import PEERS
from lab.bench.peers.generated import generated_run
from lab.bench.peers.keeping import Keep, markdown_of_keeps
from lab.bench.peers.process import PeerProcess, Trouble
from lab.bench.peers.table import lines_of, markdown_of
from ullage.tools.replay.cost.prices import PROFILES
from ullage.tools.replay.run import replay_run

TOY = (
    Path(__file__).parents[3]
    / "lab"
    / "bench"
    / "peers"
    / "adapters"
    / "toy.py"
)
WINDOW = 16_000


def scored(*policies, calls=8, runs=1, seconds=60.0, run_seconds=60.0):
    """The line of each contestant, by name."""
    run = generated_run(calls)
    entries = [
        Entry("toy", policy, Path(sys.executable), TOY) for policy in policies
    ]
    profiles, results = [PROFILES["anthropic-5m"]], {}
    with Arena(
        entries, profiles, seconds=seconds, run_seconds=run_seconds
    ) as arena:
        for _ in range(runs):
            for window, name, score in arena.scores(
                run, [WINDOW], frozenset()
            ):
                results.setdefault((window, name), []).append(score)
    return {line.name: line for line in lines_of(results)}


@pytest.fixture(scope="module")
def lines():
    """The toy's honest policies beside ours."""
    return scored("everything", "last-n", "shelved", "refusing", calls=40)


def test_a_peer_that_sends_everything_scores_as_everything_does(lines):
    ours, toys = lines["everything"], lines["toy everything"]
    assert (toys.runs, toys.views, toys.over) == (
        ours.runs,
        ours.views,
        ours.over,
    )
    assert toys.row.tokens == toys.row.raw_tokens == ours.row.tokens
    assert toys.row.evidence == ours.row.evidence
    assert toys.row.evidence.visible == 1.0
    assert toys.row.charges[0].usd_share == 1.0
    assert ours.over > 0, "the run has to be larger than the window"


def test_calls_parted_from_their_results_and_users_left_out_are_told(lines):
    toys = lines["toy last-n"]
    assert toys.illegal > 0
    assert toys.unsaid > 0
    assert toys.row.breaks_per_100 > 80
    assert toys.row.evidence.lost == 1.0


def test_what_a_peers_own_tool_returns_counts_as_recoverable_and_only_that(
    lines,
):
    evidence = lines["toy shelved"].row.evidence
    assert evidence.visible == 0.0
    assert evidence.lost == 0.0, "every name opens the whole result"
    assert 0 < evidence.recall_any < 1.0, (
        "a page holds only the beginning of it"
    )


def test_a_call_the_library_refuses_is_a_finding_and_the_run_goes_on(lines):
    toys = lines["toy refusing"]
    assert (toys.runs, toys.failed) == (1, 0)
    assert toys.views + toys.refused == toys.row.calls
    assert toys.row.evidence.lost > 0.9


def test_ours_is_what_ullage_replay_says_it_is(lines):
    replayed = replay_run(
        generated_run(40), WINDOW, profiles=[PROFILES["anthropic-5m"]]
    )
    ours = lines["ullage"]
    assert (ours.illegal, ours.over, ours.refused) == (0, 0, 0)
    assert ours.row.tokens == replayed.tokens
    assert ours.row.evidence.lost == 0.0


@pytest.mark.parametrize(
    ("policy", "trouble"),
    [
        ("dying", "ended without an answer"),
        ("garbled", "sent a message that is not in the history"),
        ("chatty", "answered out of protocol"),
        ("mute", "answered without a view"),
        ("slow", "took more than 0.5 s for an answer"),
    ],
)
def test_a_peer_that_fails_is_told_so_and_the_others_are_scored(
    policy, trouble
):
    seconds = 0.5 if policy == "slow" else 60.0
    found = scored(policy, runs=2, seconds=seconds)
    toys = found[f"toy {policy}"]
    assert (toys.runs, toys.failed, toys.row) == (0, 2, None)
    assert toys.troubles == {trouble: 2}
    assert found["everything"].runs == 2


def test_a_library_that_takes_too_long_for_a_whole_run_is_stopped():
    toys = scored("last-n", run_seconds=0.0)["toy last-n"]
    assert toys.runs == 0
    assert toys.troubles == {"took more than 0 s in all": 1}


def test_an_adapter_that_cannot_be_started_says_what_kind_of_error_it_was(
    tmp_path,
):
    adapter = tmp_path / "for_nobody.py"
    adapter.write_text("import a_library_that_is_not_there\n")
    with (
        PeerProcess(Path(sys.executable), adapter, seconds=60.0) as process,
        pytest.raises(
            Trouble, match=r"ended without an answer \(ModuleNotFoundError\)"
        ),
    ):
        process.begin("any", 1_000, [])


def test_a_library_that_cannot_be_installed_says_why_and_is_not_taken_as_installed(
    tmp_path,
):
    requirements = tmp_path / "nobody.txt"
    requirements.write_text("./a-folder-that-is-not-there\n")
    with pytest.raises(Trouble, match="cannot be installed: ERROR"):
        environments.python_of("nobody", requirements, tmp_path)
    assert [*tmp_path.rglob("ready")] == []


def test_each_peer_has_its_adapter_and_every_version_pinned_and_hashed():
    for peer in PEERS:
        assert peer.adapter.is_file()
        pins = peer.requirements.read_text().replace("\\\n", "").splitlines()
        assert pins
        assert all("==" in pin and "--hash=sha256:" in pin for pin in pins)
        source = peer.adapter.read_text()
        assert all(f'"{note.name}"' in source for note in peer.policies)


def kept(*policies):
    """What each contestant kept of one run, by name."""
    entries = [
        Entry("toy", policy, Path(sys.executable), TOY) for policy in policies
    ]
    with Arena(
        entries, [], seconds=60.0, run_seconds=60.0, hash_seed="random"
    ) as arena:
        return {
            name: one
            for _, name, one in arena.keeps(generated_run(40), [WINDOW], set())
        }


def test_a_result_is_whole_in_view_or_read_back_by_the_librarys_tool_or_gone():
    keeps = kept("everything", "last-n", "shelved")
    results = keeps["everything"].results
    assert results == keeps["everything"].shown > 0
    assert (keeps["toy shelved"].shown, keeps["toy shelved"].opened) == (
        0,
        results,
    )
    assert 0 < keeps["toy last-n"].shown < 6
    assert keeps["toy last-n"].opened == 0
    ours = keeps["ullage"]
    assert ours.opened > 0
    assert ours.shown + ours.opened == ours.results == results


def test_a_policy_that_shows_something_else_the_second_time_is_told():
    keeps = kept("last-n", "fickle")
    assert keeps["toy last-n"].differing == keeps["ullage"].differing == 0
    assert keeps["toy fickle"].differing == keeps["toy fickle"].views > 0


def test_a_peer_that_fails_keeps_nothing_and_says_why():
    keeps = kept("dying")
    assert keeps["toy dying"] == Keep(trouble="ended without an answer")
    row = markdown_of_keeps(
        {(WINDOW, "toy dying"): [keeps["toy dying"]]}
    ).splitlines()[-1]
    assert row == "| 16k | toy dying | 0 of 1 | 0 | 0 | 0 | 0 | 0 of 0 |"


def test_the_table_has_a_cell_for_every_heading(lines):
    head, rule, *rows = markdown_of([*lines.values()]).splitlines()
    assert (
        {row.count("|") for row in rows}
        == {head.count("|")}
        == {rule.count("|")}
    )
    assert len(rows) == 7

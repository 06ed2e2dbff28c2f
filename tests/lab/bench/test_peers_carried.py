"""Peers that have to carry everything, with a peer that needs no library."""

import sys
from contextlib import ExitStack
from pathlib import Path

from lab.bench.peers.arena import Entry
from lab.bench.peers.carried import Carry
from lab.bench.peers.generated import generated_run

TOY = (
    Path(__file__).parents[3]
    / "lab"
    / "bench"
    / "peers"
    / "adapters"
    / "toy.py"
)


def carried(*policies):
    """What each made of one run, by name."""
    entries = [
        Entry("toy", policy, Path(sys.executable), TOY) for policy in policies
    ]
    with ExitStack() as processes:
        made = Carry(entries, processes)(generated_run(40), [16_000])
        return {name: found for name, _, found in made}


def test_a_peer_that_sends_everything_costs_what_keeping_everything_costs():
    toy = carried("everything")["toy everything"]
    assert toy.shown.cost(0.1) == toy.raw.cost(0.1)
    assert toy.shown.far == toy.shown.far_shown > 0
    assert toy.shown.cut == toy.shown.unsaid == 0


def test_what_a_peer_leaves_out_is_paid_for_by_a_page_or_whole():
    found = carried("last-n", "shelved", "refusing")
    assert (
        found["toy last-n"].shown.lost == found["toy last-n"].shown.faults > 0
    )
    assert (
        found["toy shelved"].shown.lost
        == 0
        < found["toy shelved"].shown.faults
    )
    assert found["toy refusing"].over_limit > 0
    assert found["ullage"].shown.unsaid < found["toy last-n"].shown.unsaid


def test_a_run_on_which_a_peer_fails_counts_for_nobody(capsys):
    assert carried("everything", "dying") == {}
    assert (
        "a run is left out: toy dying ended without an answer"
        in capsys.readouterr().err
    )

"""The random walk of users' hands: it finds nothing in a few runs, and tells what it finds."""

import sys

import pytest

from lab import hand
from tests.world import World


def test_a_short_run_finds_nothing():
    assert hand.run(1, steps=5) is None


def test_what_goes_wrong_is_told_by_its_seed_and_its_steps(
    monkeypatch, capsys
):
    def is_legal(self, request, view):
        raise AssertionError("an illegal view")

    monkeypatch.setattr(World, "is_legal", is_legal)
    monkeypatch.setattr(sys, "argv", ["hand", "--steps", "20", "--seed", "7"])
    with pytest.raises(SystemExit) as ended:
        hand.main()
    assert ended.value.code == 1
    told = capsys.readouterr().out
    assert "seed 7: AssertionError: an illegal view" in told
    assert "20 steps in 1 runs from seed 7: 1 wrong" in told


def test_a_copy_at_the_end_keeps_nothing_in_its_place():
    """A worker that did not carry it out decides as the one that did."""
    assert hand.run(4752) is None


def test_what_an_undo_cannot_bring_back_is_the_same_from_the_ledger_alone():
    """The margin of the limit counts what the guard has just set aside."""
    assert hand.run(906) is None

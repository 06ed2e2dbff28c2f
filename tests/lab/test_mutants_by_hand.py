"""The faults put in by hand are faults of what is there."""

from pathlib import Path

import pytest

from lab.mutants_by_hand import MUTANTS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.what)
def test_a_mutant_changes_one_place_of_a_file_that_has_a_near_test(mutant):
    right = (ROOT / "src" / "ullage" / mutant.file).read_text(encoding="utf-8")
    assert right.count(mutant.right) == 1
    compile(right.replace(mutant.right, mutant.wrong), mutant.file, "exec")
    assert (ROOT / "tests" / mutant.nearest).exists()


def test_there_are_twenty_of_them():
    assert len(MUTANTS) >= 20

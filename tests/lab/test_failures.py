"""The guards that are taken out are there, and each has the tests of its failure."""

from pathlib import Path

import pytest

from lab.failures import GUARDS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.what)
def test_a_guard_is_one_place_of_a_file_and_has_a_test(guard):
    right = (ROOT / "src" / "ullage" / guard.file).read_text(encoding="utf-8")
    assert right.count(guard.right) == 1
    compile(right.replace(guard.right, guard.wrong), guard.file, "exec")
    file, _, named = guard.nearest.split()
    assert f"def {named}" in (ROOT / "tests" / file).read_text(encoding="utf-8")


def test_there_are_sixty_of_them():
    assert len(GUARDS) >= 60

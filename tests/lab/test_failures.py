"""The guards that are taken out are there, and each has the tests of its failure."""

import re
from pathlib import Path

import pytest

from lab.failures import GUARDS
from lab.mutants_by_hand import Fault

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.what)
def test_a_guard_is_one_place_of_a_file_and_has_a_test(guard):
    for fault in (Fault(*guard[:3]), *guard.also):
        file = ROOT / "src" / "ullage" / fault.file
        right = file.read_text(encoding="utf-8")
        assert right.count(fault.right) == 1
        wrong = right.replace(fault.right, fault.wrong)
        compile(wrong, fault.file, "exec")
    file, _, named = guard.nearest.split()
    assert f"def {named}" in (ROOT / "tests" / file).read_text(
        encoding="utf-8"
    )


def test_each_test_has_a_guard_of_its_own_that_is_taken_out():
    page = (ROOT / "docs" / "failures.md").read_text(encoding="utf-8")
    tests = re.findall(r"`(test_f\d+_\w+)`", page)
    named = [guard.nearest.split()[-1] for guard in GUARDS]
    alone = [
        [test for test in tests if test.startswith(name)] for name in named
    ]
    assert {found[0] for found in alone if len(found) == 1} == set(tests)
    assert f"takes {len(GUARDS)} guards out" in page

"""What `make test` compiles beforehand is what pytest would compile, and where it looks for it."""

import sys
from pathlib import Path

import pytest
from _pytest.assertion.rewrite import _read_pyc

from tests.bytecode import bytecode_of, compile_tests


@pytest.fixture
def folder(tmp_path):
    """A test and its helper, compiled."""
    (tmp_path / "test_one.py").write_text("def test():\n    assert 1 == 2\n")
    (tmp_path / "helper.py").write_text("ONE = 1\n")
    compile_tests(tmp_path)
    return tmp_path


def code_of(file):
    """The code pytest reads for a file; None where it would compile it."""
    return _read_pyc(file, bytecode_of(file))


def test_assertions_are_rewritten(folder):
    assert "@pytest_ar" in code_of(folder / "test_one.py").co_names
    assert list(folder.glob("__pycache__/helper.*.pyc"))


def test_a_file_that_changed_is_compiled_anew(folder):
    file = folder / "test_one.py"
    file.write_text("def test_another():\n    assert 1 == 3\n")
    assert code_of(file) is None
    compile_tests(folder)
    assert "test_another" in code_of(file).co_names


def test_pytest_looks_there():
    if sys.dont_write_bytecode:
        pytest.skip(
            "Python writes no bytecode here (make test has it written)"
        )
    assert code_of(Path(__file__)) is not None

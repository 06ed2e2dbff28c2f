"""Faults put into the core by hand, one at a time: the nearest test file must notice each.

    python -m lab.mutants_by_hand [--only NUMBER]        or: make mutants

A mutant is a line of ``src`` and what is written in its place. It is written into a copy of the
tree; the nearest test file runs against the copy until its first failure. The status is 1 if a
mutant lives. A test that passes with the mutant has nothing to say of that line.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

__all__ = ["MUTANTS", "Mutant"]

ROOT = Path(__file__).parents[1]


class Mutant(NamedTuple):
    """A fault.

    Attributes:
        file: the file in ``src/ullage``.
        right: what stands there, once.
        wrong: what is written in its place.
        nearest: the test file in ``tests`` that must fail.
        what: what goes wrong.
    """

    file: str
    right: str
    wrong: str
    nearest: str
    what: str


_LEDGER, _TESTS_LEDGER = "history/ledger.py", "history/test_ledger.py"
_WINDOW, _TESTS_WINDOW = "history/window.py", "history/test_window.py"
_GUARD, _TESTS_GUARD = "stages/emergency.py", "stages/test_emergency.py"
_ENGINE, _TESTS_ENGINE = "turn/engine.py", "turn/test_engine.py"
_MEMO, _TESTS_MEMO = "turn/memo.py", "turn/test_memo.py"

MUTANTS = (
    Mutant(
        _LEDGER,
        'Record(key, "batch", len(entry.batches), _batch_data(batch))',
        'Record(key, "batch", 0, _batch_data(batch))',
        _TESTS_LEDGER,
        "a second batch is written over the first",
    ),
    Mutant(
        _LEDGER,
        'if data[:1] == b"{"',
        'if data[:1] == b"["',
        _TESTS_LEDGER,
        "a batch with a lone surrogate is not read again",
    ),
    Mutant(
        _GUARD,
        "int(window.limit_tokens * start), surely=True)",
        "int(window.limit_tokens * start))",
        _TESTS_GUARD,
        "the guard trusts an estimate that may be too low",
    ),
    Mutant(
        _GUARD,
        "if first < end == window.size and window.transcript.closed(end):",
        "if False:",
        _TESTS_GUARD,
        "the newest turn is never condensed",
    ),
    Mutant(
        _GUARD,
        "may_go = Text if window.signed(index) else (Text, ToolCall)",
        "may_go = (Text, ToolCall)",
        _TESTS_GUARD,
        "the arguments of a signed call are cut",
    ),
    Mutant(
        _GUARD,
        ", Output(ref, index))",
        ",)",
        _TESTS_GUARD,
        "the index of what was condensed opens nothing",
    ),
    Mutant(
        _GUARD,
        "window.size - best >= keep",
        "window.size - best >= 1",
        _TESTS_GUARD,
        "the newest messages are condensed too",
    ),
)


def caught(mutant: Mutant, copy: Path) -> tuple[bool, float]:
    """Whether the nearest tests fail with the mutant in a copy of ``src``, and in how many s."""
    file = copy / "ullage" / mutant.file
    right = file.read_text(encoding="utf-8")
    assert right.count(mutant.right) == 1, f"not there once: {mutant.right}"
    wrong = right.replace(mutant.right, mutant.wrong)
    compile(wrong, mutant.file, "exec")  # a fault, and no file that cannot be read
    file.write_text(wrong, encoding="utf-8")
    words = ["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"tests/{mutant.nearest}"]
    with tempfile.TemporaryDirectory() as examples:
        settings = {"PYTHONPATH": str(copy), "HYPOTHESIS_STORAGE_DIRECTORY": examples}
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-B", *words],
            cwd=ROOT,
            env={**os.environ, **settings},
            capture_output=True,
            check=False,
        )
    file.write_text(right, encoding="utf-8")
    return done.returncode == 1, time.perf_counter() - started


def main() -> int:
    parser = argparse.ArgumentParser(prog="lab.mutants_by_hand", description=__doc__)
    parser.add_argument("--only", type=int, action="append", help="these mutants, by number")
    only = parser.parse_args().only
    lived = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        for number, mutant in enumerate(MUTANTS):
            if only and number not in only:
                continue
            is_caught, seconds = caught(mutant, copy)
            lived += not is_caught
            verdict = "caught" if is_caught else "LIVES "
            print(f"{number:2} {verdict} {seconds:5.1f} s  {mutant.nearest:28} {mutant.what}")
    return int(lived > 0)


if __name__ == "__main__":
    sys.exit(main())

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
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Fault(NamedTuple):
    """One place of a mutant; the fields are those of `Mutant`."""

    file: str
    right: str
    wrong: str


class Mutant(NamedTuple):
    """A fault.

    Attributes:
        file: the file in ``src/ullage``.
        right: what stands there, once.
        wrong: what is written in its place.
        nearest: the test file in ``tests`` that must fail, and perhaps ``-k`` and which of it.
        what: what goes wrong.
        also: where the same is guarded once more, as the kernel does what a stage may not: taken
            out with it.
    """

    file: str
    right: str
    wrong: str
    nearest: str
    what: str
    also: tuple[Fault, ...] = ()


_LEDGER, _TESTS_LEDGER = "core/history/ledger.py", "history/test_ledger.py"
_WINDOW, _TESTS_WINDOW = "core/history/window.py", "history/test_window.py"
_GUARD, _TESTS_GUARD = "policy/stages/emergency.py", "stages/test_emergency.py"
_ENGINE, _TESTS_ENGINE = "core/turn/engine.py", "turn/test_engine.py"
_CACHES, _TESTS_CACHES = "core/turn/caches.py", "turn/test_caches.py"

MUTANTS = (
    Mutant(
        _LEDGER,
        'Record(key, "batch", len(entry.batches), data)',
        'Record(key, "batch", 0, data)',
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
        _LEDGER,
        "    return (*values[:n], value)",
        "    return (*values[:n], *(values[n:] or (value,)))",
        _TESTS_LEDGER,
        "a batch that another worker wrote first does not win",
    ),
    Mutant(
        _LEDGER,
        "{**self.at(key).observed, observed.model: observed}",
        "{observed.model: observed}",
        _TESTS_LEDGER,
        "one model's usage takes the place of another's",
    ),
    Mutant(
        _LEDGER,
        "    except (msgspec.MsgspecError, ValueError):",
        "    except KeyError:",
        _TESTS_LEDGER,
        "a record of a newer version ends the session",
    ),
    Mutant(
        _GUARD,
        "window.within(start_limit, surely=True)",
        "window.within(start_limit)",
        _TESTS_GUARD,
        "the guard trusts an estimate that may be too low",
    ),
    Mutant(
        _GUARD,
        "may_take_all = reaches_tail and window.transcript.closed(end)",
        "may_take_all = False",
        _TESTS_GUARD,
        "the newest turn is never condensed",
    ),
    Mutant(
        "policy/stages/shrink.py",
        "kinds = Text if window.signed(index) else (Text, ToolCall)",
        "kinds = (Text, ToolCall)",
        _TESTS_GUARD,
        "the arguments of a signed call are cut",
    ),
    Mutant(
        "policy/stages/condense.py",
        "(ProposedEdit(edit, outputs),)",
        "(ProposedEdit(edit, outputs[:-1]),)",
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
    Mutant(
        _WINDOW,
        "total = self.meter.framing(message)",
        "total = 0",
        _TESTS_WINDOW,
        "a message costs less than its framing",
    ),
    Mutant(
        _WINDOW,
        "apply = self.calibration.upper if surely else self.calibration.apply",
        "apply = self.calibration.apply",
        _TESTS_WINDOW,
        "what surely fits is asked of an estimate",
    ),
    Mutant(
        "core/turn/batches.py",
        "        self.records.append(record)\n",
        "        pass\n",
        _TESTS_ENGINE,
        "a batch is shown and never kept",
    ),
    Mutant(
        "core/turn/batches.py",
        "        self.record(stage, key, edits, tokens_before, decision, keeps)\n"
        "        self.set_aside(cuts)",
        "        self.record(stage, key, edits, tokens_before, decision, keeps)",
        _TESTS_ENGINE,
        "what a batch leaves out is never kept",
    ),
    Mutant(
        _ENGINE,
        "        decides = length > settled\n",
        "        decides = True\n",
        "session/test_upgrades.py",
        "a settled place is decided again",
    ),
    Mutant(
        _ENGINE,
        "if reported - estimated < window.limit_tokens:",
        "if True:",
        _TESTS_ENGINE,
        "one absurd report makes every later request too long",
    ),
    Mutant(
        _ENGINE,
        "cut for cut in cuts if edited_from(window, [cut.edit]) >= editable",
        "cut for cut in cuts",
        _TESTS_ENGINE,
        "a batch is made in an open turn whose thinking must stay",
    ),
    Mutant(
        _CACHES,
        "if digest != history.transcript.digests[index]:",
        "if False:",
        _TESTS_CACHES,
        "a changed message is taken for the old one in other words",
    ),
    Mutant(
        _CACHES,
        "if history.meter is meter and match.length == len(history.copies):",
        "if match.length == len(history.copies):",
        _TESTS_CACHES,
        "a history goes on in the line of another model",
    ),
    Mutant(
        _CACHES,
        "return _Match(history, min(length, len(raws)), reworded)",
        "return _Match(history, length, reworded)",
        _TESTS_CACHES,
        "a rewound history is taken for the longer one",
    ),
)


def caught(mutant: Mutant, copy: Path) -> tuple[bool, float]:
    """Whether the nearest tests fail with the mutant in a copy of ``src``, and in how many s."""
    faults = [Fault(*mutant[:3]), *mutant.also]
    rights = [_plant(copy / "ullage" / fault.file, fault) for fault in faults]
    words = ["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    words += f"tests/{mutant.nearest}".split()
    with tempfile.TemporaryDirectory() as examples:
        settings = {
            "PYTHONPATH": str(copy),
            "HYPOTHESIS_STORAGE_DIRECTORY": examples,
        }
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-B", *words],
            cwd=ROOT,
            env={**os.environ, **settings},
            capture_output=True,
            check=False,
        )
    for fault, right in reversed([*zip(faults, rights, strict=True)]):
        (copy / "ullage" / fault.file).write_text(right, encoding="utf-8")
    return done.returncode == 1, time.perf_counter() - started


def _plant(file: Path, fault: Fault) -> str:
    """Write a fault into a file; returns what stood in it."""
    right = file.read_text(encoding="utf-8")
    if right.count(fault.right) != 1:
        raise SystemExit(
            f"{fault.file} does not hold this once, write it anew: {fault.right}"
        )
    wrong = right.replace(fault.right, fault.wrong)
    compile(wrong, fault.file, "exec")  # a fault, and no unreadable file
    file.write_text(wrong, encoding="utf-8")
    return right


def main(
    mutants: Sequence[Mutant] = MUTANTS, about: str | None = __doc__
) -> int:
    """Try mutants, print what came of each; 1 if one lives."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument(
        "--only", type=int, action="append", help="these mutants, by number"
    )
    only = parser.parse_args().only
    lived = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(
            ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__")
        )
        for number, mutant in enumerate(mutants):
            if only and number not in only:
                continue
            is_caught, seconds = caught(mutant, copy)
            lived += not is_caught
            verdict = "caught" if is_caught else "LIVES "
            print(
                f"{number:2} {verdict} {seconds:5.1f} s  {mutant.nearest:28} {mutant.what}"
            )
    return int(lived > 0)


if __name__ == "__main__":
    sys.exit(main())

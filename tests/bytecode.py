"""Compiles the tests as pytest would, in a process a core: each of its workers would do it again.

    python -m tests.bytecode

A file whose bytecode is there is left alone.
"""

import os
from compileall import compile_file
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from _pytest.assertion import rewrite

__all__ = ["bytecode_of", "compile_tests"]
ROOT = Path(__file__).parent
TOGETHER = 20
"""Files a process is given at once."""


def bytecode_of(file):
    """Where pytest looks for the bytecode of a test."""
    return rewrite.get_cache_dir(file) / f"{file.stem}{rewrite.PYC_TAIL}"


def compile_tests(folder=ROOT):
    """Compiles every file in a folder, those of tests with their assertions rewritten.

    Args:
        folder: an absolute path, for it stands in the bytecode.
    """
    files = [
        file
        for file in folder.rglob("*.py")
        if "node_modules" not in file.parts
    ]
    with ProcessPoolExecutor() as processes:
        list(processes.map(_compile, files, chunksize=TOGETHER))


def _compile(file):
    if not file.name.startswith(("test_", "conftest.")):
        compile_file(file, quiet=1)
        return
    bytecode = bytecode_of(file)
    if rewrite._read_pyc(file, bytecode) is not None:
        return
    status, code = rewrite._rewrite_test(file, None)
    bytecode.parent.mkdir(exist_ok=True)
    part = bytecode.with_suffix(f".{os.getpid()}")
    with part.open("wb") as output:
        rewrite._write_pyc_fp(output, status, code)
    part.replace(bytecode)  # whoever reads it meanwhile finds it whole


if __name__ == "__main__":
    compile_tests()

"""A type checker knows the reply: mypy and pyright read fourteen programs, with the vendors' types.

One of them is the README's, as it stands there.

`make pyright` fetches pyright, from PyPI, for this alone; it runs on the node there is.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import blocks_of

pytestmark = pytest.mark.xdist_group(
    "the type checkers"
)  # groups begin first: these take longest
HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PYRIGHT = Path(
    os.environ.get("PYRIGHT", ROOT / ".pyright/basedpyright/index.js")
)
LOOPS = ("loop_anthropic", "loop_openai", "loop_responses", "loop_gemini")
EXAMPLES = (
    *LOOPS,
    "wrapped_client",
    "coding_agent",
    "chat_service",
    "mcp_client",
)
README = next(
    block.text
    for block in blocks_of((ROOT / "README.md").read_text(encoding="utf-8"))
    if block.kind == "python"
)
PROGRAMS = [
    HERE / "calls.py",
    *sorted((HERE / "programs").glob("*.py")),
    *(ROOT / "examples" / f"{name}.py" for name in EXAMPLES),
]


def checked(*command, **more):
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, check=False, **more
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def readme(tmp_path):
    """The README's program in a file of its own."""
    file = tmp_path / "readme.py"
    file.write_text(README, encoding="utf-8")
    return file


@pytest.mark.timeout(600)
def test_mypy_knows_the_types_of_fourteen_programs(readme):
    pytest.importorskip("mypy", reason="mypy is not installed")
    assert len(PROGRAMS) == 13
    # with the options of `make check`, so that each finds in the cache what
    # the other read of src and of the SDKs
    programs = map(str, [*PROGRAMS, readme])
    checked(sys.executable, "-m", "mypy", "--strict", *programs)


@pytest.mark.timeout(600)
def test_pyright_knows_them_too(tmp_path, readme):
    node = shutil.which("node")
    if node is None or not PYRIGHT.exists():
        pytest.skip("pyright or node is not here: make pyright")
    paths = ", ".join(f'"{path.as_posix()}"' for path in [*PROGRAMS, readme])
    found = f'"typeCheckingMode": "standard", "extraPaths": ["{ROOT}", "{ROOT}/src"]'
    project = tmp_path / "pyrightconfig.json"
    project.write_text(f'{{"include": [{paths}], {found}}}', encoding="utf-8")
    checked(
        node,
        PYRIGHT,
        "--project",
        project,
        "--pythonpath",
        sys.executable,
        "--level",
        "error",
    )

"""The switch from a clone to a published package, made in every place that says how to install.

    python -m lab.release             switch this tree, before the first release is tagged
    python -m lab.release --check     prove on a copy that the switch is complete

The switch sets `ullage.core.installing.PUBLISHED` and writes the published form into the README,
the pages and the examples. The check switches a copy, runs the test of install lines there, builds
the wheel, and installs it by the published command from a folder that stands for the index.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from lab.packages import ROOT, run

CONSTANT = Path("src/ullage/core/installing.py")
FORMS = (
    (re.compile(r"pip install '\.\["), "pip install 'ullage["),
    (
        re.compile(r"pip install \.(?=[\s`]|$)", re.MULTILINE),
        "pip install ullage",
    ),
    (re.compile(r"`\.(\[[\w,-]+\])`"), r"`ullage\1`"),
    (re.compile(r"(?: +#)? in a clone of ullage"), ""),
    (re.compile(r"\n*<!-- clone -->.*?<!-- /clone -->", re.DOTALL), ""),
)
"""How a page says it before the release, and after it."""
PROGRAM = """
import ullage.core.installing as it
assert it.PUBLISHED
print(it.install_command('proxy'))
"""


def pages(root: Path) -> Iterator[Path]:
    """The files that tell a reader how to install: the README, the pages, the examples.

    Args:
        root: of the tree.
    """
    yield root / "README.md"
    generated = root / "docs" / "documents"
    yield from (
        page
        for page in (root / "docs").rglob("*.md")
        if generated not in page.parents
    )
    yield from (root / "examples").rglob("*.py")


def published(text: str) -> str:
    """A page as it reads once ullage is published."""
    for before, after in FORMS:
        text = before.sub(after, text)
    return text


def switch(root: Path) -> list[Path]:
    """Write the published form into a tree.

    Args:
        root: of the tree.

    Returns:
        The files that changed.
    """
    changed = []
    constant = root / CONSTANT
    texts = {
        page: published(page.read_text(encoding="utf-8"))
        for page in pages(root)
    }
    code = constant.read_text(encoding="utf-8")
    texts[constant] = code.replace(
        "\nPUBLISHED = False\n", "\nPUBLISHED = True\n"
    )
    for file, text in texts.items():
        if text != file.read_text(encoding="utf-8"):
            file.write_text(text, encoding="utf-8")
            changed.append(file)
    return changed


def check(folder: Path) -> None:
    """Switch a copy of the tree, and prove it.

    Args:
        folder: an empty one, for the copy.

    Raises:
        subprocess.CalledProcessError: a step failed.
    """
    tree, index = folder / "tree", folder / "index"
    files = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = run(*files, folder=ROOT).splitlines()
    for name in listed:
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    click.echo(f"{len(switch(tree))} files switched in a copy")
    # the copy's own test of install lines, with the copy's own package
    test = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "tests/house/test_installing.py",
    ]
    environment = {"PYTHONPATH": str(tree / "src"), "PATH": "/usr/bin:/bin"}
    subprocess.run(
        [*test, "-p", "no:cacheprovider"],
        cwd=tree,
        check=True,
        env=environment,
    )
    run(
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "-t",
        "wheel",
        "-d",
        index,
        folder=tree,
    )
    python = folder / "env" / "bin" / "python"
    run(sys.executable, "-m", "venv", folder / "env")
    offline: list[str | Path] = [
        "--quiet",
        "--no-deps",
        "--no-index",
        "--find-links",
        index,
    ]
    run(
        python,
        "-m",
        "pip",
        "install",
        *offline,
        "ullage[proxy]",
        folder=folder,
    )
    command = run(python, "-I", "-c", PROGRAM, folder=folder).strip()
    click.echo(f"the wheel installs by its name, and says: {command}")


@click.command()
@click.option(
    "--check", "only_check", is_flag=True, help="Prove the switch on a copy."
)
def main(only_check: bool) -> None:
    """Switch every install line from a clone to the published package."""
    if not only_check:
        for file in switch(ROOT):
            click.echo(file.relative_to(ROOT))
        return
    with tempfile.TemporaryDirectory() as folder:
        check(Path(folder))


if __name__ == "__main__":
    main()

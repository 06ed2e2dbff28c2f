"""The site: every page has a place in it, every public name its entry; built, it asks nobody."""

import atexit
import re
import shutil
import subprocess
import tempfile
import tomllib
from functools import cache
from pathlib import Path

import pytest

import ullage

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
SETTINGS = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))[
    "project"
]
BUILDER = ROOT / ".venv-docs" / "bin" / "zensical"


def placed(entries):
    """The pages of a part of the navigation, in order."""
    for entry in entries:
        for page in entry.values():
            yield from placed(page) if isinstance(page, list) else [page]


def test_every_page_has_one_place():
    assert sorted(placed(SETTINGS["nav"])) == sorted(PAGES)


def test_every_public_name_has_its_entry_in_the_reference():
    pages = (
        page.read_text(encoding="utf-8")
        for page in (DOCS / "api").glob("*.md")
    )
    entries = set(re.findall(r"(?m)^::: ullage\.(\w+)$", "\n".join(pages)))
    assert entries >= set(ullage.__all__) - {"__version__"}


@cache
def built():
    """What the builder said, and the folder of the site: built once for the tests of a process."""
    if not BUILDER.exists():
        pytest.skip("the builder is not installed: make docs")
    folder = Path(tempfile.mkdtemp(prefix="ullage-site-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in ("docs", "src"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "zensical.toml", folder)
    build = [BUILDER, "build", "--strict"]
    ran = subprocess.run(
        build, cwd=folder, capture_output=True, check=False, timeout=300
    )
    return ran, folder / "dist" / "site"


@pytest.mark.timeout(600)
@pytest.mark.xdist_group("the browser")  # which looks at the same pages
def test_it_is_built_without_a_warning_and_loads_nothing_from_elsewhere():
    ran, folder = built()
    assert ran.returncode == 0, ran.stdout.decode()
    for page in folder.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(
            r"<(?:script|img|iframe|link)[^>]*(?:src|href)=\"(https?:[^\"]*)",
            text,
        )
        assert loaded == [], page.name
    assert "Keeps one conversation within its window" in (
        folder / "api" / "index.html"
    ).read_text(encoding="utf-8")

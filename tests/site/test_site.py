"""The site: every page has a place in it, every public name its entry; built, it asks nobody."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

import ullage

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
SETTINGS = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
BUILDER = ROOT / ".venv-docs" / "bin" / "zensical"


def placed(entries):
    """The pages of a part of the navigation, in order."""
    for entry in entries:
        for page in entry.values():
            yield from placed(page) if isinstance(page, list) else [page]


def test_every_page_has_one_place():
    assert sorted(placed(SETTINGS["nav"])) == sorted(PAGES)


def test_every_public_name_has_its_entry_in_the_reference():
    pages = (page.read_text(encoding="utf-8") for page in (DOCS / "api").glob("*.md"))
    entries = set(re.findall(r"(?m)^::: ullage\.(\w+)$", "\n".join(pages)))
    assert entries >= set(ullage.__all__) - {"__version__"}


@pytest.mark.skipif(not BUILDER.exists(), reason="the builder is not installed: make docs")
def test_it_is_built_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path):
    for name in ("docs", "src"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    build = [BUILDER, "build", "--strict"]
    ran = subprocess.run(build, cwd=tmp_path, capture_output=True, check=False, timeout=100)
    assert ran.returncode == 0, ran.stdout.decode()
    built = tmp_path / "dist" / "site"
    for page in built.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe|link)[^>]*(?:src|href)=\"(https?:[^\"]*)", text)
        assert loaded == [], page.name
    assert "Keeps one conversation within its window" in (
        built / "api" / "sessions.html"
    ).read_text(encoding="utf-8")

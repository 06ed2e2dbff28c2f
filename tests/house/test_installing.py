"""Every install line follows one constant, and nothing names a package that is not ours."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from lab.release import pages, published
from ullage.core import installing
from ullage.core.installing import PUBLISHED, install_command, install_remedy

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]
PAGES = sorted(pages(ROOT))
SOURCE = sorted((ROOT / "src").rglob("*.py"))
DEPLOYED = sorted(
    file for file in (ROOT / "deploy").rglob("*") if file.is_file()
)
FROM_CLONE = re.compile(
    r"'\.\[|pip install \.(?=[\s`]|$)|in a clone of ullage|<!-- clone -->"
)
WRONG = (
    FROM_CLONE
    if PUBLISHED
    else re.compile(r"(?<!`)ullage\[[a-z]|pip install ['\"]?ullage")
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_installs_from_where_ullage_is(page):
    assert WRONG.findall(page.read_text()) == []


def test_the_source_asks_the_constant():
    """The only place that says where ullage comes from is `ullage.core.installing`."""
    own = re.compile(r"pip install ['\"]?(ullage|\.)|[Ii]nstall ullage\[")
    places = [file for file in SOURCE if own.search(file.read_text())]
    assert places == [Path(installing.__file__)]


def test_an_image_is_built_from_the_tree():
    for file in DEPLOYED:
        assert not re.search(
            r"pip install[^\n]*[ \"']ullage", file.read_text()
        ), file.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_names_extras_that_there_are(page):
    for names in re.findall(
        r"'?(?:\.|ullage)\[([a-z0-9,-]+)\]['`]", page.read_text()
    ):
        assert set(names.split(",")) <= set(EXTRAS)


@pytest.mark.parametrize("is_published", [False, True])
def test_the_command_and_the_remedy(monkeypatch, is_published):
    monkeypatch.setattr(installing, "PUBLISHED", is_published)
    where = "ullage" if is_published else "."
    assert install_command() == f"pip install {where}"
    assert (
        install_command("mcp", "proxy") == f"pip install '{where}[mcp,proxy]'"
    )
    clone = "" if is_published else " in a clone of ullage"
    assert install_remedy("proxy") == f"pip install '{where}[proxy]'{clone}"


def test_a_switched_page_reads_as_one_of_a_published_package():
    page = (
        "pip install '.[proxy]' other   # in a clone of ullage\n"
        "Run `pip install .` in a clone of ullage, or take `.[proxy]`.\n\n"
        "<!-- clone -->\nNothing is published yet.\n<!-- /clone -->\n\nNext.\n"
    )
    assert published(page) == (
        "pip install 'ullage[proxy]' other\n"
        "Run `pip install ullage`, or take `ullage[proxy]`.\n\nNext.\n"
    )
    assert all(
        FROM_CLONE.search(published(file.read_text())) is None
        for file in PAGES
    )


def test_the_image_is_given_what_the_wheel_is_built_from():
    """What `.dockerignore` lets through is enough for the build."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    let_in = {line[1:] for line in lines if line.startswith("!")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert let_in >= {"src", "pyproject.toml", "hatch_build.py", "README.md"}
    assert set(project["license-files"]) <= let_in
    tracked = subprocess.run(
        ["git", "ls-files", *let_in],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    assert (
        not tracked or {name.partition("/")[0] for name in tracked} == let_in
    )

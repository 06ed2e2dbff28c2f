"""What is given to users: a wheel and an sdist, built and installed as they would be."""

import email
import json
import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="hatchling is not installed")

ROOT = Path(__file__).parents[2]
DATA = {".py", ".typed", ".toml", ".html", ".css", ".js", ".json"}
pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("package"),
]  # built once


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel and the sdist, made without a network."""
    folder = tmp_path_factory.mktemp("dist")
    command = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "--directory",
        str(folder),
    ]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


@pytest.fixture(scope="module")
def names(built):
    return set(zipfile.ZipFile(built[0]).namelist())


def test_the_wheel_holds_the_library_whole_and_nothing_else(names):
    here = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    beside = {name for name in names if ".dist-info/" not in name}
    assert beside == here
    assert {Path(name).suffix for name in beside} <= DATA
    assert "ullage/py.typed" in beside


def test_the_sdist_holds_the_tests_and_no_rubbish(built):
    with tarfile.open(built[1]) as sdist:
        files = {name.split("/", 1)[1] for name in sdist.getnames()}
    assert {
        "pyproject.toml",
        "hatch_build.py",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
    } <= files
    assert any(name.startswith("tests/") for name in files)
    assert not [
        name for name in files if name.startswith(".") and name != ".gitignore"
    ]
    assert not [
        name
        for name in files
        if "__pycache__" in name or name.endswith(".pyc")
    ]


def test_its_metadata_say_what_it_is(built, names):
    (name,) = (name for name in names if name.endswith(".dist-info/METADATA"))
    told = email.message_from_bytes(zipfile.ZipFile(built[0]).read(name))
    assert told["License-Expression"] == "MIT"
    assert told["Requires-Python"] == ">=3.11"
    classifiers = told.get_all("Classifier")
    assert "Typing :: Typed" in classifiers
    assert {
        "exact",
        "proxy",
        "mcp",
        "adk",
        "langchain",
        "opentelemetry",
    } <= set(told.get_all("Provides-Extra"))
    needed = [
        each
        for each in told.get_all("Requires-Dist")
        if "extra ==" not in each
    ]
    assert len(needed) <= 8
    assert not [
        each
        for each in told.get_all("Requires-Dist")
        if "==" in each.split(";")[0]
    ]


def test_whoever_builds_a_release_is_named_by_a_commit():
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        used = re.findall(r"uses: (\S+)", workflow.read_text(encoding="utf-8"))
        assert used
        assert not [
            each
            for each in used
            if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", each)
        ]


def test_where_the_repository_is_told_the_readme_leads_there_from_anywhere():
    told = metadata(ULLAGE_REPOSITORY="https://git.example/ullage/")
    at = f"https://git.example/ullage/%s/v{told['version']}/"
    places = LINK.findall(told["readme"]["text"])
    assert len(places) > 15
    for image, place in places:
        assert place.startswith(at % ("raw" if image else "blob"))
        assert (
            ROOT / place.removeprefix(at % ("raw" if image else "blob"))
        ).exists(), place
    assert told["urls"]["Homepage"] == "https://git.example/ullage"
    assert {"Changelog", "Documentation", "Issues", "Security"} <= set(
        told["urls"]
    )


def test_where_it_is_not_told_no_address_is_made_up():
    told = metadata()
    assert "urls" not in told
    assert told["readme"]["text"] == (ROOT / "README.md").read_text(
        encoding="utf-8"
    )


LINK = re.compile(r"(!?)\[[^\]]*\]\(([^)]*)\)")


def metadata(**environment):
    command = [sys.executable, "-m", "hatchling", "metadata"]
    env = {**os.environ, "ULLAGE_REPOSITORY": "", **environment}
    return json.loads(
        subprocess.run(command, cwd=ROOT, env=env, capture_output=True).stdout
    )


def test_installed_in_an_environment_of_its_own_it_works(built, tmp_path):
    """Its dependencies are those of this environment; nothing of the clone is on the path."""
    venv.create(tmp_path / "env", with_pip=False)
    (site,) = (tmp_path / "env").glob("**/site-packages")
    zipfile.ZipFile(built[0]).extractall(site)
    (site / "beside.pth").write_text(
        "\n".join(path for path in sys.path if path.endswith("site-packages"))
    )
    python = tmp_path / "env" / "bin" / "python"
    found = (
        "import ullage, sys; print(ullage.__file__); ullage.Session('gpt-5.4')"
    )
    run = subprocess.run(
        [python, "-c", found],
        cwd=tmp_path,
        env={},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(run.stdout.strip()).is_relative_to(site)
    run = subprocess.run(
        [python, "-m", "ullage", "--version"],
        cwd=tmp_path,
        env={},
        capture_output=True,
        check=True,
    )
    assert b"ullage" in run.stdout

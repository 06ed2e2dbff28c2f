"""CITATION.cff, which researchers cite by: it is valid, and says what pyproject.toml says."""

import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_it_names_the_version_and_the_license_of_the_project():
    assert CITATION["title"] == PROJECT["name"]
    assert str(CITATION["version"]) == PROJECT["version"]
    assert CITATION["license"] == PROJECT["license"]


def test_it_has_what_the_format_asks_for_and_names_no_person():
    # https://github.com/citation-file-format/citation-file-format, schema 1.2.0
    assert CITATION["cff-version"] == "1.2.0"
    assert CITATION["type"] == "software"
    assert CITATION["message"]
    assert CITATION["authors"] == [{"name": "The ullage project"}]
    known = {"cff-version", "message", "type", "title", "abstract", "authors"}
    known |= {"version", "license", "keywords"}
    assert set(CITATION) <= known

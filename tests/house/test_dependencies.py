"""What comes with ``pip install ullage`` stays little; ``make packages`` counts it for real."""

import tomllib
from importlib.metadata import requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.house.test_house import ROOT


def brought(texts, found):
    """The names of all that is wanted, and of all that wants in turn; no extras."""
    for wanted in map(Requirement, texts):
        name = canonicalize_name(wanted.name)
        if name not in found and (
            wanted.marker is None or wanted.marker.evaluate({"extra": ""})
        ):
            found.add(name)
            brought(requires(name) or (), found)
    return found


def test_fewer_than_twenty_packages_come_along():
    project = tomllib.loads(
        (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    )["project"]
    names = brought(project["dependencies"], {"ullage"})
    assert "rich" in names
    assert len(names) < 20, sorted(names)

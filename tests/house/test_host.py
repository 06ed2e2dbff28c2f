"""What doors take of the core: one documented interface, no larger than a reader can hold."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

import ullage
import ullage.doors.host

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "ullage"
MOST_NAMES = 60
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
PAGE = PAGE[PAGE.index("## A door") : PAGE.index("## A wire")]
LINES = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (.+) \|$", PAGE, re.M)
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))[
    "tool"
]["importlinter"]
LAYERS, DOORS = CONTRACTS["contracts"][:2]
ROW_OF = {
    room.strip("() "): row
    for row, rooms in enumerate(reversed(LAYERS["layers"]))
    for room in rooms.split("|")
}


def imports(file):
    """Each name that a module takes from another, with that module, wherever it imports it."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module, alias.name) for alias in node.names)


def files_of(modules):
    places = [SRC.parent.joinpath(*module.split(".")) for module in modules]
    rooms = [file for place in places for file in sorted(place.rglob("*.py"))]
    return rooms + [
        place.with_suffix(".py") for place in places if not place.is_dir()
    ]


def homes():
    """The room of each name that the package gives out, by its table for type checkers."""
    tree = ast.parse((SRC / "__init__.py").read_text(encoding="utf-8"))
    (branch,) = (node for node in tree.body if isinstance(node, ast.If))
    for node in branch.body:
        for alias in node.names:
            is_room = node.module == "ullage"
            yield (
                alias.name,
                alias.name if is_room else node.module.split(".")[1],
            )


def test_the_interface_is_small_and_sorted():
    listed = ullage.doors.host.__all__
    assert len(listed) <= MOST_NAMES, (
        "make it a method of what a door has already"
    )
    assert listed == sorted(
        listed, key=lambda name: (not name.isupper(), name[0].islower(), name)
    )


def test_a_name_is_no_public_one_too():
    assert not {*ullage.doors.host.__all__} & {*ullage.__all__}


def test_each_name_has_a_line_on_the_page():
    named = [name for names, _ in LINES for name in re.findall(r"\w+", names)]
    assert sorted(named) == sorted(ullage.doors.host.__all__)


@pytest.mark.parametrize("name", ullage.doors.host.__all__)
def test_each_function_and_class_is_documented(name):
    value = getattr(ullage.doors.host, name)
    if (
        callable(value)
        and hasattr(value, "__module__")
        and value.__module__.startswith("ullage")
    ):
        assert value.__doc__


def test_each_name_is_taken_by_a_door():
    """One that no door needs is the core's own again."""
    taken = {
        name
        for file in files_of(DOORS["source_modules"])
        for _, name in imports(file)
    }
    assert {*ullage.doors.host.__all__} - taken == set()


def test_every_door_is_held_to_it():
    """Doors and integrations are; the page says of the rest above the interface why they are
    not.
    """
    doors = {
        f"ullage.doors.{path.name}"
        for path in (SRC / "doors").iterdir()
        if path.is_dir()
    }
    doors -= {"ullage.doors.host", "ullage.doors.__pycache__"}
    held = {
        ".".join(module.split(".")[:3]) for module in DOORS["source_modules"]
    }
    assert held == doors | {"ullage.integrations"}
    tools = {
        path.name for path in (SRC / "tools").iterdir() if path.is_dir()
    } - {"__pycache__"}
    assert all(f"`{tool}`" in PAGE for tool in {*tools, "testing"})


def test_a_public_name_is_taken_from_below():
    """The package itself stands in no row: what is taken from it is held to its own room's."""
    home_of = dict(homes())
    wrong = [
        f"{file.relative_to(SRC)} takes {name}"
        for file in SRC.rglob("*.py")
        if (room := file.relative_to(SRC).with_suffix("").parts[0]) in ROW_OF
        for module, name in imports(file)
        if module == "ullage" and name in home_of
        if home_of[name] != room and ROW_OF[home_of[name]] >= ROW_OF[room]
    ]
    assert wrong == []

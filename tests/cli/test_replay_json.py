"""The fields of `ullage replay --json`: those that are written are those of the page."""

import re
from pathlib import Path

import msgspec

import ullage as package
from tests.cli.terminal import ullage
from tests.cli.test_replay import errands
from ullage.core.tokens.models import counter_for
from ullage.tools.replay.cost.prices import Profile
from ullage.tools.replay.gates import GATES, JUDGE_MODEL
from ullage.tools.replay.readers import Damage
from ullage.tools.replay.rows import ReplaySummary

PAGE = Path(package.__file__).parents[2] / "docs" / "replay.md"
OBJECTS = {
    "rows[]": ReplaySummary,
    "profiles[]": Profile,
    "skipped[]": Damage,
}


def fields_of_page():
    """Every field the table names, with the objects it is in."""
    section = PAGE.read_text().split("## The fields of `--json`")[1]
    table = section.split("\n## ")[0]
    found, owners = [], [""]
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("| ") or cells[0] == "in":
            continue
        if cells[0]:
            owners = re.findall(r"`([^`]+)`", cells[0]) or [""]
        for owner in owners:
            for name in re.findall(r"`([^`]+)`", cells[1]):
                found.append(f"{owner}.{name}".lstrip("."))
    return found


def fields_of_type(kind, place):
    """Every field of a struct, and of the structs in it, by its place."""
    if isinstance(kind, msgspec.inspect.StructType):
        for field in kind.fields:
            path = f"{place}.{field.encode_name}"
            yield path
            yield from fields_of_type(field.type, path)
    elif isinstance(kind, msgspec.inspect.UnionType):
        for one in kind.types:
            yield from fields_of_type(one, place)
    elif isinstance(kind, msgspec.inspect.DictType):
        yield from fields_of_type(kind.value_type, f"{place}.*")
    elif isinstance(
        kind, msgspec.inspect.ListType | msgspec.inspect.VarTupleType
    ):
        yield from fields_of_type(kind.item_type, f"{place}[]")


def test_the_table_names_exactly_the_fields_that_are_written(tmp_path):
    words = ("--window", 16_000, "--jobs", 1, "--json", "--cache", "deepseek")
    written = ullage("replay", errands(tmp_path, 1), *words).json
    fields = list(written)
    for place, kind in OBJECTS.items():
        fields += fields_of_type(msgspec.inspect.type_info(kind), place)
    assert sorted(fields_of_page()) == sorted(fields)
    for name, kind in (("rows[]", "rows"), ("profiles[]", "profiles")):
        prefix = f"{name}."
        own = {
            field.removeprefix(prefix)
            for field in fields
            if field.startswith(prefix)
        }
        for one in written[kind]:
            assert set(one) == {at for at in own if not set(".[") & set(at)}


def test_it_says_which_version_wrote_it_and_how_tokens_were_counted(tmp_path):
    words = ("--window", 16_000, "--jobs", 1, "--json")
    written = ullage("replay", errands(tmp_path, 1), *words).json
    is_exact = counter_for(JUDGE_MODEL).exact
    assert written["format"] == 1
    assert written["version"] == package.__version__
    assert written["tokeniser"].startswith("estimate") != is_exact


def test_every_gate_that_may_be_named_is_explained_on_the_page():
    page = PAGE.read_text()
    assert [gate for gate in GATES if f"({gate})" not in page] == []

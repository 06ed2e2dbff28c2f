"""Every wire answers every question: what a new one lacks is told by name.

A wire is a folder and a line in `ullage.wires.WIRES`. These tests ask each of them for all that any
room asks for, so that a wire that is not whole fails here, and not in a proxy or a replay.
"""

import ast
from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import fields, replace

import ullage
from ullage.core.errors import ConfigError
from ullage.core.history.pairing import Pairing
from ullage.core.tokens.catalog import lookup
from ullage.core.values.toolset import ToolSpec
from ullage.doors.exchange import route_of
from ullage.tools.replay.cost.prices import PROFILES
from ullage.wires import (
    FORMATS,
    WIRES,
    Format,
    FormatName,
    recognise,
    wire_named,
)
from ullage.wires.convert.read import Reader
from ullage.wires.convert.turns import Conversion
from ullage.wires.convert.write import Writer, call_on
from ullage.wires.gemini.wire import WIRE as GEMINI
from ullage.wires.hidden_turns.dialect import Dialect, Stream
from ullage.wires.http import Http
from ullage.wires.repair.base import HistoryRepair
from ullage.wires.rules.problem import Check

SRC = Path(ullage.__file__).parent
EACH = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
LOOKUP = ToolSpec(
    "look_up", "Look it up.", {"type": "object", "properties": {}}
)

FORMAT_TABLES = (
    "name",
    "wire",
    "key",
    "blocks",
    "roles",
    "answer_limits",
    "families",
)
"""What a format has to say itself; its methods are abstract where they have no default."""


def missing(wire):
    """What a wire does not answer, each by its name and why."""
    conversion = Conversion(wire.name, wire.name, None, False)
    parts = {
        "rules.CHECK": (Check, wire.check),
        "repair.REPAIR": (HistoryRepair, lambda: wire.repair([], Pairing())),
        "convert.READER": (Reader, lambda: wire.reader(conversion)),
        "convert.WRITER": (Writer, lambda: wire.writer(conversion)),
        "hidden_turns.DIALECT": (
            Dialect,
            lambda: wire.dialect(wire.format, bool),
        ),
        "http.HTTP": (Http, lambda: wire.http),
    }
    lacking = []
    for name, (kind, part) in parts.items():
        try:
            if not isinstance(part(), kind):
                lacking.append(f"{name}: it is no {kind.__name__}")
        except (ImportError, AttributeError, TypeError) as error:
            lacking.append(f"{name}: {error}")
    empty = [
        field.name
        for field in fields(wire)
        if field.required and not getattr(wire, field.name)
    ]
    tables = [
        f"format.{name}"
        for name in FORMAT_TABLES
        if not getattr(wire.format, name)
    ]
    return [*lacking, *empty, *tables]


@EACH
def test_it_is_whole(wire):
    assert missing(wire) == []


def test_what_is_missing_is_told():
    """A wire whose folder holds nothing but the module that makes it."""
    bare = replace(
        GEMINI, home="ullage.wires.telex.wire", upstreams={}, provider=""
    )
    assert missing(bare) == [
        "rules.CHECK: No module named 'ullage.wires.telex'",
        "repair.REPAIR: No module named 'ullage.wires.telex'",
        "convert.READER: No module named 'ullage.wires.telex'",
        "convert.WRITER: No module named 'ullage.wires.telex'",
        "hidden_turns.DIALECT: No module named 'ullage.wires.telex'",
        "http.HTTP: No module named 'ullage.wires.telex'",
        "provider",
        "upstreams",
    ]


def test_a_part_that_leaves_a_method_out_is_told(monkeypatch):
    class Half(Writer):
        tool_name = None

    monkeypatch.setattr("ullage.wires.gemini.convert.WRITER", Half)
    (lacking,) = missing(GEMINI)
    assert lacking.startswith(
        "convert.WRITER: Can't instantiate abstract class Half"
    )
    assert "medium" in lacking


# Each on its own


@EACH
def test_names_agree(wire):
    assert wire.name == wire.format.name == wire.format.wire == wire.http.wire
    assert wire.name in get_args(FormatName)
    assert wire_named(wire.name) is wire
    assert FORMATS[wire.name] is wire.format
    assert Path(SRC.parent, *wire.home.split(".")).with_suffix(".py").exists()


@EACH
def test_its_example_model_and_its_price_profile_are_known(wire):
    assert lookup(wire.example_model).known
    assert wire.price_profile in PROFILES


@EACH
def test_an_example_of_it_is_recognised(wire):
    """The request that `convert` writes, with a tool, shows by itself what it is."""
    writer = wire.writer(Conversion("", wire.name, wire.example_model, False))
    messages = [wire.format.user("What is it?")]
    request = writer.request(["Be brief."], [LOOKUP], 500, messages)
    assert recognise(request) is wire.format


@EACH
def test_its_judge_and_its_dialect_are_of_its_history(wire):
    assert wire.check().key == wire.format.key
    assert wire.check({"model": wire.example_model}).head == {
        "model": wire.example_model
    }
    assert wire.repair([], Pairing()).wire.name == wire.name
    dialect = wire.dialect(wire.format, bool)
    assert issubclass(dialect.stream, Stream)
    assert dialect.added  # counts of usage that are summed over rounds


@EACH
def test_its_paths_are_of_no_other_wire(wire):
    kinds = [endpoint.kind for endpoint in wire.http.endpoints]
    assert "create" in kinds
    assert ("batch" in kinds) == (wire.http.batch is not None)
    for endpoint in wire.http.endpoints:
        path = "/v1" + endpoint.path.pattern.removesuffix("$")
        for group in (
            "(?P<model>[^/]+)",
            "(?P<model>[^/:]+)",
            "(?P<id>[^/]+)",
        ):
            path = path.replace(group, "x%20y")
        route = route_of(endpoint.method, path)
        assert (route.wire, route.kind) == (wire.name, endpoint.kind)
        assert "x y" in (route.model or route.reply_id or "x y")


@EACH
def test_an_error_of_ours_is_an_error_there(wire):
    assert wire.http.is_error(wire.http.error(502, "no more"))
    assert not wire.http.is_opening(wire.http.error(502, "no more"))


@EACH
def test_a_made_up_call_reads_back(wire):
    call = wire.format.call(
        call_on(wire.name, "look_up", {"n": 1}, '{"n": 1}', "call_1")
    )
    assert (call.name, call.id) == ("look_up", "call_1")
    assert '"n"' in call.arguments


@EACH
def test_it_says_which_ids_are_legal(wire):
    assert wire.format.call_ids("").match("call_1")
    assert wire.format.call_ids(wire.example_model).match("call_1")


def test_no_two_wires_have_a_name_or_a_path_of_one_method_in_common():
    names = [wire.name for wire in WIRES]
    assert len({*names}) == len(names)
    assert {*names} == {*get_args(FormatName)}
    paths = [
        (one.method, one.path.pattern)
        for wire in WIRES
        for one in wire.http.endpoints
    ]
    assert len({*paths}) == len(paths)


def test_upstreams_of_one_name_have_one_address():
    addresses = {}
    for wire in WIRES:
        for name, url in wire.upstreams.items():
            assert addresses.setdefault(name, url) == url


def test_a_wire_that_is_not_there():
    with pytest.raises(
        ConfigError, match=r"'telex' is not known.*openai-chat"
    ):
        wire_named("telex")


# Nowhere else


def test_wires_are_named_in_one_table():
    """Elsewhere a table of wires would have to grow with them: the wire's object has the answer."""
    names = {*FORMATS}
    tables = [
        (file.relative_to(SRC).as_posix(), node.lineno)
        for file in sorted(SRC.rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if len(constants_of(node) & names) >= 2
    ]
    assert [file for file, _ in tables] == ["wires/__init__.py"], tables


def constants_of(node):
    """The texts that are listed in a dict's keys, a tuple, a list or a set."""
    listed = (
        getattr(node, "keys", None) if isinstance(node, ast.Dict) else None
    )
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        listed = node.elts
    return {
        each.value for each in listed or () if isinstance(each, ast.Constant)
    }


def test_a_format_of_ones_own_stands_on_a_wire():
    """A host names the wire whose tools, calls and replies it has."""
    for format in FORMATS.values():
        assert isinstance(format, Format)
        assert wire_named(format.wire).format is format


@EACH
def test_a_part_that_is_loaded_is_not_looked_for_again(wire, monkeypatch):
    """A request at a proxy asks for the parts of a wire some twenty times."""
    parts = (wire.http, wire.check(), wire.dialect(wire.format, bool))
    monkeypatch.setattr(
        "ullage.wires.wire.import_module",
        lambda path: pytest.fail(f"{path} is imported once more"),
    )
    again = (wire.http, wire.check(), wire.dialect(wire.format, bool))
    assert [*map(type, again)] == [*map(type, parts)]

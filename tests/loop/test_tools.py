"""Plain functions as tools: what the model is told, and what is refused."""

from typing import Annotated, Literal

import pytest
from msgspec import Meta, Struct

from ullage import ConfigError
from ullage.doors.loop import tool
from ullage.doors.loop.tools import outcome_of


class Point(Struct):
    x: int
    y: int = 0


def search(
    pattern: Annotated[str, Meta(description="RE2 syntax")],
    paths: list[str],
    kind: Literal["text", "code"] = "text",
    *,
    limit: int | None = None,
) -> str:
    """Search files.

    Slow on large trees.
    """
    return f"{pattern} {paths} {kind} {limit}"


def test_a_schema_is_made_from_the_signature():
    made = tool(search)
    assert made.name == "search"
    assert made.description == "Search files.\n\nSlow on large trees."
    assert made.parameters == {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "RE2 syntax"},
            "paths": {"type": "array", "items": {"type": "string"}},
            "kind": {"enum": ["code", "text"]},
            "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
        "required": ["pattern", "paths"],
    }
    arguments = {"pattern": "a", "paths": ["b"], "limit": "3"}
    assert made.run(arguments) == "a ['b'] text 3"


def test_a_type_of_ones_own_is_described_and_made():
    def move(to: Point) -> str:
        """Move."""
        return f"{to.x} {to.y}"

    made = tool(move)
    assert made.parameters["properties"]["to"] == {"$ref": "#/$defs/Point"}
    assert made.parameters["$defs"]["Point"]["required"] == ["x"]
    assert made.run({"to": {"x": 1}}) == "1 0"


def test_a_parameter_without_a_type_takes_anything():
    def show(thing):
        return str(thing)

    made = tool(show)
    assert made.parameters["properties"] == {"thing": {}}
    assert made.run({"thing": [1]}) == "[1]"


def any_number(*numbers: int) -> str:
    return str(numbers)


def anything(**things: int) -> str:
    return str(things)


def by_place(first: int, /) -> str:
    return str(first)


def strange(what: complex) -> str:
    return str(what)


@pytest.mark.parametrize("function", [any_number, anything, by_place, strange])
def test_what_no_schema_can_tell_is_refused(function):
    with pytest.raises(ConfigError, match=f"{function.__name__}: no schema"):
        tool(function)


def test_what_a_tool_returns_is_text_json_or_an_error():
    assert outcome_of("a").text == "a"
    assert outcome_of(None).text == ""
    assert outcome_of({"n": [1, "ä"]}).text == '{"n":[1,"ä"]}'
    assert outcome_of(ValueError("no")).text == "ValueError: no"
    assert outcome_of({"\ud800": 1}).is_error

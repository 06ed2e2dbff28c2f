"""The keywords of generated schemas: the same is at fault as under the whole language."""

import json

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from ullage.doors.mcp.keywords import Keywords, understood

NAMES = st.sampled_from("ab")
SMALL = st.integers(0, 3)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 4)
    | st.just(1.5)
    | st.text("ab", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=2)
    ),
    max_leaves=5,
)
KINDS = st.sampled_from(
    ["object", "array", "string", "boolean", "null", "number", "integer"]
)


def written(inner):
    return st.fixed_dictionaries(
        {},
        optional={
            "title": st.just("a title"),
            "x-mine": st.just(1),
            "type": KINDS
            | st.lists(KINDS, min_size=1, max_size=3, unique=True),
            "const": VALUES,
            "enum": st.lists(
                VALUES, min_size=1, max_size=2, unique_by=json.dumps
            ),
            "required": st.lists(NAMES, max_size=2, unique=True),
            "minItems": SMALL,
            "maxLength": SMALL,
            "minimum": SMALL,
            "exclusiveMaximum": SMALL,
            "properties": st.dictionaries(NAMES, inner, max_size=2),
            "additionalProperties": inner,
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "$ref": st.just("#/$defs/inner"),
        },
    )


SCHEMAS = written(st.recursive(st.booleans(), written, max_leaves=3))


@settings(max_examples=150, deadline=None)
@given(
    SCHEMAS,
    st.booleans() | written(st.booleans()).filter(lambda s: "$ref" not in s),
    VALUES,
)
def test_it_finds_what_the_library_finds(schema, inner, value):
    schema = {**schema, "$defs": {"inner": inner}}
    assert understood(schema)
    fault = Keywords(schema, formats=True).fault(value)
    assert (fault is None) == jsonschema_rs.is_valid(schema, value)


def place(schema, value, *, formats=True):
    return Keywords(schema, formats=formats).fault(value)


def test_a_fault_has_the_place_of_what_is_at_fault():
    row = {
        "type": "object",
        "properties": {"id": {"type": "integer"}},
        "required": ["id"],
    }
    schema = {
        "properties": {"rows": {"items": {"$ref": "#/$defs/row"}}},
        "$defs": {"row": row},
    }
    assert place(schema, {"rows": [{"id": 1}, {"id": "2"}]}) == (
        "rows",
        None,
        "id",
    )
    assert place(schema, {"rows": [{"id": 1}, {}]}) == ("rows", None)
    assert place({"additionalProperties": {"type": "null"}}, {"a": 1}) == (
        "a",
    )
    assert place({"anyOf": [{"minItems": 2}, {"type": "null"}]}, [1]) == ()


def test_no_shortened_string_is_of_a_format():
    schema = {"format": "uri"}
    assert place(schema, "https://host/… 900 characters …/x") == ()
    assert (
        place(schema, "https://host/… 900 characters …/x", formats=False)
        is None
    )
    assert place(schema, "https://host/x") is None


def test_a_schema_of_itself_is_one():
    tree = {"properties": {"inner": {"$ref": "#"}, "n": {"type": "integer"}}}
    assert understood(tree)
    assert place(tree, {"inner": {"inner": {"n": "x"}}}) == (
        "inner",
        "inner",
        "n",
    )


def test_what_a_model_declares_is_understood():
    class Leaf(BaseModel):
        name: str
        tags: list[str] = []
        size: float | None = None

    class Tree(BaseModel):
        leaves: dict[str, Leaf]
        first: Leaf | None

    assert understood(Tree.model_json_schema())


@pytest.mark.parametrize(
    "schema",
    [
        True,
        7,
        {"pattern": "^a"},
        {"oneOf": [{}]},
        {"properties": {"a": {"not": {}}}},
        {"items": [{}]},
        {"items": {"anyOf": [5]}},
        {"type": "text"},
        {"type": [["null"]]},
        {"minItems": True},
        {"$ref": "#/$defs/none"},
        {"$ref": "https://host/schema.json"},
        {"$schema": "http://json-schema.org/draft-04/schema#"},
        {"properties": {"a": None}},
    ],
)
def test_all_else_is_not(schema):
    assert not understood(schema)

"""A structure in less room keeps its types, its names and its schema."""

import json

import jsonschema
import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mcp.values import JSON, SCHEMAS, valid
from ullage.doors.mcp.schema import faults_of
from ullage.doors.mcp.shorter import shorter


def no_fault(raw):
    return None


def kinds(value, of, path=()):
    """Every type and name of a value is one of the original's, at the same place."""
    assert type(value) is type(of) or {type(value), type(of)} <= {
        int,
        float,
    }, path
    if isinstance(value, dict):
        assert list(value) == list(of)
        for name in value:
            kinds(value[name], of[name], (*path, name))
    elif isinstance(value, list):
        assert len(value) <= len(of)
        for item in value:
            assert any(type(item) is type(one) for one in of)
    elif not isinstance(value, str):
        assert value == of


@given(JSON, st.integers(1, 80))
def test_types_and_names_stay_and_nothing_else_is_touched(value, room):
    raw = json.dumps(value).encode()
    shown = shorter(raw, room, no_fault)
    if shown is not None:
        assert len(shown) < len(raw)
        kinds(json.loads(shown), value)


@settings(deadline=None)
@given(st.data(), st.integers(1, 2_000))
def test_what_is_cut_is_valid_under_any_schema_the_original_is(data, room):
    schema = data.draw(SCHEMAS)
    value = data.draw(valid(schema))
    jsonschema.validate(value, schema)
    raw = json.dumps(value).encode()
    for fault in faults_of(json.dumps(schema).encode()):
        shown = shorter(raw, room, fault)
        if shown is not None:
            jsonschema.validate(json.loads(shown), schema)
            jsonschema_rs.validate(schema, json.loads(shown))


ROWS = {
    "rows": [
        {"id": n, "name": f"name {n}", "path": "/x" * 40} for n in range(2_000)
    ]
}


def cut(value, schema, room=2_000):
    (strict, _) = faults_of(json.dumps(schema).encode())
    shown = shorter(json.dumps(value).encode(), room, strict)
    return None if shown is None else json.loads(shown)


def test_a_list_keeps_its_first_and_its_last_items():
    rows = cut(ROWS, {"type": "object"})["rows"]
    assert rows[0] == ROWS["rows"][0]
    assert rows[-1] == ROWS["rows"][-1]
    assert 5 < len(rows) < 40
    assert all(row in ROWS["rows"] for row in rows)


def test_a_list_that_must_have_its_items_keeps_them_and_gives_their_texts():
    items = {"type": "array", "minItems": 100, "items": {"type": "string"}}
    schema = {"type": "object", "properties": {"lines": items}}
    shown = cut({"lines": ["x" * 500] * 100, "notes": ["y"] * 4_000}, schema)
    assert len(shown["lines"]) == 100
    assert max(map(len, shown["lines"])) < 100
    assert len(shown["notes"]) < 400


def test_a_string_with_a_pattern_stays_whole_and_the_rest_gives_more():
    key = {"type": "string", "pattern": "^[0-9a-f]+$"}
    row = {
        "type": "object",
        "properties": {"key": key, "text": {"type": "string"}},
    }
    schema = {
        "type": "object",
        "properties": {"rows": {"type": "array", "items": row}},
    }
    value = {"rows": [{"key": "ab" * 200, "text": "words " * 300}] * 3}
    shown = cut(value, schema, 1_500)
    assert [row["key"] for row in shown["rows"]] == ["ab" * 200] * len(
        shown["rows"]
    )
    assert all("… 1," in row["text"] for row in shown["rows"])


def test_one_of_several_forms_is_kept_in_its_form():
    forms = [
        {"type": "string", "minLength": 1_000},
        {"type": "array", "minItems": 3},
    ]
    schema = {"properties": {"of": {"oneOf": forms}}}
    shown = cut({"of": "x" * 1_000, "more": "y" * 4_000}, schema)
    assert shown["of"] == "x" * 1_000
    assert len(shown["more"]) < 2_000


def test_what_cannot_be_shortened_is_not():
    assert (
        cut({"n": list(range(500))}, {"properties": {"n": {"minItems": 500}}})
        is None
    )
    assert (
        cut({"k": "a" * 5_000}, {"properties": {"k": {"pattern": "^a*$"}}})
        is None
    )


def test_a_format_is_kept_too_unless_the_server_does_not_keep_it():
    schema = {"properties": {"at": {"type": "string", "format": "uri"}}}
    uri = "https://host/" + "x" * 3_000
    strict, lax = faults_of(json.dumps(schema).encode())
    assert shorter(json.dumps({"at": uri}).encode(), 500, strict) is None
    assert (
        shorter(json.dumps({"at": "no uri " * 500}).encode(), 500, strict)
        is None
    )
    assert (
        shorter(json.dumps({"at": "no uri " * 500}).encode(), 500, lax)
        is not None
    )


def test_numbers_stay_as_they_are_written():
    raw = (
        b'{"a":1.10,"b":123456789012345678901234567890,"c":"'
        + b"x" * 900
        + b'"}'
    )
    shown = shorter(raw, 300, no_fault)
    assert shown.startswith(
        b'{"a":1.10,"b":123456789012345678901234567890,"c":"xxx'
    )


@pytest.mark.parametrize(
    "raw", [b"5", b"null", b'"' + b"x" * 50 + b'"', b"[[[[]]]]", b"{}"]
)
def test_what_has_nothing_to_give_is_left(raw):
    assert shorter(raw, 1, no_fault) is None or len(
        shorter(raw, 1, no_fault)
    ) < len(raw)


def test_a_deep_value_is_no_danger():
    deep = b"[" * 100_000 + b"]" * 100_000
    assert shorter(deep, 10, no_fault) is None

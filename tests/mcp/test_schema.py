"""Faults under a declared schema, and what cannot be told."""

import json

import pytest

from ullage.doors.mcp.schema import faults_of


def first(schema, value):
    return faults_of(json.dumps(schema).encode())[0](
        json.dumps(value).encode()
    )


def test_a_fault_is_told_by_its_place_in_any_item():
    schema = {
        "properties": {
            "rows": {"items": {"properties": {"id": {"type": "integer"}}}}
        }
    }
    assert first(schema, {"rows": [{"id": 1}, {"id": "2"}]}) == (
        "rows",
        None,
        "id",
    )
    assert first(schema, {"rows": [{"id": 1}]}) is None


def test_without_a_schema_nothing_is_at_fault():
    (only,) = faults_of(None)
    assert only(b'{"any": "thing"}') is None


@pytest.mark.parametrize(
    "schema",
    [
        {"type": 5},
        {"$ref": "http://127.0.0.1:9/elsewhere.json"},
        {"pattern": "("},
        7,
    ],
)
def test_a_schema_that_is_none_or_points_elsewhere_tells_nothing(schema):
    assert faults_of(json.dumps(schema).encode()) is None


def test_drafts_are_told_apart():
    old = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "prefixItems": [{"type": "null"}],
    }
    new = {"prefixItems": [{"type": "null"}]}
    assert first(old, [1]) is None
    assert first(new, [1]) == (None,)


def test_a_value_that_cannot_be_read_is_at_fault_as_a_whole():
    assert faults_of(b"{}")[0](b"{") == ()

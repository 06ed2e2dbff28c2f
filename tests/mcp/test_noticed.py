"""A schema with room for the notice: what was valid stays valid, and so is the notice beside it."""

import json

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.mcp.values import SCHEMAS, valid
from ullage.doors.mcp.noticed import (
    declared_names,
    notice_name,
    schema_with_notice,
)


def told(schema):
    made = schema_with_notice(json.dumps(schema).encode())
    return None if made is None else json.loads(made)


@given(st.data(), SCHEMAS)
def test_a_valid_value_is_valid_with_a_notice_and_without(data, schema):
    value, declared = data.draw(valid(schema)), told(schema)
    check = jsonschema_rs.validator_for(declared)
    assert check.is_valid(value)
    assert check.is_valid({**value, "ullage": "[ullage: …]"})
    assert not check.is_valid({**value, "ullage": 5})


@pytest.mark.parametrize(
    "root",
    [
        {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object"}}},
        {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"patternProperties": {"^u": {"type": "integer"}}},
        {"propertyNames": {"maxLength": 2}},
        {"maxProperties": 1},
        {"properties": 5},
    ],
)
def test_a_schema_that_may_forbid_another_name_has_no_room(root):
    assert told({"type": "object", **root}) is None


def test_a_name_that_is_declared_or_required_is_the_server_s():
    schema = {
        "type": "object",
        "properties": {"ullage": {}},
        "required": ["ullage_notice"],
    }
    assert [*told(schema)["properties"]] == ["ullage", "ullage_cut"]
    assert notice_name(("ullage", "ullage_notice", "ullage_cut")) is None


def test_what_is_no_schema_has_no_room():
    assert declared_names(b"true") is None
    assert declared_names(b"{") is None

"""JSON with comments, and where its values stand."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.mcp.values import JSON
from ullage.doors.files.jsonc import (
    NotJson,
    scanned,
    with_value,
    without_value,
)


@given(JSON, st.sampled_from([None, 0, 2]))
def test_what_json_reads_it_reads(value, indent):
    text = json.dumps(value, indent=indent)
    assert scanned(text).value == value


def test_comments_and_last_commas_are_passed_over():
    text = '// a\n{"a": [1, /* two */ 2,], // b\n "b//": "/*", }\n/* end */'
    node = scanned(text)
    assert node.value == {"a": [1, 2], "b//": "/*"}
    a = node.fields["a"]
    assert text[a.start : a.stop] == "[1, /* two */ 2,]"
    assert [text[item.start : item.stop] for item in a.items] == ["1", "2"]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1", "{1: 2}", '{"a" 1}', "[1 2]", "1 2", "nul", "[" * 999],
)
def test_what_is_no_json_is_told(text):
    with pytest.raises(NotJson):
        scanned(text)


PATHS = st.lists(st.sampled_from(["a", "b", "env"]), min_size=1, max_size=3)


def with_parents(value, path, leaf):
    """A value with a leaf at a path, or None where something on the way is no object."""
    if not isinstance(value, dict):
        return None
    name, *rest = path
    if not rest:
        return {**value, name: leaf}
    inner = with_parents(value.get(name, {}), rest, leaf)
    return None if inner is None else {**value, name: inner}


@given(
    st.dictionaries(st.sampled_from(["a", "b", "env"]), JSON, max_size=3),
    PATHS,
    st.sampled_from([None, 0, 2, "\t"]),
    st.booleans(),
)
def test_a_value_is_set_and_nothing_else_changes(value, path, indent, is_dos):
    text = json.dumps(value, indent=indent)
    if is_dos:
        text = text.replace("\n", "\r\n")
    expected = with_parents(value, path, "http://x")
    if expected is None:
        with pytest.raises(NotJson):
            with_value(text, path, "http://x")
        return
    changed = with_value(text, path, "http://x")
    assert json.loads(changed) == expected
    assert json.loads(without_value(changed, path)) == without(expected, path)


def without(value, path):
    """A value without the field at a path."""
    if len(path) == 1:
        return {key: item for key, item in value.items() if key != path[0]}
    return {**value, path[0]: without(value[path[0]], path[1:])}


COMMENTED = """{
    // the model that I like
    "model": "opus", /* "env": {} */
    "env": {
        "OTHER": "1", // stays
    },
}
"""


def test_comments_and_last_commas_stay():
    changed = with_value(COMMENTED, ("env", "URL"), "http://x")
    assert changed == COMMENTED.replace(
        '"env": {\n', '"env": {\n        "URL": "http://x",\n'
    )
    assert without_value(changed, ("env", "URL")) == COMMENTED

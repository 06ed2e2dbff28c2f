"""JSON with comments, and where its values stand."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.mcp.values import JSON
from ullage.doors.mcp.jsonc import NotJson, scanned


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

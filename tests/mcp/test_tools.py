"""Lists of tools: the server's first, ours behind them, under names that are ours alone."""

import json

import pytest

from ullage.doors.mcp.frames import UnreadableFrame
from ullage.doors.mcp.tools import (
    TOOLSET,
    ToolListing,
    as_listed,
    extended,
    prefix_beside,
)

OURS = ["get_continuation", "tool_output_cache", "tool_output_cache_grep"]


def page(*names, **fields):
    return json.dumps(
        {"tools": [{"name": name} for name in names], **fields}
    ).encode()


def names(result):
    return [tool["name"] for tool in json.loads(result)["tools"]]


def test_ours_stand_at_the_end_of_the_last_page():
    first, listed = extended(
        page("a", nextCursor="2"), ToolListing(), is_first_page=True
    )
    assert first is None
    last, listed = extended(page("b", ttlMs=5), listed, is_first_page=False)
    assert names(last) == ["b", *OURS]
    assert json.loads(last)["ttlMs"] == 5
    assert {*listed.schemas} == {"a", "b"}


def test_the_same_list_gives_the_same_bytes():
    first, listed = extended(page("a"), ToolListing(), is_first_page=True)
    again, _ = extended(page("a"), listed, is_first_page=True)
    assert first == again


def test_a_clash_on_any_page_puts_a_prefix_before_all_of_ours():
    _, listed = extended(
        page("tool_output_cache", nextCursor="2"),
        ToolListing(),
        is_first_page=True,
    )
    last, listed = extended(page("b"), listed, is_first_page=False)
    assert names(last) == ["b", *("ullage_" + name for name in OURS)]
    assert listed.words.read_on("r", 0).startswith("ullage_get_continuation(")
    assert (
        prefix_beside({"get_continuation", "ullage_tool_output_cache"})
        == "ullage2_"
    )


def test_a_prefix_once_chosen_stays():
    _, listed = extended(
        page("get_continuation"), ToolListing(), is_first_page=True
    )
    again, _ = extended(page("other"), listed, is_first_page=True)
    assert names(again) == ["other", *("ullage_" + name for name in OURS)]


def test_a_call_is_ours_under_a_prefix_of_an_earlier_session_but_never_the_servers_own():
    listed = ToolListing({"get_continuation": None}, "ullage_")
    assert listed.words_of("get_continuation") is None
    assert listed.words_of("ullage_get_continuation").prefix == "ullage_"
    assert (
        ToolListing().words_of("ullage2_tool_output_cache").prefix
        == "ullage2_"
    )
    assert ToolListing().words_of("get") is None


def listed_schema(schema, **how):
    tool = {"name": "a", "outputSchema": schema}
    raw = json.dumps({"tools": [tool], "nextCursor": "2"}).encode()
    page, listed = extended(raw, ToolListing(), is_first_page=True, **how)
    assert json.loads(listed.schemas["a"]) == schema
    return (
        tool["outputSchema"]
        if page is None
        else json.loads(page)["tools"][0].get("outputSchema")
    )


def test_a_schema_declares_the_notice():
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
    }
    told = listed_schema(schema)
    assert told["properties"].pop("ullage")["type"] == "string"
    assert told == schema


def test_a_schema_without_room_for_a_notice_is_not_declared():
    for more in ({"maxProperties": 1}, {"anyOf": [{}]}, {"$ref": "#/$defs/A"}):
        assert listed_schema({"type": "object", **more}) is None
    assert listed_schema({"type": "array"}) is None


def test_a_tool_that_is_never_cut_keeps_its_schema():
    schema = {"type": "object", "maxProperties": 1}
    assert listed_schema(schema, may_cut=lambda tool: False) == schema


def test_tools_stay_the_bytes_they_were_and_schemas_are_remembered():
    tool = b'{"name":"a", "outputSchema": {"x":1.10},"_meta":{"n":123456789012345678901234567890}}'
    raw = b'{"tools":[' + tool + b"]}"
    made, listed = extended(
        raw, ToolListing(), is_first_page=True, may_cut=lambda name: False
    )
    assert made.startswith(b'{"tools":[' + tool + b",")
    assert listed.schemas == {"a": b'{"x":1.10}'}


@pytest.mark.parametrize(
    "raw",
    [
        b"{}",
        b"[]",
        b'{"tools": 5}',
        b'{"tools": [{}]}',
        b'{"tools": [{"name": 5}]}',
    ],
)
def test_what_is_no_list_of_tools_is_unreadable(raw):
    with pytest.raises(UnreadableFrame):
        extended(raw, ToolListing(), is_first_page=True)


def test_ours_only_read():
    tool = as_listed(TOOLSET.tools[0])
    assert tool["annotations"] == {
        "readOnlyHint": True,
        "openWorldHint": False,
    }
    assert (
        tool["inputSchema"]["properties"]["tool_call_id"]["description"]
        == "The ref to read"
    )

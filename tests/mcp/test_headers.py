"""What a stateless request says of itself in its headers."""

import json

import pytest

from ullage.doors.mcp.frames import UnreadableFrame, rpc_message_of
from ullage.doors.mcp.headers import marked_in, request_headers

META = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}


def marked(**properties):
    tool = {"name": "t", "inputSchema": {"properties": properties}}
    return marked_in(json.dumps({"tools": [tool, {"name": "u"}]}).encode())


def headers(arguments, marks, **params):
    asked = {"name": "t", "arguments": arguments, **META, **params}
    frame = json.dumps(
        {"id": 1, "method": "tools/call", "params": asked}
    ).encode()
    found = request_headers(rpc_message_of(frame), marks)
    return {
        name: value
        for name, value in found.items()
        if name.startswith("Mcp-Param")
    }


def test_marked_arguments_are_said_and_only_those():
    inner = {"properties": {"zone": {"x-mcp-header": "Zone"}}}
    marks = marked(
        region={"x-mcp-header": "Region"},
        n={"x-mcp-header": "N"},
        at=inner,
        other={"type": "null"},
    )
    assert marks == {
        "t": {("region",): "Region", ("n",): "N", ("at", "zone"): "Zone"}
    }
    given = {"region": "eu", "n": True, "at": {"zone": 7}, "other": "x"}
    wanted = {
        "Mcp-Param-Region": "eu",
        "Mcp-Param-N": "true",
        "Mcp-Param-Zone": "7",
    }
    assert headers(given, marks) == wanted
    assert headers({"region": None, "n": [1], "at": "none"}, marks) == {}
    assert headers("no object", marks) == {}


@pytest.mark.parametrize("text", ["naïve", " x", "=?base64?eA==?=", "a\nb"])
def test_what_a_header_cannot_hold_is_written_in_base64(text):
    given = headers(
        {"region": text}, marked(region={"x-mcp-header": "Region"})
    )
    assert given["Mcp-Param-Region"].startswith("=?base64?")
    assert "\n" not in given["Mcp-Param-Region"]


def test_a_mark_that_is_no_header_or_stands_elsewhere_means_nothing():
    assert marked(a={"x-mcp-header": "A: b\r\n"}, b={"x-mcp-header": 5}) == {
        "t": {}
    }
    assert marked(
        a={"items": {"properties": {"b": {"x-mcp-header": "B"}}}}
    ) == {"t": {}}
    with pytest.raises(UnreadableFrame):
        marked_in(b'{"tools": 5}')


@pytest.mark.parametrize(
    "frame",
    [
        b"[]",
        b'{"id":1,"result":{}}',
        b'{"id":1,"method":"x"}',
        b'{"method":"x","params":5}',
    ],
)
def test_before_that_protocol_nothing_is_said(frame):
    assert request_headers(rpc_message_of(frame), {}) == {}

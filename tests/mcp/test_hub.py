"""Several servers as one: lists joined, names apart, each call and each answer where it belongs."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.mcp.values import JSON
from ullage.doors.mcp.hub import Hub


def framed(**message):
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


class Talk:
    """A hub between the test as a client and the test as its servers."""

    def __init__(self, *servers):
        self.hub = Hub(servers or ("one", "two"))

    def ask(self, id, method, **params):
        return self.read(
            self.hub.from_client(framed(id=id, method=method, params=params))
        )

    def answer(self, server, id, **result):
        return self.read(
            self.hub.from_server(server, framed(id=id, result=result))
        )

    def error(self, server, id, code=-32601):
        error = {"code": code, "message": "no"}
        return self.read(
            self.hub.from_server(server, framed(id=id, error=error))
        )

    @staticmethod
    def read(moves):
        return [(name, json.loads(frame)) for name, frame in moves]

    def list(
        self, *lists, method="tools/list", field="tools", key="name", id=1
    ):
        self.ask(id, method)
        for server, names in zip(("one", "two"), lists, strict=False):
            moves = self.answer(
                server,
                id,
                **{field: [{key: name, "x": server} for name in names]},
            )
        ((_, message),) = moves
        return [(item[key], item["x"]) for item in message["result"][field]]


def test_what_both_have_is_told_apart_and_stays_so():
    talk = Talk()
    both = [
        ("status", "one"),
        ("a", "one"),
        ("two_status", "two"),
        ("b", "two"),
    ]
    assert talk.list(["status", "a"], ["status", "b"]) == both
    assert talk.list(["a", "status"], ["b", "status"], id=2) == [
        both[1],
        both[0],
        both[3],
        both[2],
    ]
    assert talk.list([], ["status"], id=3) == [("two_status", "two")]


def test_a_call_goes_to_the_server_under_its_own_name():
    talk = Talk()
    talk.list(["status"], ["status"])
    for shown, server in (("status", "one"), ("two_status", "two")):
        ((to, message),) = talk.ask(
            5, "tools/call", name=shown, arguments={"n": 1}
        )
        assert (to, message["params"]) == (
            server,
            {"name": "status", "arguments": {"n": 1}},
        )
        frame = framed(id=5, result={"content": []})
        assert talk.hub.from_server(server, frame) == [(None, frame)]


def test_what_nobody_has_listed_is_refused_unless_its_name_says_whose_it_is():
    talk = Talk()
    ((to, message),) = talk.ask(5, "tools/call", name="status")
    assert to is None
    assert "nobody has listed" in message["error"]["message"]
    ((to, message),) = talk.ask(5, "tools/call", name="two_status")
    assert (to, message["params"]["name"]) == ("two", "status")


def test_a_server_of_several_takes_none_of_our_names():
    talk = Talk()
    talk.list(["get_continuation", "ullage_get_continuation"], ["b"])
    ((to, message),) = talk.ask(5, "tools/call", name="one_get_continuation")
    assert (to, message["params"]["name"]) == ("one", "get_continuation")
    ((to, message),) = talk.ask(6, "tools/call", name="get_continuation")
    assert (to, "error" in message) == (None, True)


def test_a_server_alone_keeps_its_names():
    hub = Hub(["one"])
    hub.from_client(framed(id=1, method="tools/list"))
    listed = framed(id=1, result={"tools": [{"name": "get_continuation"}]})
    ((_, frame),) = hub.from_server("one", listed)
    assert json.loads(frame)["result"]["tools"] == [
        {"name": "get_continuation"}
    ]


def test_a_server_that_has_no_such_list_has_an_empty_one():
    talk = Talk()
    talk.ask(1, "prompts/list")
    assert talk.error("one", 1) == []
    ((_, message),) = talk.answer("two", 1, prompts=[{"name": "p"}])
    assert message["result"] == {"prompts": [{"name": "p"}]}
    talk.ask(2, "prompts/list")
    talk.error("one", 2)
    ((to, message),) = talk.error("two", 2)
    assert (to, message["error"]["code"]) == (None, -32601)


def test_pages_go_on_where_each_server_left_off():
    talk = Talk()
    talk.ask(1, "tools/list")
    talk.answer("one", 1, tools=[{"name": "a"}], nextCursor="one's")
    ((_, message),) = talk.answer("two", 1, tools=[{"name": "b"}])
    cursor = message["result"]["nextCursor"]
    ((to, message),) = talk.ask(2, "tools/list", cursor=cursor)
    assert (to, message["params"]["cursor"]) == ("one", "one's")
    ((_, message),) = talk.answer("one", 2, tools=[{"name": "c"}])
    assert message["result"] == {"tools": [{"name": "c"}]}


def test_resources_are_read_where_they_were_listed():
    talk = Talk()
    talk.list(
        ["u:a"], ["u:b"], method="resources/list", field="resources", key="uri"
    )
    assert [to for to, _ in talk.ask(2, "resources/read", uri="u:b")] == [
        "two"
    ]


def test_introductions_are_joined():
    talk = Talk()
    assert [
        to for to, _ in talk.ask(1, "initialize", protocolVersion="2025-11-25")
    ] == [
        "one",
        "two",
    ]
    can = {"tools": {"listChanged": True}}
    talk.answer(
        "one",
        1,
        protocolVersion="2025-06-18",
        capabilities=can,
        serverInfo={"name": "1"},
    )
    ((_, message),) = talk.answer(
        "two",
        1,
        protocolVersion="2025-11-25",
        capabilities={"tools": {}, "prompts": {}},
        serverInfo={"name": "2"},
        instructions="be kind",
    )
    result = message["result"]
    assert result["capabilities"] == {
        "tools": {"listChanged": True},
        "prompts": {},
    }
    assert result["protocolVersion"] == "2025-06-18"
    assert result["instructions"] == "two: be kind"


def test_all_must_know_the_stateless_protocol_or_all_shake_hands():
    talk = Talk()
    talk.ask(1, "server/discover")
    talk.answer("one", 1, supportedVersions=["2026-07-28"], capabilities={})
    ((_, message),) = talk.error("two", 1)
    assert message["error"]["code"] == -32601


def test_what_two_servers_ask_under_one_id_is_answered_to_each():
    talk = Talk()
    asks = framed(id=0, method="sampling/createMessage", params={})
    ((_, one),) = talk.read(talk.hub.from_server("one", asks))
    ((_, two),) = talk.read(talk.hub.from_server("two", asks))
    assert one["id"] != two["id"]
    for server, ours in (("two", two["id"]), ("one", one["id"])):
        answer = framed(id=ours, result={"of": server})
        ((to, message),) = talk.read(talk.hub.from_client(answer))
        assert (to, message["id"], message["result"]) == (
            server,
            0,
            {"of": server},
        )
    assert talk.hub.from_client(framed(id=one["id"], result={})) == []


def test_a_cancellation_goes_to_whom_it_is_for():
    talk = Talk()
    talk.list(["a"], ["b"])
    talk.ask(5, "tools/call", name="b")
    cancelled = framed(
        method="notifications/cancelled", params={"requestId": 5}
    )
    assert talk.hub.from_client(cancelled) == [("two", cancelled)]
    ((_, asks),) = talk.read(
        talk.hub.from_server("one", framed(id=7, method="roots/list"))
    )
    gone = framed(method="notifications/cancelled", params={"requestId": 7})
    ((_, message),) = talk.read(talk.hub.from_server("one", gone))
    assert message["params"]["requestId"] == asks["id"]


def test_the_end_of_a_server_is_told_to_who_waits_for_it():
    talk = Talk()
    talk.list(["a"], ["b"])
    talk.ask(5, "tools/call", name="b")
    talk.ask(6, "tools/list")
    talk.answer("one", 6, tools=[{"name": "a"}])
    moves = Talk.read(talk.hub.ended("two", "it fell"))
    assert [(to, message["id"]) for to, message in moves] == [
        (None, 5),
        (None, 6),
    ]
    assert "it fell" in moves[0][1]["error"]["message"]
    assert moves[1][1]["result"]["tools"] == [{"name": "a"}]
    ((to, message),) = talk.ask(7, "tools/call", name="b")
    assert to is None
    assert "has ended" in message["error"]["message"]


@given(st.lists(st.tuples(st.sampled_from(["one", "two"]), JSON), max_size=6))
def test_notifications_of_any_server_pass_unchanged(told):
    talk = Talk()
    for server, params in told:
        frame = framed(method="notifications/progress", params=params)
        assert talk.hub.from_server(server, frame) == [(None, frame)]


def test_a_second_answer_to_a_joined_request_changes_nothing():
    """The first of each server stands, and the client gets one answer of both."""
    told = []
    talk = Talk()
    talk.hub = Hub(["one", "two"], told.append)
    talk.ask(1, "tools/list")
    assert talk.answer("one", 1, tools=[{"name": "a"}]) == []
    assert talk.answer("one", 1, tools=[{"name": "forged"}]) == []
    ((to, message),) = talk.answer("two", 1, tools=[{"name": "b"}])
    assert (to, [tool["name"] for tool in message["result"]["tools"]]) == (
        None,
        ["a", "b"],
    )
    assert told == ["an answer to no open request was dropped"]


def test_a_server_cannot_answer_for_another():
    """Nor for a call, nor for a list that only the other still owes."""
    told = []
    talk = Talk()
    talk.hub = Hub(["one", "two"], told.append)
    talk.list(["a"], ["b"])
    talk.ask(5, "tools/call", name="a", arguments={})
    assert talk.answer("two", 5, content=[]) == []
    frame = framed(id=5, result={"content": []})
    assert talk.hub.from_server("one", frame) == [(None, frame)]
    assert len(told) == 1


@pytest.mark.parametrize(
    "frame", [b"", b"[]\n", b"{\n", b'{"id": 1, "result": []}\n']
)
def test_what_cannot_be_read_passes(frame):
    assert Hub(["one"]).from_server("one", frame) == [(None, frame)]


def test_a_batch_goes_to_each_message_s_server():
    talk = Talk()
    talk.list(["a"], ["b"])
    calls = [
        framed(id=n, method="tools/call", params={"name": n}) for n in "ab"
    ]
    moves = talk.hub.from_client(
        b"[" + calls[0].strip() + b"," + calls[1].strip() + b"]\n"
    )
    assert moves == [("one", calls[0]), ("two", calls[1])]
    both = b'[{"id":"a","result":{}},{"method":"x"}]\n'
    assert talk.hub.from_server("one", both) == [
        (None, b'{"id":"a","result":{}}\n'),
        (None, b'{"method":"x"}\n'),
    ]

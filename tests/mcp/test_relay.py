"""The proxy without I/O: what is not ours arrives as it was sent, whatever it is."""

import json
import threading
import tracemalloc
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from tests.mcp.scripted import ROWS, TEXT, line
from tests.mcp.values import JSON
from ullage.core.errors import StoreError
from ullage.core.values.notices import pointers
from ullage.doors.mcp.frames import Id, rpc_message_of
from ullage.doors.mcp.relay import SessionRelay
from ullage.doors.mcp.settings import McpSettings, rule_of
from ullage.doors.mcp.spool import Spool
from ullage.stores import MemoryStore

LOG = "".join(map(line, range(3_000)))


def framed(**message):
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


class Talk:
    """A relay between a client and a server, both of which are the test."""

    def __init__(self, *limits, store=None):
        self.told = []
        self.store = store or MemoryStore()
        rules = tuple(map(rule_of, limits or ["4000"]))
        self.relay = SessionRelay(
            McpSettings(limits=rules), self.store, self.told.append
        )

    def ask(self, id, method, **params):
        return self.relay.from_client(
            framed(id=id, method=method, params=params)
        )

    def answer(self, id, **result):
        return json.loads(
            self.relay.from_server(framed(id=id, result=result))
        )["result"]

    def call(self, id, tool, /, meta=None, **arguments):
        params = {
            "name": tool,
            "arguments": arguments,
            **({"_meta": meta} if meta else {}),
        }
        return self.ask(id, "tools/call", **params)

    def read(self, tool, /, meta=None, **arguments):
        """The answer to a call of one of our tools, which the server never sees."""
        on, back = self.call(99, tool, meta=meta, **arguments)
        assert on == b""
        return json.loads(back)["result"]

    def list(self, *tools, id=1):
        self.ask(id, "tools/list")
        return [
            tool["name"]
            for tool in self.answer(id, tools=list(tools))["tools"]
        ]


def said(text):
    return {"content": [{"type": "text", "text": text}]}


def ref_in(result):
    return pointers(result["content"][0]["text"])[0].ref


# What is ours


def test_an_old_notice_opens_though_the_server_took_the_name():
    talk = Talk()
    talk.list({"name": "log"})
    talk.call(2, "log")
    ref = ref_in(talk.answer(2, **said(LOG)))
    talk.list({"name": "log"}, {"name": "get_continuation"}, id=3)
    page = talk.read("get_continuation", tool_call_id=ref, offset=0)
    assert page["content"][0]["text"].startswith(line(0))
    on, back = talk.call(4, "get_continuation", tool_call_id="theirs")
    assert (json.loads(on)["id"], back) == (4, b"")


# What is not ours

METHODS = st.sampled_from(
    ["initialize", "ping", "prompts/get", "sampling/createMessage", "x"]
)
IDS = st.integers(0, 3) | st.sampled_from(["0", "a"])
MESSAGES = st.one_of(
    st.builds(
        lambda id, method, params: {
            "id": id,
            "method": method,
            "params": params,
        },
        IDS,
        METHODS,
        JSON,
    ),
    st.builds(
        lambda method, params: {"method": method, "params": params},
        METHODS,
        JSON,
    ),
    st.builds(lambda id, result: {"id": id, "result": result}, IDS, JSON),
    st.builds(lambda id, error: {"id": id, "error": error}, IDS, JSON),
    st.builds(lambda id: {"id": id, "method": "tools/list"}, IDS),
    st.builds(
        lambda id, p: {"id": id, "method": "tools/call", "params": p},
        IDS,
        JSON,
    ),
    st.builds(
        lambda p: {"method": "notifications/cancelled", "params": p}, JSON
    ),
    JSON,
)
FRAMES = (
    st.binary(max_size=40)
    | MESSAGES.map(lambda m: json.dumps(m).encode())
    | MESSAGES.map(
        lambda m: (
            json.dumps(m, indent=1, ensure_ascii=False)
            .replace("\n", " ")
            .encode()
            + b"\r\n"
        )
    )
)


@given(st.lists(st.tuples(st.booleans(), FRAMES), max_size=12))
def test_any_frames_in_any_order_arrive_unchanged(frames):
    """But for an answer to nothing that is open: nobody waits for it."""
    talk = Talk()
    for from_client, frame in frames:
        if from_client:
            assert talk.relay.from_client(frame) == (frame, b"")
        else:
            message = rpc_message_of(frame)
            is_answer = (
                message
                and message.method is UNSET
                and message.id in talk.relay.pending
            )
            is_other = (
                not message
                or message.method is not UNSET
                or not isinstance(message.id, Id)
            )
            given = talk.relay.from_server(frame)
            assert given in (
                (frame,) if is_answer or is_other else (frame, b"")
            )


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["ask", "cancel", "answer", "twice", "stray", "batch"]
            ),
            # "0" answers 0 as well: some servers write a number as a string
            st.integers(0, 3) | st.just("a"),
        )
    )
)
def test_a_client_gets_one_answer_to_what_it_asked_and_none_to_anything_else(
    steps,
):
    """Whatever the server sends, a second time, unasked or in a batch; each drop is told of."""
    talk, open_, dropped = Talk(), set(), 0
    for step, id in steps:
        answer = framed(id=id, result=said("x"))
        if step == "ask":
            talk.call(id, "say")
            open_.add(id)
        elif step == "cancel":
            talk.relay.from_client(
                framed(
                    method="notifications/cancelled", params={"requestId": id}
                )
            )
            if id in open_:  # its answer may be on its way, and nobody minds
                assert talk.relay.from_server(answer) == answer
            open_.discard(id)
        elif id not in open_:
            assert talk.relay.from_server(answer) == b""
            dropped += 1
        elif step == "batch":
            both = b"[" + answer.strip() + b"," + answer.strip() + b"]\n"
            assert json.loads(talk.relay.from_server(both)) == [
                json.loads(answer)
            ]
            open_.discard(id)
            dropped += 1
        else:
            assert talk.relay.from_server(answer) == answer
            open_.discard(id)
    assert len(talk.told) == min(dropped, 10)
    assert all(
        "an answer to no open request was dropped" in line
        for line in talk.told
    )


def test_two_threads_with_the_same_answer_bring_one():
    """The second is dropped though the first is still being read."""
    talk = Talk()
    talk.call(1, "say")
    inside, go_on, made = threading.Event(), threading.Event(), []

    class Slow(MemoryStore):
        def put(self, tenant, outputs):
            inside.set()
            go_on.wait()
            super().put(tenant, outputs)

    talk.relay._store = Slow()
    answer = framed(id=1, result=said(LOG))
    first = threading.Thread(
        target=lambda: made.append(talk.relay.from_server(answer))
    )
    first.start()
    inside.wait()
    assert talk.relay.from_server(answer) == b""
    go_on.set()
    first.join()
    assert len(json.loads(made[0])["result"]["content"][0]["text"]) <= 4_000
    assert talk.told == ["an answer to no open request was dropped"]


def test_an_id_that_the_server_writes_as_a_string_is_the_same():
    """Some do, and clients take it; the second answer is dropped under either spelling."""
    talk = Talk()
    talk.call(1, "say")
    first = json.loads(
        talk.relay.from_server(framed(id="1", result=said(LOG)))
    )
    assert len(first["result"]["content"][0]["text"]) <= 4_000
    assert talk.relay.from_server(framed(id=1, result=said(LOG))) == b""


@pytest.mark.parametrize(
    "unread", [b'{"id": 7, "method": "x", \n', b'[{"id": 7}, 5]\n']
)
def test_behind_a_frame_that_was_passed_on_unread_an_unknown_answer_may_be_its_own(
    unread,
):
    talk = Talk()
    talk.call(1, "say")
    talk.relay.from_client(unread)
    answer = framed(id=7, result={})
    assert talk.relay.from_server(answer) == answer
    assert talk.relay.from_server(framed(id=1, result={})) != b""
    assert talk.relay.from_server(framed(id=1, result={})) == b""


def test_an_id_may_be_used_again_once_it_was_answered():
    talk = Talk()
    for _ in range(3):
        talk.call(1, "say")
        assert talk.relay.from_server(framed(id=1, result={})) != b""
        assert talk.relay.from_server(framed(id=1, result={})) == b""


@given(st.lists(IDS, unique=True, max_size=5), st.randoms())
def test_calls_are_cut_in_whatever_order_they_are_answered(ids, random):
    talk = Talk()
    for id in ids:
        talk.call(id, "say")
    random.shuffle(ids)
    for id in ids:
        result = talk.answer(id, **said(f"{id!r} {LOG}"))
        assert result["content"][0]["text"].startswith(f"{id!r} line 0")
        assert len(result["content"][0]["text"]) <= 4_000


def test_a_request_of_the_server_with_the_id_of_a_call_is_no_answer():
    talk = Talk()
    talk.call(1, "say")
    asks = framed(id=1, method="sampling/createMessage", params=said(LOG))
    assert talk.relay.from_server(asks) == asks
    assert len(talk.answer(1, **said(LOG))["content"][0]["text"]) <= 4_000


def test_large_answers_to_other_requests_stay_whole():
    talk = Talk()
    talk.ask(1, "resources/read", uri="file:///log")
    answer = framed(
        id=1, result={"contents": [{"uri": "file:///log", "text": LOG}]}
    )
    assert talk.relay.from_server(answer) == answer


def test_an_answer_that_cannot_be_read_is_passed_on_and_told_of():
    talk = Talk()
    talk.call(1, "say")
    answer = framed(id=1, result={"content": LOG})
    assert talk.relay.from_server(answer) == answer
    assert talk.told == [
        "an answer to tools/call could not be read; it was passed on as it is"
    ]


# Lists


def test_ours_are_listed_from_the_start_and_the_list_stays_as_it_is():
    talk = Talk()
    first = talk.list({"name": "say"})
    talk.call(2, "say")
    talk.answer(2, **said(LOG))
    assert talk.list({"name": "say"}, id=3) == first
    assert first[1:] == [
        "get_continuation",
        "tool_output_cache",
        "tool_output_cache_grep",
    ]


def test_a_tool_of_the_same_name_is_the_servers():
    talk = Talk()
    names = talk.list({"name": "get_continuation"})
    assert names[1] == "ullage_get_continuation"
    on, back = talk.call(5, "get_continuation")
    assert (on != b"", back) == (True, b"")
    result = talk.answer(5, **said(LOG))
    assert (
        'ullage_get_continuation(tool_call_id="'
        in result["content"][0]["text"]
    )
    page = talk.read(
        "ullage_get_continuation", tool_call_id=ref_in(result), offset=5
    )
    assert page["content"][0]["text"].startswith(LOG[5:500])


# Cutting and reading on


def test_a_large_result_is_cut_and_read_on_byte_for_byte():
    talk = Talk("2000")
    talk.list({"name": "both", "outputSchema": TEXT})
    talk.call(2, "both")
    result = talk.answer(2, **said(LOG), structuredContent={"content": LOG})
    assert len(json.dumps(result)) < 2_600
    ref, text = ref_in(result), ""
    while (at := len(text)) < len(LOG):
        page = talk.read("get_continuation", tool_call_id=ref, offset=at)[
            "content"
        ][0]["text"]
        text += page.rpartition("\n[characters ")[0] or page
    assert text == LOG


def test_by_line_and_by_pattern():
    talk = Talk()
    talk.call(1, "say")
    ref = ref_in(talk.answer(1, **said(LOG)))
    lines = talk.read("tool_output_cache", ref_id=ref, offset=10, limit=1)[
        "content"
    ][0]["text"]
    assert lines.startswith("    11\tline 10 of a log")
    found = talk.read(
        "tool_output_cache_grep", ref_id=ref, pattern="line 299\\d"
    )
    assert "10 of 10 matching lines" in found["content"][0]["text"]


def test_an_unknown_ref_is_an_error_with_a_remedy():
    result = Talk().read("get_continuation", tool_call_id="0" * 16)
    assert result["isError"] is True
    assert "Copy the ref from the notice" in result["content"][0]["text"]


@pytest.mark.parametrize(
    "arguments", [{}, {"tool_call_id": 5}, {"tool_call_id": "x", "offset": []}]
)
def test_a_call_that_is_wrong_is_told_so(arguments):
    assert Talk().read("get_continuation", **arguments)["isError"] is True


def test_the_newer_protocol_has_its_result_type_and_the_older_none():
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    assert (
        Talk().read("get_continuation", meta=meta)["resultType"] == "complete"
    )
    assert "resultType" not in Talk().read("get_continuation")


def test_a_structure_is_cut_under_the_schema_that_was_listed_and_else_not():
    rows = {"rows": [{"id": n, "name": f"name {n}"} for n in range(2_000)]}
    talk = Talk()
    talk.call(1, "rows")
    assert (
        talk.answer(1, content=[], structuredContent=rows)["structuredContent"]
        == rows
    )
    talk.list({"name": "rows", "outputSchema": ROWS})
    talk.call(2, "rows")
    result = talk.answer(2, content=[], structuredContent=rows)
    assert (
        len(json.dumps(result["structuredContent"], separators=(",", ":")))
        <= 4_000
    )
    assert json.loads(talk.store.get("", ref_in(result)).text) == rows


def test_limits_by_tool_and_argument():
    talk = Talk("say[path=*.log]=1000", "say=whole", "500")
    for id, path, most in ((1, "a.log", 1_000), (2, "a.txt", len(LOG))):
        talk.call(id, "say", path=path)
        text = talk.answer(id, **said(LOG))["content"][0]["text"]
        assert most // 2 < len(text) <= most


NEW_TASK = {"resultType": "task", "taskId": "t1", "status": "working"}


@pytest.mark.parametrize(
    "made", [{"task": {"taskId": "t1", "status": "working"}}, NEW_TASK]
)
def test_the_result_of_a_task_is_cut_as_that_of_its_tool(made):
    talk = Talk("slow=1000", "whole")
    talk.call(1, "slow")
    assert talk.answer(1, **made) == made
    talk.ask(2, "tasks/result", taskId="t1")
    assert len(talk.answer(2, **said(LOG))["content"][0]["text"]) <= 1_000
    talk.ask(3, "tasks/result", taskId="t2")
    assert talk.answer(3, **said(LOG)) == said(LOG)


def test_the_result_within_a_task_is_cut_too():
    talk = Talk("slow=1000", "3000")
    talk.call(1, "slow")
    talk.answer(1, **NEW_TASK)
    for task, most in (("t1", 1_000), ("of an earlier session", 3_000)):
        done = {"taskId": task, "status": "completed", "result": said(LOG)}
        talk.ask(2, "tasks/get", taskId=task)
        polled = talk.answer(2, **done)
        told = talk.relay.from_server(
            framed(method="notifications/tasks", params=done)
        )
        for each in (polled, json.loads(told)["params"]):
            assert (
                most // 2 < len(each["result"]["content"][0]["text"]) <= most
            )
            assert each["status"] == "completed"
        assert talk.store.get("", ref_in(polled["result"])).text == LOG
    talk.ask(3, "tasks/get", taskId="t1")
    assert (
        talk.answer(3, **{**NEW_TASK, "resultType": "complete"})["status"]
        == "working"
    )


# Several messages in one frame, as older protocols have them


def batch(*messages):
    return b"[" + b",".join(each.strip() for each in messages) + b"]\n"


def test_each_message_of_a_batch_is_what_it_would_be_alone():
    talk = Talk()
    asked = [
        framed(id=n, method="tools/call", params={"name": "say"})
        for n in (1, 2)
    ]
    assert talk.relay.from_client(batch(*asked)) == (batch(*asked), b"")
    answers = [
        framed(id=1, result=said(LOG)),
        framed(id=2, result=said("short")),
    ]
    first, second = json.loads(talk.relay.from_server(batch(*answers)))
    ref = ref_in(first["result"])
    assert second["result"] == said("short")
    ours = {"name": "get_continuation", "arguments": {"tool_call_id": ref}}
    frame = batch(
        framed(id=3, method="ping"),
        framed(id=4, method="tools/call", params=ours),
    )
    on, back = talk.relay.from_client(frame)
    assert json.loads(on) == [{"jsonrpc": "2.0", "id": 3, "method": "ping"}]
    (page,) = json.loads(back)
    assert (page["id"], page["result"]["content"][0]["text"][:20]) == (
        4,
        LOG[:20],
    )
    talk.ask(5, "ping")
    untouched = b' [ {"id":5,"result":{}} , {"method":"x"}]\r\n'
    assert talk.relay.from_server(untouched) == untouched


class Full(MemoryStore):
    def put(self, tenant, outputs):
        raise StoreError("memory", "put", "the disk is full")


def test_what_cannot_be_kept_is_passed_on_whole():
    talk = Talk(store=Full())
    talk.call(1, "say")
    assert talk.answer(1, **said(LOG)) == said(LOG)
    assert talk.told == [
        "a result was passed on whole, for it could not be kept: "
        "memory store: put failed: the disk is full"
    ]


# The end


def test_what_was_not_answered_is_told_when_the_server_ends():
    talk = Talk()
    talk.ask(1, "ping")
    talk.call("b", "say")
    talk.call(3, "say")
    talk.relay.from_client(
        framed(method="notifications/cancelled", params={"requestId": 3})
    )
    talk.answer(1)
    (frame,) = talk.relay.ended("the server ended with exit code 3")
    error = json.loads(frame)
    assert error["id"] == "b"
    assert "exit code 3" in error["error"]["message"]
    assert [*talk.relay.ended("again")] == []


def test_many_calls_leave_nothing_behind():
    talk = Talk()
    for id in range(2_000):
        talk.call(id, "say")
        talk.answer(id, **said("short"))
    for id in range(12_000):
        talk.call(id, "say")
    assert len([*talk.relay.ended("it is over")]) == 10_000


def test_results_that_are_kept_take_no_memory():
    with closing(Spool()) as spool:
        talk = Talk(store=spool)

        def calls(first, last):
            for n in range(first, last):
                talk.call(n, "say")
                talk.answer(n, **said(f"{n}\n{LOG[:20_000]}"))

        calls(0, 50)
        tracemalloc.start()
        calls(50, 350)
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert held < 20_000

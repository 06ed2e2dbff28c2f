"""OpenAI Responses: every item in, the same items out, and a real client at both ends."""

import copy
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import reading
from lab.returned import problems, problems_of
from tests import histories
from ullage import Limits, Session
from ullage.core.errors import FormatError
from ullage.core.history.canon import digest_of
from ullage.core.history.transcript import Transcript
from ullage.core.tokens.meter import Meter
from ullage.core.values.messages import (
    Media,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from ullage.core.values.notices import pointers
from ullage.wires import FORMATS, ToolSpec, recognise

openai = pytest.importorskip("openai")
types = openai.types.responses

NAME = "openai-responses"
WIRE = FORMATS[NAME]
PNG = "data:image/png;base64,iVBORw0KGgo="


def call(call_id="c1", **more):
    item = {
        "type": "function_call",
        "call_id": call_id,
        "name": "run",
        "arguments": '{"a": 1}',
    }
    return item | more


def gave(call_id="c1", output="ok", **more):
    return {
        "type": "function_call_output",
        "call_id": call_id,
        "output": output,
    } | more


def thought(sealed="gAAAA", **more):
    item = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "encrypted_content": sealed,
    }
    return item | more


def parse(item):
    return WIRE.parse(item, "input[0]")


# -- reading --------------------------------------------------------------------------------

ROLES = {
    "user": [
        {"role": "user", "content": "x"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]},
        {"type": "mcp_approval_response", "approval_request_id": "a", "approve": True},
        {"type": "compaction_trigger"},
    ],
    "system": [
        {"role": "developer", "content": "x"},
        {"role": "system", "content": "x"},
        {"type": "additional_tools", "role": "developer", "tools": []},
        {"type": "configuration_update", "reasoning": {"effort": "low"}},
    ],
    "assistant": [
        {"role": "assistant", "content": "x"},
        thought(),
        call(),
        {"type": "custom_tool_call", "call_id": "c", "name": "sh", "input": "ls"},
        {"type": "item_reference", "id": "rs_1"},
        {"id": "rs_1"},
        {"type": "compaction", "encrypted_content": "g"},
        {"type": "program", "id": "p", "call_id": "c", "code": "1", "fingerprint": "f"},
        {"type": "program_output", "id": "p", "call_id": "c", "result": "1"},
        {"type": "tool_search_call", "arguments": {}},
        {"type": "tool_search_output", "execution": "server", "tools": []},
        *(
            {"type": kind, "id": "x"}
            for kind in (
                "web_search_call", "file_search_call", "code_interpreter_call", "computer_call",
                "image_generation_call", "local_shell_call", "shell_call", "apply_patch_call",
                "mcp_list_tools", "mcp_call", "mcp_approval_request", "hologram",
            )
        ),
    ],
    "tool": [
        gave(),
        gave(call_id=None, name="run"),
        {"type": "custom_tool_call_output", "call_id": "c", "output": "x"},
        {"type": "local_shell_call_output", "id": "c", "output": "{}"},
        {"type": "apply_patch_call_output", "call_id": "c", "status": "completed"},
        {"type": "shell_call_output", "call_id": "c", "output": []},
        {"type": "computer_call_output", "call_id": "c", "output": {
            "type": "computer_screenshot", "image_url": PNG}},
        {"type": "tool_search_output", "execution": "client", "tools": []},
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("role", "item"),
    [(role, item) for role, items in ROLES.items() for item in items],
)
def test_every_item_is_said_by_somebody_and_comes_back_as_itself(role, item):
    assert parse(item).role == role
    request = {
        "model": "gpt-5.6",
        "input": [{"role": "user", "content": "hi"}, item],
    }
    view = Session("gpt-5.6", format=NAME, recall=False).fit(request)
    assert view == request
    assert all(
        a is b for a, b in zip(view["input"], request["input"], strict=True)
    )


def test_what_the_items_mean():
    assert parse(call()).parts == (ToolCall("c1", "run", '{"a": 1}', -1),)
    assert parse(call() | {"async": True}).parts[0].deferred
    custom = {
        "type": "custom_tool_call",
        "call_id": "c",
        "name": "sh",
        "input": "ls",
    }
    assert parse(custom).parts == (ToolCall("c", "sh", "ls", -1),)
    assert parse(gave(output="x")).parts == (
        ToolResult("c1", (Text("x"),), False, -1),
    )
    image = {"type": "input_image", "image_url": PNG}
    parts = [{"type": "input_text", "text": "x"}, image]
    expected = (Text("x", 0), Media("image", "", PNG, 1, block=image))
    assert parse(gave(output=parts)).results[0].content == expected
    assert parse({"role": "user", "content": parts}).parts == expected
    said = [
        {"type": "output_text", "text": "x"},
        {"type": "refusal", "refusal": "no"},
    ]
    assert parse({"role": "assistant", "content": said}).parts == (
        Text("x", 0),
        Text("no", 1),
    )
    screen = {"type": "computer_screenshot", "image_url": PNG}
    taken = {"type": "computer_call_output", "call_id": "c", "output": screen}
    (shot,) = parse(taken).results[0].content
    assert (shot.kind, shot.tokens) == (
        "computer_screenshot",
        1_500,
    )  # and never edited
    painted = parse(
        {"type": "image_generation_call", "id": "i", "result": "iVBO"}
    ).parts
    assert painted == (Media("image", "", "iVBO", -1),)


def test_sealed_reasoning_is_bound_and_costs_what_its_size_says():
    (part,) = parse(thought("g" * 10_000)).parts
    assert part == Reasoning("", -1, bound=True, sealed_bytes=6_850)
    assert Meter("gpt-5.2").leaf(part) == 1_713
    (compacted,) = parse(
        {"type": "compaction", "encrypted_content": "g" * 10_000}
    ).parts
    assert compacted.tokens == 1_713
    summary = [{"type": "summary_text", "text": "hm"}]
    (open_part,) = parse(
        {"type": "reasoning", "id": "rs_1", "summary": summary}
    ).parts
    assert (open_part.text, open_part.bound, open_part.sealed_bytes) == (
        "hm",
        False,
        0,
    )
    session = Session("gpt-5.6", recall=False)
    session.fit({"input": [{"role": "user", "content": "x"}]})
    before = session.window.tokens
    session.fit(
        {
            "input": [
                {"role": "user", "content": "x"},
                thought("g" * 10_000),
                call(),
            ]
        }
    )
    assert 1_713 < session.window.tokens - before < 1_760


def test_ids_and_status_have_no_say_in_identity():
    pairs = [
        (call(), call(id="fc_1", status="completed")),
        ({"role": "assistant", "content": "x"}, {
            "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "x", "annotations": []}]}),
        ({"type": "web_search_call", "action": {}},
         {"type": "web_search_call", "action": {}, "id": "ws_1", "status": "completed"}),
    ]  # fmt: skip
    for one, other in pairs:
        assert digest_of(parse(one)) == digest_of(parse(other))
    assert digest_of(parse({"id": "rs_1"})) != digest_of(parse({"id": "rs_2"}))
    assert digest_of(parse(call())) != digest_of(parse(call("c2")))


@given(histories.histories)
def test_reasoning_items_that_a_client_drops_lose_no_edit(turns):
    items = histories.wire(NAME, turns)
    bare = [item for item in items if item.get("type") != "reasoning"]
    chains = []
    for history in (items, bare):
        transcript = Transcript(b"root")
        for item in history:
            message = parse(item)
            transcript.append(message, digest_of(message))
        chains.append([link for at, link in enumerate(transcript.chain)
                       if at == 0 or link != transcript.chain[at - 1]])  # fmt: skip
    assert chains[0] == chains[1]


@pytest.mark.parametrize(
    ("where", "item"),
    [
        ("input[0]", "just text"),
        ("input[0].type", {"content": "x"}),
        ("input[0].role", {"role": "robot", "content": "x"}),
        ("input[0].content", {"role": "user", "content": 7}),
        (
            "input[0].content[0].text",
            {"role": "user", "content": [{"type": "input_text"}]},
        ),
        (
            "input[0].name",
            {"type": "function_call", "call_id": "c", "arguments": "{}"},
        ),
        (
            "input[0].summary",
            {"type": "reasoning", "id": "rs_1", "summary": 7},
        ),
        (
            "input[0].output[1]",
            gave(output=[{"type": "input_text", "text": "x"}, 7]),
        ),
    ],
)
def test_what_is_no_item_is_refused_by_its_path(where, item):
    with pytest.raises(FormatError) as caught:
        Session("gpt-5.6").fit({"input": [item]})
    assert caught.value.where == where


def test_a_history_held_by_the_provider_is_passed_on_with_an_event():
    for more in (
        {"previous_response_id": "resp_1"},
        {"conversation": "conv_1"},
    ):
        session, request = Session("gpt-5.6"), {"input": "hi"} | more
        assert session.fit(request) == request
        assert [event.kind for event in session.events] == ["passed_on"]


def test_a_string_is_one_user_message_and_stays_a_string():
    request = {
        "model": "gpt-5.6",
        "input": "hello",
        "instructions": "Be brief.",
    }
    session = Session("gpt-5.6", recall=False)
    assert session.fit(request) == request
    assert session.window.transcript.messages[0].role == "user"
    grown = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "hi"},
    ]
    assert session.fit(request | {"input": grown})["input"] == grown
    assert len(session.window.transcript) == 2


def test_the_head():
    leading = [
        {"role": "developer", "content": "a"},
        {"role": "system", "content": "b"},
    ]
    user = {"role": "user", "content": "hi"}
    tool = {
        "type": "function",
        "name": "run",
        "parameters": {},
        "strict": None,
    }
    request = {
        "instructions": "c", "input": [*leading, user, leading[0]], "tools": [tool],
        "max_output_tokens": 77, "model": "gpt-5.6",
    }  # fmt: skip
    head = WIRE.head(request)
    assert (head.leading, head.texts[:3], head.tools) == (
        2,
        ("c", "a", "b"),
        ("run",),
    )
    assert (head.asked_output_tokens, head.model) == (77, "gpt-5.6")
    assert json.loads(head.texts[3]) == tool
    tools_first = {
        "type": "additional_tools",
        "role": "developer",
        "tools": [],
    }
    assert WIRE.leading({"input": [tools_first, user]}) == []


@pytest.mark.parametrize(
    "request_",
    [
        {"input": "hi"},
        {"input": []},
        {"instructions": "x"},
        {"max_output_tokens": 7},
        {"model": "claude-sonnet-4-5", "input": [call()]},
    ],
)
def test_it_is_recognised(request_):
    assert recognise(request_).name == NAME


def test_others_are_not_taken_for_it():
    assert (
        recognise({"model": "gpt-5.6", "messages": [], "input": "x"}).name
        == "openai-chat"
    )
    assert (
        recognise({"model": "claude-sonnet-4-5", "messages": []}).name
        == "anthropic"
    )


# -- writing --------------------------------------------------------------------------------


def edited(item, *changes):
    before = copy.deepcopy(item)
    new = WIRE.edit(item, parse(item), changes)
    assert item == before
    return new


def test_an_edit_changes_its_text_and_nothing_else():
    full = call(id="fc_1", status="completed", namespace="n")
    assert edited(full, (0, 0, "{}")) == full | {"arguments": "{}"}
    custom = {
        "type": "custom_tool_call",
        "call_id": "c",
        "name": "sh",
        "input": "ls",
    }
    assert edited(custom, (0, 0, "{}")) == custom | {"input": "{}"}
    result = gave(id="fco_1", status="completed")
    assert edited(result, (0, 0, "x")) == result | {"output": "x"}
    cached = {
        "type": "input_text",
        "text": "a",
        "prompt_cache_breakpoint": {"mode": "explicit"},
    }
    image = {"type": "input_image", "image_url": PNG}
    many = gave(output=[image, cached])
    assert edited(many, (0, 1, "x"))["output"] == [
        image,
        cached | {"text": "x"},
    ]
    user = {"role": "user", "content": "long"}
    assert edited(user, (0, 0, "x")) == {"role": "user", "content": "x"}


def test_an_edited_text_carries_no_marks_into_the_old_one():
    part = {
        "type": "output_text",
        "text": "a",
        "annotations": [{"index": 0}],
        "logprobs": [],
    }
    item = {"type": "message", "id": "msg_1", "role": "assistant", "phase": "commentary",
            "content": [part, {"type": "refusal", "refusal": "no"}]}  # fmt: skip
    new = edited(item, (0, 0, "x"), (1, 0, "y"))
    text = {"type": "output_text", "text": "x", "annotations": []}
    assert new == item | {
        "content": [text, {"type": "refusal", "refusal": "y"}]
    }


def test_the_output_of_a_shell_is_cut_stream_by_stream():
    outcome = {"type": "exit", "exit_code": 1}
    chunks = [
        {"stdout": "a", "stderr": "b", "outcome": outcome} for _ in range(2)
    ]
    item = {"type": "shell_call_output", "call_id": "c", "output": chunks}
    content = parse(item).results[0].content
    assert [getattr(leaf, "text", "") for leaf in content[:2]] == ["a", "b"]
    assert content[2] == Opaque("outcome", '{"exit_code":1,"type":"exit"}', 2)
    new = edited(item, (0, 4, "x"))
    assert new["output"] == [chunks[0], chunks[1] | {"stderr": "x"}]
    assert (
        problems_of(
            NAME, [{"type": "shell_call", "call_id": "c", "action": {}}, new]
        )
        == []
    )


def test_an_asynchronous_call_of_the_client_keeps_its_wire_name():
    made = types.ResponseFunctionToolCall.model_validate(
        call(id="fc_1") | {"async": True}
    )
    new = WIRE.edit(made, parse(made), [(0, 0, "{}")])
    assert new == call(id="fc_1") | {"async": True, "arguments": "{}"}


def test_tools_calls_and_results():
    spec = ToolSpec("look", "Look.", {"type": "object", "properties": {}})
    tool = WIRE.tool(spec)
    assert tool == {
        "type": "function", "name": "look", "description": "Look.",
        "parameters": {"type": "object", "properties": {}}, "strict": None,
    }  # fmt: skip
    assert WIRE.tool_name(tool) == "look"
    assert (
        WIRE.call(types.ResponseFunctionToolCall.model_validate(call())).id
        == "c1"
    )
    assert WIRE.result(WIRE.call(call()), "x") == gave(output="x")
    with pytest.raises(FormatError):
        WIRE.call(gave())


def test_usage_counts_cached_and_written_tokens_once():
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
        "output_tokens": 20, "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 120,
    }  # fmt: skip
    for reply in ({"usage": usage}, types.ResponseUsage.model_validate(usage)):
        found = WIRE.usage(
            reply if isinstance(reply, dict) else {"usage": reply}
        )
        assert (
            found.fresh_tokens,
            found.cache_read_tokens,
            found.cache_write_tokens,
        ) == (
            10,
            60,
            30,
        )
        assert (
            found.output_tokens,
            found.reasoning_tokens,
            found.input_tokens,
        ) == (
            20,
            5,
            100,
        )
    assert WIRE.usage({"usage": None}) is None


# -- legality under pressure ----------------------------------------------------------------


def lengths_of(items):
    """Where a loop sends a request: before each reply, and at the end."""
    made = [parse(item).role == "assistant" for item in items]
    return [at for at in range(1, len(items)) if made[at] > made[at - 1]] + [
        len(items)
    ]


@given(
    histories.histories, st.sampled_from((4_000, 6_000, 12_000)), st.booleans()
)
def test_every_view_is_legal_and_parts_no_reasoning_from_its_items(
    turns, window, reuse
):
    items = histories.wire(NAME, turns, reuse_ids=reuse)
    session = Session(
        "gpt-5.6", limits=Limits(window_tokens=window), recall=True
    )
    for length in lengths_of(items):
        view = session.fit(histories.request(NAME, items[:length]))
        assert problems(NAME, view, history=items[:length]) == []


def big_turns(count, thought):
    calls = tuple(histories.Call("bash", histories.HUGE, "") for _ in range(2))
    return [histories.Turn(calls=calls, thought=thought) for _ in range(count)]


def test_calls_beside_sealed_reasoning_stay_as_they_are_and_others_shrink():
    for sealed, stubbed in ((False, True), (True, False)):
        items = histories.wire(NAME, big_turns(12, sealed))
        limits = Limits(window_tokens=24_000)
        session = Session(
            "gpt-5.6", policy=histories.PRUNING, limits=limits, recall=True
        )
        session.fit(histories.request(NAME, items))
        touched = {
            session.window.transcript.messages[at].role
            for at in session.window.changed
        }
        assert ("assistant" in touched) == stubbed


def test_an_unanswered_asynchronous_call_is_never_condensed():
    """Its output may come in any later turn, and must find it then (R2)."""
    user = {"role": "user", "content": "go"}
    items = [user, call("late") | {"async": True}]
    for number in range(40):
        items += [{"role": "user", "content": "and " * 60}, call(f"c{number}")]
        items += [gave(f"c{number}", "row " * 400)]
    session = Session(
        "gpt-5.6", limits=Limits(window_tokens=9_000), recall=True
    )
    for length in range(5, len(items) + 1, 3):
        view = session.fit({"input": items[:length]})
    assert session.window.changed
    items += [gave("late", "at last"), user]
    view = session.fit({"input": items})
    assert problems(NAME, view) == []
    assert (
        gave("late", "at last") in view["input"]
        or "at last" in view["input"][1]["content"]
    )


def test_what_the_provider_compacted_is_never_condensed():
    sealed = {
        "type": "compaction",
        "id": "cmp_1",
        "encrypted_content": "g" * 2_000,
    }
    items = [
        {"role": "user", "content": "go"},
        sealed,
        {"role": "user", "content": "on"},
    ]
    for number in range(60):
        items += [call(f"c{number}"), gave(f"c{number}", "row " * 400)]
    session = Session(
        "gpt-5.6", limits=Limits(window_tokens=6_000), recall=True
    )
    view = session.fit({"input": items})["input"]
    assert session.window.summaries
    assert any(item is sealed for item in view)


def test_what_stands_between_two_compactions_is_condensed():
    """The guard takes what shows the most, and never reaches over a compaction."""
    items = [{"role": "user", "content": "go"}]
    session = Session(
        "gpt-5.6", limits=Limits(window_tokens=6_000), recall=True
    )
    for number in range(60):
        items += [
            call(f"c{number}"),
            gave(f"c{number}", f"row {number} " * 150),
        ]
        view = session.fit({"input": items})["input"]
        if number in (50, 58):
            sealed = {"encrypted_content": "g" * 200, "id": f"cmp_{number}"}
            items.append({"type": "compaction", **sealed})
    first, second = (
        i for i, item in enumerate(items) if item.get("type") == "compaction"
    )
    early, late = session.window.summaries
    assert early.stop <= first < late.start
    assert late.stop <= second
    assert items[first] in view
    assert items[second] in view
    assert view[-1] is items[-1]


# -- the real client ------------------------------------------------------------------------

TASK = "Read every file and say which one is broken."
TURNS = 14


class Provider(BaseHTTPRequestHandler):
    """Judges each request and replies as the API does, with parallel calls after reasoning."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        server = self.server
        found = problems(
            NAME, body, history=[*body["input"][:1], *server.returned]
        )
        server.found += found
        server.bodies.append(body)
        output = self.output(len(server.bodies), body)
        server.returned += output
        reply = {
            "id": f"resp_{len(server.bodies)}", "object": "response", "created_at": 0,
            "model": "gpt-5.6", "status": "completed", "output": output, "tools": [],
            "tool_choice": "auto", "parallel_tool_calls": True, "error": None,
            "incomplete_details": None, "instructions": None, "metadata": {},
            "temperature": 1.0, "top_p": 1.0, "usage": usage(len(json.dumps(body)) // 4),
        }  # fmt: skip
        data = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def output(self, turn, body):
        reasoning = thought(
            "gAAAA" + str(turn) * 900, id=f"rs_{turn}", status=None
        )
        if turn > TURNS:
            text = {
                "type": "output_text",
                "text": "c.py",
                "annotations": [],
                "logprobs": [],
            }
            return [reasoning, {"type": "message", "id": f"msg_{turn}", "role": "assistant",
                                "status": "completed", "content": [text]}]  # fmt: skip
        notices = [
            p for t in reading.visible(body["input"]) for p in pointers(t)
        ]
        asked = [
            call(
                f"call_{turn}_{n}",
                id=f"fc_{turn}_{n}",
                status="completed",
                name="shell",
            )
            | {"arguments": json.dumps({"path": f"{turn}/{n}.py"})}
            for n in range(2)
        ]
        if notices and turn % 3 == 0:
            asked[1]["name"] = "get_continuation"
            arguments = {
                "tool_call_id": notices[0].ref,
                "offset": notices[0].offset,
            }
            asked[1]["arguments"] = json.dumps(arguments)
        return [reasoning, *asked]

    def log_message(self, *parts):
        pass


def usage(tokens):
    return {
        "input_tokens": tokens, "output_tokens": 10, "total_tokens": tokens + 10,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 3},
    }  # fmt: skip


@pytest.fixture
def provider():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    server.found, server.bodies, server.returned = [], [], []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_loop_with_the_real_client_stays_legal_and_within_the_window(
    provider,
):
    url = f"http://127.0.0.1:{provider.server_port}/v1"
    tools = [
        {"type": "function", "name": "shell", "parameters": {}, "strict": None}
    ]
    session = Session("gpt-5.6", limits=Limits(window_tokens=9_000))
    history, recalled = [{"role": "user", "content": TASK}], 0
    request = {
        "model": "gpt-5.6",
        "input": history,
        "tools": tools,
        "store": False,
    }
    with openai.OpenAI(api_key="none", base_url=url, max_retries=0) as client:
        while True:
            view = session.fit(request)
            reply = client.responses.create(**view)
            session.observe(reply)
            history += reply.output
            calls = [
                item for item in reply.output if item.type == "function_call"
            ]
            if not calls:
                break
            for made in calls:
                recalled += session.owns(made)
                text = (
                    f"# {made.arguments}\n" + "def f(x):\n    return x\n" * 400
                )
                history.append(session.recall(made) if session.owns(made)
                               else gave(made.call_id, text))  # fmt: skip
    assert provider.found == []
    assert len(provider.bodies) == TURNS + 1
    assert reply.output_text == "c.py"
    assert recalled
    assert session.window.estimate <= session.window.limit_tokens
    assert {"truncated", "pruned"} <= {event.kind for event in session.events}
    assert max(len(json.dumps(body)) for body in provider.bodies) < 40_000
    assert provider.bodies[0]["input"] == [{"role": "user", "content": TASK}]
    assert session.usage.reasoning_tokens == 3 * (TURNS + 1)


def test_client_objects_that_are_not_edited_come_back_as_they_are():
    output = [
        types.ResponseReasoningItem.model_validate(thought()),
        types.ResponseFunctionToolCall.model_validate(call(id="fc_1")),
    ]
    request = {
        "model": "gpt-5.6",
        "input": [{"role": "user", "content": "x"}, *output, gave()],
    }
    session = Session("gpt-5.6", recall=False)
    view = session.fit(request)
    assert view == request
    assert all(
        a is b for a, b in zip(view["input"], request["input"], strict=True)
    )
    assert session.window.signed(2)
    assert session.window.changed == {}

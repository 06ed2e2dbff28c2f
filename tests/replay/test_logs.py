"""The readers of session logs and documents, on small ones written here in their shapes."""

import json
import sys
import zipfile

import pytest

from tests.replay.test_readers import collect, lines, write
from ullage.tools.replay.readers import _exchanges
from ullage.tools.replay.readers._files import MOST_VALUES
from ullage.tools.replay.record import Recorder
from ullage.wires.rules.checker import problems_of

if sys.version_info >= (3, 14):
    import zipfile as zstandard
else:
    from backports.zstd import zipfile as zstandard


def read_one(tmp_path, *values):
    """The only run in these lines, legal before each reply, and its damage as phrases."""
    runs, damage = collect(write(tmp_path / "log.jsonl", lines(*values)))
    (run,) = runs
    ended = problems_of(run.format, run.messages)
    assert {problem.rule for problem in ended} <= {
        "G11"
    }  # Gemini: a recording may end so
    return run, [(found.line, found.problem, found.grade) for found in damage]


def chat(*steps):
    """Chat Completions: ``(role, text)``, or calls by id and the texts that answer them."""
    for step in steps:
        if isinstance(step, tuple):
            yield {"role": step[0], "content": step[1]}
            continue
        calls = [
            {
                "id": id,
                "type": "function",
                "function": {"name": "f", "arguments": '{"x": 1}'},
            }
            for id in step
        ]
        yield {"role": "assistant", "content": None, "tool_calls": calls}
        for id, text in step.items():
            yield {"role": "tool", "tool_call_id": id, "content": text}


# -- Codex ----------------------------------------------------------------------------------


def codex(kind, **payload):
    return {
        "timestamp": "2026-01-01T00:00:00Z",
        "type": kind,
        "payload": payload,
    }


def item(kind, **more):
    return codex("response_item", type=kind, **more)


def asks(text):
    content = [{"type": "input_text", "text": text}]
    return item("message", role="user", content=content)


def says(text):
    content = [{"type": "output_text", "text": text}]
    return item(
        "message", role="assistant", content=content, phase="final_answer"
    )


def calls(id):
    return item(
        "function_call", name="shell", arguments="{}", call_id=id, id=None
    )


def answers(id, output="ok"):
    return item("function_call_output", call_id=id, output=output)


META = codex("session_meta", id="s1", base_instructions={"text": "Be brief."})


def test_a_codex_rollout_is_a_responses_history(tmp_path):
    run, damage = read_one(
        tmp_path,
        META,
        codex("turn_context", model="gpt-5-codex"),
        asks("go"),
        codex("event_msg", type="user_message", message="go"),
        item("reasoning", summary=[], encrypted_content="gAAAA", content=None),
        calls("a"),
        calls("b"),
        answers("b", "second"),
        answers("a"),
        item("ghost_snapshot", ghost_commit={}),
        says("done"),
    )
    kinds = [(m.get("type"), m.get("call_id")) for m in run.messages]
    assert kinds == [
        *(("message", None), ("reasoning", None)),
        *(("function_call", "a"), ("function_call", "b")),
        *(("function_call_output", "a"), ("function_call_output", "b")),
        ("message", None),
    ]
    assert (run.id, run.format) == ("s1", "openai-responses")
    assert run.request == {"instructions": "Be brief.", "model": "gpt-5-codex"}
    assert "phase" not in run.messages[-1]
    assert damage == []


def test_lines_of_a_later_codex_that_carry_nothing_are_no_damage(tmp_path):
    later = [
        {
            "timestamp": "2026-11-26T19:00:00.000Z",
            "ordinal": 3,
            "type": kind,
            "payload": {"x": 1},
        }
        for kind in ("world_state", "token_usage_record", "of_next_year")
    ]
    run, damage = read_one(
        tmp_path,
        META,
        asks("go"),
        *later,
        calls("a"),
        answers("a"),
        says("done"),
    )
    assert [message["type"] for message in run.messages] == [
        *("message", "function_call", "function_call_output", "message"),
    ]
    assert damage == []


def test_a_codex_rollout_of_the_first_versions_has_items_as_lines(tmp_path):
    head = {
        "id": "old",
        "timestamp": "2025-05-01T00:00:00Z",
        "instructions": None,
    }
    told = [line["payload"] for line in (asks("go"), calls("a"), says("done"))]
    output = {"content": "ok", "success": True}
    answer = {"type": "function_call_output", "call_id": "a", "output": output}
    run, _ = read_one(
        tmp_path,
        head,
        told[0],
        {"record_type": "state"},
        told[1],
        answer,
        told[2],
    )
    assert run.id == "old"
    assert run.messages[2] == {
        "type": "function_call_output",
        "call_id": "a",
        "output": "ok",
    }


def test_what_the_user_of_codex_went_back_on_is_no_part_of_the_history(
    tmp_path,
):
    back = codex("event_msg", type="thread_rolled_back", num_turns=1)
    told = [
        META,
        asks("go"),
        says("yes"),
        asks("wrong"),
        calls("a"),
        back,
        asks("right"),
    ]
    run, damage = read_one(tmp_path, *told, says("done"))
    texts = [m["content"][0]["text"] for m in run.messages]
    assert texts == ["go", "yes", "right", "done"]
    assert damage == []


def test_the_summary_of_a_compaction_is_what_the_user_says_next(tmp_path):
    compacted = codex(
        "compacted", message="So far: all well.", replacement_history=[]
    )
    run, _ = read_one(
        tmp_path, META, asks("go"), says("yes"), compacted, says("on")
    )
    assert run.messages[2] == {"role": "user", "content": "So far: all well."}
    assert len(run.messages) == 4


def test_calls_and_results_are_paired_and_what_cannot_be_is_told(tmp_path):
    told = [
        META,
        asks("go"),
        answers("x"),
        calls("a"),
        calls("b"),
        answers("b"),
        answers("b"),
    ]
    run, damage = read_one(tmp_path, *told, says("on"), calls("c"))
    outputs = [m for m in run.messages if m["type"].endswith("_output")]
    assert [(m["call_id"], "No result" in m["output"]) for m in outputs] == [
        *(("a", True), ("b", False)),
    ]
    assert damage == [
        (3, "a result without its call is left out", "repaired"),
        (7, "a second result of one call is left out", "repaired"),
        (8, "the last reply has calls without results, left out", "repaired"),
        (
            4,
            "a call without a result is answered by a short error",
            "repaired",
        ),
    ]


# -- Gemini CLI -----------------------------------------------------------------------------

HEAD = {
    "sessionId": "g1",
    "projectHash": "h",
    "startTime": "2026-01-01T00:00:00Z",
}


def gemini(number, kind, content, **more):
    stamp = f"2026-01-01T00:00:{number:02}Z"
    return {
        "id": f"m{number}",
        "timestamp": stamp,
        "type": kind,
        "content": content,
        **more,
    }


def response(id, text):
    given = {"id": id, "name": "f", "response": {"output": text}}
    return {"functionResponse": given}


def tool_call(id, result=None):
    return {
        "id": id,
        "name": "f",
        "args": {"x": 1},
        "result": result,
        "status": "success",
    }


def test_a_gemini_cli_session_told_line_by_line(tmp_path):
    tokens = {"input": 30, "cached": 10, "output": 2, "thoughts": 3, "tool": 0}
    reply = gemini(
        2,
        "gemini",
        "",
        tokens=tokens,
        model="gemini-x",
        thoughts=[{"subject": "hm"}],
    )
    run, damage = read_one(
        tmp_path,
        HEAD,
        {"$set": {"messages": [gemini(0, "user", [{"text": "context"}])]}},
        gemini(1, "user", "go"),
        reply,
        {"$set": {"lastUpdated": "2026-01-01T00:00:03Z"}},
        reply
        | {
            "toolCalls": [
                tool_call("a", [response("a", "one")]),
                tool_call("b"),
            ]
        },
        gemini(3, "user", [response("a", "one"), response("b", "two")]),
        gemini(4, "info", "a note"),
        gemini(5, "gemini", "wrong"),
        {"$rewindTo": "m5"},
        gemini(6, "gemini", "done"),
    )
    assert [message["role"] for message in run.messages] == [
        *("user", "user", "model", "user", "model"),
    ]
    called, answered = run.messages[2]["parts"], run.messages[3]["parts"]
    assert [part["functionCall"]["id"] for part in called] == ["a", "b"]
    assert [
        part["functionResponse"]["response"]["output"] for part in answered
    ] == [
        "one",
        "two",
    ]
    assert run.messages[4]["parts"] == [{"text": "done"}]
    assert (run.id, run.request) == ("g1", {"model": "gemini-x"})
    assert damage == []


def test_a_gemini_cli_session_as_one_document(tmp_path):
    answered = [tool_call("a", [response("a", "one")])]
    messages = [
        gemini(1, "user", "go"),
        gemini(2, "gemini", "look", toolCalls=answered),
    ]
    session = HEAD | {"messages": [*messages, gemini(3, "gemini", "done")]}
    run, damage = read_one(tmp_path, session)
    assert run.messages[1]["parts"][0] == {"text": "look"}
    assert run.messages[2]["parts"] == [response("a", "one")]
    assert damage == []


# -- logs of calls and results apart --------------------------------------------------------


def pi(kind, **more):
    return {"type": kind, "timestamp": "2026-01-01T00:00:00Z", **more}


def pi_message(role, content, **more):
    return pi("message", message={"role": role, "content": content, **more})


def test_a_session_of_pi(tmp_path):
    call = {"type": "toolCall", "id": "a", "name": "f", "arguments": {"x": 1}}
    run, damage = read_one(
        tmp_path,
        pi("session", id="p1"),
        pi_message("user", [{"type": "text", "text": "go"}]),
        pi_message("assistant", [call], model="m"),
        pi("model_change", modelId="m"),
        pi_message(
            "toolResult", [{"type": "text", "text": "ok"}], toolCallId="a"
        ),
        pi_message("assistant", [], stopReason="aborted"),
        pi("compaction", summary="So far: all well."),
        pi_message("assistant", [{"type": "text", "text": "done"}]),
    )
    expected = [
        ("user", "go"),
        {"a": "ok"},
        ("user", "So far: all well."),
        ("assistant", "done"),
    ]
    assert run.messages == list(chat(*expected))
    assert (run.id, run.request, damage) == ("p1", {"model": "m"}, [])


def test_of_a_session_of_pi_with_branches_the_last_is_the_history(tmp_path):
    def entry(id, parent, role, text):
        return pi_message(role, [{"type": "text", "text": text}]) | {
            "id": id,
            "parentId": parent,
        }

    run, _ = read_one(
        tmp_path,
        pi("session", id="p1"),
        entry("1", None, "user", "go"),
        entry("2", "1", "assistant", "wrong"),
        entry("3", "1", "assistant", "right"),
    )
    assert run.messages == list(chat(("user", "go"), ("assistant", "right")))


def copilot(kind, **data):
    return {
        "type": kind,
        "id": "e",
        "timestamp": "2026-01-01T00:00:00Z",
        "data": data,
    }


def test_a_session_of_copilot(tmp_path):
    asked = [
        {"toolCallId": id, "name": "f", "arguments": {"x": 1}} for id in "ab"
    ]
    run, damage = read_one(
        tmp_path,
        copilot("session.skills_loaded", skills=[]),
        copilot("user.message", content="go", transformedContent="go now"),
        copilot("assistant.message_delta", deltaContent="hm"),
        copilot(
            "assistant.message", content="", model="m", toolRequests=asked
        ),
        copilot(
            "assistant.message", content="a subagent", parentToolCallId="a"
        ),
        copilot(
            "tool.execution_complete", toolCallId="b", error={"message": "no"}
        ),
        copilot(
            "tool.execution_complete", toolCallId="a", result={"content": "ok"}
        ),
        copilot("assistant.message", content="done"),
        {"type": "result", "sessionId": "c1", "exitCode": 0},
    )
    expected = [
        ("user", "go now"),
        {"a": "ok", "b": "no"},
        ("assistant", "done"),
    ]
    assert run.messages == list(chat(*expected))
    assert damage == []


def test_a_session_of_opencode_exported_or_as_its_messages(tmp_path):
    def tool(id, **state):
        return {
            "type": "tool",
            "callID": id,
            "tool": "f",
            "state": {"input": {"x": 1}, **state},
        }

    mine = {
        "id": "1",
        "sessionID": "o1",
        "role": "user",
        "time": {"created": 1_000},
    }
    reply = {"id": "2", "sessionID": "o1", "role": "assistant", "modelID": "m"}
    parts = [
        {"type": "step-start"},
        tool("a", status="completed", output="ok"),
        tool("b", status="error", error="no"),
        {"type": "step-finish"},
        {"type": "step-start"},
        {"type": "reasoning", "text": "hm"},
        {"type": "text", "text": "done"},
        {"type": "step-finish"},
    ]
    messages = [
        {"info": mine, "parts": [{"type": "text", "text": "go"}]},
        {"info": reply, "parts": parts},
    ]
    exported, damage = read_one(
        tmp_path, {"info": {"id": "o1"}, "messages": messages}
    )
    assert exported.messages == list(
        chat(("user", "go"), {"a": "ok", "b": "no"}, ("assistant", "done"))
    )
    assert (exported.id, exported.stamps[0], damage) == ("o1", 1.0, [])
    told, _ = read_one(tmp_path, *messages)
    assert told.messages == exported.messages
    for message in messages:
        del message["info"]["sessionID"]
    assert [
        read_one(tmp_path, *form)[0].id
        for form in ([{"info": {"id": "o1"}, "messages": messages}], messages)
    ] == ["o1", "log"]


# -- documents ------------------------------------------------------------------------------


def test_an_atif_trajectory(tmp_path):
    call = {"tool_call_id": "a", "function_name": "f", "arguments": {"x": 1}}
    result = {
        "source_call_id": "a",
        "content": [{"type": "text", "text": "ok"}],
    }
    steps = [
        {"step_id": 1, "source": "system", "message": "Be brief."},
        {"step_id": 2, "source": "user", "message": "go", "timestamp": "2026-01-01T00:00:00Z"},
        {"step_id": 3, "source": "agent", "message": "", "tool_calls": [call],
         "observation": {"results": [result]}},
        {"step_id": 4, "source": "agent", "message": "by text",
         "observation": {"results": [{"content": "seen"}]}},
        {"step_id": 5, "source": "agent", "message": "done"},
    ]  # fmt: skip
    agent = {"name": "x", "version": "1", "model_name": "m"}
    document = {
        "schema_version": "ATIF-v1.6",
        "session_id": "t",
        "agent": agent,
        "steps": steps,
    }
    run, damage = read_one(tmp_path, document)
    said = [("assistant", "by text"), ("user", "seen"), ("assistant", "done")]
    assert run.messages == list(
        chat(("system", "Be brief."), ("user", "go"), {"a": "ok"}, *said)
    )
    assert (run.id, run.request, damage) == ("log:t", {"model": "m"}, [])


def test_a_trajectory_of_swe_agent_with_calls_and_by_text(tmp_path):
    call = {
        "id": "a",
        "type": "function",
        "function": {"name": "f", "arguments": '{"x": 1}'},
    }
    history = [
        {
            "role": "system",
            "content": "Be brief.",
            "message_type": "system_prompt",
        },
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [call],
            "action": "f",
        },
        {
            "role": "tool",
            "content": [{"type": "text", "text": "ok"}],
            "tool_call_ids": ["a"],
        },
        {"role": "assistant", "content": "ls", "action": "ls"},
        {"role": "user", "content": "a file"},
    ]
    run, damage = read_one(
        tmp_path, {"trajectory": [], "history": history, "environment": "e"}
    )
    said = [("assistant", "ls"), ("user", "a file")]
    assert run.messages == list(
        chat(("system", "Be brief."), ("user", "go"), {"a": "ok"}, *said)
    )
    assert (run.id, damage) == ("log:e", [])


SAMPLE = {
    "id": 7,
    "epoch": 1,
    "messages": [
        {"role": "user", "content": "attachment://x"},
        {"role": "assistant", "content": "", "tool_calls": [
            {"id": "a", "function": "f", "arguments": {"x": 1}},
            {"id": "b", "function": "f", "arguments": {"x": 1}}]},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "ok"}]},
        {"role": "tool", "tool_call_id": "b", "content": "", "error": {"message": "late"}},
        {"role": "assistant", "content": [{"type": "reasoning", "reasoning": "hm"},
                                          {"type": "text", "text": "done"}]},
    ],
    "output": {"model": "m", "choices": []},
    "attachments": {"x": "a long task"},
}  # fmt: skip
SAMPLED = list(
    chat(
        ("user", "a long task"),
        {"a": "ok", "b": "late"},
        ("assistant", "done"),
    )
)


def test_a_sample_of_inspect_and_a_log_of_samples(tmp_path):
    run, damage = read_one(tmp_path, SAMPLE)
    assert (run.messages, run.request, run.id) == (
        SAMPLED,
        {"model": "m"},
        "log:7/1",
    )
    log = {
        "version": 2,
        "eval": {"task": "t"},
        "samples": [SAMPLE, SAMPLE | {"epoch": 2}, {}],
    }
    runs, (damage,) = collect(
        write(tmp_path / "log.json", json.dumps(log, indent=1).encode())
    )
    assert [run.id for run in runs] == ["log:7/1", "log:7/2"]
    assert damage.problem == "sample 3 of an inspect log holds no messages"


def test_the_zip_that_inspect_writes(tmp_path):
    path = tmp_path / "logs.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "_journal/start.json", json.dumps({"version": 2, "eval": {}})
        )
        archive.writestr("samples/7_epoch_1.json", json.dumps(SAMPLE))
        archive.writestr("samples/7_epoch_2.json", "{")
        archive.writestr("header.json", json.dumps({"version": 2, "eval": {}}))
    (run,), damage = collect(path)
    assert run.messages == SAMPLED
    assert [(found.line, found.problem) for found in damage] == [
        (3, "a file in it is not JSON")
    ]
    data = path.read_bytes()
    runs, (damage,) = collect(write(path, data[: len(data) // 2]))
    assert runs == []
    assert "ends too early" in damage.problem


def test_the_same_packed_with_zstandard_as_inspect_does_where_it_can(tmp_path):
    path = tmp_path / "logs.eval"
    with zstandard.ZipFile(path, "w", zstandard.ZIP_ZSTANDARD) as archive:
        archive.writestr("samples/7_epoch_1.json", json.dumps(SAMPLE))
        archive.writestr(
            "samples/7_epoch_2.json", json.dumps(SAMPLE | {"epoch": 2})
        )
    runs, damage = collect(path)
    assert [run.messages for run in runs] == [SAMPLED, SAMPLED]
    assert damage == []
    data = bytearray(path.read_bytes())
    data[60:90] = bytes(30)
    (run,), (found,) = collect(write(path, bytes(data)))
    assert (run.id, found.line) == ("logs:7/2", 1)
    assert found.problem.startswith("a file in it cannot be unpacked (")


def test_a_zip_that_is_encrypted_or_holds_millions_of_values_is_told_and_the_rest_is_read(
    tmp_path,
):
    path = tmp_path / "logs.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/1.json", json.dumps(SAMPLE))
        archive.writestr(
            "samples/2.json", b"[" + b"{}," * (MOST_VALUES // 4) + b"{}]"
        )
        archive.writestr("samples/3.json", json.dumps(SAMPLE))
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= (
        1  # the first file, as the directory has it
    )
    assert len(data) < 100_000
    (run,), damage = collect(write(path, bytes(data)))
    assert run.messages == SAMPLED
    assert [(found.line, found.problem) for found in damage] == [
        (1, "a file in it cannot be unpacked (RuntimeError)"),
        (2, "a file in it holds more than 16,000,000 values"),
    ]


PACKINGS = [
    zipfile.ZIP_STORED,
    zipfile.ZIP_DEFLATED,
    zipfile.ZIP_BZIP2,
    zipfile.ZIP_LZMA,
]


@pytest.mark.parametrize("packing", PACKINGS)
def test_a_zip_that_is_damaged_anywhere_is_told_and_raises_nothing(
    tmp_path, packing
):
    path = tmp_path / "logs.eval"
    with zipfile.ZipFile(path, "w", packing) as archive:
        archive.writestr("samples/1.json", json.dumps(SAMPLE))
        archive.writestr("samples/2.json", json.dumps(SAMPLE))
    whole, second = path.read_bytes(), path.read_bytes().rindex(b"PK\x03\x04")
    for place in range(26, second, 7):
        data = bytearray(whole)
        data[place : place + 3] = b"\xff\x00\xaa"
        runs, damage = collect(write(path, bytes(data)))
        assert len(runs) == 2 or damage
        assert all("a file in it " in found.problem for found in damage)


def test_messages_of_langchain_whose_results_may_lack_their_ids(tmp_path):
    asked = [
        {"id": id, "name": "f", "args": {"x": 1}, "type": "tool_call"}
        for id in "ab"
    ]
    messages = [
        {"type": "SystemMessage", "content": "Be brief."},
        {"type": "HumanMessage", "content": "go"},
        {"type": "AIMessage", "content": "", "tool_calls": asked},
        {"type": "ToolMessage", "content": "one"},
        {"type": "ToolMessage", "content": "two", "tool_call_id": "b"},
        {"type": "AIMessage", "content": "done"},
    ]
    started = {"type": "metadata", "total_stages": 1}
    run, damage = read_one(
        tmp_path, started, {"type": "event", "messages": messages}
    )
    expected = [
        ("system", "Be brief."),
        ("user", "go"),
        {"a": "one", "b": "two"},
    ]
    assert run.messages == list(chat(*expected, ("assistant", "done")))
    assert damage == []


LANGCHAIN = [
    ("system", "SystemMessage", {"content": "Be brief."}),
    ("human", "HumanMessage", {"content": "go"}),
    (
        "ai",
        "AIMessage",
        {
            "content": "",
            "tool_calls": [{"id": "a", "name": "f", "args": {"x": 1}}],
            "response_metadata": {"model_name": "gpt-5"},
        },
    ),
    ("tool", "ToolMessage", {"content": "one", "tool_call_id": "a"}),
    ("ai", "AIMessage", {"content": "done"}),
]
FORMS_OF_LANGCHAIN = {
    "model_dump": lambda type, _, fields: {"type": type, **fields},
    "messages_to_dict": lambda type, _, fields: {"type": type, "data": fields},
    "dumpd": lambda _, name, fields: {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", name],
        "kwargs": fields,
    },
}


@pytest.mark.parametrize("form", FORMS_OF_LANGCHAIN)
def test_a_history_as_langchain_keeps_it_is_a_run(tmp_path, form):
    messages = [FORMS_OF_LANGCHAIN[form](*message) for message in LANGCHAIN]
    (run,), damage = collect(
        write(tmp_path / "history.json", json.dumps(messages).encode())
    )
    expected = [("system", "Be brief."), ("user", "go"), {"a": "one"}]
    assert run.messages == list(chat(*expected, ("assistant", "done")))
    assert run.request == {"model": "gpt-5"}
    assert damage == []


def pydantic_messages():
    """What ``all_messages_json`` gives of a run with a thought, a retry and a structured result."""
    first = [
        {"part_kind": "system-prompt", "content": "You look."},
        {
            "part_kind": "user-prompt",
            "content": ["go", {"kind": "binary", "data": "YWJj"}],
        },
    ]
    reply = [
        {"part_kind": "thinking", "content": "hm"},
        {"part_kind": "text", "content": "I look."},
        {
            "part_kind": "tool-call",
            "tool_name": "f",
            "tool_call_id": "a",
            "args": {"x": 1},
        },
        {
            "part_kind": "tool-call",
            "tool_name": "f",
            "tool_call_id": "b",
            "args": '{"x": 2}',
        },
    ]
    results = [
        {
            "part_kind": "tool-return",
            "tool_name": "f",
            "tool_call_id": "a",
            "content": {"rows": [1]},
        },
        {
            "part_kind": "retry-prompt",
            "tool_name": "f",
            "tool_call_id": "b",
            "content": "again",
        },
    ]
    invalid = [{"part_kind": "retry-prompt", "content": "Not an answer."}]
    done = [{"part_kind": "text", "content": "done"}]
    return [
        {"kind": "request", "instructions": "Be brief.", "parts": first},
        {
            "kind": "response",
            "model_name": "gpt-5",
            "timestamp": "2026-11-27T22:56:16Z",
            "parts": reply,
        },
        {"kind": "request", "instructions": "Be brief.", "parts": results},
        {"kind": "response", "model_name": "gpt-5", "parts": done},
        {"kind": "request", "parts": invalid},
        {"kind": "response", "model_name": "gpt-5", "parts": done},
    ]


def test_a_history_of_pydantic_ai_is_a_run(tmp_path):
    path = write(
        tmp_path / "history.json", json.dumps(pydantic_messages()).encode()
    )
    (run,), damage = collect(path)
    calls = [
        ("a", {"name": "f", "arguments": '{"x": 1}'}),
        ("b", {"name": "f", "arguments": '{"x": 2}'}),
    ]
    assert run.messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "system", "content": "You look."},
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {"id": id, "type": "function", "function": function}
                for id, function in calls
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": '{"rows": [1]}'},
        {"role": "tool", "tool_call_id": "b", "content": "again"},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": "Not an answer."},
        {"role": "assistant", "content": "done"},
    ]
    assert run.request == {"model": "gpt-5"}
    assert damage == []


def test_each_line_with_a_history_of_pydantic_ai_is_a_run(tmp_path):
    line = json.dumps(pydantic_messages()).encode()
    runs, damage = collect(write(tmp_path / "runs.jsonl", line + b"\n" + line))
    assert len(runs) == 2
    assert damage == []


# -- requests and replies -------------------------------------------------------------------


def grown_requests():
    """The requests of a session, each with its whole history, as a log of requests has them."""
    messages = [{"role": "user", "content": "go"}]
    requests = []
    for number in range(3):
        requests.append({"model": "gpt-5", "messages": [*messages]})
        messages += [
            {"role": "assistant", "content": f"step {number}"},
            {"role": "user", "content": "on"},
        ]
    return requests


def test_requests_of_one_session_after_each_other_are_one_run(tmp_path):
    requests = grown_requests()
    other = {"model": "gpt-5", "messages": [{"role": "user", "content": "?"}]}
    lines = [requests[0], other, *requests[1:]]
    path = write(
        tmp_path / "log.jsonl",
        b"\n".join(json.dumps(x).encode() for x in lines),
    )
    runs, damage = collect(path)
    assert [run.messages for run in runs] == [
        other["messages"],
        requests[2]["messages"],
    ]
    assert damage == []


def test_a_reply_beside_the_last_request_of_a_session_ends_its_run(tmp_path):
    requests = grown_requests()
    for number, request in enumerate(requests):
        message = {"role": "assistant", "content": f"step {number}"}
        request["response"] = {"choices": [{"message": message}]}
    path = write(
        tmp_path / "log.jsonl",
        b"\n".join(json.dumps(request).encode() for request in requests),
    )
    (run,), damage = collect(path)
    assert run.messages == [
        *requests[2]["messages"],
        {"role": "assistant", "content": "step 2"},
    ]
    assert damage == []


def test_a_row_of_a_data_set_is_its_messages_whatever_else_is_in_it(tmp_path):
    """Its other fields are its own, and no parameters of a request."""
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "done"},
    ]
    row = {
        "messages": messages,
        "id": "run-1",
        "success": True,
        "score": 0.5,
        "split": "test",
    }
    run, damage = read_one(tmp_path, row)
    assert (run.messages, run.request, damage) == (messages, {}, [])
    asked, _ = read_one(
        tmp_path, {**row, "model": "gpt-5", "temperature": 0.1}
    )
    assert (asked.request["model"], asked.request["temperature"]) == (
        "gpt-5",
        0.1,
    )


def test_a_log_of_another_client_is_not_taken_for_claude_code_s(tmp_path):
    """Qwen Code links its lines alike; its messages hold parts."""
    of_qwen = {
        "uuid": "a", "parentUuid": None, "sessionId": "s", "type": "user",
        "message": {"role": "user", "parts": [{"text": "go"}]},
    }  # fmt: skip
    runs, damage = collect(write(tmp_path / "a", lines(of_qwen)))
    assert (runs, [each.problem for each in damage]) == (
        [],
        ["is of no kind known here"],
    )


def test_a_request_of_responses_and_one_of_gemini(tmp_path):
    part = {"type": "output_text", "text": "hi", "annotations": []}
    said = {"type": "message", "role": "assistant", "content": [part]}
    answer = {"output": [said]}
    responses = {
        "model": "gpt",
        "instructions": "Be brief.",
        "input": "go",
        "response": answer,
    }
    content = {"role": "model", "parts": [{"text": "hi"}]}
    reply = {"candidates": [{"content": content}], "modelVersion": "g"}
    contents = [{"role": "user", "parts": [{"text": "go"}]}]
    system = {"parts": [{"text": "Be brief."}]}
    gemini = {
        "contents": contents,
        "systemInstruction": system,
        "response": reply,
    }
    (one, two), damage = collect(
        write(tmp_path / "a", lines(responses, gemini))
    )
    assert (one.format, two.format) == ("openai-responses", "gemini")
    assert one.messages == [{"role": "user", "content": "go"}, said]
    assert two.messages == [*contents, content]
    assert one.request == {"model": "gpt", "instructions": "Be brief."}
    assert two.request == {"systemInstruction": system, "model": "g"}
    assert damage == []


def exchange(*messages, said=None, calls=()):
    """A request with these messages, and what came back."""
    message = {
        "role": "assistant",
        "content": said,
        "tool_calls": list(calls) or None,
    }
    return {"model": "gpt", "messages": list(messages)}, {
        "choices": [{"message": message}]
    }


def conversation(word):
    """Three exchanges whose histories grow out of each other."""
    history = list(chat(("user", word), {"a": "one"}, {"b": "two"}))
    return [
        exchange(*history[:1], calls=history[1]["tool_calls"]),
        exchange(*history[:3], calls=history[3]["tool_calls"]),
        exchange(*history, said="done"),
    ]


def as_bodies(request, reply):
    return {
        "request": {"method": "POST", "body": json.dumps(request)},
        "response": {"body": reply},
    }


def test_exchanges_that_grow_out_of_each_other_are_one_run(tmp_path):
    one, two = conversation("go"), conversation("and you")
    mixed = [
        as_bodies(*pair)
        for pairs in zip(one, two, strict=True)
        for pair in pairs
    ]
    runs, damage = collect(write(tmp_path / "proxy", lines(*mixed)))
    assert [run.messages[0]["content"] for run in runs] == ["go", "and you"]
    for run in runs:
        assert len(run.messages) == 6
        assert run.messages[-1] == {"role": "assistant", "content": "done"}
        assert run.request == {"model": "gpt"}
    assert damage == []


def test_few_conversations_are_open_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(_exchanges, "_MOST_AT_ONCE", 2)
    starts = [as_bodies(*conversation(word)[0]) for word in "abc"]
    last = [as_bodies(*conversation(word)[2]) for word in "ac"]
    runs, _ = collect(write(tmp_path / "proxy", lines(*starts, *last)))
    assert [
        (run.messages[0]["content"], len(run.messages)) for run in runs
    ] == [
        *(("a", 1), ("b", 1), ("a", 6), ("c", 6)),
    ]


def test_what_is_recorded_here_is_read_here(tmp_path):
    path = tmp_path / "runs.jsonl"
    with Recorder(path) as record:
        for request, reply in conversation("go"):
            record(request | {"extra_headers": {"x-key": "secret"}}, reply)
    assert "secret" not in path.read_text()
    (run,), damage = collect(path)
    assert len(run.messages) == 6
    assert damage == []


def test_an_exchange_without_a_reply_is_a_run_all_the_same(tmp_path):
    (request, _), *_ = conversation("go")
    run, damage = read_one(
        tmp_path, {"request": request, "response": "no JSON"}
    )
    assert (run.messages, run.sent_whole, damage) == (
        request["messages"],
        True,
        [],
    )


# -- values that are not what their kind says -----------------------------------------------


@pytest.mark.parametrize(
    "broken",
    [
        codex("response_item", type="message", role="user", content=7)
        | {"timestamp": {}},
        {
            "info": {"sessionID": "o", "role": "assistant"},
            "parts": [{"type": "tool"}],
            "messages": [7],
        },
        {
            "schema_version": "ATIF-v1.4",
            "steps": [{"source": "agent", "tool_calls": [{}]}],
        },
        {"trajectory": [], "history": [{"role": "tool", "tool_call_ids": 7}]},
        SAMPLE | {"messages": [{"role": "assistant", "tool_calls": 7}]},
        gemini(9, "gemini", "x", toolCalls=[{"id": 1}]),
    ],
)
def test_a_value_in_another_shape_than_its_kind_stops_nothing(
    tmp_path, broken
):
    good = {
        "id": "t",
        "format": "openai-chat",
        "messages": list(chat(("user", "go"), {"a": "ok"})),
    }
    runs, _ = collect(write(tmp_path / "a", lines(good, broken, good)))
    assert [run.id for run in runs].count("t") == 2

"""The readers, on small recordings written here."""

import gzip
import json
import tracemalloc

import pytest

from ullage.core.errors import FormatError
from ullage.tools.cli.replay import runs_in
from ullage.tools.replay.readers import _files, read, size_of
from ullage.wires.rules.checker import problems_of

CHAT = [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": "done"},
]
TRAJECTORY = {
    "id": "t1",
    "format": "openai-chat",
    "model": "m",
    "messages": CHAT,
}


def lines(*values):
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def write(path, data, packed=False):
    path.write_bytes(gzip.compress(data) if packed else data)
    return path


def collect(path):
    damage = []
    try:
        return list(read(path, on_damage=damage.append)), damage
    except FormatError:
        return [], damage


# -- trajectories ---------------------------------------------------------------------------


def test_a_trajectory_without_the_recorders_own_keys(tmp_path):
    noted = [
        {"role": "user", "content": "go", "x_kind": "compact_summary"},
        {
            "role": "assistant",
            "content": "ok",
            "reasoning_content": "hm",
            "x_error": True,
        },
        {
            "role": "assistant",
            "content": "ok",
            "reasoning_content": None,
            "name": "bob",
        },
    ]
    (run,), damage = collect(
        write(tmp_path / "a", lines(TRAJECTORY | {"messages": noted}))
    )
    assert run.messages == [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "ok", "reasoning_content": "hm"},
        {"role": "assistant", "content": "ok", "name": "bob"},
    ]
    assert (run.id, run.format) == ("t1", "openai-chat")
    assert run.request == {"model": "m"}
    assert damage == []


@pytest.mark.parametrize(
    ("row", "is_sent"),
    [
        ({"message_index": 2, "input_tokens": 5}, True),
        ({"message_index": 1, "input_tokens": 5}, False),
        ({"message_index": 2, "output_tokens": 3}, False),
        (7, False),
    ],
)
def test_a_trajectory_with_a_count_behind_its_end_was_sent_whole(
    tmp_path, row, is_sent
):
    (run,), _ = collect(
        write(tmp_path / "a", lines(TRAJECTORY | {"usage": [row]}))
    )
    assert (len(run.messages), run.sent_whole) == (2, is_sent)


def test_a_broken_history_is_not_repaired(tmp_path):
    broken = [
        {"role": "user", "content": "go"},
        {"role": "tool", "tool_call_id": "c", "content": "x"},
        {"role": "assistant", "content": None},
    ]
    (run,), damage = collect(
        write(tmp_path / "a", lines(TRAJECTORY | {"messages": broken}))
    )
    assert run.messages == broken
    assert damage == []
    assert {p.rule for p in problems_of(run.format, run.messages)} == {
        "C2",
        "C5",
    }


# -- requests -------------------------------------------------------------------------------

CALL = {
    "id": "c",
    "type": "function",
    "function": {"name": "f", "arguments": "{}"},
}
USE = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
FORMATS = [
    ("anthropic", {"system": "s", "messages": CHAT}),
    ("anthropic", {"model": "claude-x", "messages": CHAT}),
    (
        "anthropic",
        {"model": "m", "messages": CHAT, "tools": [{"input_schema": {}}]},
    ),
    (
        "anthropic",
        {"model": "m", "messages": [{"role": "assistant", "content": [USE]}]},
    ),
    ("openai-chat", {"model": "gpt", "messages": CHAT}),
    (
        "openai-chat",
        {"model": "claude-x", "messages": CHAT, "tools": [{"function": {}}]},
    ),
    (
        "openai-chat",
        {"model": "claude-x", "messages": [{"role": "tool", "content": "x"}]},
    ),
    (
        "openai-chat",
        {"model": "claude-x", "messages": [CHAT[0] | {"tool_calls": [CALL]}]},
    ),
]


@pytest.mark.parametrize(("format", "request_"), FORMATS)
def test_the_format_of_a_request_follows_from_its_structure_then_its_model(
    tmp_path, format, request_
):
    (run,), _ = collect(write(tmp_path / "a", lines(request_)))
    assert run.format == format
    assert run.request == {
        k: v for k, v in request_.items() if k != "messages"
    }
    assert run.messages == request_["messages"]


ITEMS = [
    {"role": "user", "content": "go"},
    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "x"},
]
GEMINI = [
    {"role": "user", "parts": [{"text": "go"}]},
    {"role": "model", "parts": []},
]
HISTORIES = [
    (
        "openai-chat",
        [
            CHAT[0],
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
        ],
    ),
    ("anthropic", [CHAT[0], {"role": "assistant", "content": [USE]}]),
    ("openai-responses", ITEMS),
    ("gemini", GEMINI),
]


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize(("format", "history"), HISTORIES)
def test_a_list_of_messages_is_a_history(tmp_path, format, history, indent):
    (run,), damage = collect(
        write(tmp_path / "a.json", json.dumps(history, indent=indent).encode())
    )
    assert (run.format, run.messages, run.request) == (format, history, {})
    assert damage == []


def test_a_response_is_appended(tmp_path):
    chat = {
        "messages": CHAT[:1],
        "tools": [],
        "cost": 0.1,
        "kwargs": {"top_p": 1, "extra_body": {}},
        "response": {
            "model": "gpt",
            "choices": [
                {
                    "message": {
                        "role": "assistant",
                        "content": "hi",
                        "tool_calls": None,
                    }
                }
            ],
        },
    }
    claude = {
        "system": "s",
        "messages": CHAT[:1],
        "response": {
            "content": [{"type": "text", "text": "hi"}],
        },
    }
    (one, two), _ = collect(write(tmp_path / "a", lines(chat, claude)))
    assert one.messages[1] == {"role": "assistant", "content": "hi"}
    assert one.request == {"top_p": 1, "tools": [], "model": "gpt"}
    assert two.messages[1] == {
        "role": "assistant",
        "content": claude["response"]["content"],
    }


@pytest.mark.parametrize(
    "response",
    [
        {"content": [USE]},
        {
            "choices": [
                {"message": {"role": "assistant", "tool_calls": [CALL]}}
            ]
        },
    ],
)
def test_a_reply_nobody_answered_is_left_off_but_its_request_kept(
    tmp_path, response
):
    value = {"model": "m", "messages": CHAT[:1], "response": response}
    (run,), _ = collect(write(tmp_path / "a", lines(value)))
    assert (run.messages, run.sent_whole) == (CHAT[:1], True)


# -- Claude Code session logs ---------------------------------------------------------------


class Session:
    """Writes a session log line by line; each line follows the one before unless told."""

    def __init__(self):
        self.lines = []
        self.last = None

    def add(self, kind, content=None, *, reply=None, parent=..., **more):
        uuid = f"u{len(self.lines)}"
        line = {
            "type": kind,
            "uuid": uuid,
            "parentUuid": self.last if parent is ... else parent,
            "sessionId": "s1",
            "timestamp": f"2026-01-01T00:00:{len(self.lines):02}Z",
        }
        if content is not None:
            line["message"] = {"role": kind, "content": content}
            if kind == "assistant":
                line["message"] |= {
                    "id": reply or f"msg_{uuid}",
                    "model": "claude-x",
                }
        self.lines.append(line | more)
        self.last = uuid
        return uuid

    def read(self, tmp_path):
        runs, damage = collect(write(tmp_path / "log", lines(*self.lines)))
        for run in runs:
            assert problems_of("anthropic", run.messages) == []
        return runs, [d.problem for d in damage]


def text(words):
    return {"type": "text", "text": words}


def use(call_id):
    return {"type": "tool_use", "id": call_id, "name": "f", "input": {}}


def answer(call_id, words="ok"):
    return {"type": "tool_result", "tool_use_id": call_id, "content": words}


def test_the_lines_of_a_reply_are_one_message_and_its_results_the_next(
    tmp_path,
):
    log = Session()
    log.add("file-history-snapshot", snapshot={})
    log.add("user", "go")
    log.add("assistant", [text("well")], reply="m1")
    first = log.add("assistant", [use("a")], reply="m1")
    second = log.add("assistant", [use("b")], reply="m1")
    log.add("progress", parent=first)
    log.add("user", [answer("b")], parent=second)
    log.add("user", [answer("a"), text("note")], parent=first)
    log.add("assistant", [text("done")], parent="u6")
    (run,), damage = log.read(tmp_path)
    assert run.messages == [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [text("well"), use("a"), use("b")]},
        {"role": "user", "content": [answer("a"), answer("b"), text("note")]},
        {"role": "assistant", "content": [text("done")]},
    ]
    assert run.stamps[0] < run.stamps[1] < run.stamps[3]
    assert (run.id, run.request) == ("s1", {"model": "claude-x"})
    assert damage == []


def test_words_between_call_and_result_move_behind_the_results(tmp_path):
    log = Session()
    log.add("user", "go")
    log.add("assistant", [use("a")])
    log.add("user", "also this")
    log.add("user", [answer("a")])
    log.add("assistant", [text("done")])
    (run,), _ = log.read(tmp_path)
    assert [m["content"] for m in run.messages[1:4]] == [
        [use("a")],
        [answer("a")],
        "also this",
    ]


def test_a_branch_the_user_went_back_on_is_no_part_of_the_history(tmp_path):
    log = Session()
    start = log.add("user", "go")
    log.add("assistant", [text("wrong")])
    log.add("user", "no, wait")
    log.add("assistant", [text("right")], parent=start)
    (run,), _ = log.read(tmp_path)
    assert [m["content"] for m in run.messages] == ["go", [text("right")]]


def test_sidechains_are_runs_of_their_own(tmp_path):
    log = Session()
    top = log.add("user", "go")
    log.add("user", "sub task", parent=None, isSidechain=True, agentId="a7")
    log.add("assistant", [text("sub done")], isSidechain=True, agentId="a7")
    root = log.add("user", "old style", parent=None, isSidechain=True)
    log.add("assistant", [text("also done")], isSidechain=True)
    log.add("assistant", [text("done")], parent=top)
    runs, _ = log.read(tmp_path)
    assert {run.id: run.messages[0]["content"] for run in runs} == {
        "s1": "go",
        "s1/a7": "sub task",
        f"s1/{root}": "old style",
    }
    assert all(len(run.messages) == 2 for run in runs)


def test_a_compaction_stays_as_a_user_message_and_the_history_goes_on(
    tmp_path,
):
    log = Session()
    log.add("user", "go")
    last = log.add("assistant", [text("much work")])
    log.add(
        "system",
        parent=None,
        logicalParentUuid=last,
        subtype="compact_boundary",
    )
    log.add(
        "user",
        "so far: …",
        isCompactSummary=True,
        isVisibleInTranscriptOnly=True,
    )
    log.add("assistant", [text("going on")])
    (run,), _ = log.read(tmp_path)
    assert [m["role"] for m in run.messages] == [
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    assert run.messages[2]["content"] == "so far: …"


def test_an_unanswered_last_reply_is_cut_and_its_request_kept(tmp_path):
    log = Session()
    log.add("user", "go")
    log.add("assistant", [use("a"), use("b")])
    log.add("user", [answer("a")])
    log.add("user", "[interrupted]")
    (run,), damage = log.read(tmp_path)
    assert run.messages == [{"role": "user", "content": "go"}]
    assert run.sent_whole
    assert damage == ["the last reply has calls without results, left out"]


def test_an_unanswered_call_in_the_middle_is_answered_by_an_error(tmp_path):
    log = Session()
    log.add("user", "go")
    log.add("assistant", [use("a"), use("b")])
    log.add("user", [answer("b")])
    log.add("assistant", [text("never mind")])
    (run,), damage = log.read(tmp_path)
    made_up, kept = run.messages[2]["content"]
    assert (made_up["tool_use_id"], made_up["is_error"]) == ("a", True)
    assert kept == answer("b")
    assert damage == ["a call without a result is answered by a short error"]


def test_what_was_never_sent_is_left_out(tmp_path):
    log = Session()
    log.add("assistant", [text("the tail of something")])
    log.add("user", "go")
    log.add("user", "")
    log.add("assistant", [text("\n\n")], reply="m1")
    log.add("assistant", [use("a")], reply="m1")
    log.add("user", [answer("a"), answer("a"), answer("gone")])
    log.add("assistant", [text("API Error")], isApiErrorMessage=True)
    log.add("assistant", [text("done")])
    (run,), damage = log.read(tmp_path)
    contents = [m["content"] for m in run.messages]
    assert contents == ["go", [use("a")], [answer("a")], [text("done")]]
    assert sorted(damage) == [
        "a result without its call is left out",
        "a second result of one call is left out",
        "an empty text is left out",
        "an empty text is left out",
        "the log begins with a reply, which is left out",
    ]


# -- files ----------------------------------------------------------------------------------


def test_files_are_known_by_content_not_by_name(tmp_path):
    write(tmp_path / "1.txt", lines(TRAJECTORY | {"id": "lines"}))
    write(
        tmp_path / "2.json", lines(TRAJECTORY | {"id": "packed"}), packed=True
    )
    spread = json.dumps(TRAJECTORY | {"id": "spread"}, indent=2).encode()
    write(tmp_path / "3.jsonl.gz", b"\xef\xbb\xbf" + spread)
    many = [TRAJECTORY | {"id": f"list {n}"} for n in range(2)]
    write(tmp_path / "4.gz", json.dumps(many, indent=1).encode())
    (tmp_path / "deeper").mkdir()
    write(tmp_path / "deeper" / "5", lines({"model": "m", "messages": CHAT}))
    write(tmp_path / ".hidden", lines(TRAJECTORY | {"id": "hidden"}))
    runs, damage = collect(tmp_path)
    ids = [run.id for run in runs]
    assert ids == ["lines", "packed", "spread", "list 0", "list 1", "5:1"]
    assert damage == []


def test_damaged_lines_are_told_and_the_rest_is_read(tmp_path):
    good = lines(TRAJECTORY)
    data = (
        good
        + b'{"format": "openai-chat", "mess\n'
        + b"\xff\xfe\n"
        + b"[1]\n\n"
        + good
    )
    data += (
        lines({"format": "openai-chat", "messages": []}, {"weather": "fine"})
        + good
    )
    runs, damage = collect(write(tmp_path / "a.jsonl", data))
    assert len(runs) == 3
    assert [(d.file, d.line) for d in damage] == [
        ("a.jsonl", n) for n in (2, 3, 1, 7, 8)
    ]


@pytest.mark.parametrize(
    "first", [b"{\n", b'{"format": "open\n{"messages": \n']
)
def test_damage_at_the_head_does_not_hide_what_follows(tmp_path, first):
    data = first + lines(TRAJECTORY, TRAJECTORY)
    runs, damage = collect(write(tmp_path / "a", data))
    assert len(runs) == 2 or first == b"{\n"
    assert damage


def test_a_gzip_file_cut_short_gives_what_is_before_the_cut(tmp_path):
    values = [
        TRAJECTORY | {"id": str(n), "task": str(n**9) * 200}
        for n in range(300)
    ]
    packed = gzip.compress(lines(*values))
    path = tmp_path / "a.gz"
    path.write_bytes(packed[: len(packed) // 2])
    runs, (damage,) = collect(path)
    assert 50 < len(runs) < 300
    assert [run.id for run in runs] == [str(n) for n in range(len(runs))]
    assert "ends too early" in damage.problem
    middle = len(packed) // 2
    path.write_bytes(packed[:middle] + b"\x00" * 40 + packed[middle + 40 :])
    runs, damage = collect(path)
    assert 50 < len(runs) < 300
    assert "decompressed" in damage[-1].problem


def test_a_wrong_checksum_costs_nothing_but_a_word(tmp_path):
    packed = bytearray(gzip.compress(lines(TRAJECTORY, TRAJECTORY)))
    packed[-6] ^= 1
    runs, (damage,) = collect(write(tmp_path / "a", bytes(packed)))
    assert len(runs) == 2
    assert "damaged" in damage.problem


def test_a_line_too_long_is_skipped(tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "MOST_LINE_BYTES", 4096)
    data = lines(TRAJECTORY, TRAJECTORY | {"task": "x" * 10_000}, TRAJECTORY)
    runs, (damage,) = collect(write(tmp_path / "a", data))
    assert len(runs) == 2
    assert (damage.line, damage.problem) == (
        2,
        "the line is longer than 4,096 bytes",
    )


@pytest.mark.parametrize(
    "data",
    [b"", b"\n\n", b"# Notes\n\nwords\n" * 40, bytes(range(256)) * 40, b"\x1f\x8bnothing",
     b'{"a": 1}\n' * 40, b"[1, 2, 3]", b"{\n" * 40, b"[" * 5000],
)  # fmt: skip
def test_a_file_with_nothing_in_it_is_one_damage_and_an_error(tmp_path, data):
    damage = []
    with pytest.raises(
        FormatError, match=r"a\.jsonl: no run in it could be read\. Readable"
    ):
        list(read(write(tmp_path / "a.jsonl", data), on_damage=damage.append))
    assert len(damage) == 1
    assert ("empty" in damage[0].problem) == (not data.strip())


def test_many_damaged_lines_are_summed_up(tmp_path):
    runs, damage = collect(
        write(tmp_path / "a", lines(TRAJECTORY) + b"oops\n" * 500)
    )
    assert len(runs) == 1
    assert len(damage) == 101
    assert damage[-1].problem == "400 more damaged lines"


def test_a_path_that_does_not_exist_is_refused_at_once(tmp_path):
    with pytest.raises(
        FormatError, match=r"^nowhere: .* Give a JSON"
    ) as caught:
        read(tmp_path / "nowhere")
    assert str(tmp_path) not in str(caught.value)
    with pytest.raises(FormatError):
        read(tmp_path)


def test_one_bad_file_does_not_stop_the_others(tmp_path):
    write(tmp_path / "1", b"no json")
    write(tmp_path / "2", lines(TRAJECTORY))
    runs, damage = collect(tmp_path)
    assert len(runs) == 1
    assert [d.file for d in damage] == ["1"]


def test_progress_rises_to_the_size_on_disk(tmp_path):
    for name in "ab":
        write(
            tmp_path / name,
            lines(*[TRAJECTORY | {"task": "x" * 999}] * 50),
            packed=name == "b",
        )
    seen = [read_bytes for _, _, read_bytes in runs_in((tmp_path,), [])]
    assert seen == sorted(seen)
    assert (
        seen[-1]
        == size_of(tmp_path)
        == sum(p.stat().st_size for p in tmp_path.iterdir())
    )


def test_one_run_is_held_at_a_time(tmp_path):
    path = write(tmp_path / "a", lines(*[TRAJECTORY] * 5) + b"oops\n")
    damage = []
    runs = read(path, on_damage=damage.append)
    next(runs)
    assert damage == []
    list(runs)
    assert len(damage) == 1


def peak_bytes(path):
    """The most memory that reading the file run by run takes, and how many runs it holds."""
    tracemalloc.start()
    try:
        count = sum(1 for _ in read(path))
        return count, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("packed", [True, False])
def test_memory_does_not_grow_with_the_file(tmp_path, packed):
    text = "a line of output\n" * 6_000
    messages = [CHAT[0], {"role": "assistant", "content": text}]
    line = lines(TRAJECTORY | {"messages": messages})
    exchange = lines(
        {"request": {"model": "m", "messages": [CHAT[0]]}, "response": {}}
    )
    few = peak_bytes(
        write(tmp_path / "few", line * 10 + exchange * 10, packed)
    )
    many = peak_bytes(
        write(tmp_path / "many", line * 200 + exchange * 200, packed)
    )
    assert (few[0], many[0]) == (20, 400)
    assert many[1] < few[1] * 1.5 < len(line) * 15


def test_a_document_too_long_is_skipped(tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "MOST_LINE_BYTES", 4096)
    whole = json.dumps([TRAJECTORY] * 99, indent=1).encode()
    runs, (damage,) = collect(write(tmp_path / "a", whole))
    assert runs == []
    assert (
        damage.problem
        == "is neither JSON nor JSON Lines, or longer than 4,096 bytes"
    )


def test_text_the_strict_parser_refuses_is_read_all_the_same(tmp_path):
    line = json.dumps(TRAJECTORY).replace("go", "\\ud800").encode()
    (run,), _ = collect(write(tmp_path / "a", line + b"\n"))
    assert run.messages[0]["content"] == "\ud800"

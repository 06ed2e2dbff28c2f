"""`ullage replay` on what lies around: told with file and line, skipped, and the rest scored."""

import gzip
import json
import sys

import pytest

from tests.cli.terminal import ullage
from tests.cli.test_replay import lines_of, trajectory

OPTIONS = ("--window", 16_000, "--json", "--jobs", 1)


def replay(*words):
    return ullage("replay", *words, *OPTIONS)


def skipped(ran):
    return [
        line for line in ran.err.splitlines() if line.startswith("skipped")
    ]


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.jsonl"
    path.write_bytes(lines_of(trajectory("good", 2)))
    return path


def cut_gzip():
    runs = [trajectory(f"run {number}", 2, lines=40) for number in range(60)]
    packed = gzip.compress(lines_of(*runs), compresslevel=1)
    return packed[: len(packed) // 2]


BAD = {
    "empty.jsonl": (b"", "skipped empty.jsonl: the file is empty"),
    "blank.jsonl": (b"\n \n", "skipped blank.jsonl: the file is empty"),
    "empty.jsonl.gz": (
        gzip.compress(b""),
        "skipped empty.jsonl.gz: the file is empty",
    ),
    "words.txt": (
        b"# Notes\n\nwords\n",
        "skipped words.txt line 1: is not JSON (and 1 more",
    ),
    "access.jsonl": (
        lines_of(
            {"level": "info", "msg": "GET /"},
            {"level": "info", "msg": "GET /a"},
        ),
        "skipped access.jsonl line 1: is of no kind known here (and 1 more in this file)",
    ),
    "half.json": (
        b'{"format": "openai-chat",\n "messages": [\n',
        "skipped half.json line 1: is nei",
    ),
    "stub.gz": (
        gzip.compress(b"x" * 999)[:20],
        "skipped stub.gz line 1: cannot be decompressed",
    ),
    "unanswered.jsonl": (
        lines_of(
            {
                "type": "message",
                "timestamp": 0,
                "message": {"role": "user", "content": "x"},
            }
        ),
        "skipped unanswered.jsonl: there is no run in it in which a model replies",
    ),
    "broken.eval": (
        b"PK\x03\x04" + b"\0" * 99,
        "skipped broken.eval: cannot be unpacked",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_told_and_the_rest_is_scored(tmp_path, good, name):
    data, expected = BAD[name]
    (tmp_path / name).write_bytes(data)
    ran = replay(tmp_path / name, good)
    assert ran.status == 3
    (line,) = skipped(ran)
    assert line.startswith(expected)
    assert [(row["name"], row["runs"]) for row in ran.json["rows"]] == [
        ("good.jsonl", 1)
    ]
    alone = replay(tmp_path / name)
    assert alone.status == 1
    assert alone.out == b""
    assert "no recorded run was found in them" in alone.err


def test_a_gzip_cut_short_is_scored_up_to_the_cut(tmp_path):
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(cut_gzip())
    ran = replay(path)
    assert ran.status == 3
    (row,) = ran.json["rows"]
    assert 0 < row["runs"] < 60
    (line,) = skipped(ran)
    assert line.endswith(
        "cannot be decompressed from here on: the file ends too early"
    )
    number = int(line.split("line ")[1].split(":")[0])
    assert row["runs"] in (number - 1, number)


def test_a_damaged_line_is_told_with_its_number(tmp_path):
    path = tmp_path / "runs.jsonl"
    parts = (
        lines_of(trajectory("one", 1)),
        b'{"id": "t\n',
        lines_of(trajectory("two", 1)),
    )
    path.write_bytes(b"".join(parts))
    ran = replay(path)
    assert ran.status == 3
    assert skipped(ran) == ["skipped runs.jsonl line 2: is not JSON"]
    assert ran.json["rows"][0]["runs"] == 2


def test_a_run_without_tool_calls_is_scored(tmp_path):
    messages = [
        {"role": role, "content": "well " * 900}
        for role in ("user", "assistant")
    ] * 9
    path = tmp_path / "talk.jsonl"
    path.write_bytes(
        lines_of({"id": "talk", "format": "openai-chat", "messages": messages})
    )
    ran = replay(path)
    assert (ran.status, skipped(ran)) == (0, [])
    assert ran.json["rows"][0]["calls"] == 9


def test_a_run_that_is_no_conversation_is_told_and_the_rest_is_scored(
    tmp_path,
):
    odd = trajectory("odd", 1)
    odd["messages"][2]["content"] = 7
    path = tmp_path / "runs.jsonl"
    path.write_bytes(lines_of(trajectory("one", 1), odd, trajectory("two", 1)))
    ran = replay(path)
    assert ran.status == 3
    (line,) = skipped(ran)
    assert line.startswith(
        "skipped runs.jsonl line 2: a run that cannot be replayed: messages[2]"
    )
    assert ran.json["rows"][0]["runs"] == 2


def test_foreign_files_of_a_folder_are_named_and_no_loss(tmp_path, good):
    (tmp_path / "notes.md").write_text("# Notes\n")
    ran = replay(tmp_path)
    assert ran.status == 0
    assert skipped(ran) == ["skipped notes.md line 1: is not JSON"]


def test_what_was_repaired_is_no_loss(tmp_path):
    told_of = {"role": "assistant", "content": "", "tool_calls": []}
    history = [{"role": "user", "content": "go"}, told_of | {"content": "yes"}]
    stray = {"role": "tool", "content": "x", "tool_call_ids": ["gone"]}
    path = tmp_path / "run.traj"
    path.write_text(
        json.dumps({"trajectory": [], "history": [*history, stray, stray]})
    )
    ran = replay(path)
    assert ran.status == 0
    assert ran.err.lstrip() == (
        "read anyway run.traj line 1 and 1 more: a result without its call is left out\n"
    )


# -- going on ------------------------------------------------------------------------------


def test_what_is_finished_is_not_done_again(tmp_path, good):
    kept = tmp_path / "kept"
    first = replay(good, "--resume", kept)
    assert len(kept.read_bytes().splitlines()) == 1
    marked = json.loads(kept.read_bytes())
    marked["replayed"]["calls"] = 777  # what a second replay would not find
    kept.write_bytes(lines_of(marked) + b'{"key": "cut sh')
    again = replay(
        good,
        "--resume",
        kept,
        "--policy",
        "default",
        "--policy",
        "continuation",
    )
    assert [row["calls"] for row in first.json["rows"]] == [3]
    calls = {
        row["policy"]: row["calls"]
        for row in again.json["rows"]
        if row["name"] != "all"
    }
    assert calls == {"default": 777, "continuation": 3}
    assert len(kept.read_bytes().splitlines()) == 3
    last = replay(good, "--resume", kept, "--policy", "continuation")
    assert last.json["rows"][0]["calls"] == 3
    assert len(kept.read_bytes().splitlines()) == 3


def test_another_cache_or_content_is_done_anew(tmp_path, good):
    kept = tmp_path / "kept"
    replay(good, "--resume", kept)
    replay(good, "--resume", kept, "--cache", "none")
    assert len(kept.read_bytes().splitlines()) == 2
    good.write_bytes(lines_of(trajectory("good", 3)))
    assert replay(good, "--resume", kept).json["rows"][0]["calls"] == 4


@pytest.mark.skipif(sys.platform == "win32", reason="no such name there")
def test_the_name_of_a_file_rewrites_no_terminal(tmp_path):
    (tmp_path / "na\x1b]0;title\x07me.jsonl").write_bytes(b'{"half": \n')
    shown = replay(tmp_path).err
    assert "na\\x1b]0;title\\x07me.jsonl" in shown
    assert "\x1b]" not in shown

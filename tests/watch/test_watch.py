"""A live session, followed in the terminal by another process."""

import io
import os
import pty
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from rich.console import Console

import ullage as library
from tests.cli.terminal import told, ullage
from ullage.core.errors import StoreError
from ullage.tools.watch.reading import read
from ullage.tools.watch.screen import Screen

LIMITS = library.Limits(window_tokens=16_000)


def turns(path, count, *, tenant="", start=0, messages=None):
    """A session that runs into its limit, and whose provider reports."""
    more = {"limits": LIMITS, "store": path, "tenant": tenant, "recall": True}
    session = library.Session("gpt-4.1", **more)
    messages = messages or [
        {"role": "user", "content": "Read the secret logs."}
    ]
    for number in range(start, start + count):
        call = {"id": f"c{number}", "type": "function"}
        call["function"] = {"name": "read", "arguments": "{}"}
        messages.append({"role": "assistant", "tool_calls": [call]})
        text = f"secret line {number} of the log\n" * 400
        messages.append(
            {"role": "tool", "tool_call_id": f"c{number}", "content": text}
        )
        view = session.fit({"model": "gpt-4.1", "messages": messages})
        usage = {"prompt_tokens": 5_000 + number, "completion_tokens": 7}
        view.observe({"id": f"r{number}", "usage": usage})
    return messages


def drawn(name, seen, width=60, height=24):
    console = Console(file=io.StringIO(), width=width, height=height)
    console.print(Screen(name, seen))
    return console.file.getvalue()


@pytest.fixture
def path(tmp_path):
    turns(tmp_path / "ullage.db", 20)
    return tmp_path / "ullage.db"


def test_every_decision_and_every_report_is_told_without_content(path):
    seen = read(path)
    assert seen.conversations == 1
    assert seen.outputs > 5
    assert set(seen.prompts) == set(range(5_000, 5_020))
    batch = next(each for each in seen.events if each.kind != "observed")
    assert batch.tokens_before > batch.tokens_after > 0
    said = drawn("ullage.db", seen, width=200, height=90)
    assert batch.text in said
    assert "gpt-4.1 answered 7" in said
    assert "secret" not in said
    assert str(path.parent) not in said


@pytest.mark.parametrize("width", [60, 200])
def test_it_fits_the_terminal_and_ends_with_the_newest(path, width):
    lines = drawn("ullage.db", read(path), width).splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) <= 24
    assert "5k" in lines[-1]


def test_what_another_process_writes_is_seen_at_the_next_look(path):
    before = read(path)
    turns(path, 5, start=90)
    assert {5_090, 5_094} <= set(read(path).prompts)
    assert len(read(path).events) > len(before.events)


def test_a_tenant_sees_its_own(path):
    turns(path, 3, tenant="acme")
    assert len(read(path, "acme").prompts) == 3
    assert read(path, "nobody").events == ()


def test_a_store_that_is_not_there_yet_is_waited_for_and_never_made(tmp_path):
    assert read(tmp_path / "none.db") is None
    assert "waiting" in drawn("none.db", None)
    assert not (tmp_path / "none.db").exists()
    (tmp_path / "none.db").touch()
    assert read(tmp_path / "none.db") is None


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "a.db").write_text(
        "no database at all, but long enough to be read as one" * 20
    )
    with pytest.raises(StoreError, match="not a database"):
        read(tmp_path / "a.db")
    assert "not a database" in told(
        ullage("watch", tmp_path / "a.db", "--once")
    )
    with sqlite3.connect(tmp_path / "b.db") as db:
        db.execute("CREATE TABLE somebody (elses)")
    db.close()
    with pytest.raises(StoreError, match="not a store of ullage's"):
        read(tmp_path / "b.db")


def test_once_prints_and_ends(path, tmp_path):
    ran = ullage("watch", path, "--once", env={"COLUMNS": "60"})
    assert ran.status == 0
    assert "1 conversation" in ran.text
    assert ullage("watch", path, "--json").json["conversations"] == 1
    assert "no store at this path" in told(
        ullage("watch", tmp_path / "no.db", "--once")
    )


def test_control_c_ends_it_with_130_and_leaves_the_terminal_as_it_was(path):
    ours, theirs = pty.openpty()
    words = [
        sys.executable,
        "-m",
        "ullage",
        "watch",
        str(path),
        "--every",
        "0.1",
    ]
    size = {**os.environ, "COLUMNS": "60", "LINES": "24", "TERM": "xterm"}
    running = subprocess.Popen(
        words, stdin=theirs, stdout=theirs, stderr=theirs, env=size
    )
    os.close(theirs)
    shown = b""
    while b"5k tokens" not in shown:
        shown += os.read(ours, 65_536)
    running.send_signal(signal.SIGINT)
    deadline = time.monotonic() + 60
    while running.poll() is None and time.monotonic() < deadline:
        try:
            shown += os.read(ours, 65_536)
        except OSError:  # the other end is closed
            break
    assert running.wait(60) == 130
    assert b"\x1b[?1049l" in shown  # back from the alternate screen
    assert b"Traceback" not in shown
    os.close(ours)

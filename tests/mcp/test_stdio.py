"""A server behind the proxy as a process: pipes, stderr, its end."""

import os
import signal
import subprocess
import sys

import pytest

from tests.mcp.scripted import ROWS, line
from tests.mcp.wired import MCP, SCRIPTED, told, wired
from ullage.core.values.notices import pointers
from ullage.doors.mcp.stdio import Pipe

LOG = "".join(map(line, range(3_000)))
OURS = ["get_continuation", "tool_output_cache", "tool_output_cache_grep"]


def test_one_word_before_the_command():
    with wired(*MCP, *SCRIPTED) as session:
        tools = session.begin()
        assert [tool["name"] for tool in tools[-3:]] == OURS
        declared = {tool["name"]: tool.get("outputSchema") for tool in tools}[
            "rows"
        ]
        assert declared["properties"].pop("ullage")["type"] == "string"
        assert declared == ROWS
        shown = session.text("say", lines=3_000)
        assert len(shown) <= 8_000
        ref = pointers(shown)[0].ref
        page = session.text(
            "get_continuation", tool_call_id=ref, offset=len(LOG) - 40
        )
        assert page == LOG[-40:]
        assert (
            session.call("both", lines=3_000)["structuredContent"]["content"]
            != LOG
        )
        session.process.stdin.close()
        assert session.process.wait(100) == 0
        assert told(session.process) == ""


def test_options_stand_before_the_command_and_the_servers_own_behind_it(
    tmp_path,
):
    config = tmp_path / "mcp.toml"
    config.write_text('[[limits]]\ntool = "say"\nchars = 1000\n')
    own = ["--limit", "--help", "tool_output_cache"]
    words = [
        "--limit",
        "result=whole",
        "--config",
        config,
        "--",
        *SCRIPTED,
        *own,
    ]
    with wired(*MCP, *words) as session:
        names = [tool["name"] for tool in session.begin()]
        assert names[-6:-3] == own
        assert names[-3:] == ["ullage_" + name for name in OURS]
        assert len(session.text("say", lines=500)) <= 1_000
        whole = {"content": [{"type": "text", "text": LOG}]}
        assert session.call("result", result=whole) == whole


def test_a_megabyte_is_read_back_byte_for_byte():
    megabyte = "".join(
        f"{n} é😀 \t{'x' * (n % 90)}\r\n" for n in range(18_000)
    )
    assert len(megabyte) > 1_000_000
    with wired(*MCP, *SCRIPTED) as session:
        session.begin()
        said = {"content": [{"type": "text", "text": megabyte}]}
        ref = pointers(session.text("result", result=said))[0].ref
        text = ""
        while (at := len(text)) < len(megabyte):
            page = session.text(
                "get_continuation", tool_call_id=ref, offset=at
            )
            text += page.rpartition("\n[characters ")[0] or page
        assert text == megabyte


def test_progress_passes_while_a_call_runs():
    with wired(*MCP, *SCRIPTED) as session:
        session.begin()
        params = {
            "name": "progress",
            "arguments": {"steps": 3_000},
            "_meta": {"progressToken": 7},
        }
        assert (
            session.ask("tools/call", **params)["result"]["content"][0]["text"]
            == "done"
        )
        steps = [
            m["params"]["progress"]
            for m in session.seen
            if m["method"].endswith("progress")
        ]
        assert steps == list(range(3_000))


def test_a_server_that_floods_stderr_is_not_held_up_and_loses_nothing(
    tmp_path,
):
    with (
        (tmp_path / "err").open("wb") as file,
        wired(*MCP, *SCRIPTED, stderr=file) as session,
    ):
        session.begin()
        assert session.text("flood", kilobytes=4_000) == "said"
    assert (tmp_path / "err").stat().st_size == 4_000 * 1_024


@pytest.mark.parametrize("code", [0, 3, -signal.SIGKILL, -signal.SIGTERM])
def test_a_crash_in_a_call_is_told_and_passed_on(code):
    with wired(*MCP, *SCRIPTED) as session:
        session.begin()
        error = session.ask(
            "tools/call", name="crash", arguments={"code": code}
        )["error"]
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        assert name in error["message"]
        assert session.process.wait(100) == code
        assert told(session.process).endswith(
            f"{name}; 1 call was not answered\n"
        )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_the_server_and_we_end_as_it_does(number):
    with wired(*MCP, *SCRIPTED) as session:
        session.begin()
        session.process.send_signal(number)
        code = session.process.wait(100)
        assert code == (
            -number
            if number == signal.SIGTERM
            else 130
            if code == 130
            else -number
        )


def test_a_server_that_ends_by_itself_ends_us_with_its_code():
    with wired(*MCP, sys.executable, "-c", "raise SystemExit(5)") as session:
        assert session.process.wait(100) == 5


def test_what_comes_without_a_line_end_before_the_end_arrives():
    server = "import sys; sys.stdout.write('half a frame')"
    done = subprocess.run(
        [*MCP, sys.executable, "-c", server],
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    assert done.stdout == b"half a frame"


def test_a_stream_arrives_as_it_is_whatever_is_in_it():
    blob = os.urandom(300_000) + b"\n[]\n\n{}\r\n" + b"x" * 200_000
    done = subprocess.run(
        [*MCP, "--", "cat"], input=blob, capture_output=True, timeout=110
    )
    assert done.stdout == blob


def test_a_frame_over_the_bound_is_passed_on_unread(tmp_path):
    config = tmp_path / "mcp.toml"
    config.write_text("most_frame_bytes = 20000\n")
    with wired(*MCP, "--config", config, "--", *SCRIPTED) as session:
        session.begin()
        assert session.text("say", lines=3_000) == LOG
        assert len(session.text("say", lines=500)) <= 8_000
        session.process.stdin.close()
        session.process.wait(100)
        assert "more than 20,000 bytes was passed on unread" in told(
            session.process
        )


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "Usage: ullage mcp"),
        (["--", "no-such-program-at-all"], "cannot be started"),
        (
            ["--limit", "5", "--", *SCRIPTED],
            "--limit: 5 characters leave no room for a notice",
        ),
        (["--limit", "x=y", "--", *SCRIPTED], "is no limit"),
        (["--tenant", "me", "--", *SCRIPTED], "only a store has tenants"),
    ],
)
def test_what_is_typed_wrong_is_told(words, problem):
    done = subprocess.run(
        [*MCP, *words], input=b"", capture_output=True, timeout=110
    )
    assert problem in (done.stdout + done.stderr).decode()
    assert b"Traceback" not in done.stderr
    assert done.returncode == (2 if not words else 1)


def test_a_store_keeps_what_was_cut_for_the_next_session(tmp_path):
    words = [
        "--store",
        tmp_path,
        "--tenant",
        "me",
        "--",
        *SCRIPTED,
    ]  # a folder's
    with wired(*MCP, *words) as session:
        session.begin()
        ref = pointers(session.text("say", lines=3_000))[0].ref
    with wired(*MCP, *words) as session:
        session.begin()
        page = session.text(
            "get_continuation", tool_call_id=ref, offset=len(LOG) - 40
        )
        assert page == LOG[-40:]
    assert (tmp_path / "ullage.db").is_file()
    with wired(*MCP, "serve", tmp_path, "--tenant", "me") as session:
        assert ref in session.text("tool_output_list")


def test_what_nobody_reads_any_more_is_dropped():
    reader, writer = os.pipe()
    pipe = Pipe(writer)
    pipe.write(b"a\n")
    assert os.read(reader, 10) == b"a\n"
    os.close(reader)
    pipe.write(b"b\n")
    assert not pipe.is_open
    pipe.write(b"c\n")
    os.close(writer)


def test_importing_what_starts_the_server_is_light():
    code = "import sys, ullage.tools.cli.mcp; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {*run.stdout.split()}
    assert not loaded & {
        "msgspec",
        "asyncio",
        "mcp",
        "ullage.doors.mcp.relay",
        "sqlite3",
    }
    code = "import sys, ullage.doors.mcp.relay, ullage.doors.mcp.spool; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {*run.stdout.split()}
    assert not loaded & {
        "asyncio",
        "mcp",
        "jsonschema_rs",
        "sqlite3",
        "ullage.documents",
        "_hashlib",
    }
    assert not {
        name
        for name in loaded
        if name.startswith(("ullage.core.turn", "ullage.wires"))
    }

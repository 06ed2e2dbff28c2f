"""What `ullage fit` sets aside, `ullage read` and `ullage grep` open."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.terminal import conversation, told, ullage
from ullage.core.values.notices import pointers
from ullage.tools.cli import _options

LOG = "".join(f"{n:05} the tide came in\n" for n in range(1, 1_001))
HARD = "\x00 \ud800 \udc80 猫 e\u0301 👩‍👩‍👧 \x1b[31mred\r\n" * 900


AUDIO = json.dumps({"model": "gpt-4.1", "messages": [{"role": "user", "content": [
    {"type": "input_audio", "input_audio": {"data": 5, "format": "wav"}}]}]}).encode()  # fmt: skip
BLOB = b'{"model": "gemini-3-pro", "contents": [{"role": "user", "parts": [{"inlineData": "AA"}]}]}'


@pytest.fixture
def kept(tmp_path):
    return tmp_path / "kept.db"


def fitted(output, kept, *options):
    stdin = json.dumps(conversation(output)).encode()
    return ullage("fit", "-", "--store", kept, *options, stdin=stdin)


def ref_in(ran):
    (pointer,) = pointers(ran.json["messages"][2]["content"])
    return pointer.ref


# fit


@pytest.mark.parametrize("command", ["fit", "check"])
@pytest.mark.skipif(
    not Path("/dev/zero").exists(), reason="there is no such device"
)
def test_what_has_no_end_is_not_read_to_it(command, monkeypatch, kept):
    monkeypatch.setattr(_options, "_MOST_BYTES", 1_000_000)
    ran = ullage(
        command, "/dev/zero", *(("--store", kept) if command == "fit" else ())
    )
    assert ran.status
    assert "longer than 1,000,000 bytes" in told(ran)


def test_a_request_that_fits_comes_out_as_it_came_in(kept):
    ran = fitted("all is well", kept)
    assert ran.status == 0
    assert ran.json == conversation("all is well")
    assert "of 983,616 tokens" in ran.err


def test_a_file_and_standard_input_are_the_same(kept, tmp_path):
    file = tmp_path / "request.json"
    file.write_text(json.dumps(conversation(LOG)))
    ran = ullage("fit", file, "--store", kept, "--recall")
    assert ran.out == fitted(LOG, kept, "--recall").out
    assert ref_in(ran)


def test_with_json_the_request_comes_with_what_happened_to_it(kept):
    ran = fitted(LOG, kept, "--json", "--recall")
    assert set(ran.json) == {"request", "tokens", "limit", "events"}
    assert 0 < ran.json["tokens"] < ran.json["limit"]
    cut = next(
        event for event in ran.json["events"] if event["kind"] == "truncated"
    )
    assert (cut["where"], cut["ref"] in str(ran.json["request"])) == (
        "message 3, bash result",
        True,
    )
    assert len(ran.json["request"]["tools"]) == 1
    assert ran.err == ""


def test_the_window_decides_and_what_does_not_fit_is_told_in_one_line(kept):
    assert (
        fitted(LOG, kept, "--window", "3000", "--json").json["limit"] < 3_000
    )
    big = conversation("small")
    big["messages"].insert(
        0, {"role": "system", "content": "Remember. " * 9_000}
    )
    ran = ullage(
        "fit",
        "-",
        "--store",
        kept,
        "--window",
        2_000,
        stdin=json.dumps(big).encode(),
    )
    assert ran.status == 1
    assert "system text and tools" in told(ran)


@pytest.mark.parametrize(
    ("stdin", "options", "says"),
    [
        (b"", (), "not JSON"),
        (b"\xff\xfe\x00\x01", (), "not JSON"),
        (b"[" * 100_000, (), "not JSON"),
        (b"[1]", (), "expected a dict"),
        (b"{}", (), "format"),
        (b'{"messages": 3, "model": "gpt-4.1"}', (), "expected a list"),
        (
            b'{"messages": [{"role": "bard"}], "model": "gpt-4.1"}',
            (),
            "messages[0].role",
        ),
        (
            b'{"messages": [], "model": "gpt-4.1"}',
            ("--window", "0"),
            "is less than 1 tokens",
        ),
        (
            b'{"messages": [], "model": "gpt-4.1"}',
            ("--format", "morse"),
            "--format",
        ),
        (
            b'{"messages": [], "model": "gpt-4.1", "conversation": "c"}',
            (),
            "Send the whole",
        ),
        (AUDIO, (), "messages[0].content[0].input_audio.data"),
        (AUDIO, ("--repair",), "messages[0].content[0].input_audio.data"),
        (BLOB, ("--repair",), "contents[0].parts[0].inlineData"),
    ],
)
def test_what_is_wrong_is_told_in_one_helpful_line(kept, stdin, options, says):
    ran = ullage("fit", "-", "--store", kept, *options, stdin=stdin)
    assert ran.status in (1, 2)
    assert says in told(ran)


# read


@pytest.mark.parametrize(
    "output", [LOG, HARD], ids=["plain", "surrogates and NUL"]
)
def test_a_ref_found_in_the_fitted_request_opens_the_original_byte_for_byte(
    kept, output
):
    ref = ref_in(fitted(output, kept, "--recall"))
    assert ullage("read", ref, "--store", kept).out == output.encode(
        "utf-8", "surrogatepass"
    )
    as_json = ullage("read", ref, "--store", kept, "--json").json
    assert (as_json["text"], as_json["characters"]) == (output, len(output))


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminal")
@pytest.mark.parametrize("words", [["read"], ["grep", "red"]])
def test_what_was_kept_cannot_rewrite_a_terminal(kept, words):
    """An escape sequence in a tool's output moves no cursor: it is shown as its code."""
    ref = ref_in(fitted("\x1b[31mred\x07 alert\n" * 3_000, kept, "--recall"))
    main, side = os.openpty()
    program = "from ullage.tools.cli import main; main()"
    words = [words[0], *words[1:], ref, "--store", str(kept)]
    with subprocess.Popen(
        [sys.executable, "-c", program, *words], stdout=side
    ) as process:
        os.close(side)
        shown = os.read(main, 4_096)
        with suppress(OSError):  # the other end is closed
            while os.read(main, 65_536):
                pass
    os.close(main)
    assert process.returncode == 0
    assert b"\\x1b[31mred\\x07 alert" in shown
    assert b"\x1b" not in shown


def test_lines_are_numbered_and_paged(kept):
    ref = ref_in(fitted(LOG, kept, "--recall"))
    ran = ullage(
        "read", ref, "--store", kept, "--lines", "--offset", 1, "--limit", 2
    )
    assert ran.text == (
        "     2\t00002 the tide came in\n     3\t00003 the tide came in\n"
        "[lines 2 to 3 of 1,001. Next: offset=3]\n"
    )


def test_another_tenant_cannot_read_it(kept):
    ref = ref_in(fitted(LOG, kept, "--recall", "--tenant", "one"))
    assert ullage("read", ref, "--store", kept, "--tenant", "one").text == LOG
    assert "nothing is kept" in told(
        ullage("read", ref, "--store", kept, "--tenant", "two")
    )


@pytest.mark.parametrize(
    "ref", ["0123456789abcdef", "..", "../../etc/passwd", "x" * 5_000]
)
def test_an_unknown_ref_is_told_in_one_line(kept, ref):
    fitted(LOG, kept, "--recall")
    assert "nothing is kept under this ref" in told(
        ullage("read", ref, "--store", kept)
    )


@pytest.mark.parametrize("command", ["read", "grep"])
def test_reading_makes_no_store(tmp_path, command):
    nowhere = tmp_path / "no" / "kept.db"
    ran = ullage(command, "0123456789abcdef", "--store", nowhere)
    assert (
        told(ran)
        == "--store: there is no store at this path. Name one: --store PATH. "
        "`ullage run -- COMMAND` or a session's store= begins one."
    )
    assert list(tmp_path.iterdir()) == []


# grep


def test_grep_names_ref_line_and_text(kept):
    ref = ref_in(fitted(LOG, kept, "--recall"))
    ran = ullage("grep", "^0099[89]", "--store", kept)
    assert ran.status == 0
    assert (
        ran.text
        == f"{ref}:998:00998 the tide came in\n{ref}:999:00999 the tide came in\n"
    )
    assert (
        ullage(
            "grep", "TIDE", ref, "-i", "--most", 1, "--store", kept
        ).text.count("\n")
        == 1
    )


def test_grep_prints_what_no_encoding_takes(kept):
    ref = ref_in(fitted(HARD, kept, "--recall"))
    ran = ullage("grep", "猫", ref, "--most", 1, "--store", kept)
    line = HARD.split("\r")[0]
    assert ran.out == f"{ref}:1:{line}\n".encode("utf-8", "surrogatepass")
    found = ullage("grep", "猫", "--json", "--store", kept).json[ref]
    assert (found["total"], found["lines"][0]["text"]) == (900, line)


def test_grep_that_finds_nothing_says_so_with_its_status(kept):
    fitted(LOG, kept, "--recall")
    ran = ullage("grep", "ebb", "--store", kept)
    assert (ran.status, ran.out, ran.err) == (1, b"", "")


def test_a_pattern_that_cannot_be_used_is_told_in_one_line(kept):
    fitted(LOG, kept, "--recall")
    assert "not understood" in told(ullage("grep", "(", "--store", kept))


# where things are written


def test_nothing_is_written_but_the_store(tmp_path, monkeypatch):
    home, work, room = (tmp_path / name for name in ("home", "work", "room"))
    for folder in (home, work, room):
        folder.mkdir()
    monkeypatch.chdir(work)
    for name in (
        "HOME",
        "XDG_DATA_HOME",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "TMPDIR",
    ):
        monkeypatch.setenv(name, str(home))
    kept = room / "kept.db"
    ref = ref_in(fitted(LOG, kept, "--recall"))
    ullage("read", ref, "--store", kept)
    ullage("grep", "tide", env={"ULLAGE_STORE": str(kept)})
    assert list(home.rglob("*")) == []
    assert list(work.rglob("*")) == []
    assert {file.name for file in room.iterdir()} <= {
        "kept.db",
        "kept.db-wal",
        "kept.db-shm",
    }
    assert kept.stat().st_mode & 0o777 == 0o600

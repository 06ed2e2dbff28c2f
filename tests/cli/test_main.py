import json
import os
import signal
import subprocess
import sys
import time

import click
import pytest

import ullage as package
from tests.cli.terminal import told, ullage
from tests.cli.test_replay import trajectory
from ullage.tools.cli import _COMMANDS, _cli, main


def test_help_lists_the_commands():
    ran = ullage("--help")
    assert ran.status == 0
    commands = ran.text.partition("Commands:")[2].split("\n")[1:]
    assert [line.split()[0] for line in commands if line] == [
        "check",
        "commands",
        "completion",
        "doctor",
        "drop",
        "fit",
        "forget",
        "gc",
        "grep",
        "inspect",
        "install",
        "last",
        "ls",
        "mcp",
        "note",
        "pin",
        "proxy",
        "read",
        "replay",
        "report",
        "restore",
        "run",
        "undo",
        "uninstall",
        "watch",
        "window",
    ]
    assert all(len(line.split()) > 4 for line in commands if line)


@pytest.mark.parametrize(
    "group", [_cli, _cli.get_command(None, "mcp")], ids=["ullage", "mcp"]
)
def test_what_each_command_does_is_read_whole_on_a_narrow_terminal(group):
    settings = {**_cli.context_settings, "terminal_width": 60}
    shown = group.get_help(
        click.Context(group, info_name="ullage", **settings)
    )
    assert "..." not in shown.partition("Commands:")[2]
    assert max(map(len, shown.splitlines())) <= 60


@pytest.mark.parametrize("command", _COMMANDS)
def test_every_command_has_help_for_every_option(command):
    ran = ullage(command, "-h")
    assert ran.status == 0
    assert ran.text == ullage(command, "--help").text
    options = ran.text.partition("Options:")[2].split("\n  -")
    assert all(len(option.split()) > 2 for option in options[1:])


def test_the_version_is_that_of_the_package():
    assert (
        ullage("--version").text == f"ullage, version {package.__version__}\n"
    )


def test_an_unknown_command_is_told_in_one_line():
    ran = ullage("fti")
    assert ran.status == 2
    assert told(ran) == "No such command 'fti'. Did you mean 'fit'?"


@pytest.mark.parametrize("words", [["--help"], ["grep", "--help"]])
def test_main_takes_words_and_ends_with_a_status(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    assert "Usage: ullage" in capsys.readouterr().out


def test_a_real_process_reads_standard_input_and_ends_with_a_status(tmp_path):
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "ullage",
            "fit",
            "-",
            "--store",
            str(tmp_path / "kept.db"),
        ],
        input=b"[1, 2",
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 1
    assert ran.stdout == b""
    assert ran.stderr.startswith(b"Error: the file: not JSON")
    assert ran.stderr.count(b"\n") == 1


def test_an_error_calls_an_option_as_it_was_typed(tmp_path):
    store = ("--store", tmp_path / "none.db")
    assert told(ullage("read", "0123456789abcdef", *store)).startswith(
        "--store: there is no store"
    )
    (tmp_path / "run.json").write_text("{}")
    unknown = ullage("replay", tmp_path / "run.json", "--cache", "ether")
    assert told(unknown).startswith(
        "--cache: there is no price profile 'ether'"
    )


def test_a_window_of_nothing_is_refused_before_any_run_is_read(tmp_path):
    ran = ullage("replay", tmp_path, "--window", 0)
    assert ran.status == 2
    assert "'--window': 0 is less than 1 tokens." in ran.err


@pytest.mark.parametrize("command", _COMMANDS)
def test_every_number_that_is_asked_for_has_a_range(command):
    numbers = [
        p
        for p in _cli.get_command(None, command).params
        if p.type.name in ("integer", "float")
    ]
    assert numbers == []


def test_an_interrupted_command_waits_for_no_thread():
    program = """
import threading, click
from ullage.tools import cli
threading.Thread(target=threading.Event().wait).start()

def interrupted():
    print("so far")
    raise KeyboardInterrupt

cli._Commands.get_command = lambda *_: click.Command("x", callback=interrupted)
cli.main(["x"])
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, timeout=20
    )
    assert (ran.returncode, ran.stdout.strip()) == (130, b"so far")


@pytest.mark.parametrize("processes", [1, 2])
def test_an_interrupt_ends_a_command_at_once(tmp_path, processes):
    runs = [
        json.dumps(trajectory(f"run {number}", 30)) for number in range(40)
    ]
    (tmp_path / "runs.jsonl").write_text("\n".join(runs))
    kept = tmp_path / "kept.jsonl"
    words = (
        "replay",
        tmp_path / "runs.jsonl",
        "--jobs",
        processes,
        "--resume",
        kept,
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "ullage", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    while process.poll() is None and not (
        kept.exists() and kept.stat().st_size
    ):
        time.sleep(0.05)
    os.killpg(
        process.pid, signal.SIGINT
    )  # as a terminal does: to the workers as well
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert (out, err.strip()) == (b"", b"")
    assert 0 < len(kept.read_text().splitlines()) < 40


def test_a_mistyped_command_is_told_with_the_one_that_was_meant():
    ran = ullage("repaly", "x")
    assert ran.status == 2
    assert "No such command 'repaly'. Did you mean 'replay'?" in ran.err
    assert "Did you mean" not in ullage("zzz").err

import subprocess
import sys

import pytest

import ullage as package
from tests.cli.terminal import told, ullage
from ullage.cli import main


def test_help_lists_the_commands():
    ran = ullage("--help")
    assert ran.status == 0
    commands = ran.text.partition("Commands:")[2].split("\n")[1:]
    assert [line.split()[0] for line in commands if line] == [
        "check",
        "fit",
        "forget",
        "gc",
        "grep",
        "inspect",
        "read",
        "replay",
    ]
    assert all(len(line.split()) > 4 for line in commands if line)


@pytest.mark.parametrize("command", ["check", "fit", "gc", "grep", "inspect", "read", "replay"])
def test_every_command_has_help_for_every_option(command):
    ran = ullage(command, "--help")
    assert ran.status == 0
    options = ran.text.partition("Options:")[2].split("\n  -")
    assert all(len(option.split()) > 2 for option in options[1:])


def test_the_version_is_that_of_the_package():
    assert ullage("--version").text == f"ullage, version {package.__version__}\n"


def test_an_unknown_command_is_told_in_one_line():
    ran = ullage("fti")
    assert ran.status == 2
    assert told(ran) == "No such command 'fti'."


@pytest.mark.parametrize("words", [["--help"], ["grep", "--help"]])
def test_main_takes_words_and_ends_with_a_status(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    assert "Usage: ullage" in capsys.readouterr().out


def test_a_real_process_reads_standard_input_and_ends_with_a_status(tmp_path):
    code = "from ullage.cli import main; main()"
    ran = subprocess.run(
        [sys.executable, "-c", code, "fit", "-", "--store", str(tmp_path / "kept.db")],
        input=b"[1, 2",
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 1
    assert ran.stdout == b""
    assert ran.stderr.startswith(b"Error: the file: not JSON")
    assert ran.stderr.count(b"\n") == 1

"""What `ullage completion` prints, in a real shell."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.cli.terminal import ullage


def test_bash_completes_commands_and_options(tmp_path):
    script = tmp_path / "completion.bash"
    script.write_bytes(ullage("completion", "bash").out)
    (tmp_path / "ullage").write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -m ullage "$@"\n'
    )
    (tmp_path / "ullage").chmod(0o755)
    asked = """source "$0"; COMP_WORDS=(ullage $1); COMP_CWORD=$2; _ullage_completion ullage x x
               echo "${COMPREPLY[@]}" """
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}

    def completed(words, place):
        command = ["bash", "-c", asked, str(script), words, str(place)]
        return subprocess.run(
            command, capture_output=True, env=env, check=True
        ).stdout.split()

    assert completed("re", 1) == [b"read", b"replay", b"report", b"restore"]
    assert completed("replay --pol", 2) == [b"--policy"]


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish here")
def test_fish_completes_commands_options_and_values(tmp_path):
    script = tmp_path / "ullage.fish"
    script.write_bytes(ullage("completion", "fish").out)
    (tmp_path / "ullage").write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -m ullage "$@"\n'
    )
    (tmp_path / "ullage").chmod(0o755)
    env = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
    }
    asked = f"source {script}; complete -C 'ullage re'; complete -C 'ullage replay --policy t'"
    command = ["fish", "--no-config", "-c", asked]
    ran = subprocess.run(
        command, capture_output=True, env=env, check=True, text=True
    )
    words = [line.split()[0] for line in ran.stdout.splitlines()]
    assert words == ["read", "replay", "three_layer", "token_budget"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_have_a_script_too(shell):
    assert "_ULLAGE_COMPLETE" in ullage("completion", shell).text

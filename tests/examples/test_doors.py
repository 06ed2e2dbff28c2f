"""The programs to copy from, one a door: on the vendors' SDKs, against scripted providers."""

import asyncio
import importlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import Call, Reply
from tests.servers.everywhere import ANSWER, everywhere, reader_model

EXAMPLES = Path(__file__).parents[2] / "examples"
LOG = "INFO the tide came in\n" * 20_000
LOOPS = {
    "loop_anthropic": "anthropic",
    "loop_openai": "openai-chat",
    "loop_gemini": "gemini",
    "loop_responses": "openai-responses",
    "wrapped_client": "openai-responses",
}
"""Each loop and the wire it speaks."""
REPLIES = [
    Reply("I look.", [Call("read_file", {"path": "app.log"})]),
    "It is done.",
]
MOST_LINES = 10


@pytest.fixture
def asked(serve, monkeypatch, tmp_path):
    """Runs a program with a model that reads one file and is done."""

    def run(name):
        module = importlib.import_module(f"examples.{name}")
        server = serve(LOOPS[name], REPLIES)
        monkeypatch.chdir(tmp_path)
        (tmp_path / "app.log").write_text(LOG)
        url = server.url
        for variable, value in {
            "ANTHROPIC_BASE_URL": url,
            "OPENAI_BASE_URL": f"{url}/v1",
            "GOOGLE_GEMINI_BASE_URL": url,
        }.items():
            monkeypatch.setenv(variable, value)
        for variable in (
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "GEMINI_API_KEY",
        ):
            monkeypatch.setenv(variable, "none")
        return module.main("What is wrong?"), server

    return run


@pytest.mark.parametrize("name", LOOPS)
def test_what_is_too_large_is_cut_and_the_answer_comes(asked, name):
    said, server = asked(name)
    assert said.endswith("It is done.")
    assert len(server.requests) == 2
    assert len(server.requests[-1].raw) < len(LOG) / 4
    assert b"get_continuation" in server.requests[-1].raw


def test_a_client_of_mcp_is_given_a_part_and_how_to_read_on(monkeypatch):
    from examples import mcp_client

    monkeypatch.chdir(EXAMPLES.parent)
    text = asyncio.run(mcp_client.main())
    assert len(text) < 9_000
    assert "get_continuation" in text


COMMANDS = [
    words
    for words in re.findall(
        r"`python -m (examples\.[^`]+)`",
        (EXAMPLES / "README.md").read_text(encoding="utf-8"),
    )
    if words.split()[0].removeprefix("examples.") in (*LOOPS, "mcp_client")
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda it: it.split()[0])
def test_the_command_of_the_page_runs_as_it_is_pasted(words):
    with everywhere(reader_model) as vendors:
        done = subprocess.run(
            [sys.executable, "-m", *shlex.split(words)],
            cwd=EXAMPLES.parent,
            env={**os.environ, **vendors.environment, "PYTHONPATH": "src"},
            capture_output=True,
            encoding="utf-8",
            timeout=100,
        )
    assert done.returncode == 0, done.stderr
    if "mcp_client" not in words:
        assert done.stdout.strip() == ANSWER


def test_every_command_of_a_door_is_tried():
    assert len(COMMANDS) == len(LOOPS) + 1


@pytest.mark.parametrize(
    "file", sorted(EXAMPLES.glob("*.py")), ids=lambda file: file.stem
)
def test_a_door_is_ten_lines_at_most(file):
    """The lines that name ullage, and those they go on over."""
    lines = [
        line
        for line in file.read_text(encoding="utf-8").splitlines()
        if "# ullage" in line
    ]
    assert len(lines) <= MOST_LINES
    knows = re.search(
        r"(?m)^(?:import|from) ullage", file.read_text(encoding="utf-8")
    )
    assert bool(lines) >= (file.stem in LOOPS)
    assert not (knows and file.stem == "coding_agent")

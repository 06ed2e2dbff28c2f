"""Servers that people use, behind the official client: ``make mcp-servers`` installs them."""

import json
import os
import shutil
import subprocess
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters

from tests.mcp.wired import MCP
from ullage.core.values.notices import pointers

OURS = ["get_continuation", "tool_output_cache", "tool_output_cache_grep"]
ROOT = Path(__file__).parents[2]
PLACES = (
    ROOT / ".venv-mcp-servers/bin",
    ROOT / "tests/mcp/node/node_modules/.bin",
)


@asynccontextmanager
async def opened(server, *words):
    places = os.pathsep.join((*map(str, PLACES), os.environ["PATH"]))
    program = shutil.which(server, path=places)
    if program is None:
        pytest.skip(f"{server} is not installed: make mcp-servers")
    command, *args = [*MCP, "--", program, *map(str, words)]
    parameters = StdioServerParameters(
        command=command, args=args, env=dict(os.environ)
    )
    async with Client(parameters) as client:
        assert [tool.name for tool in (await client.list_tools()).tools][
            -3:
        ] == OURS
        yield client


async def read(client, ref):
    text = ""
    while True:
        page = await client.call_tool(
            "get_continuation", {"tool_call_id": ref, "offset": len(text)}
        )
        body, mark, _ = page.content[0].text.rpartition("\n[characters ")
        text += body if mark else page.content[0].text
        if not mark:
            return text


def test_filesystem(tmp_path):
    megabyte = "".join(f"line {n}: all is well\n" for n in range(45_000))
    (tmp_path / "log").write_text(megabyte)

    async def talk():
        async with opened("mcp-server-filesystem", tmp_path) as client:
            made = await client.call_tool(
                "read_text_file", {"path": str(tmp_path / "log")}
            )
            shown = len(made.content[0].text) + len(
                json.dumps(made.structured_content)
            )
            assert shown < 42_000
            assert (
                await read(client, pointers(made.content[0].text)[0].ref)
                == megabyte
            )

    anyio.run(talk)


def test_git(tmp_path):
    words = [f"commit {n}: " + "because " * 90 for n in range(40)]
    commits = (
        f"commit HEAD\ncommitter a <a@b> 0 +0000\ndata {len(w)}\n{w}\n"
        for w in words
    )
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    into = ["git", "-C", tmp_path, "fast-import", "--quiet"]
    subprocess.run(into, input="".join(commits), text=True, check=True)

    async def talk():
        async with opened("mcp-server-git") as client:
            made = await client.call_tool(
                "git_log", {"repo_path": str(tmp_path), "max_count": 40}
            )
            assert len(made.content[0].text) <= 8_000
            whole = await read(client, pointers(made.content[0].text)[0].ref)
            assert all(f"commit {n}: " in whole for n in range(40))

    anyio.run(talk)


def test_time():
    async def talk():
        async with opened("mcp-server-time") as client:
            made = await client.call_tool(
                "get_current_time", {"timezone": "UTC"}
            )
            assert "UTC" in made.content[0].text

    anyio.run(talk)


def test_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("MEMORY_FILE_PATH", str(tmp_path / "memory.json"))

    async def talk():
        async with opened("mcp-server-memory") as client:
            names = [f"entity {n}" for n in range(400)]
            entities = [
                {"name": n, "entityType": "x", "observations": ["so"]}
                for n in names
            ]
            await client.call_tool("create_entities", {"entities": entities})
            made = await client.call_tool("read_graph", {})
            assert 1 < len(made.structured_content["entities"]) < 400
            assert made.structured_content["relations"] == []

    anyio.run(talk)


def test_everything():
    steps = []

    async def progress(done, total, message):
        steps.append(done)

    async def talk():
        async with opened("mcp-server-everything") as client:
            echoed = await client.call_tool(
                "echo", {"message": "word " * 20_000}
            )
            assert len(echoed.content[0].text) <= 8_000
            names = {tool.name for tool in (await client.list_tools()).tools}
            (image,) = names & {"get-tiny-image", "getTinyImage"}
            blocks = (await client.call_tool(image, {})).content
            assert "image" in {block.type for block in blocks}
            (long,) = names & {
                "trigger-long-running-operation",
                "longRunningOperation",
            }
            given = {
                "duration": float(os.environ.get("LONG_CALL_S", 0.2)),
                "steps": 4,
            }
            await client.call_tool(long, given, progress_callback=progress)
            assert (await client.list_resources()).resources

    anyio.run(talk)
    assert len(steps) >= 3

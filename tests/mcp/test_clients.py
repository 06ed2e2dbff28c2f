"""The official Python client in front of the proxy, and a server on the official SDK behind it."""

import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters

from tests.mcp.wired import MCP
from ullage.values.notices import pointers

SERVER = [sys.executable, str(Path(__file__).with_name("typed.py"))]
AGES = ["legacy", "2026-07-28"]


@asynccontextmanager
async def client(mode, *words):
    command, *args = [*MCP, *words, "--", *SERVER]
    parameters = StdioServerParameters(command=command, args=args, env=dict(os.environ))
    async with Client(parameters, mode=mode) as opened:
        yield opened


def texts(result):
    return [block.text for block in result.content if block.type == "text"]


async def read(opened, ref):
    text = ""
    while True:
        page = await opened.call_tool(
            "get_continuation", {"tool_call_id": ref, "offset": len(text)}
        )
        (shown,) = texts(page)
        body, mark, _ = shown.rpartition("\n[characters ")
        text += body if mark else shown
        if not mark:
            return text


@pytest.mark.parametrize("mode", AGES)
def test_it_takes_every_cut_result_and_reads_on_and_all_else_passes(mode):
    steps = []

    async def progress(done, total, message):
        steps.append(done)

    async def talk():
        async with client(mode) as opened:
            listed = (await opened.list_tools()).tools
            assert [tool.name for tool in listed][-3:] == [
                "get_continuation",
                "tool_output_cache",
                "tool_output_cache_grep",
            ]
            made = await opened.call_tool(
                "table", {"rows": 2_000}
            )  # it checks the schema, and raises
            assert 3 < len(made.structured_content["rows"]) < 200
            assert made.structured_content["note"] == "as declared"
            many = await opened.call_tool("names", {"count": 5_000})
            assert 3 < len(many.structured_content["result"]) < 1_000
            said = await opened.call_tool("say", {"text": "all is well\n", "times": 5_000})
            assert len(said.structured_content["result"]) < 8_000
            ref = pointers(texts(said)[0])[0].ref
            assert await read(opened, ref) == "all is well\n" * 5_000
            found = await opened.call_tool(
                "tool_output_cache_grep", {"ref_id": ref, "pattern": "x"}
            )
            assert "0 of 0 matching" in texts(found)[0]
            gone = await opened.call_tool("get_continuation", {"tool_call_id": "0" * 16})
            assert gone.is_error

            picture = await opened.call_tool("picture", {"kilobytes": 100})
            assert len(picture.content[0].data) > 100_000
            slow = await opened.call_tool("slowly", {"steps": 50}, progress_callback=progress)
            assert texts(slow) == ["done"]
            note = await opened.read_resource("note://one")
            assert note.contents[0].text == "a note"
            wrong = await opened.call_tool("table", {"rows": "none"})
            assert wrong.is_error

    anyio.run(talk)
    assert steps == list(range(50))

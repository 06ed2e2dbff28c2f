"""The official clients in front of the proxy, and servers on the official SDK behind it."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult

from tests.mcp.wired import MCP
from ullage.core.values.notices import pointers

pytest.importorskip("aiohttp", reason="the extra proxy is not installed")

pytestmark = pytest.mark.xdist_group("a server on the official SDK")
HERE = Path(__file__).parent
PROCESS = ["--", sys.executable, str(HERE / "typed.py")]
OURS = ["get_continuation", "tool_output_cache", "tool_output_cache_grep"]


async def named(context, params):
    return ElicitResult(action="accept", content={"name": "Ann"})


@asynccontextmanager
async def client(mode, *words):
    command, *args = [*MCP, *words]
    parameters = StdioServerParameters(
        command=command, args=args, env=dict(os.environ)
    )
    async with Client(
        parameters, mode=mode, elicitation_callback=named
    ) as opened:
        yield opened


def texts(result):
    return [block.text for block in result.content if block.type == "text"]


async def read(opened, ref):
    text = ""
    while True:
        given = {"tool_call_id": ref, "offset": len(text)}
        (shown,) = texts(await opened.call_tool("get_continuation", given))
        body, mark, _ = shown.rpartition("\n[characters ")
        text += body if mark else shown
        if not mark:
            return text


@pytest.mark.parametrize(
    ("mode", "is_far"),
    [("legacy", True), ("2026-07-28", True), ("2026-07-28", False)],
)
def test_python_takes_every_cut_result_and_reads_on_and_all_else_passes(
    typed, mode, is_far
):
    steps = []

    async def progress(done, total, message):
        steps.append(done)

    async def talk():
        async with client(
            mode, *(["--url", typed] if is_far else PROCESS)
        ) as opened:
            listed = (await opened.list_tools()).tools
            assert [tool.name for tool in listed][-3:] == OURS
            made = await opened.call_tool(
                "table", {"rows": 2_000}
            )  # it checks the schema
            assert 3 < len(made.structured_content["rows"]) < 200
            assert made.structured_content["note"] == "as declared"
            many = await opened.call_tool("names", {"count": 5_000})
            assert 3 < len(many.structured_content["result"]) < 1_000
            said = await opened.call_tool(
                "say", {"text": "all is well\n", "times": 5_000}
            )
            assert len(said.structured_content["result"]) < 8_000
            ref = pointers(texts(said)[0])[0].ref
            assert await read(opened, ref) == "all is well\n" * 5_000
            searched = {"ref_id": ref, "pattern": "x"}
            found = await opened.call_tool("tool_output_cache_grep", searched)
            assert "0 of 0 matching" in texts(found)[0]
            gone = await opened.call_tool(
                "get_continuation", {"tool_call_id": "0" * 16}
            )
            assert gone.is_error

            there = await opened.call_tool("where", {"region": "naïve"})
            assert texts(there) == ["naïve"]
            assert texts(await opened.call_tool("greet", {})) == ["hello Ann"]
            prompt = await opened.get_prompt("start", {"topic": "x"})
            assert prompt.messages[0].content.text == "about x"
            picture = await opened.call_tool("picture", {"kilobytes": 100})
            assert len(picture.content[0].data) > 100_000
            slow = await opened.call_tool(
                "slowly", {"steps": 50}, progress_callback=progress
            )
            assert texts(slow) == ["done"]
            note = await opened.read_resource("note://one")
            assert note.contents[0].text == "a note"
            wrong = await opened.call_tool("table", {"rows": "none"})
            assert wrong.is_error

    anyio.run(talk)
    assert steps == list(range(50))


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_typescript_takes_them_too(typed, mode):
    node = shutil.which("node")
    if node is None or not (HERE / "node/node_modules").is_dir():
        pytest.skip(
            "the TypeScript clients are not installed: make mcp-servers"
        )
    words = [node, HERE / "node/client.mjs", mode, *MCP, "--url", typed]
    done = subprocess.run(words, capture_output=True, timeout=110, check=True)
    seen = json.loads(done.stdout)
    assert seen["tools"][-3:] == OURS
    assert 3 < seen["rows"] < 200
    assert seen["said"] < 8_000
    assert seen["whole"] is True
    assert seen["picture"] > 100_000
    assert seen["steps"] == sorted(
        seen["steps"]
    )  # it drops those that come with the answer
    assert (seen["note"], seen["wrong"]) == ("a note", True)

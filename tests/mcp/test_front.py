"""A URL in front of a URL: the official client, and the official server behind it."""

import asyncio
import json
import subprocess
import urllib.error
import urllib.request

import anyio
import pytest
from mcp import Client

from tests.mcp.conftest import free_port, wait_for
from tests.mcp.wired import MCP
from ullage.values.notices import pointers

pytest.importorskip("aiohttp", reason="the extra proxy is not installed")
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from ullage.mcp.front import Front
from ullage.mcp.settings import Settings


@pytest.fixture
def front(typed):
    """The URL of a front of its own."""
    port = free_port()
    words = [*MCP, "--limit", "3000", "--url", typed, "--listen", f"127.0.0.1:{port}"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE)
    wait_for(port)
    yield f"http://127.0.0.1:{port}/mcp"
    process.terminate()
    assert process.wait(20) in (0, -15)
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_results_are_cut_and_read_on_over_http(front, mode):
    steps = []

    async def progress(done, total, message):
        steps.append(done)

    async def talk():
        async with Client(front, mode=mode) as client:
            assert (await client.list_tools()).tools[-1].name == "tool_output_cache_grep"
            made = await client.call_tool("table", {"rows": 2_000})
            assert 3 < len(made.structured_content["rows"]) < 100
            ref = pointers(made.content[0].text)[0].ref
            page = await client.call_tool("get_continuation", {"tool_call_id": ref, "offset": 9})
            assert not page.is_error
            slow = await client.call_tool("slowly", {"steps": 20}, progress_callback=progress)
            assert slow.content[0].text == "done"
        async with Client(front, mode=mode) as other:
            await other.list_tools()
            page = await other.call_tool("get_continuation", {"tool_call_id": ref})
            assert page.is_error == (mode == "legacy")  # without sessions there is one nobody

    anyio.run(talk)
    assert steps == list(range(20))


def post(url, **headers):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    given = {"Content-Type": "application/json", "Accept": "application/json", **headers}
    request = urllib.request.Request(url, body, given)
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


def test_a_page_of_elsewhere_may_not_use_it(front):
    assert post(front, Origin="https://evil.example") == 403
    assert post(front, Host="evil.example") == 403
    assert post(front, Origin="http://localhost:3000") != 403


def test_nobody_behind_it_is_told():
    port = free_port()
    words = [*MCP, "--url", "http://127.0.0.1:9/mcp", "--listen", f"127.0.0.1:{port}"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE)
    wait_for(port)
    assert post(f"http://127.0.0.1:{port}/mcp") == 502
    process.terminate()
    process.wait(20)
    process.stderr.close()


def test_what_it_listens_on_is_looked_at():
    done = subprocess.run([*MCP, "--listen", "8080"], capture_output=True, timeout=60)
    assert done.returncode == 2


EVENTS = b': hello\r\n\r\nid: 5\ndata: {"jsonrpc":"2.0",\ndata: "method":"x"}\n\nevent: end\n\n'


def test_events_that_are_not_ours_arrive_as_they_were_sent():
    async def answer(request):
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        for at in range(0, len(EVENTS), 7):
            await stream.write(EVENTS[at : at + 7])
        return stream

    async def talk():
        behind = web.Application()
        behind.router.add_route("*", "/mcp", answer)
        async with TestServer(behind) as server:
            front = Front(str(server.make_url("/mcp")), {}, Settings())
            async with TestClient(TestServer(front.application())) as client:
                for method in ("POST", "GET"):
                    response = await client.request(method, "/mcp", json={"id": 1, "method": "x"})
                    assert await response.read() == EVENTS

    asyncio.run(talk())

"""A URL in front of a URL: the official client, and the official server behind it."""

import asyncio
import json
import subprocess
import urllib.error
import urllib.request
from contextlib import asynccontextmanager

import anyio
import pytest
from mcp import Client

from tests.mcp.wired import MCP
from tests.ports import started
from ullage.core.values.notices import pointers

pytest.importorskip("aiohttp", reason="the extra proxy is not installed")
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from ullage.doors.mcp.front import Front
from ullage.doors.mcp.settings import McpSettings, rule_of

pytestmark = pytest.mark.xdist_group("a server on the official SDK")


@pytest.fixture(scope="module")
def front(typed, tmp_path_factory):
    """The URL of a front."""
    words = [*MCP, "--limit", "3000", "--url", typed, "--listen"]
    said = tmp_path_factory.mktemp("front") / "stderr"
    with said.open("wb") as stderr:
        process, port = started(
            lambda port: [*words, f"127.0.0.1:{port}"], stderr=stderr
        )
        yield f"http://127.0.0.1:{port}/mcp"
        process.terminate()
        assert process.wait(100) in (0, -15)
    assert b"Traceback" not in said.read_bytes()


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_results_are_cut_and_read_on_over_http(front, mode):
    steps = []

    async def progress(done, total, message):
        steps.append(done)

    async def talk():
        async with Client(front, mode=mode) as client:
            assert (await client.list_tools()).tools[
                -1
            ].name == "tool_output_cache_grep"
            made = await client.call_tool("table", {"rows": 2_000})
            assert 3 < len(made.structured_content["rows"]) < 100
            ref = pointers(made.content[0].text)[0].ref
            page = await client.call_tool(
                "get_continuation", {"tool_call_id": ref, "offset": 9}
            )
            assert not page.is_error
            slow = await client.call_tool(
                "slowly", {"steps": 20}, progress_callback=progress
            )
            assert slow.content[0].text == "done"
        async with Client(front, mode=mode) as other:
            await other.list_tools()
            page = await other.call_tool(
                "get_continuation", {"tool_call_id": ref}
            )
            assert page.is_error == (
                mode == "legacy"
            )  # without sessions there is one nobody

    anyio.run(talk)
    assert steps == list(range(20))


def post(url, **headers):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    given = {
        "Content-Type": "application/json",
        "Accept": "application/json",
        **headers,
    }
    request = urllib.request.Request(url, body, given)
    try:
        with urllib.request.urlopen(request, timeout=100) as response:
            return response.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_a_page_of_elsewhere_may_not_use_it(front):
    assert post(front, Origin="https://evil.example") == 403
    assert post(front, Host="evil.example") == 403
    assert post(front, Host="x@127.0.0.1") == 403
    assert post(front, Origin="http://evil.example@127.0.0.1") == 403
    assert post(front, **{"Sec-Fetch-Site": "cross-site"}) == 403
    assert post(front, Origin="http://localhost:3000") != 403


def test_what_it_listens_on_is_looked_at():
    done = subprocess.run(
        [*MCP, "--listen", "8080"], capture_output=True, timeout=110
    )
    assert done.returncode == 2


@asynccontextmanager
async def before(answer, *limits, settings=None):
    """A client of a front before a server that answers so."""
    behind = web.Application()
    behind.router.add_route("*", "/mcp", answer)
    settings = settings or McpSettings(limits=tuple(map(rule_of, limits)))
    async with TestServer(behind) as server:
        front = Front(str(server.make_url("/mcp")), {}, settings)
        async with TestClient(TestServer(front.application())) as client:
            yield client


async def streamed(request, *blocks):
    stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await stream.prepare(request)
    for block in blocks:
        await stream.write(block)
    return stream


CREDENTIALS = [
    "Authorization",
    "Cookie",
    "X-Api-Key",
    "X-Goog-Api-Key",
    "Api-Key",
    "Private-Token",
    "X-Auth-Token",
    "Ocp-Apim-Subscription-Key",
    "X-Linear-Key",
    "X-Mine",
]


@pytest.mark.parametrize("header", CREDENTIALS)
def test_a_ref_opens_for_the_credential_it_was_made_for_alone(header):
    async def answer(request):
        asked = await request.json()
        return web.json_response(
            {"jsonrpc": "2.0", "id": asked["id"], "result": LONG}
        )

    async def talk():
        settings = McpSettings(
            limits=(rule_of("1000"),), credential_headers=("x-mine",)
        )
        async with before(answer, settings=settings) as client:

            async def call(tool, whose, **arguments):
                params = {"name": tool, "arguments": arguments}
                message = {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": "tools/call",
                    "params": params,
                }
                response = await client.post(
                    "/mcp", json=message, headers={header: whose}
                )
                return (await response.json())["result"]

            cut = (await call("say", "alice"))["content"][0]["text"]
            ref = pointers(cut)[0].ref
            own = await call("get_continuation", "alice", tool_call_id=ref)
            other = await call("get_continuation", "bob", tool_call_id=ref)
            assert "all is well" in own["content"][0]["text"]
            assert other["isError"] is True

    asyncio.run(talk())


def test_nobody_behind_it_is_told():
    async def talk():
        front = Front("http://127.0.0.1:9/mcp", {}, McpSettings())
        async with TestClient(TestServer(front.application())) as client:
            assert (
                await client.post("/mcp", json={"id": 1, "method": "ping"})
            ).status == 502

    asyncio.run(talk())


EVENTS = b': hello\r\n\r\nid: 5\ndata: {"jsonrpc":"2.0",\ndata: "method":"x"}\n\nevent: end\n\n'


def test_events_that_are_not_ours_arrive_as_they_were_sent():
    async def answer(request):
        return await streamed(
            request, *(EVENTS[at : at + 7] for at in range(0, len(EVENTS), 7))
        )

    async def talk():
        async with before(answer) as client:
            for method in ("POST", "GET"):
                response = await client.request(
                    method, "/mcp", json={"id": 1, "method": "x"}
                )
                assert await response.read() == EVENTS

    asyncio.run(talk())


LONG = {"content": [{"type": "text", "text": "all is well\n" * 2_000}]}


def shown(message):
    return len(message["result"]["content"][0]["text"])


def test_a_stream_that_is_taken_up_by_a_get_has_its_answer_cut_too():
    async def answer(request):
        if request.method == "POST":
            return await streamed(request, b"id: 1\ndata:\n\n")
        late = json.dumps({"jsonrpc": "2.0", "id": 7, "result": LONG}).encode()
        return await streamed(request, b"id: 2\ndata: " + late + b"\n\n")

    async def talk():
        async with before(answer, "say=1000") as client:
            session = {"Mcp-Session-Id": "s"}
            call = {"id": 7, "method": "tools/call", "params": {"name": "say"}}
            await (
                await client.post("/mcp", json=call, headers=session)
            ).read()
            again = {**session, "Last-Event-ID": "1"}
            taken = await (await client.get("/mcp", headers=again)).text()
            assert shown(json.loads(taken.partition("data: ")[2])) <= 1_000
            others = {**again, "Mcp-Session-Id": "t"}
            other = await (await client.get("/mcp", headers=others)).text()
            assert shown(json.loads(other.partition("data: ")[2])) == 24_000

    asyncio.run(talk())


def test_what_a_task_gives_is_cut_as_what_its_tool_gives():
    async def answer(request):
        asked = await request.json()
        result = LONG
        if asked["method"] == "tools/call":
            result = {
                "resultType": "task",
                "taskId": "t1",
                "status": "working",
            }
        return web.json_response(
            {"jsonrpc": "2.0", "id": asked["id"], "result": result}
        )

    async def talk():
        async with before(answer, "slow=1000", "whole") as client:
            call = {
                "id": 1,
                "method": "tools/call",
                "params": {"name": "slow"},
            }
            await client.post("/mcp", json=call)
            for task, most in (("t1", 1_000), ("t2", 24_000)):
                ask = {
                    "id": 1,
                    "method": "tasks/result",
                    "params": {"taskId": task},
                }
                given = await (await client.post("/mcp", json=ask)).json()
                assert most // 2 < shown(given) <= most

    asyncio.run(talk())


@pytest.mark.parametrize("kind", ["json", "events"])
def test_a_batch_has_our_answers_beside_the_server_s(kind):
    async def answer(request):
        (asked,) = await request.json()
        if "id" not in asked:
            return web.Response(status=202)
        message = [{"jsonrpc": "2.0", "id": asked["id"], "result": {}}]
        if kind == "json":
            return web.json_response(message)
        return await streamed(
            request, b"data: " + json.dumps(message).encode() + b"\n\n"
        )

    async def talk():
        ours = {
            "name": "get_continuation",
            "arguments": {"tool_call_id": "0" * 16},
        }
        both = [
            {"id": 1, "method": "ping"},
            {"id": 2, "method": "tools/call", "params": ours},
        ]
        async with before(answer) as client:
            text = await (await client.post("/mcp", json=both)).text()
            lines = (
                [text]
                if kind == "json"
                else text.replace("data: ", "").split("\n")
            )
            answers = [json.loads(line) for line in lines if line]
            assert sorted(each["id"] for some in answers for each in some) == [
                1,
                2,
            ]
            told = [{"method": "notifications/x"}, both[1]]
            (only,) = await (await client.post("/mcp", json=told)).json()
            assert only["id"] == 2
            alone = await (await client.post("/mcp", json=both[1:])).json()
            assert alone[0]["result"]["isError"] is True

    asyncio.run(talk())


def test_a_second_answer_in_a_stream_is_dropped_and_its_place_is_kept():
    """So is one that nobody asked for; a client that takes the stream up again misses nothing."""

    def answered(id, at):
        message = {"jsonrpc": "2.0", "id": id, "result": {"at": at}}
        return f"id: {at}\ndata: {json.dumps(message)}\n\n".encode()

    async def answer(request):
        return await streamed(
            request, answered(9, 1), answered(1, 2), answered(1, 3)
        )

    async def talk():
        async with before(answer) as client:
            response = await client.post("/mcp", json={"id": 1, "method": "x"})
            assert (
                await response.read()
                == b"id: 1\n\n" + answered(1, 2) + b"id: 3\n\n"
            )

    asyncio.run(talk())


def test_a_response_with_the_answer_to_another_request_is_an_error_for_its_own():
    async def answer(request):
        return web.json_response({"jsonrpc": "2.0", "id": 9, "result": {}})

    async def talk():
        async with before(answer) as client:
            message = await (
                await client.post("/mcp", json={"id": 1, "method": "x"})
            ).json()
            assert (message["id"], message["error"]["code"]) == (1, -32000)

    asyncio.run(talk())

"""A server behind a URL that is scripted; `test_clients` has the official one."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.mcp.wired import MCP, wired
from ullage.mcp.remote import Remote, events

pytest.importorskip("aiohttp", reason="the extra proxy is not installed")


class Scripted(BaseHTTPRequestHandler):
    """Answers what a test has put into ``answers``, by method; keeps what it was asked."""

    answers, asked = {}, []

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((body, dict(self.headers)))
        status, kind, data = self.answers.get(body.get("method"), (404, "text/plain", b""))
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.send_error(405)

    def log_message(self, *args):
        pass


@pytest.fixture
def scripted():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Scripted.answers, Scripted.asked = {}, []
    yield f"http://127.0.0.1:{server.server_port}/mcp"
    server.shutdown()
    server.server_close()


def test_every_failure_is_an_answer(scripted):
    Scripted.answers = {
        "down": (503, "text/plain", b"down"),
        "moved": (307, "text/plain", b""),
        "cut": (200, "text/event-stream", b'data: {"method": "x"}\n\n'),
        "wrong": (400, "application/json", b'{"jsonrpc":"2.0","id":4,\n"error":{"code":-5}}'),
    }
    with wired(*MCP, "--url", scripted, "--header", "Authorization: Bearer k") as session:
        assert "HTTP 503" in session.ask("down")["error"]["message"]
        assert "HTTP 307" in session.ask("moved")["error"]["message"]
        assert "the stream ended" in session.ask("cut")["error"]["message"]
        assert session.ask("wrong")["error"]["code"] == -5
        assert {headers["Authorization"] for _, headers in Scripted.asked} == {"Bearer k"}
        session.process.stdin.close()
        assert session.process.wait(20) == 0


def test_nobody_there_is_an_answer_too():
    with wired(*MCP, "--url", "http://127.0.0.1:9/mcp") as session:
        assert "ullage mcp: Client" in session.ask("ping")["error"]["message"]


def test_a_stateless_request_says_in_its_headers_what_it_is(scripted):
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    with wired(*MCP, "--url", scripted) as session:
        session.ask("tools/call", name="naïve", _meta=meta)
        session.ask("tools/call", name="plain", _meta=meta)
    first, second = (headers for _, headers in Scripted.asked)
    assert first["MCP-Protocol-Version"] == "2026-07-28"
    assert first["Mcp-Method"] == "tools/call"
    assert first["Mcp-Name"] == "=?base64?bmHDr3Zl?="
    assert second["Mcp-Name"] == "plain"


class Stream:
    def __init__(self, *blocks):
        self.blocks = blocks

    async def iter_any(self):
        for block in self.blocks:
            yield block


def test_events_come_in_any_blocks(capsys):
    text = (
        b': note\nid: 7\ndata: {"a":\ndata: 1}\n\nevent: x\n\ndata: '
        + b"x" * 90
        + b"\n\ndata:2\n\n"
    )

    async def read(size):
        blocks = [text[at : at + size] for at in range(0, len(text), size)]
        return [each async for each in events(Stream(*blocks), 50)]

    for size in (1, 3, 1_000):
        assert asyncio.run(read(size)) == [("7", b'{"a":\n1}'), ("7", b"2")]
    assert "an event of 90 bytes was left out" in capsys.readouterr().err


def test_what_is_sent_to_one_that_has_ended_is_dropped():
    remote = Remote("http://127.0.0.1:9/mcp", {})
    remote.close()
    assert remote.receive(lambda frame: None, None, 100) == "the connection was closed"
    remote.send(b"{}\n")
    remote.close()

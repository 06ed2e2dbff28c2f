"""A server behind a URL that is scripted; `test_clients` has the official one."""

import json
import queue
import signal
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.mcp.wired import MCP, wired
from ullage.doors.mcp.remote import Remote

pytest.importorskip("aiohttp", reason="the extra proxy is not installed")

EVENTS = "text/event-stream"


class Far:
    """A client of a URL."""

    def __init__(self, url, **headers):
        self.remote = Remote(url, headers)
        self.came = queue.Queue()
        self._id = 0
        words = (lambda frame: self.came.put(json.loads(frame)), None, 100_000)
        self.thread = threading.Thread(target=self.remote.receive, args=words)
        self.thread.start()

    def send(self, **message):
        self.remote.send(
            json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        )

    def ask(self, method, **params):
        self._id += 1
        self.send(id=self._id, method=method, params=params)
        return self.answer(self._id)

    def answer(self, id):
        while (message := self.came.get(timeout=100)).get("id") != id:
            pass
        return message


@contextmanager
def far(url, **headers):
    session = Far(url, **headers)
    try:
        yield session
    finally:
        session.remote.close()
        session.thread.join(100)
        assert not session.thread.is_alive()


class Scripted(BaseHTTPRequestHandler):
    """Answers what a test has put into ``answers``; keeps what it was asked.

    By method, or for a GET by the id of the last event; a body that is a list is cut off behind it.
    """

    protocol_version = "HTTP/1.1"
    answers, asked = {}, []

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((body, dict(self.headers)))
        self._answer(body.get("method") if isinstance(body, dict) else "batch")

    def do_GET(self):
        self.asked.append(("GET", dict(self.headers)))
        self._answer(self.headers.get("Last-Event-ID"))

    def do_DELETE(self):
        self.asked.append(("DELETE", dict(self.headers)))
        self._answer("delete")

    def _answer(self, key):
        status, kind, data = self.answers.get(key, (405, "text/plain", b""))
        data, is_cut = (
            (data[0], True) if isinstance(data, list) else (data, False)
        )
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Mcp-Session-Id", "s1")
        self.send_header("Content-Length", str(len(data) + 100 * is_cut))
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = is_cut

    def log_message(self, *args):
        pass


@pytest.fixture
def scripted():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
    server.daemon_threads = True
    threading.Thread(
        target=server.serve_forever, args=(0.01,), daemon=True
    ).start()
    Scripted.answers, Scripted.asked = {}, []
    yield f"http://127.0.0.1:{server.server_port}/mcp"
    server.shutdown()
    server.server_close()


def test_every_failure_is_an_answer(scripted):
    Scripted.answers = {
        "down": (503, "text/plain", b"down"),
        "moved": (307, "text/plain", b""),
        "cut": (200, EVENTS, b'data: {"method": "x"}\n\n'),
        "wrong": (
            400,
            "application/json",
            b'{"jsonrpc":"2.0","id":4,\n"error":{"code":-5}}',
        ),
    }
    with far(scripted, Authorization="Bearer k") as session:
        assert "HTTP 503" in session.ask("down")["error"]["message"]
        assert "HTTP 307" in session.ask("moved")["error"]["message"]
        assert "the stream ended" in session.ask("cut")["error"]["message"]
        assert session.ask("wrong")["error"]["code"] == -5
    assert {headers["Authorization"] for _, headers in Scripted.asked} == {
        "Bearer k"
    }


def test_nobody_there_is_an_answer_too():
    with far("http://127.0.0.1:9/mcp") as session:
        assert "ullage mcp: Client" in session.ask("ping")["error"]["message"]


def answer(id):
    return b'data: {"jsonrpc":"2.0","id":%d,"result":{}}\n\n' % id


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_stream_that_ends_before_its_answer_is_taken_up_where_it_was(
    scripted, is_cut
):
    begun = b'retry: 1\nid: a\ndata:\n\nid: b\ndata: {"method":"x"}\n\nid: lost\ndata: {"me'
    more = b'id: c\ndata: {"method":"y"}\n\n'
    Scripted.answers = {
        "slow": (200, EVENTS, [begun] if is_cut else begun),
        "b": (200, EVENTS, [more] if is_cut else more),
        "c": (200, EVENTS, answer(1)),
    }
    with far(scripted) as session:
        session.send(id=1, method="slow")
        assert [
            session.came.get(timeout=100).get("method") for _ in range(3)
        ] == [
            "x",
            "y",
            None,
        ]
    assert [
        h.get("Last-Event-ID") for m, h in Scripted.asked if m == "GET"
    ] == [
        "b",
        "c",
    ]
    assert all(
        h["Mcp-Session-Id"] == "s1" for m, h in Scripted.asked if m == "GET"
    )


@pytest.mark.parametrize(
    "then", [(405, "text/plain", b""), (503, "text/plain", b"")]
)
def test_one_that_cannot_be_taken_up_is_a_failure(scripted, then):
    begun = b"retry: 1\nid: a\ndata:\n\n"
    Scripted.answers = {"slow": (200, EVENTS, begun), "a": then}
    with far(scripted) as session:
        assert "the stream ended" in session.ask("slow")["error"]["message"]
    tries = [m for m, _ in Scripted.asked if m == "GET"]
    assert len(tries) == (1 if then[0] == 405 else 3)


def test_an_answer_to_several_at_once_comes_as_several(scripted):
    both = b'[{"jsonrpc":"2.0","id":1,"result":{}},\n{"jsonrpc":"2.0","id":2,"result":{}}]'
    Scripted.answers = {"batch": (200, "application/json", both)}
    with far(scripted) as session:
        session.remote.send(
            b'[{"id":1,"method":"ping"},{"id":2,"method":"ping"}]\n'
        )
        assert [session.came.get(timeout=100)["id"] for _ in range(2)] == [
            1,
            2,
        ]


def test_a_stateless_request_says_in_its_headers_what_it_is(scripted):
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    region = {"type": "string", "x-mcp-header": "Region"}
    tool = {"name": "naïve", "inputSchema": {"properties": {"region": region}}}
    tools = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [tool]}}
    Scripted.answers = {
        "tools/list": (200, "application/json", json.dumps(tools).encode())
    }
    with far(scripted) as session:
        session.ask("tools/list", _meta=meta)
        session.ask(
            "tools/call", name="naïve", arguments={"region": "eu"}, _meta=meta
        )
        session.ask("tools/call", name="plain", _meta=meta)
    _, first, second = (headers for _, headers in Scripted.asked[:3])
    assert first["MCP-Protocol-Version"] == "2026-07-28"
    assert first["Mcp-Method"] == "tools/call"
    assert first["Mcp-Name"] == "=?base64?bmHDr3Zl?="
    assert first["Mcp-Param-Region"] == "eu"
    assert second["Mcp-Name"] == "plain"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_session_and_then_us(scripted, number):
    Scripted.answers = {"ping": (200, EVENTS, answer(1))}
    with wired(*MCP, "--url", scripted, stderr=subprocess.DEVNULL) as session:
        session.ask("ping")
        session.process.send_signal(number)
        assert session.process.wait(100) == -number
    assert Scripted.asked[-1][0] == "DELETE"


def test_what_is_sent_to_one_that_has_ended_is_dropped():
    remote = Remote("http://127.0.0.1:9/mcp", {})
    remote.close()
    assert (
        remote.receive(lambda frame: None, None, 100)
        == "the connection was closed"
    )
    remote.send(b"{}\n")
    remote.close()

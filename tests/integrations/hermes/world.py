"""Real agents of Hermes, with ullage as their plugin, before a scripted upstream."""

import json
import os
import sys
import threading
import tomllib
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).parents[3]
MODEL = "gpt-4.1"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self._give(404, "application/json", b"{}")

    def do_POST(self):
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        if not self.path.endswith("/chat/completions"):
            self._give(404, "application/json", b"{}")  # what it probes for
            return
        request = json.loads(raw)
        self.server.sent.append(request)
        message = self.server.script(request)
        tokens = len(raw) // 4
        usage = {
            "prompt_tokens": tokens,
            "completion_tokens": 10,
            "total_tokens": tokens + 10,
        }
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        head = {"id": "c", "created": 1, "model": MODEL}
        if not request.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": finish}
            body = {**head, "object": "chat.completion", "usage": usage}
            body["choices"] = [choice]
            self._give(200, "application/json", json.dumps(body).encode())
            return
        for at, call in enumerate(message.get("tool_calls") or ()):
            call["index"] = at
        chunks = [
            [{"index": 0, "delta": message, "finish_reason": None}],
            [{"index": 0, "delta": {}, "finish_reason": finish}],
            [],
        ]
        lines = [
            json.dumps(
                {
                    **head,
                    "object": "chat.completion.chunk",
                    "choices": choices,
                    **({} if choices else {"usage": usage}),
                }
            )
            for choices in chunks
        ]
        text = "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"])
        self._give(200, "text/event-stream", text.encode())

    def _give(self, status, kind, body):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@contextmanager
def upstream(script):
    """A server that answers what a function of the request says; ``sent`` are the requests."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.script, server.sent = script, []
    server.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(
        target=server.serve_forever, args=(0.01,), daemon=True
    )
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def calls(call_id, name, **arguments):
    """A message that calls a tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def says(text):
    return {"role": "assistant", "content": text}


def home(folder):
    """A home of Hermes whose engine is ours; ullage looks installed, with its entry points."""
    (folder / "config.yaml").write_text(
        "context: {engine: ullage}\n"
        "plugins: {enabled: [ullage]}\n"
        f"model: {{default: {MODEL}, context_length: 64000}}\n"
    )
    info = folder / "site" / "ullage-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Name: ullage\nVersion: 0.1.0\n")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = project["entry-points"]
    lines = [
        f"[{group}]\n"
        + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in groups.items()
    ]
    (info / "entry_points.txt").write_text("".join(lines))
    os.environ["HERMES_HOME"] = str(folder)
    os.environ["ULLAGE_STORE"] = str(folder / "kept.db")
    sys.path.insert(0, str(info.parent))


def agent(server, toolsets=(), **options):
    """An agent of Hermes that reads files, and asks the server."""
    from run_agent import AIAgent

    return AIAgent(
        base_url=server.url,
        api_key="a-key-of-a-test",
        provider="custom",
        api_mode="chat_completions",
        model=MODEL,
        enabled_toolsets=["file", "context_engine", *toolsets],
        quiet_mode=True,
        skip_context_files=True,
        skip_memory=True,
        **options,
    )

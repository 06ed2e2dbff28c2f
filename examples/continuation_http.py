"""Ask about a meeting over HTTP: one endpoint, ``POST /chat``.

    OPENAI_BASE_URL=… OPENAI_API_KEY=… python -m examples.continuation_http --port 8000
    curl -d '{"message": "Which decisions were made in meeting.wav?"}' localhost:8000/chat

    → {"conversation": "…", "reply": "…", "why": "answered", "iterations": 2, "uncounted": 3}

Send ``conversation`` with the next message to go on. Conversations live in this process; a
name for one is hard to guess, and opens nothing that another one has set aside.
"""

from __future__ import annotations

import argparse
import json
import secrets
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import openai

from examples.continuation import MEETING_SERVER, agent_turn, new_session
from ullage import UllageError
from ullage.doors.loop import Tool
from ullage.integrations.mcp_tools import mcp_tools

_MOST_BYTES = 1_000_000


class Chat:
    """The conversations, and what they share."""

    def __init__(
        self,
        create: Callable[..., Any],
        tools: Sequence[Tool],
        model: str,
        store: str,
    ) -> None:
        self.create, self.tools, self.model, self.store = (
            create,
            tools,
            model,
            store,
        )
        self.open: dict[str, tuple[Any, list[Any], threading.Lock]] = {}

    def find(self, name: str | None) -> str:
        """The conversation that is meant, a new one if none is named. Raises KeyError."""
        if name is None:
            name = secrets.token_urlsafe(16)
            session = new_session(self.model, self.store, tenant=name)
            self.open[name] = (session, [], threading.Lock())
        elif name not in self.open:
            raise KeyError(name)
        return name

    def answer(self, name: str, said: str) -> dict[str, Any]:
        """One turn of a conversation; its turns run one after the other."""
        session, messages, one_at_a_time = self.open[name]
        with one_at_a_time:
            outcome = agent_turn(
                self.create, session, self.tools, messages, said
            )
        return {
            "conversation": name,
            "reply": outcome.text,
            "why": outcome.why,
            "iterations": outcome.iterations,
            "uncounted": outcome.uncounted,
        }


class Handler(BaseHTTPRequestHandler):
    """Takes ``POST /chat`` and nothing else."""

    chat: Chat

    def do_POST(self) -> None:
        """Answer a message."""
        length = int(self.headers.get("content-length") or 0)
        if self.path != "/chat" or length > _MOST_BYTES:
            return self._send(
                404, {"error": "POST a message of at most 1 MB to /chat"}
            )
        try:
            asked = json.loads(self.rfile.read(length))
            said, name = (
                str(asked["message"]),
                self.chat.find(asked.get("conversation")),
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            remedy = 'send {"message": "…"}, with a "conversation" that this server named'
            return self._send(400, {"error": remedy})
        try:
            return self._send(200, self.chat.answer(name, said))
        except (UllageError, openai.OpenAIError) as error:
            return self._send(502, {"error": type(error).__name__})

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def _send(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--port", type=int, default=8000, help="0: any that is free"
    )
    parser.add_argument("--model", default="gpt-4.1")
    parser.add_argument(
        "--store", default="sqlite", help="where long results are kept"
    )
    given = parser.parse_args()
    create = openai.OpenAI().chat.completions.create
    with mcp_tools(MEETING_SERVER) as tools:
        Handler.chat = Chat(create, tools, given.model, given.store)
        with ThreadingHTTPServer(("127.0.0.1", given.port), Handler) as server:
            print(
                f"listening on http://127.0.0.1:{server.server_port}/chat",
                flush=True,
            )
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                print("bye", flush=True)


if __name__ == "__main__":
    main()

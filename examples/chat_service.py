"""A chat service that streams, on as many worker processes as you like: any takes any turn.

    python -m examples.chat_service --workers 4
    curl -N localhost:8000/chats/ada-1 --data "What is wrong in app.log?"

Needs aiohttp. On several machines: a database for the histories, and store="postgresql://…".
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import signal
import socket
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import Any

import anthropic
from aiohttp import web

import ullage
from examples.files import NAME, PARAMETERS, SAYS, read_file

TOOLS: list[Any] = [
    {"name": NAME, "description": SAYS, "input_schema": PARAMETERS}
]
MODEL = "claude-sonnet-5"


class Histories:
    """The service's own record of who said what: whole, a row a turn."""

    def __init__(self, path: str) -> None:
        self.db = sqlite3.connect(path, timeout=30, isolation_level=None)
        self.db.execute(
            "create table if not exists turns"
            " (chat text, number integer, messages text, primary key (chat, number))"
        )

    def load(self, chat: str) -> tuple[int, list[Any]]:
        """How many turns a chat has had, and all of its messages."""
        query = "select messages from turns where chat = ? order by number"
        turns = [json.loads(row[0]) for row in self.db.execute(query, (chat,))]
        return len(turns), [message for turn in turns for message in turn]

    def save(self, chat: str, number: int, turn: list[Any]) -> None:
        """Keep a turn. Raises sqlite3.IntegrityError if another one has that number."""
        self.db.execute(
            "insert into turns values (?, ?, ?)",
            (chat, number, json.dumps(turn)),
        )


async def answer(
    client: anthropic.AsyncAnthropic, messages: list[Any]
) -> AsyncIterator[str]:
    """One turn: the answer as it comes. The messages are appended to."""
    while True:
        async with client.messages.stream(
            model=MODEL, max_tokens=4_096, messages=messages, tools=TOOLS
        ) as stream:
            async for text in stream.text_stream:
                yield text
            reply = await stream.get_final_message()
        messages.append(
            {
                "role": "assistant",
                "content": reply.to_dict(mode="json")["content"],
            }
        )
        results: list[Any] = []
        for block in reply.content:
            if block.type == "tool_use":
                text = read_file(str(block.input["path"]))
                results.append(
                    {
                        "type": "tool_result",
                        "tool_use_id": block.id,
                        "content": text,
                    }
                )
        if not results:
            return
        messages.append({"role": "user", "content": results})


async def post(request: web.Request) -> web.StreamResponse:
    """Take what a user says, and stream the answer."""
    chat, histories = request.match_info["chat"], request.app[HISTORIES]
    number, messages = histories.load(chat)
    begins = len(messages)
    messages.append({"role": "user", "content": await request.text()})
    response = web.StreamResponse(
        headers={"Content-Type": "text/plain; charset=utf-8"}
    )
    await response.prepare(request)
    with ullage.conversation(
        chat
    ):  # ullage: what is set aside here opens here alone
        async for text in answer(request.app[CLIENT], messages):
            await response.write(text.encode())
    try:
        histories.save(chat, number, messages[begins:])
    except sqlite3.IntegrityError:
        await response.write(
            b"\n[Not kept: this chat was answered elsewhere meanwhile.]"
        )
    return response


HISTORIES, CLIENT = (
    web.AppKey("histories", Histories),
    web.AppKey("client", anthropic.AsyncAnthropic),
)


def work(listening: socket.socket) -> None:
    """One worker."""
    app = web.Application()
    app[HISTORIES] = Histories("chats.db")
    app[CLIENT] = ullage.wrap(
        anthropic.AsyncAnthropic(), store="kept.db"
    )  # ullage: one store
    app.router.add_post("/chats/{chat}", post)
    web.run_app(app, sock=listening, print=None)


def main() -> None:
    """Listen, and start the workers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with socket.create_server(("127.0.0.1", options.port)) as listening:
        new = partial(
            multiprocessing.Process,
            target=work,
            args=(listening,),
            daemon=True,
        )
        workers = [new() for _ in range(options.workers)]
        for worker in workers:
            worker.start()
        signal.signal(
            signal.SIGTERM, lambda *_: sys.exit()
        )  # and the workers end with it
        print(
            f"http://127.0.0.1:{listening.getsockname()[1]}/chats/", flush=True
        )
        with suppress(KeyboardInterrupt):
            for worker in workers:
                worker.join()


if __name__ == "__main__":
    main()

"""The scripted provider: it knows each user by the key, and charges for each reply."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress
from typing import Any

from aiohttp import web

from lab.fleet_day.tally import MODEL, OWNER, RECALL, DayTally, team_of
from ullage import Usage
from ullage.doors.host import cost_of


class ScriptedProvider:
    """Answers each user by name, asks for files, and opens what it is asked to find."""

    def __init__(self, tally: DayTally) -> None:
        self.url = ""
        self._tally = tally
        self._runner: web.ServerRunner | None = None

    async def start(self) -> None:
        """Listen on the loopback."""

        def roomy(*given: object) -> web.BaseRequest:
            loop = asyncio.get_running_loop()
            return web.BaseRequest(*given, loop, client_max_size=1 << 30)  # type: ignore[arg-type]

        server = web.Server(
            self._answer, request_factory=roomy, access_log=None
        )
        self._runner = web.ServerRunner(server)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """Listen no longer."""
        assert self._runner is not None
        await self._runner.cleanup()

    async def _answer(self, asked: web.BaseRequest) -> web.StreamResponse:
        data = await asked.read()
        user = int(asked.headers["x-api-key"].rpartition("-")[2])
        if {int(owner) for owner in OWNER.findall(data)} - {user}:
            self._tally.mixed += 1
        body = json.loads(data)
        content = self._content(user, body)
        usage = self._charge(user, len(data) // 4, content)
        with suppress(ConnectionError):  # the worker that asked was killed
            if body.get("stream"):
                return await _streamed(asked, content, usage)
            reply = {**_message(usage), "content": content}
            return web.json_response(reply)
        return web.Response()

    def _charge(
        self, user: int, prompt_tokens: int, content: list[Any]
    ) -> dict[str, int]:
        """Count a reply as the provider would charge for it."""
        sums = self._tally.teams[team_of(user)]
        output_tokens = len(json.dumps(content)) // 4
        usage = Usage(fresh_tokens=prompt_tokens, output_tokens=output_tokens)
        sums.replies += 1
        sums.tokens += usage.total_tokens
        sums.usd += cost_of(usage, MODEL, "anthropic") or 0.0
        sums.largest_tokens = max(sums.largest_tokens, usage.total_tokens)
        return {
            "input_tokens": prompt_tokens,
            "output_tokens": output_tokens,
        }

    def _content(self, user: int, body: dict[str, Any]) -> list[Any]:
        """What the model says: the secret that it is asked for, or a call."""
        messages = body["messages"]
        shown = json.dumps(messages)
        asked = re.findall(r"FIND (secret-\w+-\w+)", shown)
        said = {"type": "text", "text": f"I am owner-{user}-."}
        number = len(messages)
        if not asked:
            call = _call(f"toolu_{user}_{number}", "read_file", path="a.py")
            return [said, call]
        value = re.search(rf"{asked[-1]} is (\d+)", shown)
        if value is not None:
            return [{"type": "text", "text": f"found {value[1]}"}]
        has_recall = any(tool["name"] == RECALL for tool in body["tools"])
        if has_recall and RECALL not in json.dumps(messages[-2]):
            self._tally.opened += 1
            return [_call(f"toolu_{user}_{number}", RECALL, words=asked[-1])]
        return [{"type": "text", "text": "found nothing"}]


def _call(id: str, name: str, **arguments: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def _message(usage: dict[str, int]) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [],
        "stop_reason": "tool_use",
        "usage": usage,
    }


async def _streamed(
    asked: web.BaseRequest, content: list[Any], usage: dict[str, int]
) -> web.StreamResponse:
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream"}
    )
    await response.prepare(asked)
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": _message(usage)}
    ]
    for index, block in enumerate(content):
        is_text = block["type"] == "text"
        empty = {**block, **({"text": ""} if is_text else {"input": {}})}
        delta = (
            {"type": "text_delta", "text": block["text"]}
            if is_text
            else {
                "type": "input_json_delta",
                "partial_json": json.dumps(block["input"]),
            }
        )
        at = {"index": index}
        events += [
            {"type": "content_block_start", **at, "content_block": empty},
            {"type": "content_block_delta", **at, "delta": delta},
            {"type": "content_block_stop", **at},
        ]
    stop = {"stop_reason": "tool_use"}
    events.append({"type": "message_delta", "delta": stop, "usage": usage})
    events.append({"type": "message_stop"})
    for event in events:
        line = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
        await response.write(line.encode())
    await response.write_eof()
    return response

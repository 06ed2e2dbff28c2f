"""The users of a fleet, each with an agent that reads files and looks for an early one again."""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import suppress
from typing import Any

import aiohttp

from lab.fleet_day.proxies import Fleet
from lab.fleet_day.tally import (
    MODEL,
    MOST_TOKENS,
    OWNER,
    PROXIES,
    READ_FILE,
    TRIES,
    TURNS,
    DayTally,
    key_of,
    team_of,
)


class Stopped(Exception):
    """A budget leaves no room."""


class FleetUser:
    """One user, whose agent reads files and looks for what stood in an early one."""

    def __init__(
        self, number: int, fleet: Fleet, tally: DayTally, http: Any
    ) -> None:
        self.number, self._fleet, self._tally = number, fleet, tally
        self._over = asyncio.Event()
        self._http, self._rng = http, random.Random(number)
        self._headers = {
            "x-api-key": key_of(number),
            "User-Agent": f"agent-{number % 3}/1.0",
        }

    async def work(self, over: asyncio.Event, thinks_s: float) -> None:
        """One conversation after another, until the day is over."""
        number, self._over = 0, over
        while not over.is_set():
            number += 1
            try:
                await self.converse(number, TURNS, thinks_s)
            except Stopped:
                self._tally.stopped[team_of(self.number)] += 1
                await asyncio.sleep(thinks_s * 4)

    async def converse(self, number: int, turns: int, thinks_s: float) -> None:
        """A conversation of some turns; at its end an early secret is looked for."""
        owner = f"owner-{self.number}-"
        messages: list[Any] = [
            {"role": "user", "content": f"Task {number} of {owner}: mend it."}
        ]
        secrets = {}
        for turn in range(turns):
            reply = await self._ask(messages)
            secret = f"secret-{self.number}x{number}-{turn}"
            secrets[secret] = str(self._rng.randrange(10**6, 10**7))
            lines = [
                f"{owner} line {at}: {self._rng.getrandbits(60):x}"
                for at in range(self._rng.choice((30, 90, 180)))
            ]
            lines.insert(len(lines) // 2, f"{secret} is {secrets[secret]}")
            result = {
                "type": "tool_result",
                "tool_use_id": reply["content"][-1]["id"],
                "content": "\n".join(lines),
            }
            messages += [
                {"role": "assistant", "content": reply["content"]},
                {"role": "user", "content": [result]},
            ]
            await asyncio.sleep(thinks_s * self._rng.uniform(0.5, 1.5))
        secret, value = self._rng.choice([*secrets.items()][: turns // 2])
        asked = {"type": "text", "text": f"FIND {secret}"}
        messages[-1]["content"].append(asked)
        found = await self._ask(messages)
        self._tally.conversations += 1
        self._tally.unfound += f"found {value}" not in json.dumps(found)

    async def _ask(self, messages: list[Any]) -> dict[str, Any]:
        """One turn, tried again as an SDK does; a kill must not be the user's to see."""
        body = {
            "model": MODEL,
            "max_tokens": MOST_TOKENS,
            "messages": messages,
            "tools": [READ_FILE],
            "stream": self._rng.random() < 0.5,
        }
        for tried in range(TRIES):
            url = self._fleet.urls[(self.number + tried) % PROXIES]
            self._tally.requests += 1
            try:
                async with self._http.post(
                    f"{url}/v1/messages", json=body, headers=self._headers
                ) as reply:
                    text = await reply.text()
                    status = reply.status
            except (aiohttp.ClientError, TimeoutError, OSError):
                self._tally.broken[team_of(self.number)] += 1
                await asyncio.sleep(min(0.05 * 2**tried, 1.0))
                continue
            if status == 402:
                raise Stopped
            if status == 200 and (said := _said(text)) is not None:
                self._tally.answered += 1
                self._check(said)
                return said
            if status == 429:  # what dead workers reserved has yet to lapse
                if self._over.is_set():
                    raise Stopped
            else:
                self._tally.broken[team_of(self.number)] += 1
            await asyncio.sleep(min(0.05 * 2**tried, 1.0))
        self._tally.lost += 1
        raise Stopped

    def _check(self, reply: dict[str, Any]) -> None:
        """Count a reply that is somebody else's."""
        owners = {int(o) for o in OWNER.findall(json.dumps(reply).encode())}
        self._tally.mixed += bool(owners - {self.number})


def _said(text: str) -> dict[str, Any] | None:
    """The message of a reply, streamed or not; None: it broke off."""
    if text.startswith("{"):
        with suppress(ValueError):
            reply: dict[str, Any] = json.loads(text)
            return reply
        return None
    content: list[dict[str, Any]] = []
    is_whole = False
    for line in text.splitlines():
        if not line.startswith("data: "):
            continue
        event = json.loads(line[6:])
        if event["type"] == "content_block_start":
            content.append(event["content_block"])
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            if "text" in delta:
                content[-1]["text"] += delta["text"]
            else:
                content[-1]["input"] = json.loads(delta["partial_json"])
        is_whole = is_whole or event["type"] == "message_stop"
    return {"content": content} if is_whole else None

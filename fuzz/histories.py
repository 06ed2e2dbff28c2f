"""Random histories by number: turns from `tests.histories`, and what those leave out."""

from __future__ import annotations

import base64
import json
import struct
from random import Random
from typing import Any

from tests.histories import HUGE, SEEDS, TOOLS, Call, Turn, request, wire

__all__ = ["Case", "case"]

Case = tuple[str, dict[str, Any], int, frozenset[str]]
"""Format, request with the whole history, window in tokens, features."""

_PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", 1000, 800)
_IMAGE = base64.b64encode(_PNG + bytes(3_000)).decode()
_SERVER = {"type": "server_tool_use", "id": "srvtoolu_{n}", "name": "web_search", "input": {}}


def case(seed: int, number: int, formats: list[str]) -> Case:
    """History ``number`` of a seed, written in one of the formats."""
    random = Random(f"{seed}/{number}")
    format = random.choice(formats)
    turns = [_turn(random) for _ in range(random.choice((2, 4, 6, 9, 14)))]
    reuse = random.random() < 0.2
    messages = wire(format, turns, reuse_ids=reuse)
    features = {name for turn in turns for name in _features(turn)}
    features |= {"reused ids"} if reuse else set()
    if format == "anthropic" and random.random() < 0.4:
        features |= _decorate(messages, random)
    whole = request(format, messages)
    if random.random() < 0.3:
        whole["model"] = {"anthropic": "claude-opus-5-5"}.get(format, whole["model"])
    window = random.choice((4_000, 5_000, 7_000, 12_000, 30_000))
    return format, whole, window, frozenset(features)


def _turn(random: Random) -> Turn:
    return Turn(
        user=f"and now {random.random()}" if random.random() < 0.25 else None,
        said=random.choice(("", "Let me look.", "I see: the cache is stale. " * 6)),
        calls=tuple(_call(random) for _ in range(random.choice((0, 1, 1, 1, 2, 3)))),
        thought=random.random() < 0.3,
    )


def _call(random: Random) -> Call:
    return Call(
        tool=random.choice(TOOLS),
        argument=random.choice(("a.py", "b.py", HUGE, f"{random.random()}")),
        output=_output(random),
        failed=random.random() < 0.15,
        items=random.choice((0, 0, 0, 1, 2)),
    )


def _output(random: Random) -> str:
    kind = random.random()
    if kind < 0.1:
        return ""
    if kind < 0.3:
        return f"ok {random.random()}"
    if kind < 0.45:
        return json.dumps([{"n": n, "name": f"row {n}"} for n in range(random.randint(1, 600))])
    size = random.choice((500, 2_000, 9_000, 20_000, 60_000))
    seed = random.choice(SEEDS)
    return f"{random.random()}\n" + (seed * (size // len(seed) + 1))[:size]


def _features(turn: Turn) -> list[str]:
    found = ["thinking"] if turn.thought else []
    found += ["parallel"] if len(turn.calls) > 1 else []
    for call in turn.calls:
        found += ["error"] if call.failed else []
        found += ["empty"] if not call.output else []
        found += ["huge"] if len(call.output) > 15_000 else []
        found += ["big arguments"] if call.argument == HUGE else []
        found += ["blocks"] if call.items else []
    return found


def _decorate(messages: list[dict[str, Any]], random: Random) -> set[str]:
    """Server tools and images, where Anthropic has them."""
    features = set()
    for number, message in enumerate(messages):
        content = message["content"]
        if not isinstance(content, list) or random.random() < 0.6:
            continue
        if message["role"] == "assistant":
            at = sum(block["type"] == "thinking" for block in content)
            content[at:at] = _server_tool(number)
            features.add("server tool")
        elif content[0]["type"] == "tool_result":
            source = {"type": "base64", "media_type": "image/png", "data": _IMAGE}
            text = {"type": "text", "text": "a picture"}
            content[0]["content"] = [text, {"type": "image", "source": source}]
            features.add("media")
    return features


def _server_tool(number: int) -> list[dict[str, Any]]:
    use = {**_SERVER, "id": f"srvtoolu_{number}", "input": {"query": "x"}}
    found = {
        "type": "web_search_result",
        "url": "https://example.org",
        "title": "t",
        "encrypted_content": "ZW5jcnlwdGVk" * 50,
    }
    result = {
        "type": "web_search_tool_result",
        "tool_use_id": f"srvtoolu_{number}",
        "content": [found],
    }
    return [use, result]

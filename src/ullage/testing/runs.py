"""Made-up agent runs, as messages of OpenAI Chat: what stages and formats are tried with.

The same seed gives the same run everywhere. `in_format` writes one on any of the wires.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

from ullage import convert
from ullage.wires import WIRES

__all__ = ["MODELS", "Run", "boundaries", "example_runs", "in_format"]

Run = Sequence[dict[str, Any]]
"""The messages of a run, as OpenAI Chat takes them."""

MODELS = {wire.name: wire.example_model for wire in WIRES}
"""A model for each of the wires."""

_OWN = "openai-chat"
"""The wire that runs are made up on."""
_TOOLS = ("read_file", "bash", "grep", "web_fetch")
_WORDS = (
    "cache",
    "retry",
    "socket",
    "index",
    "token",
    "röntgen",
    "名前",
    "🙂",
    "path/to.py:12",
)


def example_runs(
    count: int = 6, *, seed: int = 0, turns: int = 16, scale: int = 1
) -> tuple[list[Any], ...]:
    """Runs of an agent: single and parallel calls, what was read twice, what failed.

    Args:
        count: how many.
        seed: where to begin; each run has a seed of its own.
        turns: how many replies each run has.
        scale: how many times longer the large outputs are: at 4 the default cuts some on arrival.
    """
    return tuple(
        _run(random.Random(f"{seed} {n}"), turns, scale) for n in range(count)
    )


def boundaries(run: Run) -> list[int]:
    """The lengths of history at which requests were sent: before each reply, and at the end.

    Args:
        run: the messages.
    """
    replies = [
        at for at, one in enumerate(run) if at and one["role"] == "assistant"
    ]
    return [
        *replies,
        *([] if run and run[-1]["role"] == "assistant" else [len(run)]),
    ]


def in_format(run: Run, format: str) -> dict[str, Any]:
    """A request with this history on one of the wires, with a model and a limit of the answer.

    Args:
        run: the messages, as OpenAI Chat takes them.
        format: the name of the wire.

    Raises:
        ConfigError: there is no wire of this name.
    """
    body = {"model": MODELS[_OWN], "messages": list(run), "max_tokens": 500}
    request: dict[str, Any] = convert(
        body, format, format=_OWN, model=MODELS[format]
    )
    return request


def _run(rng: random.Random, turns: int, scale: int) -> list[Any]:
    messages: list[Any] = [
        {"role": "user", "content": f"Find out why {_text(rng, 60)} fails."}
    ]
    seen: list[str] = []
    for number in range(turns):
        text = rng.choice(
            (
                "",
                "Let me look.",
                "The cause is the cache, as far as I can see.",
            )
        )
        ids = [
            f"call_{number}_{n}" for n in range(rng.choice((1, 1, 1, 2, 3)))
        ]
        calls = [_call(rng, id) for id in ids]
        messages.append(
            {"role": "assistant", "content": text or None, "tool_calls": calls}
        )
        for id in ids:
            seen.append(
                rng.choice(seen)
                if seen and rng.random() < 0.2
                else _output(rng, scale)
            )
            messages.append(
                {"role": "tool", "tool_call_id": id, "content": seen[-1]}
            )
        if rng.random() < 0.25:
            messages.append({"role": "assistant", "content": "Done so far."})
            messages.append(
                {"role": "user", "content": f"Never touch {_text(rng, 40)}."}
            )
    return messages


def _call(rng: random.Random, id: str) -> dict[str, Any]:
    large = _text(rng, 2_500) if rng.random() < 0.15 else ""
    arguments = json.dumps(
        {"path": rng.choice(("a.py", "b.py")), "text": large}
    )
    return {
        "id": id,
        "type": "function",
        "function": {"name": rng.choice(_TOOLS), "arguments": arguments},
    }


def _output(rng: random.Random, scale: int) -> str:
    """Nothing, a line, a log with an error in it, JSON, or one line without an end."""
    kind = rng.randrange(6)
    if kind == 0:
        return ""
    if kind == 1:
        return _text(rng, 60)
    if kind == 2:
        rows = [
            {"id": n, "name": _text(rng, 20)}
            for n in range(scale * rng.randrange(10, 100))
        ]
        return json.dumps(rows, ensure_ascii=False)
    if kind == 3:
        return _text(rng, scale * rng.randrange(2_000, 5_000))
    lines = [
        f"{n:05} INFO {_text(rng, 50)}"
        for n in range(scale * rng.randrange(40, 120))
    ]
    lines[rng.randrange(len(lines))] = f"ERROR exit code 1: {_text(rng, 30)}"
    return "\n".join(lines)


def _text(rng: random.Random, chars: int) -> str:
    words = [
        f"{rng.choice(_WORDS)}{rng.randrange(999)}"
        for _ in range(chars // 8 + 1)
    ]
    return " ".join(words)[:chars]

"""A run made up here, so that the bench works without recordings.

An agent follows orders through a system: a list of orders, each looked up, each look-up naming
the parcel that a later call asks for, after other things have come between. So some values
are needed soon after they were told and some long after.
"""

from __future__ import annotations

import json
import random
from typing import Any

from lab.bench.stores import log_line
from ullage.tools.replay.readers import Run

_TOOLS = ("list_orders", "show_order", "track_parcel")


def generated_run(calls: int = 60, *, seed: int = 0) -> Run:
    """A run of so many calls, the same for the same arguments; 60 come to 90,000 tokens.

    Args:
        calls: how many replies of the agent.
        seed: of the ids and of the noise around them.
    """
    rng = random.Random(seed)
    orders = [f"ord-{rng.randrange(16**8):08x}" for _ in range(calls)]
    parcels = {order: f"PX{rng.randrange(10**10):010d}" for order in orders}
    messages: list[dict[str, Any]] = [
        {
            "role": "system",
            "content": "You look after orders. Report what is late, with its id.",
        },
        {
            "role": "user",
            "content": "Go through all orders and track every parcel.",
        },
    ]
    messages += _exchange(0, "list_orders", {}, "\n".join(orders))
    waiting: list[str] = []
    for number in range(1, calls):
        if len(waiting) > 6 or (waiting and number > calls * 3 // 4):
            order = waiting.pop(0)
            asked = {"parcel": parcels[order]}
            messages += _exchange(
                number, "track_parcel", asked, _noise(rng, 60)
            )
            messages[-2]["content"] = f"Now the parcel of order {order}."
        else:
            order = orders[number % len(orders)]
            waiting.append(order)
            told = f"order {order} was sent as parcel {parcels[order]} on day {number}"
            noise = _noise(rng, 80)
            messages += _exchange(
                number,
                "show_order",
                {"order": order},
                f"{noise}\n{told}\n{noise}",
            )
        if number % 20 == 0:
            messages.append(
                {
                    "role": "user",
                    "content": f"And what of day {number}? Go on.",
                }
            )
    messages.append(
        {"role": "assistant", "content": "All parcels are tracked."}
    )
    tools = [
        {"type": "function", "function": {"name": name, "parameters": _ANY}}
        for name in _TOOLS
    ]
    return Run("generated", "openai-chat", {"tools": tools}, messages)


_ANY = {"type": "object", "properties": {}}


def _exchange(
    number: int, tool: str, arguments: dict[str, str], result: str
) -> list[dict[str, Any]]:
    id_ = f"call_{number:04d}"
    function = {"name": tool, "arguments": json.dumps(arguments)}
    call = {"id": id_, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id_, "content": result},
    ]


def _noise(rng: random.Random, lines: int) -> str:
    return "\n".join(
        log_line(rng) for _ in range(rng.randrange(lines // 2, lines))
    )

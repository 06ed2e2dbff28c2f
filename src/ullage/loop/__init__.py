"""A reference agent loop: fit, call, observe, run the tools, until the model has answered.

    from ullage.loop import run_turn

    request = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "Why …?"}]}
    outcome = run_turn(client.chat.completions.create, session, request, tools=[read_file])

`run_turn` and `arun_turn` serve the four formats and every SDK whose call takes the request as
keyword arguments. `steps` has the loop itself, `drive` what runs it, `tools` what it may call.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ullage.loop.drive import arun_turn, run_turn
    from ullage.loop.steps import UNCOUNTED_TOOLS, Outcome
    from ullage.loop.tools import Returned, Tool, tool

__all__ = ["UNCOUNTED_TOOLS", "Outcome", "Returned", "Tool", "arun_turn", "run_turn", "tool"]

_ON_DEMAND = {
    "UNCOUNTED_TOOLS": "steps",
    "Outcome": "steps",
    "Returned": "tools",
    "Tool": "tools",
    "arun_turn": "drive",
    "run_turn": "drive",
    "tool": "tools",
}


def __getattr__(name: str) -> Any:
    """The loop, loaded when it is first asked for: it imports asyncio."""
    if name in _ON_DEMAND:
        return getattr(import_module(f"ullage.loop.{_ON_DEMAND[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

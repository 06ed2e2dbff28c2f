"""A reference agent loop: fit, call, observe, run the tools, until the model has answered.

    from ullage.doors.loop import run_turn

    request = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "Why …?"}]}
    outcome = run_turn(client.chat.completions.create, session, request, tools=[read_file])

`run_turn` and `arun_turn` serve the four formats and every SDK whose call takes the request as
keyword arguments. `steps` has the loop itself, `drive` what runs it, `tools` what it may call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ullage.core.on_demand import names

__all__ = [
    "UNCOUNTED_TOOLS",
    "Outcome",
    "Returned",
    "Tool",
    "arun_turn",
    "run_turn",
    "tool",
]

if TYPE_CHECKING:
    from ullage.doors.loop.drive import arun_turn, run_turn
    from ullage.doors.loop.steps import UNCOUNTED_TOOLS, Outcome
    from ullage.doors.loop.tools import Returned, Tool, tool
else:
    __getattr__, __dir__ = names(  # it imports asyncio
        __name__,
        {
            "ullage.doors.loop.drive": "arun_turn run_turn",
            "ullage.doors.loop.steps": "UNCOUNTED_TOOLS Outcome",
            "ullage.doors.loop.tools": "Returned Tool tool",
        },
    )

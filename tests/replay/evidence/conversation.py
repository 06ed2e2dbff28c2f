"""Small conversations in Chat form, and what their calls demand."""

import json
import random
from itertools import chain

from lab.replay.story import Story
from lab.replay.wires import on_wire
from ullage.tools.replay.calls import boundaries
from ullage.tools.replay.evidence.demands import HeadText, demands_of
from ullage.tools.replay.readers import Run
from ullage.wires import FORMATS

WIRE = FORMATS["openai-chat"]


def user(text):
    return [{"role": "user", "content": text}]


def call(tool, result, said=None, **arguments):
    """A call and its result, as two messages."""
    call.number += 1
    name = f"call_{call.number}"
    function = {"name": tool, "arguments": json.dumps(arguments)}
    asked = [{"id": name, "type": "function", "function": function}]
    return [
        {"role": "assistant", "content": said, "tool_calls": asked},
        {"role": "tool", "tool_call_id": name, "content": result},
    ]


call.number = 0


def run_of(*parts, **request):
    messages = [message for part in parts for message in part]
    return Run("small", "openai-chat", request, messages)


def told(run, common=frozenset()):
    """A run's story, the lengths before its calls, and what they demand."""
    wire = FORMATS[run.format]
    story, lengths = Story(wire, run.messages), boundaries(run)
    return (
        story,
        lengths,
        demands_of(story, lengths, HeadText.of(wire, run.request), common),
    )


def first_uses(run, common=frozenset()):
    """The demands of first use, as (value, age)."""
    found = chain.from_iterable(told(run, common)[2])
    return [
        (demand.atom.text, demand.age)
        for demand in found
        if demand.use == "first"
    ]


def errand(seed, turns=30, lines=60, format="openai-chat"):
    """A long errand: listings full of names, and calls that need one of up to nine calls before.

    Every run has names of its own, as runs of different tasks have.
    """
    draw, call.number = random.Random(seed), 0
    parts, listed = [user(f"Task {seed}: find the file at fault.")], []
    for number in range(turns):
        back = draw.randint(1, 9)
        wanted = draw.choice(listed[max(number - back, 0)]) if number else "."
        listed.append(
            [
                f"mod_{seed}_{number}_{n}_{draw.randrange(10**6)}"
                for n in range(lines)
            ]
        )
        rows = (
            f"{n:>4} {name} is kept by team {n * 7}"
            for n, name in enumerate(listed[-1])
        )
        parts.append(call("list_files", "\n".join(rows), path=wanted))
    run = run_of(*parts)
    return run if format == "openai-chat" else on_wire(run, format)

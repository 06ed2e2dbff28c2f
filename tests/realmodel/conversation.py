"""One conversation of fifty calls with the real model, played once and read by many tests.

The calls and what the tool answers are scripted, for so small a model calls no tool of its own
accord; what it says before each call is its own. The history grows to well over the window.
"""

from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ullage import Limits, Session, Usage
from ullage.policy.stages.default import DEFAULT
from ullage.policy.stages.pressure import over_share
from ullage.policy.stages.prune import prune

MODEL = "SmolLM2-135M-Instruct"
TOOL = {
    "type": "function",
    "function": {
        "name": "next",
        "description": "Shows the next log.",
        "parameters": {"type": "object", "properties": {}},
    },
}
CALL = {"name": "next", "arguments": "{}"}
WINDOW_TOKENS = 1_280
CALLS = 50
ANSWER_TOKENS = 3
PAGE_LINES, PAGES = 38, (1, 2, 3)
THINGS = ("disk", "network", "cache", "clock", "router", "queue", "proxy")


class Call(Struct, frozen=True):
    """One call as it was made.

    Attributes:
        history_messages: how long the whole history was.
        view: the request that was sent.
        estimated_tokens: what the session expected the server to count.
        bound_tokens: what it expected the server not to pass.
        usage: what the server counted.
        decided: kinds of the events of this call.
    """

    history_messages: int
    view: dict[str, Any]
    estimated_tokens: int
    bound_tokens: int
    usage: Usage
    decided: tuple[str, ...]


class Lived(Struct, frozen=True):
    """The conversation: its whole history, its calls, and the session that kept it."""

    history: list[dict[str, Any]]
    calls: list[Call]
    session: Session


def request(messages):
    """The keyword arguments of the SDK's call, whatever is in them."""
    return {
        "model": MODEL,
        "messages": messages,
        "tools": [TOOL],
        "max_tokens": ANSWER_TOKENS,
        "temperature": 0,
    }


EARLY = partial(over_share, high=0.75, low=0.4)
TINY = replace(
    DEFAULT,
    without_recall=None,
    name="tiny",
    under_pressure=(partial(prune, wanted=EARLY, least_share=0.0),),
)
"""The default policy for a window in which a digest is too long, and no batch wins much."""


def live(model):
    """Go through the conversation, a fitted request before each call."""
    session = Session(
        MODEL,
        limits=Limits(window_tokens=model.window_tokens),
        format="openai-chat",
        policy=TINY,
        recall=False,  # four definitions would fill half of so small a window
    )
    client, history, calls = (
        model.client(),
        [{"role": "user", "content": "Why is it slow?"}],
        [],
    )
    for number in range(CALLS):
        before = len(session.events)
        view = session.fit(request(history))
        window = session.window
        expected, bound = (
            window.estimate,
            window.calibration.upper(window.tokens),
        )
        reply = client.chat.completions.create(**view)
        session.observe(reply)
        decided = tuple(event.kind for event in session.events[before:])
        usage = session.calls[-1].usage
        calls.append(Call(len(history), view, expected, bound, usage, decided))
        history += turn(number, reply.choices[0].message.content)
    return Lived(history, calls, session)


def turn(number, said):
    """What the model said, a call, and its result: a page now and then, else a line."""
    lines = PAGE_LINES if number in PAGES else 1
    text = "\n".join(
        f"the {THINGS[line % 7]} is fine"
        for line in range(number, number + lines)
    )
    call = {"id": f"call_{number}", "type": "function", "function": CALL}
    return [
        {"role": "assistant", "content": said, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": text},
    ]

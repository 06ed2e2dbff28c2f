"""What the tests of bad input, of recall and of decisions share."""

import json

from tests import histories
from tests.world import MODEL
from ullage import Limits, Session

SMALL = Limits(window_tokens=6_000)
TASK = {"role": "user", "content": "Find the fault."}


def new_session(format, **more):
    return Session(
        MODEL[format],
        **{"limits": SMALL, "format": format, "recall": True, **more},
    )


def turn(output, **more):
    return histories.Turn(
        calls=(histories.Call("bash", "a.py", output, **more),)
    )


def long_history(format, turns=10):
    return histories.wire(
        format, [turn(f"line {n}\n" * 300) for n in range(turns)]
    )


def request(format, messages, **more):
    return histories.request(format, messages, **more)


def recall(session, tool, arguments):
    """The text a call brings back; arguments may be JSON text that is none."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    if session.state.format == "anthropic":
        value = (
            arguments
            if not isinstance(arguments, str)
            else {"text": arguments}
        )
        call = {
            "type": "tool_use",
            "id": "toolu_r",
            "name": tool,
            "input": value,
        }
    else:
        call = {
            "id": "r",
            "type": "function",
            "function": {"name": tool, "arguments": text},
        }
    result = session.recall(call)
    assert isinstance(result["content"], str)
    return result["content"]


def some_ref(session):
    return next(event.ref for event in reversed(session.events) if event.ref)

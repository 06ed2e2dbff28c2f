"""The state between turns is a value: it can be written down, read back and gone on from."""

import msgspec

from tests import histories
from ullage import Limits, Session, State

CALL = histories.Call("bash", "a.py", "a line of output\n" * 400)


def test_a_session_goes_on_from_a_state_that_was_written_down():
    limits = Limits(window_tokens=12_000)
    messages = histories.wire(
        "openai-chat", [histories.Turn(calls=(CALL,))] * 20
    )
    first = Session("gpt-4.1", limits=limits, recall=True)
    for length in range(1, len(messages) + 1, 2):
        view = first.fit(histories.request("openai-chat", messages[:length]))
        first.observe({"usage": {"prompt_tokens": first.window.tokens + 500}})
    assert {"truncated", "pruned"} <= {event.kind for event in first.events}
    written = msgspec.msgpack.encode(first.state)
    state = msgspec.msgpack.decode(written, type=State)
    assert state == first.state
    second = Session("gpt-4.1", limits=limits, recall=True, state=state)
    assert (
        second.fit(histories.request("openai-chat", messages[:length])) == view
    )
    assert second.usage == first.usage

"""What the gates count of a view, and what they do not."""

from ullage import Limits, Session
from ullage.tools.replay.gates import Gates, Judge

SYSTEM = {"role": "system", "content": "Rules of the harbour. " * 150}


def told(turns):
    """A long word of the user's, and what was looked at since."""
    messages = [
        SYSTEM,
        {"role": "assistant", "content": "Good morning. What is it?"},
        {"role": "user", "content": "Berth nine is mine, and taken. " * 14},
    ]
    for n in range(turns):
        function = {"name": "look", "arguments": f'{{"berth": {n}}}'}
        call = {"id": f"call_{n}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": "I look.", "tool_calls": [call]},
            {
                "role": "tool",
                "tool_call_id": f"call_{n}",
                "content": f"berth {n}: " + "free; " * 60,
            },
            {"role": "assistant", "content": "It is free."},
            {"role": "user", "content": "Look at the next."},
        ]
    return messages


def test_a_word_of_the_user_s_that_opens_beside_an_account_is_not_lost():
    """Where roles stand in turn, an account goes into the message of a user's text that was cut."""
    limits = Limits(window_tokens=1_000, output_reserve_tokens=0)
    session = Session("qwen3-32b", format="openai-chat", limits=limits)
    gates = Gates(session, Judge(), 0)
    for turns in range(1, 8):
        history = told(turns)
        view = session.fit({"messages": history})["messages"]
        gates.check(history, view)
    assert len(view) == 3
    assert "characters left out" in view[2]["content"]
    assert "are condensed here" in view[2]["content"]
    assert "G4" not in gates.broken
    *before, joined = view
    unopened = {**joined, "content": joined["content"].replace("ref=", "")}
    gates = Gates(session, Judge(), 0)
    gates.check(history, [*before, unopened])
    assert gates.broken["G4"]

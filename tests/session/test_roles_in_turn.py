"""User and assistant speak in turn in a view where they did in the history (chat templates)."""

import json
from itertools import pairwise

import pytest

from tests import histories
from tests.histories import Call, Turn
from ullage import Limits, Session
from ullage.documents import NAMES
from ullage.wires import FORMATS

LOG = "".join(f"row {n} of the log, and nothing in it\n" for n in range(160))
MODELS = {
    "openai-chat": "mistral-small",
    "openai-responses": "openai/gpt-oss-120b",
    "gemini": "gemma-3",
    "anthropic": "qwen3-coder",
}
"""Models that others serve than who made the wire: by a chat template, as strict as it likes."""
VENDORS = {
    "openai-chat": "gpt-4.1",
    "openai-responses": "gpt-5.6",
    "gemini": "gemini-3-pro",
    "anthropic": "claude-opus-4-8",
}


def turns(count):
    for number in range(count):
        call = Call(
            "read_file", f"src/part_{number}.py", f"file {number}\n{LOG}"
        )
        said = (
            f"Now read part {number}." if number and number % 9 == 0 else None
        )
        yield Turn(user=said, said=f"I read part {number}.", calls=(call,))
        if number % 9 == 8:
            yield Turn(said=f"Parts up to {number} are read.")


def speakers(format, view):
    """Who speaks, message by message; tools apart."""
    wire = FORMATS[format]
    messages = [wire.parse(raw, "view") for raw in wire.history(view)]
    return [
        each.role for each in messages if each.role in ("user", "assistant")
    ]


def users_in_a_row(format, view):
    said = speakers(format, view)
    return sum(one == other == "user" for one, other in pairwise(said))


def played(format, model, policy):
    messages = histories.wire(format, list(turns(40)))
    session = Session(
        model,
        format=format,
        policy=policy,
        limits=Limits(window_tokens=16_000),
        recall=True,
    )
    for index, message in enumerate(messages):
        if FORMATS[format].parse(message, "m").role == "assistant":
            request = {
                **histories.request(format, messages[:index]),
                "model": model,
            }
            yield session, request, session.fit(request)


@pytest.mark.parametrize("policy", NAMES)
@pytest.mark.parametrize("format", MODELS)
def test_no_summary_stands_beside_the_user(format, policy):
    turns = list(played(format, MODELS[format], policy))
    assert [users_in_a_row(format, view) for _, _, view in turns] == [0] * len(
        turns
    )
    session = turns[-1][0]
    assert session.window.summaries or policy in (
        "token_budget",
        "continuation",
    )


@pytest.mark.parametrize("format", VENDORS)
def test_a_vendors_own_api_gets_the_callers_messages_as_they_are(format):
    """It takes several in a row (A2, C9)."""
    *_, (session, request, view) = played(format, VENDORS[format], "default")
    assert (
        FORMATS[format].history(view)[0] is FORMATS[format].history(request)[0]
    )
    assert session.window.summaries


def test_what_was_joined_stays_as_it_was_sent():
    """Between two batches every view begins with the one before it, byte for byte."""
    before, batches = [], 0
    settings = {"limits": Limits(window_tokens=16_000), "recall": True}
    for session, request, view in played(
        "openai-chat", "mistral-small", "default"
    ):
        shown = [json.dumps(message) for message in view["messages"]]
        if shown[: len(before)] != before:
            assert any(
                event.kind in ("pruned", "condensed") for event in view.events
            )
            batches += 1
        before = shown
        other = Session("mistral-small", state=session.state, **settings)
        again = other.fit(request)["messages"]
        assert [json.dumps(message) for message in again] == shown
    assert batches > 1


def test_strings_stay_a_string():
    """Some templates read nothing else."""
    *_, (_, _, view) = played("openai-chat", "mistral-small", "default")
    first = view["messages"][0]["content"]
    assert first.startswith("Find out why the tests fail.\n\n[ullage: ")
    assert "\n\nNow read part 9.\n\n" in first


def test_two_messages_that_the_caller_sent_side_by_side_stay_two():
    messages = histories.wire("openai-chat", list(turns(40)))
    messages.insert(1, {"role": "user", "content": "And be quick."})
    session = Session(
        "mistral-small", limits=Limits(window_tokens=16_000), recall=True
    )
    view = session.fit(
        {
            **histories.request("openai-chat", messages),
            "model": "mistral-small",
        }
    )
    assert session.window.summaries
    assert view["messages"][0] is messages[0]
    assert view["messages"][1]["content"].startswith(
        "And be quick.\n\n[ullage: "
    )
    assert view["messages"][2]["role"] == "assistant"

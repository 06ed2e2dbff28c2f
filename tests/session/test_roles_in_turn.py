"""User and assistant speak in turn in a view where they did in the history (chat templates)."""

import json
from itertools import pairwise

import pytest

from tests import histories
from tests.histories import Call, Turn
from ullage import (
    Limits,
    Policy,
    ProposedEdit,
    ReplaceSpan,
    Session,
    problems,
)
from ullage.core.contract.ranges import set_aside
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


CLAUDE = "anthropic.claude-sonnet-4-5-20250929-v1:0"


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


# ── what stays within a summary ──────────────────────────────────────────────────────────


def user(*blocks):
    texts = [
        {"text": each} if isinstance(each, str) else each for each in blocks
    ]
    return {"role": "user", "content": texts}


def reply(*blocks):
    thought = {"text": "Hm.", "signature": "sig-of-a-thought"}
    reasoning = {"reasoningContent": {"reasoningText": thought}}
    return {**user(reasoning, *blocks), "role": "assistant"}


def reading(name):
    call = {"toolUseId": f"id_{name}", "name": "read", "input": {}}
    return {"toolUse": call}


def contents(name):
    content = [{"text": LOG}]
    return {"toolResult": {"toolUseId": f"id_{name}", "content": content}}


READ_TWICE = [
    user("Find the fault."),
    reply("In which log?"),
    user("In the first."),
    reply(reading("first")),
    user(contents("first")),
    reply("There is none in it."),
    user("In the second, then."),
    reply(reading("second")),
    user(contents("second")),
    reply("Here it is."),
    user("Mend it."),
]


def condensing(ranges):
    """A session in which, at a length of the history, a range of it becomes a summary."""

    def stage(window, /):
        span = ranges.get(window.size)
        shown = [(placed.start, placed.stop) for placed in window.summaries]
        if span is None or span in shown:
            return ()
        return (condensed(window, *span),)

    return Session(
        CLAUDE,
        format="bedrock-converse",
        policy=Policy(name="trial-1", under_pressure=(stage,)),
        limits=Limits(window_tokens=200_000),
        recall=True,
    )


def condensed(window, start, stop):
    outputs = set_aside(window, start, stop)
    chain, ref = window.transcript.chain, outputs[-1].ref
    text = f"What was read. Index: ref={ref}"
    edit = ReplaceSpan(chain[start], chain[stop], text, ref, "a trial")
    return ProposedEdit(edit, outputs)


@pytest.mark.parametrize("thinking", ["enabled", "adaptive"])
def test_a_call_that_stays_follows_what_the_user_said_and_no_other_reply(
    thinking,
):
    """Its turn is over, so nothing hangs on the thinking that it began with (B2, B11)."""
    session = condensing({11: (2, 9)})
    request = {
        "modelId": CLAUDE,
        "messages": READ_TWICE,
        "toolConfig": {"tools": [{"toolSpec": {"name": "read"}}]},
        "additionalModelRequestFields": {
            "thinking": {"type": thinking, "budget_tokens": 1_024}
        },
    }
    session.fit({**request, "messages": READ_TWICE[:9]})
    session.pin("m8")
    view = session.fit(request)
    assert problems(dict(view)) == []
    said = [
        message["content"][-1].get("text", "") for message in view["messages"]
    ]
    assert said[0] == "Find the fault."
    assert said[2] == "In the second, then."
    assert said[4].startswith("What was read.")
    assert said[5:] == ["Here it is.", "Mend it."]


def talk(count):
    """So many messages: questions, and replies that call nothing."""
    messages = []
    for number in range(count):
        is_reply = number % 2 == 1
        text = f"Part {number}." if is_reply else f"And part {number}?"
        role = "assistant" if is_reply else "user"
        messages.append({**user(text), "role": role})
    return messages


def first_texts(session, messages):
    """How each message of the view begins; the view is legal."""
    view = session.fit(histories.request("bedrock-converse", messages))
    assert problems(dict(view)) == []
    return [message["content"][0]["text"] for message in view["messages"]]


def test_two_replies_that_stay_have_a_question_between_them_that_was_hidden():
    session = condensing({9: (1, 7), 11: (1, 9)})
    session.fit(histories.request("bedrock-converse", talk(7)))
    session.pin("m2")
    said = first_texts(session, talk(9))
    assert [text.split(" Index")[0] for text in said] == [
        "And part 0?",
        "Part 1.",
        "What was read.",
        "Part 7.",
        "And part 8?",
    ]
    session.pin("m8")
    said = first_texts(session, talk(11))
    assert said[:4] == ["And part 0?", "Part 1.", "And part 6?", "Part 7."]
    assert said[4].startswith("What was read.")
    assert said[5:] == ["Part 9.", "And part 10?"]


def test_a_reply_that_comes_back_brings_the_question_behind_it():
    """Nothing stands before the summary, so its text is in front of what comes back."""
    session = condensing({7: (0, 5)})
    said = first_texts(session, talk(7))
    assert said[1:] == ["Part 5.", "And part 6?"]
    session.restore("m4", when="now")
    said = first_texts(session, talk(7))
    assert said[1:] == ["Part 3.", "And part 4?", "Part 5.", "And part 6?"]

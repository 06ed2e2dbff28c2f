"""Many small messages: what a message costs does not grow with how many there are. Counted."""

import json
from cProfile import Profile
from itertools import pairwise

import pytest

from tests import histories
from ullage import Limits, MemoryStore, Session, convert, documents
from ullage.policy.stages.default import SUMMARISED

MOST_GROWTH = 1.6
"""A message of a history four times as long may cost so much more; were it quadratic, 4."""
FEW, MANY = 500, 2_000
LIMITS = Limits(window_tokens=4_000)
POLICIES = {name: documents.preset(name) for name in documents.NAMES} | {
    "summarised": SUMMARISED
}


def chat(messages):
    """A chat of short questions and answers; some are said again and again."""
    said = []
    for number in range(messages // 4):
        said += [
            {"role": "user", "content": f"question {number}"},
            {"role": "assistant", "content": f"answer {number} " + "x" * 40},
            {"role": "user", "content": "go on"},
            {"role": "assistant", "content": f"I go on with {number}."},
        ]
    return [*said, {"role": "user", "content": "last"}]


def speaking(messages):
    """The user says nine things before the model replies, some of them rules."""
    said = []
    for number in range(messages // 10):
        rules = [f"always keep rule {number}.{nth}" for nth in range(4)]
        talk = ["ok", "yes", "ok", f"I think of {number}", "ok"]
        said += [{"role": "user", "content": text} for text in (*rules, *talk)]
        said.append({"role": "assistant", "content": f"reply {number}"})
    return [*said, {"role": "user", "content": "last"}]


def working(messages, *, calls=1):
    """Tool calls with small results, so many in one reply; each tenth asks the user."""
    said, number = [{"role": "user", "content": "Begin."}], 0
    while len(said) < messages:
        number += 1
        made = []
        for nth in range(calls):
            name = "bash" if number % 10 else "AskUserQuestion"
            arguments = json.dumps({"command": f"ls {number} {nth}"})
            function = {"name": name, "arguments": arguments}
            made.append(
                {
                    "id": f"c{number}_{nth}",
                    "type": "function",
                    "function": function,
                }
            )
        said.append({"role": "assistant", "content": None, "tool_calls": made})
        for call in made:
            text = f"gave {call['id']} " + "y" * 60
            said.append(
                {"role": "tool", "tool_call_id": call["id"], "content": text}
            )
    return said


def parallel(messages):
    """Four calls in each reply."""
    return working(messages, calls=4)


def request(format, said):
    """The request of a history in a wire format."""
    whole = {"model": "gpt-4.1", "messages": said}
    if format != "openai-chat":
        whole = convert(whole, format, format="openai-chat")
    return {**whole, "model": histories.MODEL[format]}


def calls_during(work):
    """How many functions are called, in Python and in C."""
    profile = Profile()
    profile.runcall(work)
    return sum(entry.callcount for entry in profile.getstats())


def cold(format, policy, said):
    """The calls for one message of a history that is seen for the first time."""
    session = Session(
        histories.MODEL[format], format=format, policy=policy, limits=LIMITS
    )
    asked = request(format, said)
    calls = calls_during(lambda: session.fit(asked))
    return calls / len(said)


def growth(format, policy, history):
    """How much more a message of a long history costs than one of a short history."""
    few, many = (
        cold(format, policy, history(messages)) for messages in (FEW, MANY)
    )
    return many / few


EVERY_WIRE = [
    (format, history)
    for format in sorted(histories.MODEL)
    for history in (chat, working)
]
TWO_WIRES = [
    (format, history)
    for format in ("anthropic", "openai-chat")
    for history in (speaking, parallel)
]
"""One that holds the results of a reply in one message, and one that does not."""


@pytest.mark.parametrize(("format", "history"), [*EVERY_WIRE, *TWO_WIRES])
def test_a_message_costs_the_same_however_many_there_are(format, history):
    assert growth(format, "default", history) < MOST_GROWTH


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"default"}))
@pytest.mark.parametrize("history", [chat, working])
def test_so_it_is_with_each_preset(name, history):
    assert growth("openai-chat", POLICIES[name], history) < MOST_GROWTH


@pytest.mark.parametrize("history", [chat, working])
def test_a_turn_costs_the_same_however_many_came_before(history):
    said, session = history(2_400), Session("gpt-4.1", limits=LIMITS)
    turns = [said[:stop] for stop in range(1, len(said), 2)]
    stages = [0, len(turns) // 3, len(turns) * 2 // 3, len(turns)]

    def all_of(some):
        for messages in some:
            session.fit({"model": "gpt-4.1", "messages": messages})

    costs = [
        calls_during(lambda some=turns[start:stop]: all_of(some))
        for start, stop in pairwise(stages)
    ]
    assert costs[2] < MOST_GROWTH * costs[1]


def test_a_session_opened_again_from_a_ledger_pays_each_message_once():
    def again(messages):
        store, said = MemoryStore(), chat(messages)
        asked = {"model": "gpt-4.1", "messages": said}
        Session("gpt-4.1", limits=LIMITS, store=store).fit(asked)
        session = Session("gpt-4.1", limits=LIMITS, store=store)
        return calls_during(lambda: session.fit(asked)) / messages

    assert again(MANY) < MOST_GROWTH * again(FEW)

"""A history that began without ullage, joined half-way, on each wire: every view is legal by both
readings of the rules, reasoning that was bound to what changed is gone, and no notice names a tool
that the request does not offer.
"""

import json
import re
from functools import lru_cache

import pytest

from lab.fuzz.bound import Bound
from lab.returned import problems
from tests import histories
from tests.histories import CUTS_ALWAYS, Call, Turn
from tests.second_reading import broken
from ullage import Limits, Session
from ullage.core.values.notices import pointers
from ullage.core.values.toolset import RECALL_TOOLS

POLICIES = (
    "default",
    "output_cache",
    "continuation",
    "three_layer",
    "multi_stage",
    "token_budget",
)
WITH_TOOLS = ("output_cache", "continuation")
"""The presets whose documents put their tools in every request."""
JOINS = 16
OUTPUT = "".join(f"{number}: what there is to see\n" for number in range(400))
SMALL = Limits(window_tokens=16_000)
SCHEMA = {"type": "object", "properties": {}}
KEYS = {
    "anthropic": "messages",
    "openai-chat": "messages",
    "openai-responses": "input",
    "gemini": "contents",
}
MODELS = {
    "anthropic": "claude-opus-5-5",
    "openai-chat": "gpt-5.6",
    "openai-responses": "gpt-6.2",
    "gemini": "gemini-3-pro",
}
"""Each binds reasoning as strictly as any on its wire does."""
TOOLS = {
    "anthropic": [{"name": "bash", "input_schema": SCHEMA}],
    "openai-chat": [
        {
            "type": "function",
            "function": {"name": "bash", "parameters": SCHEMA},
        }
    ],
    "openai-responses": [
        {"type": "function", "name": "bash", "parameters": SCHEMA}
    ],
    "gemini": [
        {"functionDeclarations": [{"name": "bash", "parameters": SCHEMA}]}
    ],
}
NONE = {
    "anthropic": {"tool_choice": {"type": "none"}},
    "openai-chat": {"tool_choice": "none"},
    "openai-responses": {"tool_choice": "none"},
    "gemini": {"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}},
}
NAMED = re.compile("|".join(rf"\b{name}\(" for name in RECALL_TOOLS))
every_format = pytest.mark.parametrize("format", KEYS)
ALWAYS = pytest.param(CUTS_ALWAYS, id="default with or without tools")
every_policy = pytest.mark.parametrize("policy", [*POLICIES, ALWAYS])


@lru_cache
def turns():
    """Steps with reasoning, one or two calls each, and now and then the user between."""
    each = []
    for number in range(24):
        calls = [
            Call("bash", f"{number}.py", f"{number}\n{OUTPUT}")
            for _ in range(1 + number % 2)
        ]
        asked = f"And part {number}?" if number and number % 6 == 0 else None
        each.append(
            Turn(
                user=asked,
                said=f"Step {number}.",
                calls=tuple(calls),
                thought=True,
            )
        )
    return each


def requests(format, first, **more):
    """The requests of the history from the one behind ``first`` turns on."""
    head = {"model": MODELS[format], "tools": TOOLS[format], **more}
    for count in range(first, len(turns()) + 1):
        messages = histories.wire(format, turns()[:count])
        yield histories.request(format, messages, **head)


def names(request):
    """The functions that a request offers."""
    return set(re.findall(r'"name": "(\w+)"', json.dumps(request["tools"])))


def seals(before):
    """The signatures of the thinking of the first turns."""
    return [f'"c2ln{number}"' for number in range(before)]


def legal(format, request, view):
    key = KEYS[format]
    wrong = [str(one) for one in problems(format, view, history=request[key])]
    return wrong == [] == sorted(broken(format, view))


def names_what_is_there(format, view):
    """Whether no message names a recall tool that the view does not offer."""
    offered = names(view)
    said = json.dumps(view[KEYS[format]])
    return {found[:-1] for found in NAMED.findall(said)} <= offered


@every_format
@every_policy
@pytest.mark.parametrize("recall", ["auto", True, False])
def test_every_view_after_joining_is_legal_and_names_what_is_there(
    format, policy, recall
):
    session = Session(
        MODELS[format], policy=policy, limits=SMALL, recall=recall
    )
    for request in requests(format, JOINS):
        view = session.fit(request)
        assert legal(format, request, view)
        added = names(view) - names(request)
        assert recall is not False or not added
        assert recall == "auto" or bool(added) == recall
        assert names_what_is_there(format, view)
    assert session.events
    assert bool(added) == (
        recall is True or (recall == "auto" and policy != "token_budget")
    )


@every_policy
@pytest.mark.parametrize("recall", [True, False])
@pytest.mark.parametrize("window_tokens", [16_000, 400_000])
def test_thinking_that_was_bound_goes_with_every_edit_and_with_added_tools(
    policy, recall, window_tokens
):
    limits = Limits(window_tokens=window_tokens)
    session = Session(
        MODELS["anthropic"], policy=policy, limits=limits, recall=recall
    )
    provider, sent = Bound(), histories.wire("anthropic", [])
    for turn in range(
        JOINS
    ):  # what the model thought before, with nothing left out
        whole = histories.wire("anthropic", turns()[: turn + 1])
        provider.judge(sent, whole[len(sent) :], grew=True)
        sent = whole
    each = [*requests("anthropic", JOINS)]
    for request, after in zip(each, [*each[1:], each[-1]], strict=True):
        view = session.fit(request)
        reply = after["messages"][len(request["messages"]) :]
        assert not provider.judge(view["messages"], reply, grew=False)
        assert not (
            recall
            and re.search("|".join(seals(JOINS)), json.dumps(view["messages"]))
        )


@every_format
@every_policy
def test_a_request_that_lets_the_model_call_nothing_gets_no_tools(
    format, policy
):
    session = Session(MODELS[format], policy=policy, limits=SMALL)
    for request in requests(format, JOINS, **NONE[format]):
        view = session.fit(request)
        assert legal(format, request, view)
        assert view["tools"] == request["tools"]
        assert names_what_is_there(format, view)


@every_format
@every_policy
def test_a_session_per_request_without_a_store_names_only_what_opens(
    format, policy
):
    for request in [*requests(format, 1)][::3]:
        session = Session(MODELS[format], policy=policy, limits=SMALL)
        view = session.fit(request)
        assert legal(format, request, view)
        assert names_what_is_there(format, view)
        if policy in WITH_TOOLS:
            assert names(view) > names(request)
        for ref in {
            pointer.ref for pointer in pointers(json.dumps(view[KEYS[format]]))
        }:
            asked = {"tool_call_id": ref, "ref_id": ref}
            assert not session.answer(session.tools[0].name, asked).is_error

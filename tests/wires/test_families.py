"""Families of reasoning: one conversation each, before and after its old results were pruned."""

import json
from typing import NamedTuple

import pytest

from lab.returned import problems, problems_of
from tests import histories
from ullage import Limits, Session
from ullage.wires import FORMATS

STEPS = 8
MODELS = {
    "preserved thinking": (
        "claude-opus-5-5",
        "claude-fable-5-1",
        "claude-haiku-5.5",
        "claude-6",
    ),
    "kept thinking": (
        "claude-sonnet-5-20260101",
        "claude-opus-4-5-20251101",
        "claude-sonnet-4-6",
    ),
    "stripped thinking": (
        "claude-sonnet-4-5-20250929",
        "claude-3-5-sonnet-20241022",
        "",
    ),
    "bound reasoning items": ("gpt-6.2-astra", "openai/gpt-6.2", "gpt-7"),
    "reasoning of all turns": ("gpt-5.6", "gpt-6-luna", "gpt-6.1-sol"),
    "reasoning of the current turn": ("gpt-5.5", "gpt-5", "o4-mini"),
    "no reasoning": ("gpt-4.1", "openai/o3"),
    "signed calls, compatible": ("gemini-3-pro",),
    "reasoning in the open": ("deepseek-v4", "qwen3-coder"),
    "signed calls": ("models/gemini-3-pro", "gemini-4-argon"),
    "optional signatures": ("gemini-2.5-pro",),
    "thinking in the open": ("qwen3:8b", "gpt-oss:120b-cloud", "gemma3"),
    "reasoning of other makers": (
        "us.amazon.nova-premier-v1:0",
        "us.deepseek.r1-v1:0",
    ),
}
ANY_RUN = ("leading run", "trailing run", "all")
NOT_THE_NEWEST = ("leading run", "all")
"""A16 would let a run at the end go. The newest reply's thinking is in it, and A13 asks for that
as long as any stays."""


class Claim(NamedTuple):
    """What a family's rules come to: what may go, and what must stay while its turn is open."""

    name: str
    format: str
    may_drop: tuple = ANY_RUN
    open_turn: str = "may go"
    rule: str = "free"
    needs_ids_gone: bool = False
    verified: bool = True


MANUAL = "must stay with manual thinking"
CLAIMS = [
    Claim("preserved thinking", "anthropic", NOT_THE_NEWEST, MANUAL, "strip"),
    Claim("kept thinking", "anthropic", NOT_THE_NEWEST, MANUAL),
    Claim("stripped thinking", "anthropic", NOT_THE_NEWEST, MANUAL),
    Claim("bound reasoning items", "openai-responses", needs_ids_gone=True),
    Claim("reasoning of all turns", "openai-responses", needs_ids_gone=True),
    Claim(
        "reasoning of the current turn",
        "openai-responses",
        needs_ids_gone=True,
    ),
    Claim("no reasoning", "openai-chat"),
    Claim(
        "signed calls, compatible",
        "openai-chat",
        ("leading run",),
        "must stay",
    ),
    Claim(
        "reasoning in the open",
        "openai-chat",
        ("leading run",),
        "must stay",
        verified=False,
    ),
    Claim("signed calls", "gemini", ("leading run",), "must stay"),
    Claim("optional signatures", "gemini"),
    Claim("thinking in the open", "ollama"),
    Claim(
        "preserved thinking",
        "bedrock-converse",
        NOT_THE_NEWEST,
        MANUAL,
        "strip",
    ),
    Claim("kept thinking", "bedrock-converse", NOT_THE_NEWEST, MANUAL),
    Claim("stripped thinking", "bedrock-converse", NOT_THE_NEWEST, MANUAL),
    Claim("reasoning of other makers", "bedrock-converse", verified=False),
]
families = pytest.mark.parametrize(
    "family", CLAIMS, ids=lambda row: f"{row.name} {row.format}"
)


@families
def test_a_model_is_of_its_family(family):
    assert {FORMATS[family.format].family(m) for m in MODELS[family.name]} == {
        family.name
    }


def test_every_family_is_claimed():
    known = {
        (wire.name, row.name)
        for wire in FORMATS.values()
        for row in wire.families
    }
    assert known == {(claim.format, claim.name) for claim in CLAIMS}


def conversation(family):
    """An agent reads eight files of some length, and thinks before each call."""
    call = histories.Call(
        "read_file", "a.py", "the same line again\n" * 150, False, 0
    )
    return wire(
        family, [histories.Turn(None, "", (call,), thought=True)] * STEPS
    )


def wire(family, turns, start=0):
    """The turns as a model of the family answers them."""
    messages = histories.wire(family.format, turns, start=start)
    if family.format != "openai-chat":
        return messages
    return [
        opened(family, message, start + at)
        if message["role"] == "assistant"
        else message
        for at, message in enumerate(messages)
    ]


def opened(family, message, number):
    """What a reply of such a model carries in Chat Completions."""
    if family.name == "reasoning in the open":
        return message | {"reasoning_content": f"hm {number}"}
    calls = message.get("tool_calls")
    if family.name == "no reasoning" or not calls:
        return message
    signed = calls[0] | {
        "extra_content": {"google": {"thought_signature": f"s{number}"}}
    }
    return message | {"tool_calls": [signed, *calls[1:]]}


REASONING = (
    "signature",
    "encrypted_content",
    "thoughtSignature",
    "thought_signature",
    "reasoning_content",
    "thinking",
)


def reasoning(messages):
    """Each piece of reasoning with the number of its message."""
    found = []
    for number, message in enumerate(messages):
        for thing in dicts(message):
            found += [
                (number, thing[key]) for key in REASONING if key in thing
            ]
    return found


def dicts(value):
    if isinstance(value, dict):
        yield value
    if isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from dicts(inner)


def pruned(family, messages, **more):
    """The messages as they are sent in a small window."""
    model = MODELS[family.name][0]
    session = Session(
        model,
        policy=histories.PRUNING,
        limits=Limits(window_tokens=8_000),
        format=family.format,
    )
    key = {"openai-responses": "input", "gemini": "contents"}.get(
        family.format, "messages"
    )
    named = {FORMATS[family.format].model_field: model}
    request = {**histories.request(family.format, messages), **named, **more}
    return session.fit(request)[key]


@families
def test_what_stands_behind_an_edit_is_left_out_where_it_is_refused_and_else_as_it_was(
    family,
):
    messages = conversation(family)
    view = pruned(family, messages)
    edited = [
        at
        for at, pair in enumerate(zip(messages, view, strict=True))
        if edit_in(*pair)
    ]
    assert edited
    assert problems_of(family.format, view) == []
    before, after = reasoning(messages), reasoning(view)
    assert bool(before) == (family.name != "no reasoning")
    rule = FORMATS[family.format].reasoning({}, MODELS[family.name][0])
    assert rule == family.rule
    if rule == "strip":
        assert (
            before[-1][0] > edited[0]
        )  # so the newest goes, and none may stay without it (A13)
        assert after == []
    else:
        assert after == before


def thinking(family, setting):
    """How a request sets the thinking of a Claude."""
    asked = {"thinking": setting}
    is_on_bedrock = family.format == "bedrock-converse"
    return {"additionalModelRequestFields": asked} if is_on_bedrock else asked


def by_hand(family):
    return thinking(family, {"type": "enabled", "budget_tokens": 1_024})


def edit_in(before, after):
    """Whether a message was edited in anything but its reasoning."""
    return json.dumps(bare(before)) != json.dumps(bare(after))


def is_thought(block):
    return block.get("type") == "thinking" or "reasoningContent" in block


def bare(message):
    if isinstance(message.get("content"), list):
        kept = [b for b in message["content"] if not is_thought(b)]
        return {**message, "content": kept}
    return message


def test_manual_thinking_freezes_the_open_turn_of_a_bound_family_and_of_no_other():
    """What the engine does then is in `tests.properties.test_reasoning`."""
    for family in CLAIMS:
        asked = by_hand(family)
        rule = FORMATS[family.format].reasoning(asked, MODELS[family.name][0])
        assert (rule == "frozen") == (family.name == "preserved thinking")


def test_a_server_that_was_asked_to_drop_gets_everything():
    asked = {
        "type": "adaptive",
        "block_binding": {"prefix_mismatch_behavior": "drop_block"},
    }
    for family in [row for row in CLAIMS if row.rule == "strip"]:
        messages = conversation(family)
        view = pruned(family, messages, **thinking(family, asked))
        assert reasoning(view) == reasoning(messages)


# -- what may be left out, by the rules of the wire ---------------------------------------

LOOK = (histories.Call("read_file", "a.py", "the same line again\n"),)
CLOSED = [
    histories.Turn(None, "", LOOK, thought=True),
    histories.Turn(None, "It is the cache.", (), thought=True),
    histories.Turn("Are you sure?", "", LOOK, thought=True),
    histories.Turn(None, "I am.", (), thought=True),
]
OPEN = [
    histories.Turn("Then mend it.", "", LOOK, thought=True),
    histories.Turn(None, "", LOOK, thought=True),
]
RUNS = {
    "leading run": (True, False),
    "trailing run": (False, True),
    "all": (True, True),
}
"""Of the closed turns and of the open one: whether their reasoning is in the run."""


def broken(family, sent, returned, **more):
    """The rules that a request breaks, of a conversation that was returned in full."""
    named = {FORMATS[family.format].model_field: MODELS[family.name][0]}
    request = histories.request(family.format, sent, **named, **more)
    return {p.rule for p in problems(family.format, request, history=returned)}


def without_reasoning(messages):
    """The messages as a client writes them that leaves out their reasoning and what is beside."""
    return [
        thoughtless(message)
        for message in messages
        if message.get("type") != "reasoning"
    ]


def thoughtless(message):
    if message.get("type"):  # an item of Responses, made with reasoning or not
        return {key: value for key, value in message.items() if key != "id"}
    if message.get("parts"):
        said = [part for part in message["parts"] if not part.get("thought")]
        return {
            **message,
            "parts": [without(part, "thoughtSignature") for part in said],
        }
    if message.get("tool_calls"):
        calls = [
            without(call, "extra_content") for call in message["tool_calls"]
        ]
        message = {**message, "tool_calls": calls}
    return without(without(bare(message), "reasoning_content"), "thinking")


def without(thing, name):
    return {key: value for key, value in thing.items() if key != name}


@pytest.mark.parametrize("run", RUNS)
@families
def test_a_run_may_be_dropped_exactly_where_no_rule_asks_for_it(family, run):
    parts = wire(family, CLOSED), wire(family, OPEN, start=len(CLOSED))
    whole = [*parts[0], *parts[1]]
    sent = []
    for messages, gone in zip(parts, RUNS[run], strict=True):
        sent += without_reasoning(messages) if gone else messages
        assert bool(reasoning(messages)) == (family.name != "no reasoning")
        assert reasoning(without_reasoning(messages)) == []
    assert broken(family, whole, whole) == set()
    legal = broken(family, sent, whole) == set()
    assert legal == (run in family.may_drop) or not family.verified


@families
def test_an_open_turn_keeps_its_reasoning_exactly_where_a_rule_asks_for_it(
    family,
):
    turn = wire(family, OPEN)
    sent = without_reasoning(turn)
    manual = by_hand(family)
    assert broken(family, turn, turn, **manual) == set()
    must = [bool(broken(family, sent, turn, **more)) for more in ({}, manual)]
    asked = {
        "may go": [False, False],
        "must stay with manual thinking": [False, True],
        "must stay": [True, True],
    }
    assert must == asked[family.open_turn] or not family.verified


@families
def test_what_stands_beside_reasoning_may_not_stay_as_it_was_without_it(
    family,
):
    turn = wire(family, OPEN)
    sent = [message for message in turn if message.get("type") != "reasoning"]
    assert broken(family, sent, turn) == (
        {"R4"} if family.needs_ids_gone else set()
    )

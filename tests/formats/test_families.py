"""Families of reasoning: one conversation each, before and after its old results were pruned."""

import json

import pytest

from tests import histories
from ullage import Limits, Session
from ullage.formats import FORMATS
from ullage.formats.families import FAMILIES, family_of
from ullage.formats.rules import problems_of

STEPS = 8
MODELS = {
    "preserved thinking": ("claude-opus-5-5", "claude-fable-5-1", "claude-haiku-5.5", "claude-6"),
    "kept thinking": ("claude-sonnet-5-20260101", "claude-opus-4-5-20251101", "claude-sonnet-4-6"),
    "stripped thinking": ("claude-sonnet-4-5-20250929", "claude-3-5-sonnet-20241022", ""),
    "bound reasoning items": ("gpt-6.2-astra", "openai/gpt-6.2", "gpt-7"),
    "reasoning of all turns": ("gpt-5.6", "gpt-6-luna", "gpt-6.1-sol"),
    "reasoning of the current turn": ("gpt-5.5", "gpt-5", "o4-mini"),
    "no reasoning": ("gpt-4.1", "openai/o3"),
    "signed calls, compatible": ("gemini-3-pro",),
    "reasoning in the open": ("deepseek-v4", "qwen3-coder"),
    "signed calls": ("models/gemini-3-pro", "gemini-4-argon"),
    "optional signatures": ("gemini-2.5-pro",),
}
families = pytest.mark.parametrize("family", FAMILIES, ids=lambda row: row.name)


@families
def test_a_model_is_of_its_family(family):
    assert {family_of(family.format, m).name for m in MODELS[family.name]} == {family.name}


def conversation(family):
    """An agent reads eight files of some length, and thinks before each call."""
    call = histories.Call("read_file", "a.py", "the same line again\n" * 150, False, 0)
    turns = [histories.Turn(None, "", (call,), thought=True) for _ in range(STEPS)]
    messages = histories.wire(family.format, turns)
    if family.format == "openai-chat":
        for number, message in enumerate(messages):
            if message.get("tool_calls"):
                message |= opened(family, number)
    return messages


def opened(family, number):
    """What a reply of such a model carries in Chat Completions."""
    if family.name == "no reasoning":
        return {}
    if family.name == "reasoning in the open":
        return {"reasoning_content": f"hm {number}"}
    return {"reasoning_details": [{"signature": f"s{number}"}]}


REASONING = ("signature", "encrypted_content", "thoughtSignature", "reasoning_content")


def reasoning(messages):
    """Each piece of reasoning with the number of its message."""
    found = []
    for number, message in enumerate(messages):
        for thing in dicts(message):
            found += [(number, thing[key]) for key in REASONING if key in thing]
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
        model, policy=histories.EAGER, limits=Limits(window_tokens=8_000), format=family.format
    )
    key = {"openai-responses": "input", "gemini": "contents"}.get(family.format, "messages")
    request = {**histories.request(family.format, messages), "model": model, **more}
    return session.fit(request)[key]


@families
def test_what_stands_behind_an_edit_is_left_out_where_it_is_refused_and_else_as_it_was(family):
    messages = conversation(family)
    view = pruned(family, messages)
    edited = [at for at, pair in enumerate(zip(messages, view, strict=True)) if edit_in(*pair)]
    assert edited
    assert problems_of(family.format, view) == []
    before, after = reasoning(messages), reasoning(view)
    assert bool(before) == (family.name != "no reasoning")
    if family.edit_before == "refused":
        assert family.rule == "strip"
        assert before[-1][0] > edited[0]  # so the newest goes, and none may stay without it (A13)
        assert after == []
    else:
        assert family.rule == "free"
        assert after == before


def edit_in(before, after):
    """Whether a message was edited in anything but its reasoning."""
    return json.dumps(bare(before)) != json.dumps(bare(after))


def bare(message):
    if isinstance(message.get("content"), list):
        kept = [b for b in message["content"] if b.get("type") != "thinking"]
        return {**message, "content": kept}
    return message


def test_manual_thinking_freezes_the_open_turn_of_a_bound_family_and_of_no_other():
    """What the engine does then is in `tests.properties.test_reasoning`."""
    manual = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    for family in FAMILIES:
        rule = FORMATS[family.format].reasoning(manual, MODELS[family.name][0])
        assert (rule == "frozen") == (family.name == "preserved thinking")


def test_a_server_that_was_asked_to_drop_gets_everything():
    (family,) = [row for row in FAMILIES if row.edit_before == "refused"]
    messages = conversation(family)
    asked = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    view = pruned(family, messages, thinking=asked)
    assert reasoning(view) == reasoning(messages)


@families
def test_only_runs_may_be_dropped_and_nothing_unverified_looks_verified(family):
    assert family.may_drop
    assert family.verified == (family.name != "reasoning in the open")
    assert (family.edit_before == "none") == (family.bound_to != "everything before it")

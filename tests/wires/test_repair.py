"""Repairing: tables of before and after, and what holds for every broken history."""

import copy
import json

import pytest
from anthropic.types import ToolUseBlock
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from openai.types.chat import ChatCompletionMessage

from tests import histories
from tests.second_reading import broken
from ullage import Session
from ullage.core.errors import FormatError
from ullage.core.history import canon
from ullage.core.history.pairing import INTERRUPTED
from ullage.core.history.raw import field
from ullage.core.values.notices import pointers
from ullage.wires import FORMATS
from ullage.wires.repair.apply import repair
from ullage.wires.rules.checker import problems, problems_of

ALL = ("anthropic", "gemini", "ollama", "openai-chat", "openai-responses")
MOVED = "[ullage: a result that came late now stands behind its call]"
EMPTY = "[ullage: this message was empty]"
BEGIN = "[ullage: what stood before was not kept]"
GO_ON = "[ullage: go on]"


def repaired(format, messages):
    """What comes of a history, without what a longer one would go on from."""
    return replace(repair(FORMATS[format], messages), closed=None)


# A shorthand that a person can read. One word a message, or a block of it:
#
#     u:hi          the user says hi               x:interrupted  the result we make up
#     a:hi          the assistant says hi          -x:out         x's result was set aside
#     a?x?y         the assistant calls x and y    s:hi           the system says hi
#     x=out         the result of x                a/ a/x         a server tool's call, its result
#
# Messages are parted by spaces, the blocks of one message of Anthropic by plus signs.


def aside(what, text):
    ref = canon.ref_of(text)
    return (
        f"[ullage: {what} was set aside: ref={ref} ({len(text):,} characters)]"
    )


LINES = {
    "MOVED": MOVED,
    "EMPTY": EMPTY,
    "BEGIN": BEGIN,
    "GO_ON": GO_ON,
    "STRAY": aside("a tool result without its call", "out"),
    "SECOND": aside("a second result of one call", "two"),
    "VOID": "[ullage: a tool result without its call was set aside: it was empty]",
}
VALUES = {"INTERRUPTED": INTERRUPTED, "_": "", "SP": "  "}


def said(word):
    return VALUES.get(word, LINES.get(word, word))


def chat(text):
    messages = []
    for word in text.split():
        role = {"u": "user", "a": "assistant", "s": "system"}.get(word[0])
        if "=" in word:
            name, _, out = word.partition("=")
            messages.append(
                {"role": "tool", "tool_call_id": name, "content": said(out)}
            )
        elif role and word[1:2] == ":":
            messages.append(
                {
                    "role": role,
                    "content": None if word == "a:" else said(word[2:]),
                }
            )
        else:
            calls = [chat_call(name) for name in word.split("?")[1:]]
            messages.append(
                {"role": "assistant", "content": None, "tool_calls": calls}
            )
    return messages


def chat_call(name):
    return {
        "id": name,
        "type": "function",
        "function": {"name": "bash", "arguments": "{}"},
    }


def ollama(text):
    """Calls in capitals have no id; ``=out`` is a result that names neither call nor tool."""
    messages = []
    for word in text.split():
        role = {"u": "user", "a": "assistant", "s": "system"}.get(word[0])
        if "=" in word:
            name, _, out = word.partition("=")
            tool = (
                {"tool_name": name if name.isupper() else "bash"}
                if name
                else {}
            )
            named = {
                **tool,
                **({"tool_call_id": name} if name.islower() else {}),
            }
            messages.append({"role": "tool", **named, "content": said(out)})
        elif role and word[1:2] == ":":
            messages.append({"role": role, "content": said(word[2:])})
        else:
            calls = [ollama_call(name) for name in word.split("?")[1:]]
            messages.append(
                {"role": "assistant", "content": "", "tool_calls": calls}
            )
    return messages


def ollama_call(name):
    body = {"name": name if name.isupper() else "bash", "arguments": {}}
    return (
        {"function": body}
        if name.isupper()
        else {"id": name, "function": body}
    )


def anthropic(text):
    messages = []
    for word in text.split():
        if word[1:2] == "~":
            role = {"u": "user", "a": "assistant", "s": "system"}[word[0]]
            messages.append({"role": role, "content": said(word[2:])})
            continue
        blocks = [
            block
            for part in word.split("+")
            for block in anthropic_blocks(part)
        ]
        messages.append({"role": role_of(word), "content": blocks})
    return messages


def role_of(word):
    if "=" in word.split("+")[0]:
        return "user"
    return {"u": "user", "a": "assistant", "s": "system"}[word[0]]


def anthropic_blocks(part):
    if "=" in part:
        name, _, out = part.partition("=")
        block = {
            "type": "tool_result",
            "tool_use_id": name,
            "content": said(out),
        }
        return [{**block, "is_error": True} if out == "INTERRUPTED" else block]
    if part[1:2] == ":":
        return [{"type": "text", "text": said(part[2:])}]
    if part[1:2] == "/":
        name = part[2:]
        if name[:1] == "/":
            return [
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": name[1:],
                    "content": [],
                }
            ]
        return [
            {
                "type": "server_tool_use",
                "id": name,
                "name": "web_search",
                "input": {},
            }
        ]
    names = part.split("?")[1:]
    return [
        {"type": "tool_use", "id": name, "name": "bash", "input": {}}
        for name in names
    ]


def gemini(text):
    contents = []
    for word in text.split():
        role = (
            "user"
            if "=" in word.split("+")[0]
            else {"u": "user", "a": "model"}[word[0]]
        )
        parts = [
            part for piece in word.split("+") for part in gemini_parts(piece)
        ]
        contents.append({"role": role, "parts": parts})
    return contents


def gemini_parts(piece):
    if "=" in piece:
        name, _, out = piece.partition("=")
        response = {"error" if out == "INTERRUPTED" else "output": said(out)}
        return [
            {"functionResponse": gemini_body(name, {"response": response})}
        ]
    if piece[1:2] == ":":
        return [{"text": said(piece[2:])}]
    names = piece.split("?")[1:]
    return [
        {"functionCall": gemini_body(name, {"args": {}})} for name in names
    ]


def gemini_body(name, more):
    """A call or response of the tool bash with this id, or of the tool so named without one."""
    if name.isupper():
        return {"name": name, **more}
    return {"id": name, "name": "bash", **more}


CHAT = {
    "an interrupted call": ("u:do a?x", "u:do a?x x=INTERRUPTED"),
    "and the user went on": (
        "u:do a?x u:stop",
        "u:do a?x x=INTERRUPTED u:stop",
    ),
    "one of two": (
        "u:do a?x?y y=out u:on",
        "u:do a?x?y x=INTERRUPTED y=out u:on",
    ),
    "a late result": (
        "u:do a?x u:hm a:well x=out",
        "u:do a?x x=out u:hm a:well u:MOVED",
    ),
    "a late result takes the place of ours": (
        "u:do a?x x=INTERRUPTED u:hm a:well x=out",
        "u:do a?x x=out u:hm a:well u:MOVED",
    ),
    "user text between": (
        "u:do a?x?y x=out u:hm y=two",
        "u:do a?x?y x=out y=two u:hm",
    ),
    "out of order is legal": (
        "u:do a?x?y y=two x=out",
        "u:do a?x?y y=two x=out",
    ),
    "a result without a call": ("u:do x=out a:ok", "u:do u:STRAY a:ok"),
    "an empty one": ("u:do x=_ a:ok", "u:do u:VOID a:ok"),
    "before its call": ("u:do x=out a?x", "u:do u:STRAY a?x x=INTERRUPTED"),
    "a stray among results": (
        "u:do a?x z=out x=one",
        "u:do a?x x=one u:STRAY",
    ),
    "two results": ("u:do a?x x=one x=two", "u:do a?x x=one u:SECOND"),
    "two calls, one id": (
        "u:do a?x?x x=one x=two",
        "u:do a?x?x_2 x=one x_2=two",
    ),
    "an id again in a later turn": (
        "u:do a?x x=out a?x x=two",
        "u:do a?x x=out a?x x=two",
    ),
    "an empty reply": ("u:do a: u:well", "u:do u:well"),
    "empty texts are legal": ("u:_ a:_ u:SP", "u:_ a:_ u:SP"),
    "nothing": ("", "u:BEGIN"),
}
OLLAMA = {
    **{
        name: row
        for name, row in CHAT.items()
        if name not in ("two calls, one id", "nothing")
    },
    "an empty reply": ("u:do a: u:well", "u:do a: u:well"),
    "two calls, one id, are legal": (
        "u:do a?x?x x=one x=two",
        "u:do a?x?x x=one x=two",
    ),
    "nothing is legal": ("", ""),
    "without ids, by tool and order": (
        "u:do a?F?G?F F=1 F=2",
        "u:do a?F?G?F F=1 G=INTERRUPTED F=2",
    ),
    "without a word, by order": (
        "u:do a?F?x =one =two",
        "u:do a?F?x =one =two",
    ),
    "without a word, and one is missing": (
        "u:do a?F?G =one",
        "u:do a?F?G F=one G=INTERRUPTED",
    ),
    "late, without an id": (
        "u:do a?F u:hm a:well F=out",
        "u:do a?F F=out u:hm a:well u:MOVED",
    ),
    "late, and without a word": ("u:do a?F u:hm =out", "u:do a?F F=out u:hm"),
    "too late, without a word": (
        "u:do a?F u:hm a:well =out",
        "u:do a?F F=INTERRUPTED u:hm a:well u:STRAY",
    ),
    "one too many, without a word": (
        "u:do a?F =one =out",
        "u:do a?F =one u:STRAY",
    ),
}
ANTHROPIC = {
    "an interrupted call": ("u:do a?x", "u:do a?x x=INTERRUPTED"),
    "and the user went on": (
        "u:do a?x u:stop",
        "u:do a?x x=INTERRUPTED u:stop",
    ),
    "one of two": (
        "u:do a?x?y y=out+u:on",
        "u:do a?x?y x=INTERRUPTED+y=out+u:on",
    ),
    "a late result": (
        "u:do a?x u:hm a:well x=out",
        "u:do a?x x=out u:hm a:well u:MOVED",
    ),
    "late, with words": (
        "u:do a?x a:well x=out+u:so",
        "u:do a?x x=out a:well u:so",
    ),
    "a late result takes the place of ours": (
        "u:do a?x x=INTERRUPTED u:hm a:well x=out",
        "u:do a?x x=out u:hm a:well u:MOVED",
    ),
    "results behind text": ("u:do a?x u:hm+x=out", "u:do a?x x=out+u:hm"),
    "results in two messages": (
        "u:do a?x?y x=out y=two",
        "u:do a?x?y x=out+y=two",
    ),
    "user text between": ("u:do a?x u:hm x=out", "u:do a?x x=out u:hm"),
    "out of order is legal": (
        "u:do a?x?y y=two+x=out",
        "u:do a?x?y y=two+x=out",
    ),
    "calls in messages of their own": (
        "u:do a?x a?y x=out+y=two",
        "u:do a?x x=out a?y y=two",
    ),
    "a result without a call": ("u:do x=out a:ok", "u:do u:STRAY a:ok"),
    "a stray among results": (
        "u:do a?x z=out+x=one",
        "u:do a?x x=one+u:STRAY",
    ),
    "two results": ("u:do a?x x=one+x=two", "u:do a?x x=one+u:SECOND"),
    "two results, apart": (
        "u:do a?x x=one a:ok x=two",
        "u:do a?x x=one a:ok u:SECOND",
    ),
    "two calls, one id": (
        "u:do a?x?x x=one+x=two",
        "u:do a?x?x_2 x=one+x_2=two",
    ),
    "an id again in a later turn": (
        "u:do a?x x=out a?x x=two",
        "u:do a?x x=out a?x_2 x_2=two",
    ),
    "an empty reply": ("u:do a~_ u:well", "u:do u:well"),
    "an empty reply at the end is legal": ("u:do a~_", "u:do a~_"),
    "empty text of the user": ("u:do a:ok u~SP", "u:do a:ok u~EMPTY"),
    "an empty text among others": (
        "u:do a:_+a:ok u:SP+u:on",
        "u:do a:ok u:on",
    ),
    "the assistant begins": ("a:hi u:do", "u~BEGIN a:hi u:do"),
    "the system begins": ("s:be u:do a:ok", "u:do s:be a:ok"),
    "a system message parts a call from its result": (
        "u:do a?x s:be x=out a:ok",
        "u:do a?x x=out s:be a:ok",
    ),
    "roles in a row are legal": (
        "u:do u:it a:well a:ok",
        "u:do u:it a:well a:ok",
    ),
    "a paused turn is legal": ("u:do a/s a//s+a:ok", "u:do a/s a//s+a:ok"),
    "nothing": ("", "u~BEGIN"),
}


GEMINI = {
    "an interrupted call": ("u:do a?x", "u:do a?x x=INTERRUPTED"),
    "and the user went on": (
        "u:do a?x u:stop",
        "u:do a?x x=INTERRUPTED u:stop",
    ),
    "one of two": (
        "u:do a?x?y y=out+u:on",
        "u:do a?x?y x=INTERRUPTED+y=out u:on",
    ),
    "a late result": (
        "u:do a?x u:hm a:well x=out",
        "u:do a?x x=out u:hm a:well u:MOVED",
    ),
    "a late result takes the place of ours": (
        "u:do a?x x=INTERRUPTED u:hm a:well x=out",
        "u:do a?x x=out u:hm a:well u:MOVED",
    ),
    "results in two contents": (
        "u:do a?x?y x=out y=two",
        "u:do a?x?y x=out+y=two",
    ),
    "user text between": ("u:do a?x u:hm x=out", "u:do a?x x=out u:hm"),
    "out of order is legal": (
        "u:do a?x?y y=two+x=out",
        "u:do a?x?y y=two+x=out",
    ),
    "without ids, by tool and order": (
        "u:do a?F?G?F F=1+F=2",
        "u:do a?F?G?F F=1+G=INTERRUPTED+F=2",
    ),
    "late, without an id": (
        "u:do a?F u:hm a:well F=out",
        "u:do a?F F=out u:hm a:well u:MOVED",
    ),
    "a result without a call": (
        "u:do x=out a:ok u:so",
        "u:do u:STRAY a:ok u:so",
    ),
    "a stray among results": (
        "u:do a?x Z=out+x=one",
        "u:do a?x x=one u:STRAY",
    ),
    "two results": ("u:do a?x x=one+x=two", "u:do a?x x=one u:SECOND"),
    "the model calls twice in a row": (
        "u:do a:ok a?x x=out",
        "u:do a:ok u:GO_ON a?x x=out",
    ),
    "calls in contents of their own": (
        "u:do a?x a?y x=out+y=two",
        "u:do a?x x=out a?y y=two",
    ),
    "the model begins with a call": ("a?x x=out", "u:BEGIN a?x x=out"),
    "the model speaks last": ("u:do a:ok", "u:do a:ok u:GO_ON"),
    "empty texts": ("u:_ a:_ a:_+a:ok u:_+u:on", "u:EMPTY a:ok u:on"),
    "nothing": ("", "u:BEGIN"),
}


def responses(text):
    """As above; r is reasoning, and an item may carry an id: a.1:hi, r.2, a.3?x."""
    return [item for word in text.split() for item in responses_items(word)]


def responses_items(word):
    if "=" in word:
        name, _, out = word.partition("=")
        yield {
            "type": "function_call_output",
            "call_id": name,
            "output": said(out),
        }
    elif word[0] == "r":
        yield {"type": "reasoning", "summary": [], **id_of(word, "rs")}
    elif "?" in word:
        for name in word.split("?")[1:]:
            call = {
                "type": "function_call",
                "call_id": name,
                "name": "bash",
                "arguments": "{}",
            }
            yield call | id_of(word, "fc")
    else:
        role = {"u": "user", "a": "assistant", "s": "developer"}[word[0]]
        yield {
            "role": role,
            "content": said(word.partition(":")[2]),
            **id_of(word, "msg"),
        }


def id_of(word, prefix):
    return {"id": f"{prefix}_{word[2]}"} if word[1:2] == "." else {}


RESPONSES = {
    "an interrupted call": ("u:do a?x", "u:do a?x x=INTERRUPTED"),
    "and the user went on": (
        "u:do a?x u:stop",
        "u:do a?x x=INTERRUPTED u:stop",
    ),
    "one of two": (
        "u:do a?x?y y=out u:on",
        "u:do a?x x=INTERRUPTED a?y y=out u:on",
    ),
    "the middle one of three": (
        "u:do a?x?y?z z=3 x=1",
        "u:do a?x x=1 a?y y=INTERRUPTED a?z z=3",
    ),
    "the model went on": ("u:do a?x a:ok", "u:do a?x x=INTERRUPTED a:ok"),
    "a late result": (
        "u:do a?x u:hm a:well x=out",
        "u:do a?x x=out u:hm a:well u:MOVED",
    ),
    "a late result takes the place of ours": (
        "u:do a?x x=INTERRUPTED u:hm a:well x=out",
        "u:do a?x x=out u:hm a:well u:MOVED",
    ),
    "user text between is legal": (
        "u:do a?x u:hm x=out",
        "u:do a?x u:hm x=out",
    ),
    "a result without a call": ("u:do x=out a:ok", "u:do u:STRAY a:ok"),
    "two results": ("u:do a?x x=one x=two", "u:do a?x x=one u:SECOND"),
    "two calls, one id": (
        "u:do a?x?x x=one x=two",
        "u:do a?x?x_2 x=one x_2=two",
    ),
    "an id again in a later turn": (
        "u:do a?x x=out a?x x=two",
        "u:do a?x x=out a?x x=two",
    ),
    "reasoning at the end": ("u:do r.1", "u:do"),
    "reasoning before the user": (
        "u:do r.1 u:stop a.1:ok",
        "u:do u:stop a:ok",
    ),
    "reasoning with its call": (
        "u:do r.1 a.1?x x=out",
        "u:do r.1 a.1?x x=out",
    ),
    "a result within a reply": (
        "u:do a?x u:on r.1 x=out a.1:ok",
        "u:do a?x x=out u:on u:MOVED a:ok",
    ),
    "an item twice": ("u:do a.1:ok u:on a.1:ok", "u:do a.1:ok u:on a:ok"),
    "reasoning twice": (
        "u:do r.1 a.1:ok r.1 a.2:so",
        "u:do r.1 a.1:ok a.2:so",
    ),
    "empty texts are legal": ("u:_ a:_ u:SP", "u:_ a:_ u:SP"),
    "nothing": ("", "u:BEGIN"),
}


@pytest.mark.parametrize(
    ("before", "after"), RESPONSES.values(), ids=RESPONSES
)
def test_openai_responses(before, after):
    check("openai-responses", responses(before), responses(after))


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("custom_tool_call", {"name": "bash", "input": ""}),
        ("shell_call", {"action": {"commands": ["ls"]}}),
        (
            "local_shell_call",
            {"action": {"type": "exec", "command": ["ls"], "env": {}}},
        ),
        (
            "apply_patch_call",
            {"operation": {"type": "delete_file", "path": "a"}},
        ),
        (
            "computer_call",
            {"action": {"type": "wait"}, "pending_safety_checks": []},
        ),
    ],
)
def test_every_kind_of_call_in_responses_can_be_interrupted(kind, more):
    items = [*responses("u:do r.1"), {"type": kind, "call_id": "x", **more}]
    mended = repaired("openai-responses", items)
    assert problems_of("openai-responses", mended.messages) == []
    assert (
        repaired("openai-responses", mended.messages).messages
        is mended.messages
    )
    if kind == "computer_call":  # its output would have to be a picture
        assert json.loads(mended.outputs[0].text)["call_id"] == "x"
    else:
        assert INTERRUPTED in json.dumps(mended.messages[-1])


def test_reasoning_that_leaves_is_kept_and_only_its_event_says_where():
    mended = repaired("openai-responses", responses("u:do r.1"))
    (output,), (event,) = mended.outputs, mended.events
    assert json.loads(output.text) == responses("r.1")[0]
    assert event.ref == output.ref


def test_a_new_id_is_not_that_of_an_asynchronous_call_that_waits():
    waiting = {**responses("a?x_2")[0], "async": True}
    items = [
        *responses("u:do"),
        waiting,
        *responses("u:on a?x a?x x=out u:so"),
    ]
    mended = repaired("openai-responses", items)
    assert problems_of("openai-responses", mended.messages) == []
    calls = [
        item["call_id"] for item in mended.messages if "arguments" in item
    ]
    assert calls == ["x_2", "x", "x_3"]


def test_an_id_is_free_once_the_output_of_its_asynchronous_call_stands():
    late = {**responses("a?x")[0], "async": True}
    items = [*responses("u:do"), late, *responses("u:on x=out a?x x=new u:so")]
    assert repaired("openai-responses", items).messages is items


def test_what_may_be_answered_elsewhere_is_left_alone():
    late = {**responses("a?x")[0], "async": True}
    for items in (
        [*responses("u:do"), late, *responses("u:on a:ok")],
        [*responses("u:do"), late, *responses("u:on a:ok x=out u:so")],
        [
            *responses("u:do"),
            {"type": "item_reference", "id": "fc_1"},
            *responses("z=out"),
        ],
        [
            *responses("u:do"),
            {"type": "function_call_output", "output": "out"},
        ],
    ):
        assert problems_of("openai-responses", items) == []
        assert repaired("openai-responses", items).messages is items


def test_a_trigger_that_is_not_the_last_is_left_out():
    trigger = {"type": "compaction_trigger"}
    assert repaired("openai-responses", [trigger]).messages == [trigger]
    assert list(
        repaired("openai-responses", [trigger, *responses("u:hi")]).messages
    ) == responses("u:hi")


@pytest.mark.parametrize(("before", "after"), GEMINI.values(), ids=GEMINI)
def test_gemini(before, after):
    check("gemini", gemini(before), gemini(after))


@pytest.mark.parametrize(("before", "after"), OLLAMA.values(), ids=OLLAMA)
def test_ollama(before, after):
    check("ollama", ollama(before), ollama(after))


@pytest.mark.parametrize(("before", "after"), CHAT.values(), ids=CHAT)
def test_openai_chat(before, after):
    check("openai-chat", chat(before), chat(after))


@pytest.mark.parametrize(
    ("before", "after"), ANTHROPIC.values(), ids=ANTHROPIC
)
def test_anthropic(before, after):
    check("anthropic", anthropic(before), anthropic(after))


def check(format, before, after):
    assert problems_of(format, after) == [], "the table itself is wrong"
    mended = repaired(format, before)
    assert list(mended.messages) == after
    assert bool(mended.events) == (before != after)


def test_the_result_of_an_interrupted_call_is_told_as_an_error_where_the_wire_can():
    (block,) = repaired("anthropic", anthropic("u:do a?x")).messages[-1][
        "content"
    ]
    assert block["is_error"] is True


def test_an_interrupted_call_of_a_server_tool_is_set_aside():
    mended = repaired("anthropic", anthropic("u:do a/s+a:hm u:go a//t+a:ok"))
    assert problems_of("anthropic", mended.messages) == []
    asked, gave = mended.outputs
    assert json.loads(asked.text)["id"] == "s"
    assert json.loads(gave.text)["tool_use_id"] == "t"
    assert [p.ref for p in pointers(json.dumps(mended.messages))] == [
        asked.ref,
        gave.ref,
    ]


def test_media_in_a_result_goes_into_a_message_of_the_user_where_results_are_text():
    image = {
        "type": "image_url",
        "image_url": {"url": "https://example.org/cat.png"},
    }
    messages = chat("u:do a?x x=one a:ok")
    messages[2]["content"] = [{"type": "text", "text": "a cat"}, image]
    mended = repaired("openai-chat", messages).messages
    assert problems_of("openai-chat", mended) == []
    assert mended[2]["content"] == [{"type": "text", "text": "a cat"}]
    assert mended[3]["role"] == "user"
    assert mended[3]["content"][1] is image


@pytest.mark.parametrize("bad", ["", "a b", "x" * 65, "über"])
def test_odd_ids_become_others_in_call_and_result(bad):
    for format, write in (("anthropic", anthropic), ("openai-chat", chat)):
        messages = json.loads(
            json.dumps(write("u:do a?ID ID=out")).replace('"ID"', f'"{bad}"')
        )
        mended = repaired(format, messages).messages
        assert problems_of(format, mended) == []
        assert "out" in json.dumps(mended[2])
        assert INTERRUPTED not in json.dumps(mended)


SIGNED = "call_1__thought__" + "Cq8DAdHtim9+/=" * 90
"""An id in which a gateway carries the signature of a call, 1,277 characters."""


@pytest.mark.parametrize(
    ("format", "model", "is_kept"),
    [
        ("openai-chat", "gemini/gemini-3-pro", True),
        ("openai-chat", "my-deployment", True),
        ("openai-chat", "openai/gpt-oss-120b", True),
        ("openai-chat", "gpt-4.1", False),
        ("openai-chat", "azure/o4-mini", False),
        ("openai-responses", "gemini-3-pro", True),
        ("openai-responses", "gpt-5.6", False),
        ("anthropic", "gemini-3-pro", True),
        ("anthropic", "claude-opus-4-8", False),
        (
            "anthropic",
            "bedrock/us.anthropic.claude-opus-4-5-20251101-v1:0",
            False,
        ),
    ],
)
def test_an_id_is_rewritten_only_where_it_is_refused(format, model, is_kept):
    write = {
        "anthropic": anthropic,
        "openai-chat": chat,
        "openai-responses": responses,
    }[format]
    messages = json.loads(
        json.dumps(write("u:do a?ID ID=out")).replace('"ID"', f'"{SIGNED}"')
    )
    mended = repair(FORMATS[format], messages, model=model).messages
    assert (mended is messages) == is_kept
    assert (SIGNED in json.dumps(mended)) == is_kept
    key = FORMATS[format].key
    head = {"max_tokens": 9, "tools": []} if format == "anthropic" else {}
    broken = {
        problem.rule
        for problem in problems({key: mended, "model": model, **head}, format)
    }
    assert not broken & {"A8", "C6"}


def test_an_id_is_rewritten_again_where_the_model_changes():
    """What a history became for one model is not taken over for another."""
    messages = json.loads(
        json.dumps(chat("u:do a?ID ID=out a:ok u:more a?y y=out")).replace(
            '"ID"', f'"{SIGNED}"'
        )
    )
    wire = FORMATS["openai-chat"]
    first = repair(wire, messages, model="gemini-3-pro")
    assert first.messages is messages
    other = repair(wire, messages, [first], model="gpt-4.1")
    assert other.messages == repair(wire, messages, model="gpt-4.1").messages
    assert SIGNED not in json.dumps(other.messages)


@pytest.mark.parametrize("given", [None, "", '{"a": 1}', "not json", [1], 5])
def test_arguments_become_what_the_wire_asks_for(given):
    spoken, called = anthropic("u:do a?x x=out"), chat("u:do a?x x=out")
    spoken[1]["content"][0]["input"] = given
    called[1]["tool_calls"][0]["function"]["arguments"] = given
    assert (
        problems_of("anthropic", repaired("anthropic", spoken).messages) == []
    )
    assert (
        problems_of("openai-chat", repaired("openai-chat", called).messages)
        == []
    )


def test_what_is_set_aside_is_kept_whole_block_by_block():
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "A"},
    }
    text = {"type": "text", "text": "caf\u00e9 \ud800"}
    stray = {
        "type": "tool_result",
        "tool_use_id": "z",
        "content": [text, image],
    }
    mended = repaired("anthropic", [{"role": "user", "content": [stray]}])
    assert [output.kind for output in mended.outputs] == ["text", "block"]
    assert mended.outputs[0].text == text["text"]
    assert json.loads(mended.outputs[1].text) == image
    named = [
        pointer.ref
        for pointer in pointers(mended.messages[0]["content"][0]["text"])
    ]
    assert named == [output.ref for output in mended.outputs]


def test_events_tell_the_place_and_hold_no_content():
    mended = repaired("anthropic", anthropic("u:do a?x u:hm a?y z=swordfish"))
    assert [(e.kind, e.where, e.why) for e in mended.events] == [
        ("repaired", "message 2, bash", "a call had no result"),
        ("repaired", "message 4, bash", "a call had no result"),
        (
            "repaired",
            "message 5",
            "a tool result without its call was set aside",
        ),
    ]
    assert mended.events[-1].ref == canon.ref_of("swordfish")


def test_objects_of_an_sdk_are_mended_too_and_not_changed():
    block = ToolUseBlock(id="x", name="bash", input={}, type="tool_use")
    reply = {"role": "assistant", "content": [block, block]}
    mended = repaired(
        "anthropic", [{"role": "user", "content": "do"}, reply]
    ).messages
    assert problems_of("anthropic", mended) == []
    assert mended[1]["content"][0] is block
    assert [field(b, "id") for b in mended[1]["content"]] == ["x", "x_2"]
    assert block.id == "x"
    fields = {
        "role": "assistant",
        "tool_calls": [chat_call("y"), chat_call("y")],
    }
    said = ChatCompletionMessage.model_validate(fields)
    mended = repaired("openai-chat", [said]).messages
    assert problems_of("openai-chat", mended) == []
    assert [message["tool_call_id"] for message in mended[1:]] == ["y", "y_2"]
    assert [call.id for call in said.tool_calls] == ["y", "y"]
    one = ChatCompletionMessage.model_validate(
        {"role": "assistant", "content": "hi"}
    )
    assert repaired("openai-chat", [one]).messages[0] is one


def test_only_the_first_call_of_a_step_keeps_a_signature():
    contents = gemini("u:do a?x?y x=out+y=two")
    for part in contents[1]["parts"]:
        part["thoughtSignature"] = "c2ln"
    first, second = repaired("gemini", contents).messages[1]["parts"]
    assert first is contents[1]["parts"][0]
    assert second == {"functionCall": contents[1]["parts"][1]["functionCall"]}


@pytest.mark.parametrize("alone", ["do", [{"text": "do"}], {"text": "do"}])
def test_contents_in_the_sdks_short_forms_stay_as_they_are(alone):
    call = {"functionCall": {"id": "x", "name": "bash", "args": {}}}
    assert repaired("gemini", [alone]).messages[0] is alone
    mended = repaired("gemini", [alone, call]).messages
    assert mended[:2] == [alone, call]
    assert problems_of("gemini", mended) == []


def test_gemini_objects_of_the_sdk_are_mended_too():
    types = pytest.importorskip("google.genai.types")
    calls = [
        types.FunctionCall(id=name, name="bash", args={}) for name in "xy"
    ]
    asked = types.Content(
        role="model", parts=[types.Part(function_call=c) for c in calls]
    )
    answer = types.FunctionResponse(
        id="y", name="bash", response={"output": "two"}
    )
    given = types.Content(
        role="user", parts=[types.Part(function_response=answer)]
    )
    raws = [
        "do",
        asked,
        given,
        types.Content(role="user", parts=[types.Part(text="on")]),
    ]
    mended = repaired("gemini", raws).messages
    assert problems_of("gemini", mended) == []
    assert (mended[0], mended[1], mended[3]) == (raws[0], raws[1], raws[3])
    assert (
        types.Content.model_validate(mended[2]).parts[1].function_response
        == answer
    )
    assert len(given.parts) == 1


@pytest.mark.parametrize("format", ALL)
@pytest.mark.parametrize(
    "raw", [None, 5, "text", [], {}, {"role": []}, {"role": "user"}]
)
def test_what_does_not_parse_is_left_to_the_parser(format, raw):
    first = {"role": "user", "content": "hi"}
    try:
        FORMATS[format].parse(raw, "messages[1]")
    except FormatError:
        assert repaired(format, [first, raw]).messages[1] is raw


# What holds for every history


@st.composite
def legal(draw, format):
    turns, reuse = draw(histories.histories), draw(st.booleans())
    messages = histories.wire(format, turns, reuse_ids=reuse)
    return (
        cleaned(format, messages)
        if problems_of(format, messages)
        else messages
    )


def cleaned(format, messages):
    """Legal whatever the generator drew (blank texts of the user among them)."""
    return list(repaired(format, messages).messages)


def break_up(data, format, messages):
    """Break a history as interrupted agents, replays and stores do."""
    messages = copy.deepcopy(messages)
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(messages) - 1))
        match data.draw(st.sampled_from(WAYS)):
            case "delete" if len(messages) > 1:
                del messages[at]
            case "duplicate":
                to = data.draw(st.integers(0, len(messages)))
                messages.insert(to, copy.deepcopy(messages[at]))
            case "swap":
                other = data.draw(st.integers(0, len(messages) - 1))
                messages[at], messages[other] = messages[other], messages[at]
            case "cut" if len(messages) > 1:
                del messages[at or 1 :]
            case "say":
                messages.insert(at, histories.user(format, "and then?"))
            case "empty":
                messages[at] = emptied(
                    messages[at], data.draw(st.sampled_from(("", " \n")))
                )
            case "inside":
                inside(data, messages, at)
    return messages


WAYS = ("delete", "duplicate", "swap", "cut", "say", "empty", "inside")


def emptied(message, blank):
    if "parts" in message:
        parts = message["parts"]
        return {
            **message,
            "parts": [
                p | ({"text": ""} if "text" in p else {}) for p in parts
            ],
        }
    content = message.get("content")
    if message.get("role") == "tool" or content is None:
        return message
    if isinstance(content, str):
        return {**message, "content": blank}
    return {
        **message,
        "content": [
            b | ({"text": blank} if "text" in b else {}) for b in content
        ],
    }


def inside(data, messages, at):
    """Delete, double or move a block or call of a message to another message."""
    held = ("tool_calls", "parts", "content")
    field = next(
        (name for name in held if messages[at].get(name) is not None), ""
    )
    blocks = messages[at].get(field)
    if not isinstance(blocks, list) or not blocks:
        return
    number = data.draw(st.integers(0, len(blocks) - 1))
    way = data.draw(st.sampled_from(("delete", "double", "move")))
    if (
        way == "double" or "thoughtSignature" in blocks[number]
    ):  # G7 is the caller's
        blocks.append(copy.deepcopy(blocks[number]))
        return
    block = blocks.pop(number)
    same = [m for m in messages if m.get("role") == messages[at]["role"]]
    others = [m[field] for m in same if isinstance(m.get(field), list)]
    if way == "move" and others:
        others[data.draw(st.integers(0, len(others) - 1))].insert(0, block)


formats = st.sampled_from(ALL)


@given(formats, st.data())
def test_a_legal_history_comes_back_as_it_is(format, data):
    messages = histories.wire(format, data.draw(histories.histories))
    mended = repaired(format, messages)
    if not problems_of(format, messages):
        assert mended.messages is messages
        assert mended.events == mended.outputs == ()


@given(formats, st.data())
def test_a_broken_history_is_made_legal_and_stays_so(format, data):
    messages = break_up(data, format, data.draw(legal(format)))
    before = copy.deepcopy(messages)
    mended = repaired(format, messages)
    assert problems_of(format, mended.messages) == []
    assert messages == before, "what is given is never changed"
    assert repaired(format, copy.deepcopy(messages)) == mended, (
        "the same every time"
    )
    again = repaired(format, mended.messages)
    assert again.messages is mended.messages
    assert again.events == again.outputs == ()
    if problems_of(format, messages):
        assert mended.events
    elif (
        format != "openai-responses"
    ):  # there more is legal than is left as it is
        assert mended.messages is messages


@given(formats, st.data())
def test_no_result_and_no_text_is_lost(format, data):
    """Every text of a result is in the view or set aside; every other text is in the view."""
    messages = break_up(data, format, data.draw(legal(format)))
    mended = repaired(format, messages)
    kept = {output.text for output in mended.outputs}
    for output in mended.outputs:
        kept.update(
            texts(json.loads(output.text)) if output.kind == "block" else ()
        )
    shown = set(texts(list(mended.messages)))
    for text in texts(messages):
        assert not text.strip() or text in shown | kept


def texts(value):
    if isinstance(value, list):
        return [text for item in value for text in texts(item)]
    if isinstance(value, dict):
        names = ("text", "content", "output", "result", "error")
        held = [value[key] for key in names if isinstance(value.get(key), str)]
        return held + [text for item in value.values() for text in texts(item)]
    return []


@given(formats, st.data())
def test_what_was_mended_once_stays_so_as_the_history_grows(format, data):
    """At every place where a request is sent; only a late result takes our own one's place."""
    messages = break_up(data, format, data.draw(legal(format)))
    whole = repaired(format, messages)
    late = any(event.why == "a result came late" for event in whole.events)
    for length in range(1, len(messages)):
        if speaks(messages[length - 1]) or not speaks(messages[length]):
            continue  # no request was sent here
        part = repaired(format, messages[:length]).messages
        pairs = list(zip(part, whole.messages, strict=False))
        assert len(pairs) == len(part)
        changed = [old for old, new in pairs if old != new]
        assert all(INTERRUPTED in json.dumps(old) for old in changed)
        assert late or not changed


def speaks(message):
    """Whether this is the model's."""
    if "role" in message:
        return message["role"] in ("assistant", "model")
    return not message["type"].endswith("_output")


def test_a_branch_in_which_the_model_does_not_speak_where_it_spoke_is_mended_from_the_start():
    """What was closed there had a system message at its end, which a reply was to follow (A20)."""
    note, go = (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Go."},
    )
    use = {"type": "tool_use", "id": "t1", "name": "run", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}
    reply, answer = (
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    )
    known = repair(FORMATS["anthropic"], [go, note, reply])
    branch = [go, note, answer]
    found = repair(FORMATS["anthropic"], branch, [known])
    assert problems_of("anthropic", found.messages) == []
    assert found.messages == repair(FORMATS["anthropic"], branch).messages


# Any short history at all, in the shorthand of the tables: examples a person can read

WRITERS = {
    "ollama": (ollama, "u:hi a:ok a?x a?F a?x?F a?F?F x=1 F=2 =3 s:be"),
    "openai-chat": (chat, "u:hi a:ok a: a?x a?y a?x?y a?x?x x=1 y=2 s:be"),
    "openai-responses": (
        responses,
        "u:hi a.1:ok a.2:ok r.1 r.2 a?x a?y a?x?y x=1 y=2",
    ),
    "anthropic": (
        anthropic,
        "u:hi a:ok a?x a?x?y a:ok+a?y x=1 y=2 x=1+y=2 x=1+u:so u:hm+x=1 u~_ s:be a/s a//s+a:ok",
    ),
    "gemini": (
        gemini,
        "u:hi a:ok a?x a?x?y a?F a:ok+a?y x=1 y=2 F=3 x=1+y=2 x=1+u:so u:_",
    ),
}


@given(formats, st.data())
def test_whatever_a_short_history_holds(format, data):
    write, words = WRITERS[format]
    drawn = data.draw(st.lists(st.sampled_from(words.split()), max_size=8))
    messages = write(" ".join(drawn))
    whole = repaired(format, messages)
    assert problems_of(format, whole.messages) == []
    assert repaired(format, whole.messages).messages is whole.messages
    assert bool(whole.events) == (whole.messages is not messages)
    for length in range(1, len(messages)):
        if speaks(messages[length - 1]) or not speaks(messages[length]):
            continue
        pairs = zip(
            repaired(format, messages[:length]).messages,
            whole.messages,
            strict=False,
        )
        for old in [json.dumps(old) for old, new in pairs if old != new]:
            assert (
                INTERRUPTED in old or "server_tool_use" in old
            )  # that one may yet be answered


def test_a_call_beside_an_interrupted_one_of_the_computer_keeps_its_id():
    items = [
        {"type": "message", "role": "user", "content": "go"},
        {"type": "computer_call", "call_id": "c", "action": {"type": "wait"}},
        {
            "type": "function_call",
            "call_id": "f",
            "name": "run",
            "arguments": "{}",
        },
    ]
    made = repaired("openai-responses", items).messages
    assert [item.get("call_id") for item in made[-2:]] == ["f", "f"]
    assert problems_of("openai-responses", made) == []


@pytest.mark.parametrize(
    ("format", "message"),
    [
        ("anthropic", {"role": "assistant", "content": [{"type": ["text"]}]}),
        ("gemini", {"role": "user", "parts": [{"functionResponse": "ok"}]}),
    ],
)
def test_what_is_no_block_is_left_for_the_parser_to_refuse(format, message):
    user = FORMATS[format].user("go")
    assert message in repaired(format, [user, message, user]).messages


REMOVAL = {"tool": {"type": "tool_reference", "name": "read"}}


@pytest.mark.parametrize("answers", ["none", "whole", "twice", "parted"])
def test_what_the_system_says_on_converse_is_no_turn(answers):
    """It stands between the user and the reply, and nothing is put there (B2)."""
    use = {"toolUse": {"toolUseId": "t1", "name": "read", "input": {}}}
    answer = {"toolResult": {"toolUseId": "t1", "content": [{"text": "ok"}]}}
    result = {"role": "user", "content": [answer]}
    words = {"role": "user", "content": [{"text": "wait"}]}
    behind = {
        "none": [],
        "whole": [result],
        "twice": [result, copy.deepcopy(result)],
        "parted": [words, result],
    }
    head = [
        {"role": "user", "content": [{"text": "go"}]},
        {"role": "system", "content": [{"toolRemoval": REMOVAL}]},
    ]
    reply = {"role": "assistant", "content": [use]}
    request = {
        "modelId": "anthropic.claude-opus-4-8",
        "toolConfig": {"tools": [{"toolSpec": TOOL_SPEC}]},
        "inferenceConfig": {"maxTokens": 99},
        "messages": [*head, reply, *behind[answers]],
    }
    session = Session(
        request["modelId"], format="bedrock-converse", repair=True
    )
    view = session.fit(request)
    assert problems(view) == []
    assert broken("bedrock-converse", view) == set()
    assert view["messages"][:2] == head
    grown = [*request["messages"], {"role": "assistant", "content": [use]}]
    grown[-1]["content"] = [{"text": "Done."}]
    grown.append({"role": "system", "content": [{"toolRemoval": REMOVAL}]})
    later = session.fit({**request, "messages": [*grown, words]})
    assert problems(later) == []


TOOL_SPEC = {"name": "read", "inputSchema": {"json": {"type": "object"}}}


def test_a_message_of_converse_that_is_there_twice_has_one_cache_point():
    """Four are allowed (B10), and the caller's four stay where they are."""
    point = {"cachePoint": {"type": "default"}}
    messages = []
    for number in range(4):
        use = {"toolUseId": f"t{number}", "name": "read", "input": {}}
        answer = {"toolUseId": f"t{number}", "content": [{"text": "ok"}]}
        messages += [
            {"role": "user", "content": [{"text": f"Read {number}."}]},
            {"role": "assistant", "content": [{"toolUse": use}]},
            {"role": "user", "content": [{"toolResult": answer}, point]},
            {"role": "assistant", "content": [{"text": "It is read."}]},
        ]
    messages.append({"role": "user", "content": [{"text": "Go on."}]})
    assert repaired("bedrock-converse", messages).messages == messages
    twice = [*messages[:15], copy.deepcopy(messages[14]), *messages[15:]]
    mended = repaired("bedrock-converse", twice).messages
    request = {
        "modelId": "anthropic.claude-opus-4-8",
        "toolConfig": {"tools": [{"toolSpec": TOOL_SPEC}]},
        "messages": mended,
    }
    assert problems(request) == []
    assert json.dumps(mended).count("cachePoint") == 4

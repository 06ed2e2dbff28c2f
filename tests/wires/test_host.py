"""A framework's own messages: the same views as the wire they are sent on, in its own objects."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest

from ullage import Budget, ConfigError, Limits, Session, Usage
from ullage.core.values.messages import (
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from ullage.wires.host import Host

# ── a framework, in the style of those that keep typed parts ─────────────────────────────


@dataclass(frozen=True)
class Said:
    text: str


@dataclass(frozen=True)
class Thought:
    text: str
    signature: str


@dataclass(frozen=True)
class Called:
    id: str
    tool: str
    arguments: str


@dataclass(frozen=True)
class Returned:
    id: str
    tool: str
    content: str
    failed: bool = False


@dataclass(frozen=True)
class Turn:
    """A message of the framework: ``kind`` is ``"system"``, ``"request"`` or ``"response"``."""

    kind: str
    parts: tuple


ROLES = {"system": "system", "request": "user", "response": "assistant"}


def parse(turn):
    parts = [_part(part, at) for at, part in enumerate(turn.parts)]
    said = [part for part in parts if not isinstance(part, Reasoning)]
    return Message(
        ROLES[turn.kind],
        (*said, *(p for p in parts if isinstance(p, Reasoning))),
    )


def _part(part, at):
    match part:
        case Said(text):
            return Text(text, at)
        case Thought(text, signature):
            return Reasoning(text, at, bound=bool(signature))
        case Called(id, tool, arguments):
            return ToolCall(id, tool, arguments, at)
        case Returned(id, tool, content, failed):
            return ToolResult(id, (Text(content),), failed, at, tool)


def show(turn, message, changes, reasoning_dropped):
    parts = list(turn.parts)
    for number, _, text in changes:
        at = message.parts[number].at
        field = {Said: "text", Called: "arguments", Returned: "content"}[
            type(parts[at])
        ]
        parts[at] = replace(parts[at], **{field: text})
    if reasoning_dropped:
        parts = [part for part in parts if not isinstance(part, Thought)] or [
            Said("…")
        ]
    return replace(turn, parts=tuple(parts))


def user(text):
    return Turn("request", (Said(text),))


def host(**more):
    given = {"wire": "anthropic", "parse": parse, "show": show, "user": user}
    return Host("framework", **(given | more))


# ── the same conversation twice ──────────────────────────────────────────────────────────

MODEL = "claude-sonnet-6"
SMALL = Limits(window_tokens=16_000, output_reserve_tokens=1_000)
SYSTEM = "You look for faults."


def conversation(calls, signature="sealed"):
    turns = [user("Find the fault.")]
    for n in range(calls):
        thought = (
            (Thought(f"I look at {n}.", f"{signature}{n}"),)
            if signature
            else ()
        )
        call = Called(f"toolu_{n}", "read_file", f'{{"path":"src/{n}.py"}}')
        turns.append(Turn("response", (*thought, call)))
        content = "".join(
            f"{n}:{line} some words of a file that is read\n"
            for line in range(60)
        )
        turns.append(
            Turn("request", (Returned(f"toolu_{n}", "read_file", content),))
        )
    return turns


def native(turn):
    """A message as the Anthropic API has it."""
    return {
        "role": ROLES[turn.kind],
        "content": [_block(part) for part in turn.parts],
    }


def _block(part):
    import json

    match part:
        case Said(text):
            return {"type": "text", "text": text}
        case Thought(text, signature):
            return {
                "type": "thinking",
                "thinking": text,
                "signature": signature,
            }
        case Called(id, tool, arguments):
            return {
                "type": "tool_use",
                "id": id,
                "name": tool,
                "input": json.loads(arguments),
            }
        case Returned(id, _, content):
            return {
                "type": "tool_result",
                "tool_use_id": id,
                "content": content,
            }


def asked(messages, **more):
    return {
        "model": MODEL,
        "max_tokens": 500,
        "system": SYSTEM,
        "messages": messages,
        **more,
    }


def views(calls, format=None, **more):
    """Every view of a conversation as it grows, in the framework and in the wire."""
    turns = conversation(calls)
    ours = Session(
        MODEL, format=format or host(), limits=SMALL, recall=True, **more
    )
    wire = Session(
        MODEL, format="anthropic", limits=SMALL, recall=True, **more
    )
    for stop in range(1, len(turns) + 1, 2):
        shown = ours.fit(asked(turns[:stop]))
        yield (
            turns[:stop],
            shown,
            wire.fit(asked([native(turn) for turn in turns[:stop]])),
            ours,
        )


def test_a_hosts_views_are_those_of_the_wire_it_is_sent_on():
    batches = 0
    for _, shown, expected, session in views(60):
        assert _without_space(
            [native(turn) for turn in shown["messages"]]
        ) == _without_space(expected["messages"])
        assert shown["tools"] == expected["tools"]
        batches = sum(event.kind == "pruned" for event in session.events)
    assert batches


def _without_space(messages):
    """Names of what leaves nothing behind differ from host to host."""
    return [
        [
            block
            for block in message["content"]
            if block != {"type": "text", "text": "…"}
        ]
        for message in messages
    ]


def test_untouched_messages_are_the_frameworks_own_objects():
    for turns, shown, _, _ in views(30):
        assert all(isinstance(turn, Turn) for turn in shown["messages"])
        known = {id(turn) for turn in turns}
        edited = [turn for turn in shown["messages"] if id(turn) not in known]
        assert all(turn not in turns for turn in edited)
        assert shown["messages"][-1] is turns[-1]


def test_no_bound_reasoning_is_left_behind_a_prune():
    *_, (turns, shown, _, session) = views(60)
    assert any(event.kind == "pruned" for event in session.events)
    first = next(
        at
        for at, turn in enumerate(shown["messages"])
        if turn is not turns[at]
    )
    behind = shown["messages"][first:]
    left = [
        part
        for turn in behind[:-10]
        for part in turn.parts
        if isinstance(part, Thought)
    ]
    assert left == []


def test_the_rules_of_reasoning_are_those_of_the_wire_that_is_sent():
    """The same messages, sent where nothing is bound, keep what was thought."""
    left = {}
    for wire in ("anthropic", "openai-chat"):
        *_, (_, shown, _, session) = views(
            60, format=host(provider=lambda _, wire=wire: wire)
        )
        assert any(event.kind == "pruned" for event in session.events)
        parts = [part for turn in shown["messages"] for part in turn.parts]
        left[wire] = sum(isinstance(part, Thought) for part in parts)
    assert left["openai-chat"] > left["anthropic"]


def test_the_history_is_never_changed():
    turns = conversation(30)
    session = Session(MODEL, format=host(), limits=SMALL, recall=True)
    session.fit(asked(turns))
    assert "pruned" in {event.kind for event in session.events}
    assert turns == conversation(30)


def test_system_text_counts_whether_it_stands_beside_or_before_the_messages():
    leading = [Turn("system", (Said(SYSTEM * 50),)), user("Hello.")]
    chat = host(wire="openai-chat")
    before = Session("gpt-4.1", format=chat)
    view = before.fit({"model": "gpt-4.1", "messages": leading})
    assert view["messages"][0] is leading[0]
    beside = Session("gpt-4.1", format=chat)
    beside.fit(
        {"model": "gpt-4.1", "system": SYSTEM * 50, "messages": leading[1:]}
    )
    none = Session("gpt-4.1", format=chat)
    none.fit({"model": "gpt-4.1", "messages": leading[1:]})
    assert (
        before.window.tokens == beside.window.tokens > none.window.tokens + 100
    )


def test_the_last_request_of_a_budget_asks_in_the_frameworks_words():
    tools = [{"name": "read_file", "input_schema": {"type": "object"}}]
    session = Session(MODEL, format=host(), budget=Budget(tokens=50))
    session.fit(asked([user("Hello.")], tools=tools))
    session.observe({"usage": {"input_tokens": 60, "output_tokens": 1}})
    view = session.fit(asked([user("Hello.")], tools=tools))
    assert isinstance(view["messages"][-1], Turn)
    assert view["messages"][-1].parts[0].text != "Hello."
    assert view["tool_choice"] == {"type": "none"}


def test_a_late_result_without_its_call_is_handed_in_by_the_user():
    late = Turn("request", (Returned("toolu_1", "read_file", "the file"),))
    assert "the file" in host().apart(late).parts[0].text


def test_a_host_over_a_wire_that_is_none_is_refused():
    with pytest.raises(ConfigError, match="'claude' is not known"):
        host(wire="claude")


def test_a_restart_shows_the_same(tmp_path):
    turns = conversation(40)
    more = {"limits": SMALL, "recall": True, "store": tmp_path / "s.db"}
    first = Session(MODEL, format=host(), **more)
    for stop in range(1, len(turns) + 1, 2):
        view = first.fit(asked(turns[:stop]))
    first.close()
    assert "pruned" in {event.kind for event in first.events}
    with Session(MODEL, format=host(), **more) as again:
        assert again.fit(asked(turns)) == view


def test_a_frameworks_own_replies_report_what_they_came_to():
    def usage(reply):
        return (
            Usage(fresh_tokens=reply.tokens, output_tokens=1)
            if hasattr(reply, "tokens")
            else None
        )

    session = Session(MODEL, format=host(usage=usage))
    session.call(
        lambda **_: SimpleNamespace(tokens=60), **asked([user("Hello.")])
    )
    stream = session.call(
        lambda **_: iter([SimpleNamespace(), SimpleNamespace(tokens=70)]),
        **asked([user("Hello.")]),
    )
    assert len(list(stream)) == 2
    assert session.usage.input_tokens == 130

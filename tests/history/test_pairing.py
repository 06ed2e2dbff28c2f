"""Which call each result answers: by itself, and the same for everybody who asks."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wires.test_repair import (
    ALL,
    WRITERS,
    break_up,
    chat,
    formats,
    gemini,
    legal,
    responses,
)
from ullage import Session, convert
from ullage.core.errors import FormatError
from ullage.core.history.pairing import INTERRUPTED, Pairing
from ullage.core.history.transcript import Transcript
from ullage.core.values.messages import WHOLE, ToolCall, ToolResult
from ullage.tools.replay.readers._log import LoggedConversation
from ullage.tools.replay.readers._run import DamageReport
from ullage.wires import FORMATS, wire_named
from ullage.wires.rules.checker import check_of


def paired(*words, **more):
    """Calls ``?x`` and results ``=x``, a message each; a dot begins a reply. Who answers whom."""
    pairs = Pairing()
    for at, word in enumerate(words):
        if word == ".":
            pairs.begin_message(is_model=False)
            pairs.begin_message(is_model=True)
        elif word[0] == "?":
            pairs.add_call((at, 0), word[1:], **more)
        else:
            pairs.add_result(
                (at, 0),
                word[1:].rstrip("!"),
                is_placeholder=word.endswith("!"),
            )
    return pairs


@pytest.mark.parametrize(
    ("words", "answers"),
    [
        ("?x =x", {1: 0}),
        ("?x ?y =y =x", {2: 1, 3: 0}),
        ("?x =x . ?x =x", {1: 0, 4: 3}),
        ("?x . ?x =x", {3: 2}),
        ("?x . ?x =x =x", {3: 2, 4: 0}),
        ("=x ?x", {}),
        ("?x =x =x", {1: 0}),
        ("?x =x! . =x", {3: 0}),
        ("?x =x! =x!", {1: 0}),
        ("?x =x =x!", {1: 0}),
    ],
)
def test_a_result_answers_the_newest_open_call_of_its_id(words, answers):
    pairs = paired(*words.split())
    assert pairs.call_by_result == {
        (result, 0): (call, 0) for result, call in answers.items()
    }
    assert {
        call: result for result, call in pairs.call_by_result.items()
    } == pairs.result_by_call


def test_what_is_left_over_is_a_second_result_or_a_stray():
    pairs = paired(*["?x", "=x", "=x", "=z", "=x!"])
    assert pairs.seconds == {(2, 0): (0, 0), (4, 0): (0, 0)}
    assert pairs.strays == {(3, 0)}
    assert [pairs.of((at, 0)) for at in range(1, 5)] == [
        (0, 0),
        (0, 0),
        None,
        (0, 0),
    ]


def test_a_reference_may_stand_for_the_call_of_any_result():
    pairs = Pairing()
    pairs.add_result((0, 0), "x")
    pairs.add_reference()
    pairs.add_result((1, 0), "x")
    pairs.add_result((2, 0), "y", is_free=True)
    assert pairs.strays == {(0, 0)}


def test_what_waits_are_the_calls_of_the_newest_reply_and_late_ones():
    assert set(paired("?x", "?y", "=x").waiting) == {(1, 0)}
    assert set(paired("?x", ".").waiting) == set()
    assert set(paired("?x", ".", late=True).waiting) == {(0, 0)}
    assert set(paired("?x", ".", "?y", "=x").unanswered) == {(2, 0)}
    assert set(paired("?x", "=x!").waiting) == set(), (
        "a placeholder is a result"
    )


@pytest.mark.parametrize(
    ("format", "messages", "answers"),
    [
        (
            "openai-chat",
            chat("u:do a?x?x x=1 x=2"),
            {(2, 0): (1, 0), (3, 0): (1, 1)},
        ),
        (
            "openai-responses",
            responses("u:do a?x?x x=1 x=2"),
            {(3, 0): (1, 0), (4, 0): (2, 0)},
        ),
    ],
)
def test_calls_of_one_message_or_reply_are_answered_in_order(
    format, messages, answers
):
    assert (
        by_transcript(format, messages)
        == by_repair(format, messages)
        == answers
    )


def test_a_copy_is_fed_on_its_own():
    pairs = paired("?x", "?y")
    before, other = copy.deepcopy(pairs), pairs.copy()
    other.begin_message(is_model=True)
    other.add_result((2, 0), "x")
    other.add_call((3, 0), "x")
    other.add_reference()
    assert pairs == before
    assert other != before


# ── the same for everybody ───────────────────────────────────────────────────────────────


def places(format, messages):
    """(message, part) of everything parsed → (message, number) on the wire; None if it is bad."""
    found = {}
    for index, raw in enumerate(messages):
        message = FORMATS[format].parse(raw, "messages")
        for number, part in enumerate(message.parts):
            if isinstance(part, (ToolCall, ToolResult)):
                found[index, number] = (
                    index,
                    0 if part.at == WHOLE else part.at,
                )
    return found


def by_transcript(format, messages):
    transcript, at = Transcript(b""), places(format, messages)
    for raw in messages:
        transcript.append(FORMATS[format].parse(raw, "messages"), b"")
    pairs = transcript._pairs
    assert all(
        transcript.call_index(*result) == call[0]
        for result, call in pairs.call_by_result.items()
        if result in at
    )
    return {
        at[result]: at[call]
        for result, call in pairs.call_by_result.items()
        if result in at
    }


def by_repair(format, messages):
    return reading(format, messages).pairs.call_by_result


def reading(format, messages):
    found = wire_named(format).repair(messages, Pairing())
    for at in range(len(messages)):
        found.read(at)
    return found


def by_judge(format, messages):
    return judged(format, messages).call_by_result


def judged(format, messages):
    checker = check_of(format)
    for message in messages:
        checker.feed(message)
    return checker.pairs


def of_clients(format, messages, pairs):
    """The pairs of calls that a client's tools answer."""
    known = set(places(format, messages).values())
    return {
        result: call
        for result, call in pairs.items()
        if result in known and call in known
    }


def drawn(data, format):
    if data.draw(st.booleans()):
        return break_up(data, format, data.draw(legal(format)))
    write, words = WRITERS[format]
    return write(
        " ".join(
            data.draw(st.lists(st.sampled_from(words.split()), max_size=12))
        )
    )


@given(formats, st.data())
def test_transcript_and_repair_agree(format, data):
    messages = drawn(data, format)
    try:
        mine = by_transcript(format, messages)
    except FormatError:
        return
    assert mine == of_clients(format, messages, by_repair(format, messages))


@given(formats, st.data())
def test_the_judge_agrees_with_repair(format, data):
    """But for a call that stands twice in one message: for the judge the second is none."""
    messages = drawn(data, format)
    try:
        known = set(places(format, messages).values())
    except FormatError:
        return
    ours, theirs = reading(format, messages).pairs, judged(format, messages)
    calls, asked = (
        {*p.result_by_call, *p.unanswered} & known for p in (ours, theirs)
    )
    if calls == asked:
        assert of_clients(format, messages, ours.call_by_result) == of_clients(
            format, messages, theirs.call_by_result
        )
    else:
        assert asked < calls


@given(
    st.sampled_from(
        [name for name in ALL if name not in ("gemini", "ollama")]
    ),
    st.data(),
)
def test_conversion_gives_each_result_the_name_of_its_call(format, data):
    """Every call is of another tool, and Gemini names the tool in the result, as Ollama does."""
    messages = copy.deepcopy(drawn(data, format))
    calls = [call for message in messages for call in calls_in(message)]
    for number, call in enumerate(calls):
        call["name"] = f"tool_{number}"
    try:
        mine = by_transcript(format, messages)
    except FormatError:
        return
    transcript, named = Transcript(b""), []
    for index, raw in enumerate(messages):
        transcript.append(FORMATS[format].parse(raw, "messages"), b"")
        for number, part in enumerate(transcript.messages[index].parts):
            if isinstance(part, ToolResult):
                call = transcript.call_for(index, number)
                named.append(call.name if call else "")
    key = FORMATS[format].key
    other = convert(
        {"model": "gpt-4.1", key: messages},
        "gemini",
        format=format,
        lossy="describe",
    )
    parts = [
        part for content in other["contents"] for part in content["parts"]
    ]
    assert [
        p["functionResponse"]["name"] for p in parts if "functionResponse" in p
    ] == named
    assert len(mine) <= len(named)


def calls_in(message):
    if message.get("type") == "function_call":
        return [message]
    if isinstance(message.get("tool_calls"), list):
        return [call["function"] for call in message["tool_calls"]]
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if block.get("type") == "tool_use"]


def test_an_interrupted_call_and_another_with_its_id():
    """One result: the transcript, conversion, repair and the readers of logs are of one mind."""
    messages = chat("u:go a?c u:again a?c c=RESULT")
    for at, name in ((1, "alpha"), (3, "beta")):
        messages[at]["tool_calls"][0]["function"]["name"] = name
    request = {"model": "gpt-4.1", "messages": messages}
    session = Session("gpt-4.1", repair=True)
    view = session.fit(request)["messages"]
    assert [m["content"] for m in view if m["role"] == "tool"] == [
        INTERRUPTED,
        "RESULT",
    ]
    session = Session("gpt-4.1")
    session.fit(request)
    assert session.window.tool_of((4, 0, 0)) == "beta"
    parts = [
        p
        for c in convert(request, "gemini", lossy="describe")["contents"]
        for p in c["parts"]
    ]
    assert [
        p["functionResponse"]["name"] for p in parts if "functionResponse" in p
    ] == ["beta"]
    assert by_judge("openai-chat", messages) == {(4, 0): (3, 0)}
    history = LoggedConversation(
        "log", "openai-chat", DamageReport("log", lambda damage: None)
    )
    for message in messages[:4]:
        ids = [call["id"] for call in message.get("tool_calls", ())]
        history.reply(
            [message], dict.fromkeys(ids, "t")
        ) if ids else history.say(message)
    history.result("c", messages[4])
    results = [
        m["content"] for m in history.run().messages if m["role"] == "tool"
    ]
    assert results[-1] == "RESULT"
    assert len(results) == 2


def test_gemini_pairs_by_tool_and_order_where_one_side_has_no_id():
    messages = gemini("u:do a?F?F F=1+F=2")
    assert by_transcript("gemini", messages) == {
        (2, 0): (1, 0),
        (2, 1): (1, 1),
    }
    for one, other in (("a", ""), ("", "a")):
        messages = gemini("u:do a?F F=1")
        messages[1]["parts"][0]["functionCall"]["id"] = one
        messages[2]["parts"][0]["functionResponse"]["id"] = other
        assert (
            by_transcript("gemini", messages)
            == by_repair("gemini", messages)
            == {(2, 0): (1, 0)}
        )


def test_in_responses_an_id_is_that_of_one_type_of_call():
    items = [
        {
            "type": "function_call",
            "call_id": "c",
            "name": "run",
            "arguments": "{}",
        },
        {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}},
        {"type": "function_call_output", "call_id": "c", "output": "ran"},
        {"type": "shell_call_output", "call_id": "c", "output": []},
    ]
    answers = {(2, 0): (0, 0), (3, 0): (1, 0)}
    transcript = Transcript(b"")
    for item in items:
        transcript.append(FORMATS["openai-responses"].parse(item, "item"), b"")
    assert transcript._pairs.call_by_result == answers
    assert by_repair("openai-responses", items) == answers
    assert by_judge("openai-responses", items) == answers

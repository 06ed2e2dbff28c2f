"""What belongs together is never parted, also where it is no call that we know (F20, A18).

A tool of the server's and its result, a screen and what was done on it, a request for approval
and the answer: each stands whole in the view, or whole behind the account.
"""

import pytest

from tests import histories
from tests.wire import examples
from ullage import Limits, Session, problems
from ullage.core.history import canon
from ullage.core.history.transcript import Transcript
from ullage.wires import FORMATS


def seams(format, messages):
    """Where the history may be parted: before which messages."""
    wire = FORMATS[format]
    transcript = Transcript(canon.root(format, ""))
    for raw in messages:
        message = wire.parse(raw, "message")
        transcript.append(message, canon.digest_of(message))
    return [
        index for index in range(len(messages)) if transcript.may_split(index)
    ]


HOSTED = [
    e
    for e in examples("openai-responses")
    if e.type.endswith("_call") and len(e.messages) == 2
]


@pytest.mark.parametrize("example", HOSTED, ids=lambda example: example.type)
def test_a_hosted_tool_is_not_parted_from_its_output(example):
    user = {"role": "user", "content": "Go on."}
    assert seams("openai-responses", [user, *example.messages, user]) == [
        0,
        1,
        3,
    ]


def test_an_approval_is_not_parted_from_what_asked_for_it():
    asked = {
        "type": "mcp_approval_request",
        "id": "mcpr_1",
        "name": "x",
        "arguments": "{}",
    }
    given = {
        "type": "mcp_approval_response",
        "approval_request_id": "mcpr_1",
        "approve": True,
    }
    made = {
        "type": "mcp_call",
        "id": "mcp_1",
        "name": "x",
        "arguments": "{}",
        "output": "1",
    }
    assert seams("openai-responses", [asked, given, made]) == [0, 2]


def test_a_result_of_the_servers_may_come_a_message_later():
    """A mixed turn: the caller's tool is answered first, the server goes on after that."""
    searching = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {},
    }
    reading = {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "read_file",
        "input": {},
    }
    found = {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [],
    }
    read = {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": "all is well",
    }
    messages = [
        {"role": "user", "content": "Go on."},
        {"role": "assistant", "content": [searching, reading]},
        {"role": "user", "content": [read]},
        {
            "role": "assistant",
            "content": [found, {"type": "text", "text": "So."}],
        },
        {"role": "user", "content": "And then?"},
    ]
    assert seams("anthropic", messages) == [0, 1, 4]


def test_what_is_never_answered_does_not_block_every_later_cut():
    """F06: once the model has spoken again, it counts as closed."""
    user = {"role": "user", "content": "Never mind."}
    asked = {
        "type": "computer_call",
        "id": "cu_1",
        "call_id": "c1",
        "action": {},
    }
    said = {"role": "assistant", "content": "I see."}
    assert seams(
        "openai-responses", [user, asked, user, said, user, said]
    ) == [
        0,
        1,
        4,
        5,
    ]


@pytest.mark.parametrize("mixed", [False, True])
def test_a_long_run_on_a_screen_is_condensed_and_stays_legal(mixed):
    """Sixty clicks and their screenshots, alone or beside a function in the same step."""
    items = [histories.user("openai-responses", "Book a table.")]
    for number in range(60):
        click, shot = _click(number)
        call, output = _call(number)
        items += [click, call, output, shot] if mixed else [click, shot]
    session = Session(
        "gpt-5.6",
        limits=Limits(window_tokens=16_000),
        format="openai-responses",
    )
    for stop in range(1, len(items) + 1):
        request = histories.request("openai-responses", items[:stop])
        if not problems(request, "openai-responses"):
            view = session.fit(request)
            assert problems(view, "openai-responses") == []
    assert session.window.summaries
    assert view["input"][-1] is items[-1]


def _click(number):
    known = {
        "type": "computer_call",
        "id": f"cu_{number}",
        "call_id": f"click_{number}",
    }
    call = {
        **known,
        "action": {"type": "screenshot"},
        "pending_safety_checks": [],
    }
    shot = {"type": "computer_screenshot", "file_id": f"file_{number}"}
    answer = {
        "type": "computer_call_output",
        "call_id": f"click_{number}",
        "output": shot,
    }
    return {**call, "status": "completed"}, answer


def _call(number):
    call = {
        "type": "function_call",
        "call_id": f"call_{number}",
        "name": "note",
    }
    output = {
        "type": "function_call_output",
        "call_id": f"call_{number}",
        "output": "noted\n" * 90,
    }
    return {**call, "arguments": "{}"}, output


def test_a_second_output_after_its_call_was_condensed_is_handed_in_by_the_user():
    """R2: an output stands behind its call, and what is new is never left out."""
    messages = histories.wire(
        "openai-responses", [_read(number) for number in range(60)]
    )
    first = [
        {
            "type": "function_call",
            "call_id": "x",
            "name": "bash",
            "arguments": "{}",
        }
    ]
    first.append(
        {"type": "function_call_output", "call_id": "x", "output": "at once"}
    )
    second = {
        "type": "function_call_output",
        "call_id": "x",
        "output": "a minute later",
    }
    items = [*messages[:4], *first, *messages[4:91], second, *messages[91:]]
    session = Session(
        "gpt-5.6",
        limits=Limits(window_tokens=6_000),
        format="openai-responses",
    )
    handed_in = 0
    for stop in range(1, len(items) + 1):
        request = histories.request("openai-responses", items[:stop])
        if not problems(request, "openai-responses"):
            view = session.fit(request)["input"]
            assert (
                problems({**request, "input": view}, "openai-responses") == []
            )
            handed_in += any("a minute later" in str(item) for item in view)
            assert stop != 94 or "a minute later" in str(view)
    assert handed_in


def _read(number):
    call = histories.Call(
        "read_file", f"{number}.log", f"line {number}\n" * 300
    )
    return histories.Turn(said="Let me look.", calls=(call,))

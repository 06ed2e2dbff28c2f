"""Everything that happens is told, and nothing told holds content."""

from typing import get_args

import msgspec
import pytest

from ullage import Event, Limits, Session
from ullage.core.values.events import Kind

SECRET = "swordfish"


def history(outputs):
    messages = [{"role": "user", "content": f"The password is {SECRET}."}]
    for number in range(outputs):
        id, body = (
            f"call_{number}",
            {"name": "bash", "arguments": f'{{"n": "{SECRET}"}}'},
        )
        call = {"id": id, "type": "function", "function": body}
        messages.append(
            {"role": "assistant", "content": None, "tool_calls": [call]}
        )
        content = f"{number} {SECRET}\n" * 900
        messages.append(
            {"role": "tool", "tool_call_id": id, "content": content}
        )
    return messages


@pytest.fixture(scope="module")
def played():
    session = Session(
        "gpt-4.1", limits=Limits(window_tokens=6_000), recall=True
    )
    messages = history(12)
    for length in range(1, len(messages) + 1, 2):
        session.fit({"messages": messages[:length]})
    return session


def test_cuts_are_told_with_place_reason_figures_and_ref(played):
    told = [
        event
        for event in played.events
        if event.kind in ("truncated", "pruned")
    ]
    assert {event.kind for event in told} == {"truncated", "pruned"}
    for event in told:
        assert event.where.startswith(
            "message " if event.kind == "truncated" else "messages "
        )
        assert event.why
        assert event.tokens_before > event.tokens_after > 0
        assert played.store.get("", event.ref).text


def test_no_event_holds_content(played):
    assert SECRET not in msgspec.json.encode(played.events).decode()


def test_every_kind_told_is_a_kind_known(played):
    assert {event.kind for event in played.events} <= set(get_args(Kind))


def test_a_session_that_comes_late_says_so():
    late = Session("gpt-4.1")
    late.fit({"messages": history(1)})
    assert late.events[0].kind == "joined"
    assert "3 messages stood before" in late.events[0].why


def test_a_reply_is_told_with_its_tokens():
    session = Session("gpt-4.1")
    session.fit({"messages": history(0)})
    session.observe(
        {"usage": {"prompt_tokens": 1_234, "completion_tokens": 5}}
    )
    assert session.events[-1] == Event(
        kind="observed",
        where="reply",
        why="the provider reported 1,234 input tokens",
        tokens_after=1_234,
    )


CLAUDE = {"input_tokens": 9, "output_tokens": 1}
GPT = {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10}
DROPPED = {"type": "thinking_dropped", "path": "messages.1.content.0"}


@pytest.mark.parametrize(
    ("model", "reply", "told"),
    [
        (
            "claude-opus-5-5",
            {
                "id": "msg_1",
                "usage": CLAUDE,
                "input_transformations": [
                    {**DROPPED, "reason": "prefix_binding_mismatch"},
                    {**DROPPED, "reason": "prefix_binding_mismatch"},
                    {
                        **DROPPED,
                        "type": "thinking_mismatch_allowed",
                        "reason": "x",
                    },
                ],
            },
            "the provider left out 2 blocks of it: prefix_binding_mismatch (2)",
        ),
        (
            "gpt-6.2-astra",
            {
                "id": "resp_1",
                "usage": GPT,
                "input_transformations": [
                    {
                        "id": f"rs_{n}",
                        "type": "reasoning",
                        "action": "removed",
                        "reason": why,
                    }
                    for n, why in enumerate(
                        ("prefix_mismatch", "turn_boundary")
                    )
                ],
            },
            "the provider left out 2 blocks of it: prefix_mismatch (1), turn_boundary (1)",
        ),
    ],
)
def test_reasoning_that_the_provider_left_out_is_told_once(model, reply, told):
    session = Session(
        model, format="anthropic" if "claude" in model else "openai-responses"
    )
    key = "messages" if "claude" in model else "input"
    session.fit({"model": model, key: [{"role": "user", "content": "Go on."}]})
    for _ in range(
        2
    ):  # the same reply twice: as if a driver observed it again
        session.observe(reply)
    (event,) = [event for event in session.events if event.kind == "reasoning"]
    assert (event.where, event.why) == ("reply", told)


def test_an_event_goes_through_json(played):
    again = msgspec.json.decode(
        msgspec.json.encode(played.events), type=tuple[Event, ...]
    )
    assert again == played.events

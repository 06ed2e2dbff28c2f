"""OpenAI Chat Completions, read from the rules C1 to C12.

C9 only permits, so it is not here.
"""

import re
from typing import Any

Message = dict[str, Any]


def broken(request: dict[str, Any]) -> set[str]:
    """The ids of the rules this body breaks."""
    messages: list[Message] = request.get("messages") or []
    found = (
        pairs(messages)
        | calls(messages)
        | contents(messages)
        | signatures(request, messages)
    )
    if request.get("stream_options") and not request.get("stream"):
        found.add("C10")
    if re.match(r"gpt-6\.2", request.get("model") or ""):
        given = ("tools", "temperature", "top_p", "logprobs")
        found |= (
            {"C11"}
            if any(request.get(name) is not None for name in given)
            else set()
        )
    return found


def asked(message: Message) -> list[Message]:
    """The calls of an assistant message; the field means nothing in others."""
    return (
        list(message.get("tool_calls") or [])
        if message["role"] == "assistant"
        else []
    )


def pairs(messages: list[Message]) -> set[str]:
    """C1, C2 and C3.

    A result that never comes breaks C1. One that comes after another role breaks C3, which is
    C1 said again with its own number; a strict reader reports C1 there as well.
    A call has one result: a second one belongs to no call any more, and breaks C2. Of an id that
    is asked again while it is open each call needs one of its own; twice in a message never do.
    """
    found: set[str] = set()
    waiting: list[str] = []
    late: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            one = message["tool_call_id"]
            if one in waiting:
                waiting.remove(one)
            elif one in late:
                late.remove(one)
                found.add("C3")
            else:
                found.add("C2")
            continue
        late += waiting
        waiting = []
        for call in asked(message):
            if call["id"] in waiting:
                found.add("C1")
            else:
                waiting.append(call["id"])
    return found | ({"C1"} if waiting + late else set())


def calls(messages: list[Message]) -> set[str]:
    """C4, C6 and C7."""
    found: set[str] = set()
    for message in messages:
        if message["role"] == "assistant" and message.get("tool_calls") == []:
            found.add("C4")
        if message["role"] == "tool" and len(message["tool_call_id"]) > 64:
            found.add("C6")
        for call in asked(message):
            if len(call["id"]) > 64:
                found.add("C6")
            if "function" in call and not isinstance(
                call["function"].get("arguments"), str
            ):
                found.add("C7")
    return found


def contents(messages: list[Message]) -> set[str]:
    """C5 and C8. Every part of a `tool` message that is not text is read as C8."""
    found: set[str] = set()
    instead = ("tool_calls", "function_call", "refusal", "audio")
    for message in messages:
        content = message.get("content")
        if message["role"] == "assistant" and content is None:
            found |= (
                set() if any(message.get(name) for name in instead) else {"C5"}
            )
        if message["role"] == "tool" and isinstance(content, list):
            found |= (
                {"C8"}
                if any(part.get("type") != "text" for part in content)
                else set()
            )
    return found


def signatures(request: dict[str, Any], messages: list[Message]) -> set[str]:
    """C12, read like G7: Gemini 3 and later, the current turn, the first call of each step.

    The wider reading, "whatever came must be kept", needs the reply to compare with.
    """
    match = re.search(r"gemini-(\d+)", request.get("model") or "")
    if match is None or int(match[1]) < 3:
        return set()
    starts = [n for n, m in enumerate(messages) if m["role"] == "user"]
    for message in messages[starts[-1] if starts else 0 :]:
        for call in asked(message)[:1]:
            extra = (call.get("extra_content") or {}).get("google") or {}
            if not extra.get("thought_signature"):
                return {"C12"}
    return set()

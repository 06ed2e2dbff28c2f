"""Ways in which histories go wrong in the field, for sessions that mend (F04, F05, F10, F11)."""

from __future__ import annotations

import copy
from random import Random

from lab import reading

LONG_CHARS = 300
_ANSWERS = ("function_call_output", "custom_tool_call_output")


def break_one(random: Random, format: str, messages: list[dict]) -> list[dict]:
    """The history with its results lost, doubled or parted from their calls in one place."""
    broken = list(messages)
    places = [
        at for at, message in enumerate(broken) if at and _answers(message)
    ]
    if not places:
        return broken
    at = random.choice((random.choice(places), places[-1]))
    match random.choice(("lost", "twice", "late", "parted")):
        case "lost":
            del broken[at]
        case "twice":
            broken.insert(at, copy.deepcopy(broken[at]))
        case "late":
            broken.append(broken.pop(at))
        case _:
            broken.insert(at, _user(format, "wait"))
    return broken


def rewritten(messages: list[dict], number: int) -> tuple[list[dict], str]:
    """The history with another text in its last result, and the long text that stood there."""
    changed = copy.deepcopy(messages)
    message = next((m for m in reversed(changed) if _answers(m)), None)
    _, old = next(reading.results(message or {}), ("", []))
    if message is None or not old or len(old[0]) < LONG_CHARS:
        return messages, ""
    text = f"rewritten {number}\n" + "another output\n" * 60
    changed[changed.index(message)] = with_result_text(message, text)
    return changed, old[0]


def result_text(message: dict) -> str:
    """The first text of the first result in a message; empty where it holds none."""
    if not _answers(message):
        return ""
    _, texts = next(reading.results(message), ("", []))
    return texts[0] if texts else ""


def with_result_text(message: dict, text: str) -> dict:
    """A copy of a message in which its first result is this text."""
    message = copy.deepcopy(message)
    if "parts" in message:
        part = next(
            part for part in message["parts"] if "functionResponse" in part
        )
        part["functionResponse"]["response"] = {"output": text}
    elif "output" in message:
        message["output"] = text
    elif message["role"] == "tool":
        message["content"] = text
    elif any("toolResult" in block for block in message["content"]):
        block = next(
            block for block in message["content"] if "toolResult" in block
        )
        block["toolResult"]["content"] = [{"text": text}]
    else:
        block = next(
            block
            for block in message["content"]
            if block["type"] == "tool_result"
        )
        block["content"] = text
    return message


def _answers(message: dict) -> bool:
    if message.get("role") == "tool" or message.get("type") in _ANSWERS:
        return True
    parts = message.get("parts") or message.get("content") or ()
    return any(
        "functionResponse" in part
        or "toolResult" in part
        or part.get("type") == "tool_result"
        for part in parts
        if isinstance(part, dict)
    )


def _user(format: str, text: str) -> dict:
    if format == "gemini":
        return {"role": "user", "parts": [{"text": text}]}
    if format == "bedrock-converse":
        return {"role": "user", "content": [{"text": text}]}
    return {"role": "user", "content": text}

"""Ollama's own chat, read from the rules O1 to O6 in ``table.toml`` and from ``api/types.go``.

The server pairs nothing: what answers what is read as the documentation writes it, by id where both
sides have one, else by the tool's name, else by order.
"""

import base64
import binascii
from typing import Any, NamedTuple

Message = dict[str, Any]


def broken(request: dict[str, Any]) -> set[str]:
    """The ids of the rules this body breaks."""
    messages: list[Message] = request.get("messages") or []
    found = pairs(messages) | fields(messages)
    form = request.get("format")
    if (
        form is not None
        and form not in ("", "json")
        and not isinstance(form, dict)
    ):
        found.add("O6")
    return found


def asked(message: Message) -> list[Message]:
    """The calls of an assistant message; the field means nothing in others."""
    return (
        list(message.get("tool_calls") or [])
        if message["role"] == "assistant"
        else []
    )


class Open(NamedTuple):
    """A call without a result: its message, its reply, and itself."""

    at: int
    reply: int
    call: Message


def pairs(messages: list[Message]) -> set[str]:
    """O1, O2 and O3, as C1 to C3 are read.

    A result that says nothing of its call can be none of an earlier reply's: whose would it be?
    Of the calls that fit it is the first of the newest message that has one.
    """
    found: set[str] = set()
    opened: list[Open] = []
    reply, newest, before = 0, -1, ""
    for at, message in enumerate(messages):
        if message["role"] == "tool":
            fits = fitting(message, opened, reply)
            if not fits:
                found.add("O2")
            else:
                one = next(each for each in fits if each.at == fits[-1].at)
                opened = [each for each in opened if each is not one]
                found |= {"O3"} if one.at != newest else set()
        else:
            newest = at
            reply += message["role"] == "assistant" != before
            opened += [Open(at, reply, call) for call in asked(message)]
        before = message["role"]
    return found | ({"O1"} if opened else set())


def tool_of(message: Message) -> str:
    return message.get("tool_name") or message.get("name") or ""


def fitting(message: Message, opened: list[Open], reply: int) -> list[Open]:
    """The calls that a result may answer: by id, by tool where one side has none, or by order."""
    own, tool = message.get("tool_call_id"), tool_of(message)
    of_tool = [
        one for one in opened if tool and one.call["function"]["name"] == tool
    ]
    if own:
        same = [one for one in opened if one.call.get("id") == own]
        return same or [one for one in of_tool if not one.call.get("id")]
    return of_tool if tool else [one for one in opened if one.reply == reply]


def fields(messages: list[Message]) -> set[str]:
    """O4 and O5."""
    found: set[str] = set()
    for message in messages:
        for call in asked(message):
            arguments = call["function"].get("arguments")
            if arguments is not None and not isinstance(arguments, dict):
                found.add("O4")
        if not all(map(is_base64, message.get("images") or ())):
            found.add("O5")
    return found


def is_base64(image: Any) -> bool:
    """As Go's standard encoding reads it: padded, with line ends passed over."""
    try:
        base64.b64decode("".join(image.splitlines()), validate=True)
    except (binascii.Error, AttributeError, ValueError):
        return False
    return True

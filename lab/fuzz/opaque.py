"""What only the provider can read: as it came, in place, or gone as a whole (P4)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

FIELDS = frozenset(
    (
        "signature",
        "data",
        "encrypted_content",
        "thoughtSignature",
        "thought_signature",
        "fingerprint",
        "redactedContent",
    )
)
_MIME = frozenset(("media_type", "mimeType", "format"))
_REASONING = frozenset(("thinking", "redacted_thinking", "reasoning"))
_CALLS = frozenset(("functionCall", "toolUse"))
_FREE = frozenset(("cache_control", "id", "status"))
"""What may differ: a marker that moved; an id that mending leaves out (R4, R6)."""


def blocks(messages: list[Any]) -> dict[str, tuple[int, Any]]:
    """Each opaque value of a history with its number and the smallest part that may go whole."""
    found: dict[str, tuple[int, Any]] = {}
    for message in messages:
        for value, part in _sealed(message):
            found.setdefault(value, (len(found), part))
    return found


def changed(messages: list[Any], sealed: dict[str, tuple[int, Any]]) -> bool:
    """Whether any opaque value here is unknown, or stands in a part that is not as it came."""
    return any(
        value not in sealed or _bare(part) != _bare(sealed[value][1])
        for message in messages
        for value, part in _sealed(message)
    )


def reordered(messages: list[Any], sealed: dict[str, tuple[int, Any]]) -> bool:
    """Whether opaque values stand in another order than they came in, or twice."""
    order = [
        sealed[v][0] for m in messages for v, _ in _sealed(m) if v in sealed
    ]
    return any(after <= before for before, after in pairwise(order))


def newest_compaction(messages: list[Any]) -> set[str]:
    """The sealed text of the newest compaction: the provider ignores what stands before it."""
    for message in reversed(messages):
        for value, part in _sealed(message):
            if part.get("type") == "compaction":
                return {value}
    return set()


def is_signed(message: Any) -> bool:
    """Whether reasoning that only the provider reads, or a signed call, stands in a message."""
    return any(
        part.get("type") in _REASONING
        or "thoughtSignature" in part
        or "reasoningContent" in part
        or "extra_content" in part
        for _, part in _sealed(message)
    )


def stubbed(shown: list[Any], own: set[int], messages: list[Any]) -> bool:
    """Whether a call is not as it came, though signed reasoning of its reply is shown."""
    known = [call for message in messages for call in _calls(message)]
    signed = False
    for message in shown:
        signed = is_signed(message) or (signed and _goes_on(message))
        if (
            signed
            and id(message) not in own
            and not all(call in known for call in _calls(message))
        ):
            return True
    return False


def arguments(messages: list[Any]) -> Iterator[str]:
    """The long texts among the arguments of calls; what a custom tool is given is one."""
    for call in (call for message in messages for call in _calls(message)):
        body = (
            call.get("functionCall")
            or call.get("toolUse")
            or call.get("function")
            or call.get("custom")
            or call
        )
        given = (
            body.get("input")
            or body.get("args")
            or body.get("arguments")
            or ""
        )
        if call.get("type") in ("function", "function_call"):
            given = json.loads(given)
        text = given if isinstance(given, str) else given.get("text", "")
        if text:
            yield text


def _goes_on(message: Any) -> bool:
    """Whether a message is one more item of a reply."""
    kind = str(message.get("type") or "")
    by_model = message.get("role", "assistant") == "assistant"
    return (
        bool(kind) and by_model and not kind.endswith(("_output", "_response"))
    )


def _calls(message: Any) -> list[Any]:
    """The calls of a message, without what may differ."""
    if message.get("type") in ("function_call", "custom_tool_call"):
        return [_bare(message)]
    parts = message.get("parts") or message.get("content")
    found = parts if isinstance(parts, list) else []
    calls = [
        p for p in found if p.get("type") == "tool_use" or _CALLS & p.keys()
    ]
    return [
        _bare(call) for call in [*calls, *(message.get("tool_calls") or ())]
    ]


def _bare(part: Any) -> Any:
    return {key: value for key, value in part.items() if key not in _FREE}


def _sealed(message: Any) -> Iterator[tuple[str, Any]]:
    """Each opaque value of a message, with the part, call or item that it belongs to."""
    parts = message.get("parts") or message.get("content")
    if isinstance(parts, list):
        for part in parts:
            yield from ((value, part) for value in _values(part))
    for call in message.get("tool_calls") or ():
        yield from ((value, call) for value in _values(call))
    if "role" not in message:
        yield from ((value, message) for value in _values(message))


def _values(thing: Any) -> Iterator[str]:
    if isinstance(thing, dict):
        media = not _MIME.isdisjoint(thing)
        for key, value in thing.items():
            if key in FIELDS and isinstance(value, str):
                if not media:
                    yield value
            elif isinstance(value, (dict, list)):
                yield from _values(value)
    elif isinstance(thing, list):
        for item in thing:
            yield from _values(item)

"""The usage of a streamed reply, from its events (`provider-rules` §4.1 to §4.5).

A stream tells it in pieces, and each API in its own place:

    openai-chat        the last chunk with ``usage`` (asked for by ``include_usage``)
    openai-responses   the reply inside ``response.completed``, ``.incomplete`` or ``.failed``
    anthropic          ``message_start``, overlaid by each ``message_delta``: its counts are
                       cumulative, and what it leaves out stays as it was
    gemini             the last chunk with ``usageMetadata``

A whole reply is read as well, as a stream of one event. What comes out is what is paid for,
each token in one class.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ullage.errors import FormatError
from ullage.values.usage import Usage
from ullage.wires.base import field
from ullage.wires.gemini.fields import get
from ullage.wires.usages import of_anthropic, of_gemini, with_the_cache

__all__ = ["usage_of_stream"]


def usage_of_stream(format_name: str, events: Iterable[Any]) -> Usage | None:
    """What a stream reports, or None if it reports nothing (F63).

    Args:
        format_name: ``"openai-chat"``, ``"openai-responses"``, ``"anthropic"`` or
            ``"gemini"``.
        events: the events of one reply in order, dicts or SDK objects. A stream that broke
            off gives what it had told by then. Events of other kinds are passed over.

    Returns:
        Tokens by class. Reasoning is inside the output; cached tokens are outside the fresh.

    Raises:
        FormatError: there is no format of that name.
    """
    reader = _READERS.get(format_name)
    if reader is None:
        raise FormatError(
            "format_name",
            f"unknown format {format_name!r}",
            f"Formats with streams are {', '.join(_READERS)}.",
        )
    return reader(events)


# -- one reader a format --------------------------------------------------------------------


def _chat(events: Iterable[Any]) -> Usage | None:
    found = _last(field(event, "usage") for event in events)
    return None if found is None else with_the_cache(found, "prompt", "completion")


def _responses(events: Iterable[Any]) -> Usage | None:
    found = _last(field(_response(event), "usage") for event in events)
    return None if found is None else with_the_cache(found, "input", "output")


def _response(event: Any) -> Any:
    """The reply a closing event carries, or the event if it is a reply itself."""
    if field(event, "type") in ("response.completed", "response.incomplete", "response.failed"):
        return field(event, "response")
    return event if field(event, "object") == "response" else None


_ANTHROPIC = (
    "input_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "cache_creation",
    "output_tokens",
    "output_tokens_details",
    "iterations",
)


def _anthropic(events: Iterable[Any]) -> Usage | None:
    known: dict[str, Any] = {}
    for event in events:
        match field(event, "type"):
            case "message_start":
                usage = field(field(event, "message"), "usage")
            case "message_delta" | "message":
                usage = field(event, "usage")
            case _:
                continue
        told = {name: field(usage, name) for name in _ANTHROPIC}
        known |= {name: value for name, value in told.items() if value is not None}
    return of_anthropic(known) if known else None


def _gemini(events: Iterable[Any]) -> Usage | None:
    found = _last(get(event, "usageMetadata") for event in events)
    return None if found is None else of_gemini(found)


_READERS = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}


def _last(values: Iterable[Any]) -> Any:
    """The last value that is not None."""
    found = None
    for value in values:
        found = found if value is None else value
    return found

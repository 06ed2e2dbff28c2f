"""What Anthropic reports of a reply, whole or streamed (`provider-rules` §4.1, §4.4).

Cached and written tokens are beside the input's. A stream gives its counts in ``message_start``,
overlaid by each ``message_delta``: they are cumulative, and what one leaves out stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from ullage.values.usage import Usage
from ullage.wires.base import field
from ullage.wires.usages import count

__all__ = ["of_reply", "of_stream"]

_BESIDE_THE_SUMS = ("compaction", "advisor_message")
_COUNTS = (
    "input_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "cache_creation",
    "output_tokens",
    "output_tokens_details",
    "iterations",
)


def of_stream(events: Iterable[Any]) -> Usage | None:
    """What the events of one reply report, None if nothing."""
    known: dict[str, Any] = {}
    for event in events:
        match field(event, "type"):
            case "message_start":
                usage = field(field(event, "message"), "usage")
            case "message_delta" | "message":
                usage = field(event, "usage")
            case _:
                continue
        given = {name: field(usage, name) for name in _COUNTS}
        known |= {name: value for name, value in given.items() if value is not None}
    return of_reply(known) if known else None


def of_reply(usage: Any) -> Usage:
    """What a usage object reports.

    Where a server ran several iterations, the sums at the top are those of the replies in them.
    What a compaction or an advisor took is listed under ``iterations`` only, and is added. An
    advisor's tokens are another model's; nothing here says so to who prices them.
    """
    listed = field(usage, "iterations")
    iterations = listed if isinstance(listed, (list, tuple)) else ()
    beside = [each for each in iterations if field(each, "type") in _BESIDE_THE_SUMS]
    total = sum(map(_beside_the_cache, beside), _beside_the_cache(usage))
    if not iterations:
        return total
    first = iterations[0]
    is_of_prompt = field(first, "type") not in _BESIDE_THE_SUMS  # and not of what became of it
    sent = _beside_the_cache(first).input_tokens if is_of_prompt else 0
    return replace(total, prompt_tokens=sent)


def _beside_the_cache(usage: Any) -> Usage:
    written = field(usage, "cache_creation")
    return Usage(
        fresh_tokens=count(usage, "input_tokens"),
        cache_read_tokens=count(usage, "cache_read_input_tokens"),
        cache_write_tokens=count(usage, "cache_creation_input_tokens"),
        output_tokens=count(usage, "output_tokens"),
        reasoning_tokens=count(field(usage, "output_tokens_details"), "thinking_tokens"),
        long_write_tokens=count(written, "ephemeral_1h_input_tokens"),
    )

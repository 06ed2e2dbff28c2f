"""What Anthropic reports of a reply, whole or streamed (`provider-rules` §4.1, §4.4).

A stream gives its counts in ``message_start``, overlaid by each ``message_delta``: they are
cumulative, and what one leaves out stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from ullage.values.usage import Usage
from ullage.wires.base import field
from ullage.wires.usages import Counts, read

__all__ = ["COUNTS", "of_reply", "of_stream"]

COUNTS = Counts(
    prompt="input_tokens",
    beside_cache=True,
    read="cache_read_input_tokens",
    written="cache_creation_input_tokens",
    long_written="cache_creation.ephemeral_1h_input_tokens",
    output="output_tokens",
    reasoning="output_tokens_details.thinking_tokens",
)
_BESIDE_THE_SUMS = ("compaction", "advisor_message")
_FIELDS = (
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
        given = {name: field(usage, name) for name in _FIELDS}
        known |= {name: value for name, value in given.items() if value is not None}
    return of_reply(known) if known else None


def of_reply(usage: Any) -> Usage | None:
    """What a usage object reports, or None if a count of it is none.

    Where a server ran several iterations, the sums at the top are those of the replies in them.
    What a compaction or an advisor took is listed under ``iterations`` only, and is added. An
    advisor's tokens are another model's; nothing here says so to who prices them.
    """
    listed = field(usage, "iterations")
    iterations = listed if isinstance(listed, (list, tuple)) else ()
    beside = [each for each in iterations if field(each, "type") in _BESIDE_THE_SUMS]
    read_all = [found for each in (usage, *beside) if (found := read(each, COUNTS)) is not None]
    if len(read_all) <= len(beside):
        return None
    total = sum(read_all, Usage()) if beside else read_all[0]
    if not iterations:
        return total
    first = iterations[0]
    is_of_prompt = field(first, "type") not in _BESIDE_THE_SUMS  # and not of what became of it
    sent = (read(first, COUNTS) or Usage()) if is_of_prompt else Usage()
    return replace(total, prompt_tokens=sent.input_tokens)

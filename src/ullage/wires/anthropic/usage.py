"""Token counts of Anthropic's replies, whole and streamed (`provider-rules` §4.4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from ullage.core.history.raw import field
from ullage.core.values.usage import Usage
from ullage.wires.block import fields
from ullage.wires.usages import Counts, read

_COUNTS = Counts(
    prompt="input_tokens",
    beside_cache=True,
    read="cache_read_input_tokens",
    written="cache_creation_input_tokens",
    long_written="cache_creation.ephemeral_1h_input_tokens",
    output="output_tokens",
    reasoning="output_tokens_details.thinking_tokens",
)
_COUNTED = fields(
    "input_tokens cache_read_input_tokens cache_creation_input_tokens cache_creation output_tokens"
    " output_tokens_details iterations"
)
_BESIDE_THE_SUMS = ("compaction", "advisor_message")
"""Iterations that the sums at the top of a usage leave out."""


def usage_from(usage: Any) -> Usage | None:
    """The tokens that a usage object reports, or None if a count of it is none.

    Where a server ran several iterations, the sums at the top are those of the replies in them.
    What a compaction or an advisor took is listed under ``iterations`` only, and is added. An
    advisor's tokens are another model's; nothing here says so to who prices them.
    """
    iterations = field(usage, "iterations")
    if not isinstance(iterations, (list, tuple)):
        iterations = ()
    unsummed = [item for item in iterations if _is_beside_the_sums(item)]
    total = read(usage, _COUNTS)
    if unsummed:
        total = _sum_of([usage, *unsummed])
    if total is None or not iterations:
        return total

    # Later iterations prompt with what became of the request, so the first tells its size.
    prompt = None
    if not _is_beside_the_sums(iterations[0]):
        prompt = read(iterations[0], _COUNTS)
    prompt_tokens = 0 if prompt is None else prompt.input_tokens
    return replace(total, prompt_tokens=prompt_tokens)


def usage_from_stream(events: Iterable[Any]) -> Usage | None:
    """The tokens that the events of a stream report; None if no event has counts.

    ``message_start`` has the counts, overlaid by each ``message_delta``: they are cumulative,
    and what one leaves out stays as it was.
    """
    counts: dict[str, Any] = {}
    for event in events:
        match field(event, "type"):
            case "message_start":
                usage = field(field(event, "message"), "usage")
            case "message_delta" | "message":
                usage = field(event, "usage")
            case _:
                continue
        for name in _COUNTED:
            count = field(usage, name)
            if count is not None:
                counts[name] = count
    if counts:
        return usage_from(counts)
    return None


def _is_beside_the_sums(iteration: Any) -> bool:
    return field(iteration, "type") in _BESIDE_THE_SUMS


def _sum_of(usages: Iterable[Any]) -> Usage | None:
    """The sum of what several usage objects report; None if one of them cannot be read."""
    total = Usage()
    for usage in usages:
        counts = read(usage, _COUNTS)
        if counts is None:
            return None
        total += counts
    return total

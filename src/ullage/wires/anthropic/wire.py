"""Anthropic Messages, as one object."""

from __future__ import annotations

from ullage.wires.anthropic.format import Anthropic
from ullage.wires.wire import Signs, Wire

WIRE = Wire(
    home=__name__,
    format=Anthropic(),
    signs=Signs(
        fields=("system",),
        tool_fields=("input_schema",),
        models="claude",
        not_beside=("modelId",),
    ),
    provider="anthropic",
    upstreams={"anthropic": "https://api.anthropic.com"},
    example_model="claude-sonnet-4-5",
    price_profile="anthropic-5m",
    summary_role="user",  # not every model takes system messages among the others
    reply_field="content",
    takes_cache_markers=True,
)

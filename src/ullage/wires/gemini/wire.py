"""Google Gemini's generateContent, as one object."""

from __future__ import annotations

from ullage.wires.gemini.format import Gemini
from ullage.wires.wire import Signs, Wire

WIRE = Wire(
    home=__name__,
    format=Gemini(),
    signs=Signs(fields=("contents",)),
    provider="gcp.gemini",
    upstreams={"gemini": "https://generativelanguage.googleapis.com"},
    example_model="gemini-2.5-pro",
    price_profile="gemini-implicit",
    summary_role="user",  # there are no system messages
    reply_field="candidates",
    types_blocks=False,
)

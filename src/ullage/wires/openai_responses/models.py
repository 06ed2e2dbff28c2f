"""How the reasoning of models that are asked in Responses is bound."""

from __future__ import annotations

from ullage.wires.models import Family

FAMILIES = (
    Family(
        "bound reasoning items",
        r"gpt-(?:6[.-](?:[2-9]|[1-9]\d)|[7-9]|[1-9]\d)(?!\d)",
    ),
    Family(
        "reasoning of all turns", r"gpt-(?:5[.-](?:[6-9]|[1-9]\d)|6)(?!\d)"
    ),
    Family("reasoning of the current turn", ""),
)
"""Reasoning that is bound to all before it is left out by the server itself (R11)."""

"""What the name of a model says that is asked by way of Responses: how its reasoning is bound."""

from __future__ import annotations

from ullage.wires.format import Family

__all__ = ["FAMILIES"]

FAMILIES = (
    Family("bound reasoning items", r"gpt-(?:6[.-](?:[2-9]|[1-9]\d)|[7-9]|[1-9]\d)(?!\d)"),
    Family("reasoning of all turns", r"gpt-(?:5[.-](?:[6-9]|[1-9]\d)|6)(?!\d)"),
    Family("reasoning of the current turn", ""),
)
"""What is bound to all before it, the server itself leaves out behind an edit (§0.1, R11)."""

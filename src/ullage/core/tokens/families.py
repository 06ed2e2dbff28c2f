"""What a family of models has in common: its window, and the most one reply may hold.

A vendor brings a new model every few weeks, and most have the window of their family. So a name
that no table lists is looked up by how it begins. The rows are in ``families.toml``.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from msgspec import Struct

from ullage.core.on_demand import table


class FamilyRow(NamedTuple):
    """A pattern of names, and what these models have."""

    pattern: str
    window_tokens: int
    max_output_tokens: int


class Families(Struct, frozen=True):
    """The table. Its file says what stands in a pattern."""

    snapshots: tuple[FamilyRow, ...]
    families: tuple[FamilyRow, ...]
    not_chat: tuple[str, ...]


@cache
def _families() -> Families:
    return table(__name__, "families.toml", Families)


def snapshot(dated_name: str) -> FamilyRow | None:
    """The row of a snapshot whose window is another than its name suggests.

    Args:
        dated_name: `ullage.core.values.model_names.dated_name` of a model.
    """
    for row in _families().snapshots:
        if re.fullmatch(row.pattern, dated_name):
            return row
    return None


def family(plain_name: str) -> FamilyRow | None:
    """The row of the family that a model belongs to.

    Args:
        plain_name: `ullage.core.values.model_names.plain_name` of a model.
    """
    for row in _families().families:
        if re.match(row.pattern, plain_name):
            return row
    return None


def is_chat(dated_name: str) -> bool:
    """Whether a conversation may be had with a model, as far as its name says.

    Args:
        dated_name: `ullage.core.values.model_names.dated_name` of a model.
    """
    return not any(
        re.search(pattern, dated_name) for pattern in _families().not_chat
    )

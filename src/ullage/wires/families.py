"""What an edit costs in reasoning, by format and family, as data (`provider-rules` §0, §1).

Each row says what a piece of reasoning is bound to, what becomes of it when something before it
is edited, which of it may be left out by right, and what holds while its turn is open. The
formats read it (`Format.reasoning`); the engine acts on ``rule``.

Rows of one format are tried in order; the last one takes every model.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from msgspec import Struct

from ullage.errors import ConfigError
from ullage.values.messages import ReasoningRule

__all__ = ["FAMILIES", "Family", "family_of"]

Bond: TypeAlias = Literal["nothing", "everything before it", "its reply", "its own part"]
Loss: TypeAlias = Literal["none", "refused", "removed by the server"]
Run: TypeAlias = Literal["leading run", "trailing run", "all"]
Open: TypeAlias = Literal["may go", "must stay", "must stay with manual thinking"]


class Family(Struct, frozen=True, kw_only=True, gc=False):
    """How the reasoning of one family of models is bound.

    Attributes:
        name: of the family.
        format: the wire format.
        models: a regular expression that is looked for in the model's name.
        bound_to: what must be as it was for the reasoning to be valid.
        edit_before: what becomes of it when something before it is edited.
        may_drop: what may be left out by right: of the history's reasoning in order, a run from
            its start up to the last closed turn, a run to its end (the newest reply's), or all of
            it. A gap in the middle is never named.
        open_turn: whether it may be left out while its turn is open.
        beside: what must go or stay with a piece that is left out; ``""`` for nothing.
        rule: what the engine does on an edit.
        manual_rule: the same with manual thinking.
        source: section and rules.
        verified: whether that was read in the SDK, the documentation, or seen in public.
    """

    name: str
    format: str
    models: str
    bound_to: Bond
    edit_before: Loss
    may_drop: tuple[Run, ...]
    open_turn: Open
    beside: str = ""
    rule: ReasoningRule = "free"
    manual_rule: ReasoningRule = "free"
    source: str
    verified: bool = True


_ANY_RUN: tuple[Run, ...] = ("leading run", "trailing run", "all")
_NEVER_THE_NEWEST_ALONE: tuple[Run, ...] = ("leading run", "all")
# A16 would let a run at the end go. The newest reply's thinking is in it, and A13 asks for that
# as long as any stays.
_VERSIONED = r"claude-(?:[a-z]+-)?"
_ITS_ID = "the items made with it stay, without their ids (R4)"

FAMILIES = (
    Family(
        name="preserved thinking",
        format="anthropic",
        models=_VERSIONED + r"(?:5[-.](?!0)\d{1,2}|[6-9]|[1-9]\d)(?!\d)",
        bound_to="everything before it",
        edit_before="refused",
        may_drop=_NEVER_THE_NEWEST_ALONE,
        open_turn="must stay with manual thinking",
        rule="strip",
        manual_rule="frozen",
        source="§0.1, §1.A A13 to A17",
    ),
    Family(
        name="kept thinking",
        format="anthropic",
        models=_VERSIONED + r"5(?!\d)|claude-opus-4[-.][5-9](?!\d)|claude-sonnet-4[-.][6-9](?!\d)",
        bound_to="nothing",
        edit_before="none",
        may_drop=_NEVER_THE_NEWEST_ALONE,
        open_turn="must stay with manual thinking",
        source="§1.A A13, A14 and what may be dropped freely",
    ),
    Family(
        name="stripped thinking",
        format="anthropic",
        models="",
        bound_to="nothing",
        edit_before="none",
        may_drop=_NEVER_THE_NEWEST_ALONE,
        open_turn="must stay with manual thinking",
        source="§1.A A13, A14 and what may be dropped freely",
    ),
    Family(
        name="bound reasoning items",
        format="openai-responses",
        models=r"gpt-(?:6[.-](?:[2-9]|[1-9]\d)|[7-9]|[1-9]\d)(?!\d)",
        bound_to="everything before it",
        edit_before="removed by the server",
        may_drop=_ANY_RUN,
        open_turn="may go",
        beside=_ITS_ID,
        source="§0.1, §1.C R3, R4, R11",
    ),
    Family(
        name="reasoning of all turns",
        format="openai-responses",
        models=r"gpt-(?:5[.-](?:[6-9]|[1-9]\d)|6)(?!\d)",
        bound_to="its reply",
        edit_before="none",
        may_drop=_ANY_RUN,
        open_turn="may go",
        beside=_ITS_ID,
        source="§1.C R3, R4, R15",
    ),
    Family(
        name="reasoning of the current turn",
        format="openai-responses",
        models="",
        bound_to="its reply",
        edit_before="none",
        may_drop=_ANY_RUN,
        open_turn="may go",
        beside=_ITS_ID,
        source="§1.C R3, R4, R15",
    ),
    Family(
        name="no reasoning",
        format="openai-chat",
        models=r"(?:^|[/.])(?:gpt|o\d|chatgpt)",
        bound_to="nothing",
        edit_before="none",
        may_drop=_ANY_RUN,
        open_turn="may go",
        source="§1.B: none is carried in this format",
    ),
    Family(
        name="signed calls, compatible",
        format="openai-chat",
        models=r"gemini-(?:[3-9]|\d\d)",
        bound_to="its own part",
        edit_before="none",
        may_drop=("leading run",),
        open_turn="must stay",
        source="§1.B C12",
    ),
    Family(
        name="reasoning in the open",
        format="openai-chat",
        models="",
        bound_to="nothing",
        edit_before="none",
        may_drop=("leading run",),
        open_turn="must stay",
        source="reasoning of compatible servers, by any of its names; in no section",
        verified=False,
    ),
    Family(
        name="signed calls",
        format="gemini",
        models=r"gemini-(?:[3-9]|\d\d)",
        bound_to="its own part",
        edit_before="none",
        may_drop=("leading run",),
        open_turn="must stay",
        source="§0.1, §1.D G7, G8",
    ),
    Family(
        name="optional signatures",
        format="gemini",
        models="",
        bound_to="its own part",
        edit_before="none",
        may_drop=_ANY_RUN,
        open_turn="may go",
        source="§1.D G7, G8",
    ),
)
"""Every family that is known, in the order they are tried."""


def family_of(format: str, model: str) -> Family:
    """The family of a model in a format.

    Args:
        format: a wire format of ``FAMILIES``.
        model: as the request names it; ``""`` if it does not.

    Raises:
        ConfigError: there is no such format.
    """
    name = model.lower()
    for row in FAMILIES:
        if row.format == format and re.search(row.models, name) is not None:
            return row
    raise ConfigError(
        "format", f"{format!r} has no families of reasoning", "Name the wire that is really sent."
    )

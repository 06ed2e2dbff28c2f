"""What the name of a model on Bedrock says: how its reasoning is bound, and which ids it takes."""

from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace

from ullage.wires.anthropic.models import FAMILIES as CLAUDES
from ullage.wires.anthropic.models import claude
from ullage.wires.models import Family, family_of

_CLAUDE = r"^$|claude"
"""A Claude, or no model named: most that think are Claudes."""

FAMILIES = (
    *CLAUDES[:-1],
    replace(CLAUDES[-1], models=_CLAUDE),
    Family("reasoning of other makers", ""),
)
"""Bedrock passes a Claude's thinking on with its rules; what others think is bound to nothing."""

_UNTOLD = re.compile(
    r"^arn:[^:]*:[^:]*:.*:(?:application-inference-profile|provisioned-model|custom-model"
    r"|custom-model-deployment|imported-model|default-prompt-router|prompt-router|prompt|endpoint)/"
)
"""Names that stand for a model without telling which."""

_ID_OF_CLAUDE = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}\Z")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
"""The form of a tool's name (B7)."""


def family(model: str) -> Family:
    """The family of a model. One behind an ARN that does not tell is taken for the strictest."""
    if _UNTOLD.match(model):
        return FAMILIES[0]
    return family_of(FAMILIES, model)


def call_ids(model: Any) -> re.Pattern[str]:
    """The form of the ids of calls (B7).

    Bedrock itself takes ``.`` and ``:`` as well. A Claude behind it does not.
    """
    name = model if isinstance(model, str) else ""
    is_other = bool(name) and not _UNTOLD.match(name) and claude(name) is None
    if is_other:
        return _ID
    return _ID_OF_CLAUDE

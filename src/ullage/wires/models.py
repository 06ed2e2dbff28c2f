"""What a model's name says, as far as several wires ask: the rest is in ``wires/NAME/models.py``.

A row is a family of models; the first one that a name fits decides (`provider-rules` §0.1).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from ullage.core.values.messages import ReasoningRule
from ullage.core.values.model_names import plain_name


class Family(Struct, frozen=True, gc=False):
    """Models of one format whose reasoning is bound in one way.

    Attributes:
        name: of the family.
        models: a regular expression that is looked for in the model's name.
        rule: what an edit means for the reasoning behind it.
        manual_rule: the same with manual thinking.
    """

    name: str
    models: str
    rule: ReasoningRule = "free"
    manual_rule: ReasoningRule = "free"


def family_of(families: Sequence[Family], model: str) -> Family:
    """The first family that a model's name fits."""
    name = plain_name(model)
    return next(
        family for family in families if re.search(family.models, name)
    )


_OPENAIS = re.compile(r"^(?:gpt-(?!oss)|o\d|chatgpt|codex|computer-use)")
ANY_ID = re.compile(r".+\Z", re.DOTALL)
"""The form of an id of a call where no API is known to refuse one."""
_GPT_6_2 = re.compile(r"^gpt-6[.-]2(?!\d)")
_OPENAIS_ID = re.compile(r".{1,64}\Z", re.DOTALL)


def is_openais(model: Any) -> bool:
    """Whether OpenAI itself serves a model of this name."""
    if not isinstance(model, str):
        return False
    return _OPENAIS.search(plain_name(model)) is not None


def is_elsewhere(model: Any) -> bool:
    """Whether a model is named that OpenAI does not serve."""
    return bool(model) and not is_openais(model)


def openai_call_ids(model: Any) -> re.Pattern[str]:
    """The form that the ids of calls must have on either of OpenAI's wires (C6).

    Gateways and compatible servers put more into an id than a name, such as a signature of a
    thousand characters that has to come back. So it is asked of OpenAI's own models alone.
    """
    if is_elsewhere(model):
        return ANY_ID
    return _OPENAIS_ID


MOST_OPENAI_TOOLS = 128
"""OpenAI's longest list of tools ("Expected an array with maximum length 128")."""


def takes_hosted_tools_alone(model: str) -> bool:
    """Whether a model of OpenAI's takes the tools that OpenAI runs, and no functions beside them.

    Source: OpenAI, "Deep research": web search, file search, remote MCP servers, code interpreter.
    """
    return "deep-research" in model.lower()


def is_gpt_6_2(model: Any) -> bool:
    """Whether it is of the GPT-6.2 family, which takes no tools in Chat Completions (C11)."""
    if not isinstance(model, str):
        return False
    return _GPT_6_2.search(plain_name(model)) is not None

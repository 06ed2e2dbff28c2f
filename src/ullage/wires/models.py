"""What a model's name says: how its reasoning is bound, and what its vendor takes from it.

A row is a family of models; the first one that a name fits decides (`provider-rules` §0.1).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from ullage.values.messages import ReasoningRule
from ullage.values.model_names import plain_name


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


_VERSIONED = r"claude-(?:[a-z]+-)?"
_SIGNING = r"gemini-(?:[3-9]|\d\d)"

FAMILIES: Mapping[str, tuple[Family, ...]] = {
    "anthropic": (  # thinking is bound to all that stands before it in the first (A13 to A17)
        Family(
            "preserved thinking",
            _VERSIONED + r"(?:5[-.](?!0)\d{1,2}|[6-9]|[1-9]\d)(?!\d)",
            rule="strip",
            manual_rule="frozen",
        ),
        Family(
            "kept thinking",
            _VERSIONED + r"5(?!\d)|claude-opus-4[-.][5-9](?!\d)|claude-sonnet-4[-.][6-9](?!\d)",
        ),
        Family("stripped thinking", ""),
    ),
    "openai-chat": (  # bound to nothing but its own part (C12), or sent in the open
        Family("no reasoning", r"^(?:gpt|o\d|chatgpt)"),
        Family("signed calls, compatible", _SIGNING),
        Family("reasoning in the open", ""),
    ),
    "openai-responses": (  # what is bound to all before it, the server leaves out itself (R11)
        Family("bound reasoning items", r"gpt-(?:6[.-](?:[2-9]|[1-9]\d)|[7-9]|[1-9]\d)(?!\d)"),
        Family("reasoning of all turns", r"gpt-(?:5[.-](?:[6-9]|[1-9]\d)|6)(?!\d)"),
        Family("reasoning of the current turn", ""),
    ),
    "gemini": (  # a signature is bound to its own part alone (G7, G8)
        Family("signed calls", _SIGNING),
        Family("optional signatures", ""),
    ),
}
"""The families of each wire; the last one takes every model."""


def family_of(families: Sequence[Family], model: str) -> Family:
    """The first family that a model's name fits."""
    name = plain_name(model)
    return next(family for family in families if re.search(family.models, name) is not None)


_CLAUDE = re.compile(r"claude-(?:([a-z]+)-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
_NO_FORCED_TOOL_SINCE = {"fable": (5, 1), "sonnet": (5, 5)}


def claude(model: Any) -> tuple[str, tuple[int, int]] | None:
    """Family and version of a Claude, such as ("opus", (4, 6)); None of any other model."""
    found = _CLAUDE.search(model) if isinstance(model, str) else None
    return (found[1] or "", (int(found[2]), int(found[3] or 0))) if found else None


def refuses_force(model: Any) -> bool:
    """Whether it takes no ``tool_choice`` that forces a tool (A24)."""
    family, version = claude(model) or ("", (0, 0))
    return version >= _NO_FORCED_TOOL_SINCE.get(family, (99, 0))


def takes_no_system_messages(model: Any) -> bool:
    """Whether it is a Claude whose system text stands beside the messages alone.

    They may stand among them for Opus from 4.8 on, and from 5 on for all but Sonnet 5
    (`provider-rules` §1.A).
    """
    found = claude(model)
    if found is None:
        return False
    family, version = found
    return version < ((4, 8) if family == "opus" else (5, 0)) or found == ("sonnet", (5, 0))


def signs_calls(model: Any) -> bool:
    """Whether it is a Gemini that signs its calls: 3 or later (G7)."""
    return isinstance(model, str) and re.search(_SIGNING, model) is not None


def signs_no_calls(model: Any) -> bool:
    """Whether it is a Gemini that asks for no signature of a call: before 3."""
    return isinstance(model, str) and re.search(r"gemini-[12](?!\d)", model) is not None


_OPENAIS = re.compile(r"^(?:gpt-(?!oss)|o\d|chatgpt|codex|computer-use)")
_ANY_ID = re.compile(r".+\Z", re.DOTALL)
_OPENAIS_ID = re.compile(r".{1,64}\Z", re.DOTALL)
_CLAUDES_ID = re.compile(r"[a-zA-Z0-9_-]+\Z")


def is_openais(model: Any) -> bool:
    """Whether OpenAI itself serves a model of this name."""
    return isinstance(model, str) and _OPENAIS.search(plain_name(model)) is not None


def is_elsewhere(model: Any) -> bool:
    """Whether a model is named that OpenAI does not serve."""
    return bool(model) and not is_openais(model)


def call_ids(wire: str, model: Any) -> re.Pattern[str]:
    """The form that the ids of calls must have, on a wire and for a model (A8, C6).

    Gateways and compatible servers put more into an id than a name, such as a signature of a
    thousand characters that has to come back. So where another maker's model is named, no API is
    known to refuse an id.
    """
    if wire == "anthropic" and (not model or "claude" in str(model).lower()):
        return _CLAUDES_ID
    if wire in ("openai-chat", "openai-responses") and not is_elsewhere(model):
        return _OPENAIS_ID
    return _ANY_ID


MOST_OPENAI_TOOLS = 128
"""OpenAI's longest list of tools ("Expected an array with maximum length 128")."""


def takes_hosted_tools_alone(model: str) -> bool:
    """Whether a model of OpenAI's takes the tools that OpenAI runs, and no functions beside them.

    Source: OpenAI, "Deep research": web search, file search, remote MCP servers, code interpreter.
    """
    return "deep-research" in model.lower()


def is_gpt_6_2(model: Any) -> bool:
    """Whether it is of the GPT-6.2 family, which takes no tools in Chat Completions (C11)."""
    return isinstance(model, str) and re.search(r"^gpt-6[.-]2(?!\d)", plain_name(model)) is not None

"""The models a wire is tried with: of those with equal rules one.

Two models are equal if every letter of the alphabet, alone and between a user's words, breaks the
same rules for both by both readings, and an edit means the same for reasoning. So it is seen and
not listed: a model with a rule of its own becomes a family by itself.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lab.enumerate.letters import (
    Letter,
    Message,
    alphabet,
    history,
    in_turn,
    is_models,
    said,
)
from lab.fuzz import converse
from lab.returned import problems
from tests.second_reading import broken
from ullage.core.tokens.catalog import NAMES
from ullage.wires import FORMATS

MAKERS = {
    "anthropic": "claude",
    "openai-responses": "gpt",
    "gemini": "gemini",
    "openai-chat": "",
    "ollama": "",
    "bedrock-converse": "claude",
}
_OTHERS = ("deepseek-v4",)
_ON_BEDROCK = ("amazon.nova-2-pro-v1:0",)
"""Of other makers than Claude's: Bedrock has its own names for all."""
_SEARCH = {"type": "web_search_20250305", "name": "web_search"}
_SHAPE = frozenset(("A0", "C0", "R0", "G0", "O0", "B0"))
"""The shape of types: the second reading, which is of the rules, has nothing to say of it."""


_Broken: TypeAlias = tuple[frozenset[str], frozenset[str]]
"""The rules that are broken by the first reading, and by the second."""


class _Mark(NamedTuple):
    """What is the same for equal models: what each letter breaks, and where nothing follows it."""

    rule: str
    is_manual: bool
    tried: tuple[_Broken, ...]
    open_ended: tuple[_Broken, ...]


class Family(Struct, frozen=True):
    """A model that stands for those with its rules, and what a request for it has beside messages.

    Attributes:
        head: the request without its messages, for the first of them.
        models: all of them.
        rule: what an edit means for the reasoning behind it.
        is_manual: whether thinking is asked for by hand.
        mends: histories with a fault are tried with it: mending asks nothing of a model but this
            rule, so of those that share it the one that takes the most letters. Not with manual
            thinking: words stand where something was set aside, and begin a turn that has none.
    """

    head: dict[str, Any]
    models: tuple[str, ...]
    rule: str
    is_manual: bool = False
    mends: bool = False

    @property
    def model(self) -> str:
        """The first of them."""
        return self.models[0]

    @property
    def name(self) -> str:
        """What it is called in a finding."""
        return (
            f"{self.model}{' with manual thinking' if self.is_manual else ''}"
        )


@cache
def families(format: str) -> tuple[Family, ...]:
    """The families of a wire, in the order of the table of models."""
    letters = alphabet(format)
    found: dict[_Mark, Family] = {}
    for model in _models(format):
        for head in _heads(format, model):
            mark = _mark(format, head, letters)
            known = found.get(mark)
            if known:
                found[mark] = replace(known, models=(*known.models, model))
            else:
                found[mark] = Family(head, (model,), mark.rule, mark.is_manual)
    by_letters = sorted(
        found, key=lambda mark: sum(not first for first, _ in mark.tried)
    )
    able = [found[mark] for mark in by_letters if not found[mark].is_manual]
    mending = {
        each.rule: each for each in able
    }  # the last of a rule takes the most
    return tuple(
        replace(each, mends=each is mending.get(each.rule))
        for each in found.values()
    )


def _models(format: str) -> list[str]:
    """The models of a wire, under the names that it has for them."""
    maker = MAKERS[format]
    if format == "bedrock-converse":
        claudes = [f"anthropic.{name}" for name in NAMES if maker in name]
        return [*claudes, *_ON_BEDROCK]
    return [name for name in (*NAMES, *_OTHERS) if maker in name]


def _heads(format: str, model: str) -> list[dict[str, Any]]:
    if format == "gemini":
        return [
            {
                "model": model,
                "systemInstruction": {
                    "parts": [{"text": "You are an agent."}]
                },
            }
        ]
    if format == "openai-responses":
        return [
            {
                "model": model,
                "instructions": "You are an agent.",
                "store": False,
            }
        ]
    if format in ("openai-chat", "ollama"):
        return [{"model": model}]
    manual: dict[str, Any] = {
        "thinking": {"type": "enabled", "budget_tokens": 1_024}
    }
    if format == "bedrock-converse":
        limit: dict[str, Any] = {"inferenceConfig": {"maxTokens": 2_000}}
        body = {"modelId": model, **limit, "toolConfig": converse.tools()}
        if MAKERS[format] not in model:
            return [body]
        return [body, {**body, "additionalModelRequestFields": manual}]
    head: dict[str, Any] = {"model": model, "max_tokens": 2_000}
    head["tools"] = [_SEARCH]
    return [head, {**head, **manual}]


def _mark(
    format: str, head: dict[str, Any], letters: tuple[Letter, ...]
) -> _Mark:
    wire = FORMATS[format]
    rule = wire.reasoning(head, head[wire.model_field])
    tried = [
        rules_broken(format, asked(format, head, history([letter])))
        for letter in letters
    ]
    open_ended = [
        rules_broken(
            format,
            {
                **head,
                wire.key: in_turn(
                    format, [said(format, "go"), *letter.messages]
                ),
            },
        )
        for letter in letters
    ]
    is_manual = wire.thinks_first(head)
    return _Mark(rule, is_manual, tuple(tried), tuple(open_ended))


def asked(
    format: str, head: dict[str, Any], messages: list[Message]
) -> dict[str, Any]:
    """A request that can be sent: it begins and ends with the user's words, where it has to."""
    begins = (
        []
        if _begins_itself(messages)
        else [said(format, "Find out why the tests fail.")]
    )
    ends = (
        [said(format, "And now?")]
        if messages and is_models(format, messages[-1])
        else []
    )
    whole = in_turn(format, [*begins, *messages, *ends])
    return {**head, FORMATS[format].key: whole}


def _begins_itself(messages: list[Message]) -> bool:
    """Whether nothing may stand before it: a signed compaction is the very first (A22)."""
    content = messages[0].get("content") if messages else None
    first = content[0] if isinstance(content, list) and content else {}
    return first.get("type") == "compaction" and "signature" in first


def rules_broken(
    format: str, request: dict[str, Any], returned: list[Any] | None = None
) -> _Broken:
    """What a request breaks by the first reading and by the second, where both have a say.

    Args:
        format: the wire.
        request: the whole request.
        returned: the messages as the provider returned them, for the first reading alone.
    """
    first = frozenset(
        each.rule for each in problems(format, request, history=returned)
    )
    return first, first if first & _SHAPE else frozenset(
        broken(format, request)
    )

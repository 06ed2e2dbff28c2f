"""How a request differs from the replies as the provider returned them, where that is illegal.

    A13, B13     the thinking of the last reply
    R3, R4, R8   reasoning, and the items that were made with it
    G7, G8       signatures that were moved, made up or lost

A request alone does not show any of it, so the judge of requests does not ask. The fuzzer and the
tests have the whole history beside the view, and ask here.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from ullage.wires.anthropic.blocks import THOUGHTS
from ullage.wires.anthropic.rules import blocks_of
from ullage.wires.gemini import rules as gemini
from ullage.wires.openai_responses.blocks import CALLS, is_callers
from ullage.wires.openai_responses.rules import type_of
from ullage.wires.rules import checker
from ullage.wires.rules.problem import Check, JsonObject, Problem, name_in

SENTINELS = frozenset(
    (
        "skip_thought_signature_validator",
        "context_engineering_is_the_way_to_go",
    )
)
"""What Gemini takes for a signature that it did not make (G10)."""


def problems(
    format: str, request: Any, *, history: Sequence[Any] | None = None
) -> list[Problem]:
    """Every rule that a request breaks, by itself and against what was returned.

    Args:
        format: see `ullage.wires.rules.checker.check_of`.
        request: see `ullage.wires.rules.checker.fed`.
        history: the messages as the provider returned them; None: the request by itself.
    """
    return _compared(format, checker.fed(format, request), history)


def problems_of(
    format: str, messages: Any, *, history: Sequence[Any] | None = None
) -> list[Problem]:
    """The same of messages alone."""
    check = checker.check_of(format)
    for message in messages if isinstance(messages, (list, tuple)) else ():
        check.feed(message)
    return _compared(format, check, history)


def _compared(
    format: str, check: Check, history: Sequence[Any] | None
) -> list[Problem]:
    found = check.problems()
    check.found = []
    if history is not None and format in _COMPARE:
        _COMPARE[format](check, [*map(check.plain, history)])
    return found + check.found


# -- Anthropic, and Claudes on Bedrock -----------------------------------------------------


def _newest_thinking(rule: str, check: Check, history: Sequence[Any]) -> None:
    """A13, B13: the last assistant message's thinking is what was returned, or all is gone."""
    messages = check.messages
    at, message = next(_replies(messages), (0, None))
    returned = [
        _thinking(reply)
        for _, reply in _replies(history)
        if _are_one(message, reply)
    ]
    if (
        returned
        and _thinking(message) not in returned
        and any(map(_thinking, messages))
    ):
        sentence = "the thinking of the last assistant message is not as it was returned"
        check.add(rule, f"messages[{at}].content", sentence)


def _replies(messages: Sequence[Any]) -> Iterator[tuple[int, JsonObject]]:
    """The assistant messages with their places, the last one first."""
    for at in range(len(messages) - 1, -1, -1):
        if name_in(messages[at], "role") == "assistant":
            yield at, messages[at]


def _are_one(sent: Any, returned: Any) -> bool:
    """Whether these are one message, but for its thinking and for what was cut beside calls."""
    calls = _calls(sent)
    return calls == _calls(returned) and (
        bool(calls) or _said(sent) == _said(returned)
    )


def _calls(message: Any) -> list[Any]:
    blocks = blocks_of(message)
    bodies = [block.get("toolUse") for block in blocks if type(block) is dict]
    ids = [name_in(body, "toolUseId") for body in bodies if body is not None]
    return ids + [
        b.get("id") for b in blocks if name_in(b, "type") == "tool_use"
    ]


def _said(message: Any) -> list[Any]:
    return [block for block in blocks_of(message) if not _is_thought(block)]


def _thinking(message: Any) -> list[Any]:
    return [block for block in blocks_of(message) if _is_thought(block)]


def _is_thought(block: Any) -> bool:
    is_reasoning = type(block) is dict and "reasoningContent" in block
    return is_reasoning or name_in(block, "type") in THOUGHTS


# -- OpenAI Responses ---------------------------------------------------------------------

_Group: TypeAlias = tuple[JsonObject, list[str], set[str]]
"""An item as returned, the ids of the reasoning it needs, and the names of what follows it."""


def _responses(check: Check, history: Sequence[Any]) -> None:
    """R3, R4 and R8.

    Within a reply, reasoning and the items that follow it up to the next reasoning are one
    group: the reasoning needs the first of them directly behind it, and each of them that is
    sent with its id needs the reasoning.
    """
    items, groups = check.messages, _groups(history)
    present: set[str] = set()
    for at, item in enumerate(items):
        name, where = _id_of(item), f"input[{at}]"
        returned, reasoning, follower = groups.get(name, (item, [], set()))
        if name in groups and item.get("encrypted_content") != returned.get(
            "encrypted_content"
        ):
            check.add(
                "R8",
                f"{where}.encrypted_content",
                "it is not as it was returned",
            )
        if type_of(item) == "reasoning":
            present.add(name)
            if follower and not follower & _names(items, at + 1):
                check.add(
                    "R3",
                    where,
                    "the item this reasoning was made with is missing",
                )
            continue
        for each in reasoning:
            if each not in present:
                sentence = f"this item was made with the reasoning {each[:64]!r}, which is missing"
                check.add("R4", where, sentence)


def _groups(history: Sequence[Any]) -> dict[str, _Group]:
    """Each item of the model by its id: itself, the reasoning it needs, what follows it."""
    found: dict[str, _Group] = {}
    reasoning: list[str] = []
    is_fresh = False
    for at, item in enumerate(history):
        kind = type_of(item)
        if kind is None or is_callers(item, kind):
            reasoning, is_fresh = [], False
            continue
        thinks = kind == "reasoning"
        if thinks:
            reasoning = [*(reasoning if is_fresh else ()), _id_of(item)]
        is_fresh = thinks
        if _id_of(item):
            found[_id_of(item)] = (
                item,
                reasoning,
                _names(history, at + 1) if thinks else set(),
            )
    return found


def _id_of(item: Any) -> str:
    return name_in(item, "id") or ""


def _names(items: Sequence[Any], at: int) -> set[str]:
    """What an item may be known by: its id, and the call_id of a call."""
    item = items[at] if at < len(items) else None
    call = name_in(item, "call_id") if type_of(item) in CALLS else None
    return {name for name in (name_in(item, "id"), call) if name}


# -- Gemini -------------------------------------------------------------------------------


def _gemini(check: Check, history: Sequence[Any]) -> None:
    """G7 and G8: no signature moved, made up or lost.

    A signature is compared as bytes: the SDK writes it in another alphabet of base64.
    """
    assert isinstance(check, gemini.GeminiCheck)
    came = [
        (_unsigned(part), seal)
        for _, part in _parts(history)
        if (seal := _signature(part))
    ]
    seals = {seal for _, seal in came}
    calls = [part for part, _ in came if part.get("functionCall")]
    lost = check.unsigned_steps()
    for where, part in _parts(check.messages):
        seal = _signature(part)
        if (
            seal
            and seal not in SENTINELS
            and (_unsigned(part), seal) not in came
        ):
            known = (
                "stands on another part" if seal in seals else "is not known"
            )
            check.add("G8", where, f"this signature {known}")
        if where.rpartition(".parts")[0] in lost and _unsigned(part) in calls:
            check.add("G7", where, "this call came with a signature")


def _parts(contents: Sequence[Any]) -> Iterator[tuple[str, JsonObject]]:
    for at, content in enumerate(contents):
        for index, part in enumerate(gemini.opened(content)[1]):
            yield f"contents[{at}].parts[{index}]", part


def _signature(part: JsonObject) -> str:
    """A part's signature in one alphabet of base64, or ``""``."""
    found = part.get("thoughtSignature")
    if isinstance(found, bytes):  # as the SDK's own types hold it
        found = b64encode(found).decode()
    if not isinstance(found, str) or found in SENTINELS:
        return found if isinstance(found, str) else ""
    return found.replace("-", "+").replace("_", "/").rstrip("=")


def _unsigned(part: JsonObject) -> JsonObject:
    return {
        name: value
        for name, value in part.items()
        if name != "thoughtSignature"
    }


_COMPARE: Mapping[str, Callable[[Check, Sequence[Any]], None]] = {
    "anthropic": partial(_newest_thinking, "A13"),
    "bedrock-converse": partial(_newest_thinking, "B13"),
    "openai-responses": _responses,
    "gemini": _gemini,
}

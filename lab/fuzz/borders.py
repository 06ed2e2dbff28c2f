"""What happens at the borders of a conversation, put into a history of `fuzz.histories`.

    joined            the session first sees the history when it is well under way
    seeded            the history begins with turns that hold no tool call
    changed in place  a message is replaced where it stands, several requests later
    allowed tools     requests name the tools that may be called

Each shape keeps the history legal at every request, so that `fuzz.trial` judges it as any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from msgspec.structs import replace

from lab.fuzz import converse
from lab.fuzz.breakages import result_text, with_result_text
from lab.fuzz.histories import FORMATS, Case, Change, case
from lab.fuzz.steps import TOOLS
from ullage.wires.anthropic.models import refuses_force

JOINED, SEEDED, CHANGED, ALLOWED = 0.4, 0.4, 0.4, 0.4
"""How often each shape is wanted."""
ALWAYS = 0.5
"""How often a choice of tools stands in every request, and not in some."""
PENDING = '{"status": "pending"}'
DRAFT = "a draft of what is asked"

_SEEDS = (
    (("assistant", "Got it. Thanks for the context!"),),
    (("user", "Example: what is 2 + 2?"), ("assistant", "4")),
    (
        ("user", "This is the context of the session."),
        ("assistant", "I have read it."),
        ("user", "Example: greet me."),
        ("assistant", "Good morning."),
    ),
)
_USER_COMES_FIRST = frozenset(("anthropic", "gemini", "bedrock-converse"))
_NOT_CHANGED = frozenset(
    ("compaction", "bound reasoning", "signed reasoning", "manual thinking")
)
"""What a caller who changes a message would make invalid by itself."""


def bordered(seed: int, number: int, formats: Sequence[str] = FORMATS) -> Case:
    """History ``number`` of a seed with some of the shapes of this module."""
    one = case(seed, number, formats)
    if one.repair:
        return one
    random = Random(f"{seed}/{number}/borders")
    if random.random() < SEEDED:
        one = _seeded(random, one)
    if random.random() < JOINED:
        one = _joined(random, one)
    if random.random() < CHANGED and not one.features & _NOT_CHANGED:
        one = _changed(random, one)
    if random.random() < ALLOWED:
        one = _allowed(random, one)
    return one


def _seeded(random: Random, one: Case) -> Case:
    """The history behind turns that the client put there before anybody spoke."""
    seeds = [
        seed
        for seed in _SEEDS
        if seed[0][0] == "user" or _may_begin(one.format)
    ]
    seed = [
        _spoken(one.format, role, text) for role, text in random.choice(seeds)
    ]
    if "manual thinking" in one.features:
        return (
            one  # an assistant turn without thinking may not stand there (A14)
        )
    return replace(
        one,
        messages=[*seed, *one.messages],
        lengths=[length + len(seed) for length in one.lengths],
        features=one.features | {"seeded"},
    )


def _may_begin(format: str) -> bool:
    """Whether an assistant may have the first word."""
    return format not in _USER_COMES_FIRST


def _spoken(format: str, role: str, text: str) -> dict[str, Any]:
    if format == "gemini":
        return {
            "role": "model" if role == "assistant" else role,
            "parts": [{"text": text}],
        }
    if format == "bedrock-converse":
        return {"role": role, "content": [{"text": text}]}
    return {"role": role, "content": text}


def _joined(random: Random, one: Case) -> Case:
    """The session does not see the first requests."""
    if len(one.lengths) < 2 or "manual thinking" in one.features:
        return one
    first = random.randrange(1, len(one.lengths))
    return replace(
        one,
        lengths=one.lengths[first:],
        models=one.models[first:],
        features=one.features | {"joined"},
    )


def _changed(random: Random, one: Case) -> Case:
    """One message stands otherwise in the first requests that hold it."""
    changes = [
        Change(index, until, earlier)
        for index, message in enumerate(one.messages)
        for until in one.lengths[1:]
        if index < one.lengths[one.lengths.index(until) - 1]
        if (earlier := _before(one.format, index, message)) is not None
    ]
    if not changes:
        return one
    features = one.features | {"changed in place"}
    return replace(one, changes=(random.choice(changes),), features=features)


def _before(
    format: str, index: int, message: dict[str, Any]
) -> dict[str, Any] | None:
    """What stood in a message's place: a pending result, or a draft of what the user said."""
    if len(result_text(message)) > len(PENDING):
        return with_result_text(message, PENDING)
    plain = "parts" in message or isinstance(message.get("content"), str)
    if (
        index
        and message.get("role") == "user"
        and plain
        and message == _only_text(message)
    ):
        return _spoken(format, "user", DRAFT)
    return None


def _only_text(message: dict[str, Any]) -> dict[str, Any]:
    """The message if it holds one text and nothing else, or an empty one."""
    parts = message.get("parts")
    if parts is None:
        return message
    return message if len(parts) == 1 and set(parts[0]) == {"text"} else {}


def _allowed(random: Random, one: Case) -> Case:
    """Requests declare tools, and say which of them may be called."""
    always = random.random() < ALWAYS
    choices = _CHOICES[one.format]
    thinks = "thinking" in one.request or "manual thinking" in one.features
    if thinks or any(map(refuses_force, one.models)):
        choices = choices[:1]  # no tool may be forced there (A24)
    choice = random.choice(choices)
    lengths = (
        one.lengths
        if always
        else random.sample(one.lengths, (len(one.lengths) + 1) // 2)
    )
    features = one.features | {"allowed tools"}
    if always:
        features |= {"allowed tools always"}
    request = one.request
    if one.format in _DECLARED:
        declared = [*request.get("tools", ()), *_DECLARED[one.format]]
        request = {**request, "tools": declared}
    return replace(
        one,
        request=request,
        choices=dict.fromkeys(lengths, choice),
        features=features,
    )


def may_call(view: dict[str, Any], names: frozenset[str]) -> bool:
    """Whether a request lets the model call one of these tools, if it declares any of them.

    Args:
        view: a request in any format.
        names: the names of the tools.
    """
    choice = view.get("tool_choice")
    config = view.get("toolConfig", {})
    forced = config.get("toolChoice", {}).get("tool")
    if forced is not None:
        return forced["name"] in names
    calling = config.get("functionCallingConfig", {})
    if choice == "none" or calling.get("mode") == "NONE":
        return False
    if calling:
        listed = calling.get("allowedFunctionNames")
        return listed is None or not names.isdisjoint(listed)
    if not isinstance(choice, dict) or choice["type"] in ("auto", "any"):
        return True
    if choice["type"] == "allowed_tools":
        listed = choice.get("allowed_tools", choice)["tools"]
        return any(
            tool.get("function", tool).get("name") in names for tool in listed
        )
    return choice.get("function", choice).get("name") in names


_SCHEMA = {"type": "object", "properties": {}}
_DECLARED: dict[str, list[dict[str, Any]]] = {
    "anthropic": [{"name": name, "input_schema": _SCHEMA} for name in TOOLS],
    "openai-chat": [
        {"type": "function", "function": {"name": name, "parameters": _SCHEMA}}
        for name in TOOLS
    ],
    "openai-responses": [
        {"type": "function", "name": name, "parameters": _SCHEMA}
        for name in TOOLS
    ],
    "gemini": [{"functionDeclarations": [{"name": name} for name in TOOLS]}],
    "ollama": [
        {"type": "function", "function": {"name": name, "parameters": _SCHEMA}}
        for name in TOOLS
    ],
}
_LISTED_CHAT = [
    {"type": "function", "function": {"name": name}} for name in TOOLS[:3]
]


def _of_chat(mode: str) -> dict[str, Any]:
    listed = {"mode": mode, "tools": _LISTED_CHAT}
    return {"type": "allowed_tools", "allowed_tools": listed}


_LISTED = [{"type": "function", "name": name} for name in TOOLS[:3]]
_CHOICES: dict[str, tuple[dict[str, Any], ...]] = {
    "anthropic": (
        {"tool_choice": {"type": "none"}},
        {"tool_choice": {"type": "tool", "name": TOOLS[0]}},
        {"tool_choice": {"type": "any"}},
    ),
    "openai-chat": (
        {"tool_choice": _of_chat("auto")},
        {"tool_choice": _of_chat("required")},
        {"tool_choice": "none"},
        {"tool_choice": _LISTED_CHAT[0]},
    ),
    "openai-responses": (
        {
            "tool_choice": {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": _LISTED,
            }
        },
        {
            "tool_choice": {
                "type": "allowed_tools",
                "mode": "required",
                "tools": _LISTED,
            }
        },
        {"tool_choice": "none"},
        {"tool_choice": _LISTED[0]},
    ),
    "gemini": tuple(
        {"toolConfig": {"functionCallingConfig": config}}
        for config in (
            {"mode": "ANY", "allowedFunctionNames": list(TOOLS[:3])},
            {"mode": "VALIDATED", "allowedFunctionNames": list(TOOLS[:3])},
            {"mode": "NONE"},
        )
    ),
    "ollama": ({},),  # a request has no word for it
    "bedrock-converse": (
        {"toolConfig": converse.tools(auto={})},
        {"toolConfig": converse.tools(any={})},
        {"toolConfig": converse.tools(tool={"name": TOOLS[0]})},
    ),
}
"""How a request of each format says which tools may be called."""

"""Random histories by number: the steps of `fuzz.steps` in a wire's words, and a window.

The window is drawn to be too small for the history, so that something must be cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from msgspec import Struct

from lab.fuzz import anthropic, chat, converse, gemini, ollama, responses
from lab.fuzz.breakages import break_one
from lab.fuzz.steps import Call, Page, Step, draw

WRITERS: dict[str, Callable[[Page, list[Step], frozenset[str]], None]] = {
    "anthropic": anthropic.write,
    "openai-chat": chat.write,
    "openai-responses": responses.write,
    "gemini": gemini.write,
    "ollama": ollama.write,
    "bedrock-converse": converse.write,
}
FORMATS = tuple(WRITERS)
NUMBERED = FORMATS[:4]
"""The wires whose histories are known by a number among each other's: in tests, and of old."""
_MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "openai-chat": "gpt-4.1",
    "openai-responses": "gpt-5.6",
    "gemini": "gemini-2.5-pro",
    "ollama": "gpt-oss:120b-cloud",
    "bedrock-converse": "anthropic.claude-sonnet-4-5-20250929-v1:0",
}
_SEARCH = {"type": "web_search_20250305", "name": "web_search"}
_USER_ENDS = ("anthropic", "bedrock-converse")
"""The wires on which a request ends with what the user says (A11, B9)."""
_KEYS = {"openai-responses": "input", "gemini": "contents"}
BOUND, FREE = "claude-opus-5-5", "claude-opus-4-8"
"""A model whose reasoning is bound to what is before it, and one whose is not."""
_MAKERS = {"bedrock-converse": "anthropic."}
"""What stands in front of a model's name on a wire."""
ONE_MODEL = 0.3
THINKS_AT_WILL = 0.5
_NO_LOOP = frozenset(
    (
        "broken",
        "compaction",
        "paused server tool",
        "mixed server tool",
        "server tool",
        "interrupted",
    )
)
"""With one of these it is not plain where a turn begins."""
CHANGES = 0.35
LARGE_CHARS = 5_000
_LEAST_TOKENS = {"anthropic": 1_800, "bedrock-converse": 1_800}
_CHARS_PER_TOKEN = 3.2
_MEDIA_TOKENS = 1_200
_HEAD_TOKENS = 750


class Change(Struct, frozen=True):
    """A message that the caller replaces where it stands.

    Attributes:
        index: which message of the history.
        until: the length of the first request that holds it as it is in the history.
        earlier: what stands in its place in the requests before.
    """

    index: int
    until: int
    earlier: dict[str, Any]


class Case(Struct, frozen=True):
    """One history to be tried.

    Attributes:
        number: which history of its seed.
        request: the whole request, without its messages.
        key: the field the messages go under.
        messages: the history.
        lengths: where requests were sent: each beginning of it that is to be shown.
        models: the model that each of them was for.
        limit_tokens: the most a prompt may hold.
        policy: the number of the policy, 0 for the default one.
        repair: the history is not legal, and is to be mended.
        features: what the history holds.
        changes: the messages that stand otherwise in earlier requests.
        choices: the choice of tools in the request of a length, as fields of the request.
    """

    number: int
    format: str
    request: dict[str, Any]
    key: str
    messages: list[dict[str, Any]]
    lengths: list[int]
    models: list[str]
    limit_tokens: int
    policy: int
    repair: bool
    features: frozenset[str]
    changes: tuple[Change, ...] = ()
    choices: dict[int, dict[str, Any]] = {}

    def beginning(self, length: int) -> list[dict[str, Any]]:
        """The messages of the request of a length."""
        messages = self.messages[:length]
        for change in self.changes:
            if change.index < length < change.until:
                messages[change.index] = change.earlier
        return messages

    def is_changed_at(self, length: int) -> bool:
        """Whether the request of a length is the first that holds a changed message."""
        return any(change.until == length for change in self.changes)


def case(seed: int, number: int, formats: Sequence[str] = FORMATS) -> Case:
    """History ``number`` of a seed, in one of these wires: each has its turn."""
    random = Random(f"{seed}/{number}")
    format = formats[number % len(formats)]
    steps, wanted = draw(random, format)
    page = Page(number)
    WRITERS[format](page, steps, wanted)
    messages = page.messages
    request = _request(random, format, wanted, page)
    repair = "broken" in wanted
    if repair:
        messages = break_one(random, format, messages)
        page.features.add("broken")
    if format in _USER_ENDS and messages[-1]["role"] == "assistant":
        go_on = "Go on." if format == "anthropic" else [{"text": "Go on."}]
        messages.append(
            {"role": "user", "content": go_on}
        )  # nothing is sent before
    page.features |= {
        name
        for step in steps
        for call in step.calls
        for name in _kinds_of(call)
    }
    seen = (
        0 if "manual thinking" in page.features else 1
    )  # any other session joins half-way
    lengths = [*page.lengths[seen:], len(messages)]
    if repair and format in _USER_ENDS:
        lengths = [
            n for n in lengths if messages[n - 1]["role"] != "assistant"
        ]
    size = _HEAD_TOKENS + sum(map(_size, steps))
    limit = max(
        _LEAST_TOKENS.get(format, 1_200),
        int(size * random.choice((0.3, 0.45, 0.6, 0.75, 0.9))),
    )
    policy = random.choice(
        (0, random.randrange(1, 10**6), random.randrange(1, 10**6))
    )
    if _thinks_once(Random(f"{seed}/{number}/once"), format, request, page):
        messages = anthropic.think_once(messages)
        request["thinking"] = {"type": "enabled", "budget_tokens": 1_024}
    models = _models(
        Random(f"{seed}/{number}/models"), request["model"], page, len(lengths)
    )
    features = frozenset(page.features)
    key = _KEYS.get(format, "messages")
    asked = (request, key, messages, lengths, models)
    return Case(number, format, *asked, limit, policy, repair, features)


def _thinks_once(
    random: Random, format: str, request: dict[str, Any], page: Page
) -> bool:
    """Whether thinking is manual and stands but at the beginning of each turn."""
    if (
        format != "anthropic"
        or request["model"] == BOUND
        or page.features & _NO_LOOP
    ):
        return False
    if random.random() < THINKS_AT_WILL:
        return False
    page.features.add("one thought a turn")
    return True


def _models(random: Random, model: str, page: Page, count: int) -> list[str]:
    """The model of each request. Some go back and forth between one that binds and one that not."""
    fixed = page.features & {"manual thinking", "broken"}
    if not is_bound(model) or fixed or random.random() < ONE_MODEL:
        return [model] * count
    free = model.replace(BOUND, FREE)
    models = [model]
    for _ in range(count - 1):
        other = free if models[-1] == model else model
        models.append(other if random.random() < CHANGES else models[-1])
    if free in models:
        page.features.add("another model")
    return models


def is_bound(model: str) -> bool:
    """Whether a model is the one whose reasoning is bound, under any wire's name."""
    return model.endswith(BOUND)


def _kinds_of(call: Call) -> Iterator[str]:
    """The features that show in a call whatever the wire."""
    if len(call.output) > LARGE_CHARS:
        yield "large output"
    if call.output[:1] == "[":
        yield "json output"
    if "text" in call.arguments:
        yield "large arguments"


def _size(step: Step) -> int:
    """About how many tokens a step costs."""
    chars = sum(
        len(call.output) + sum(map(len, call.arguments.values())) + 100
        for call in step.calls
    )
    pictures = sum(call.media is not None for call in step.calls) + (
        step.media is not None
    )
    return int(chars / _CHARS_PER_TOKEN) + 60 + pictures * _MEDIA_TOKENS


def _request(
    random: Random, format: str, wanted: frozenset[str], page: Page
) -> dict[str, Any]:
    """Everything of a request but its messages; the model's family decides about reasoning."""
    model = _MODELS[format]
    if format == "gemini":
        system = {"parts": [{"text": "You are an agent."}]}
        model = (
            "gemini-3-pro" if "signed reasoning" in page.features else model
        )
        return {"model": model, "systemInstruction": system}
    if format == "openai-responses":
        return {
            "model": model,
            "instructions": "You are an agent.",
            "store": False,
        }
    if format in ("openai-chat", "ollama"):
        return {"model": model}
    if format == "bedrock-converse":
        request = {
            "system": [{"text": "You are an agent."}],
            "toolConfig": converse.tools(),
        }
        thinking = _binds(wanted, page)
        if thinking is not None:
            model = f"{_MAKERS[format]}{BOUND}"
            request |= thinking and {"additionalModelRequestFields": thinking}
        return {"model": model, **request}
    if "note" in page.features:
        model = FREE  # the first one takes no system messages
    request = {"system": "You are an agent.", "tools": [_SEARCH]}
    thinking = _binds(wanted, page)
    if thinking is not None:
        model = BOUND
        request |= thinking
    return {"model": model, **request}


def _binds(wanted: frozenset[str], page: Page) -> dict[str, Any] | None:
    """The settings of thinking for a history whose reasoning is bound; None for any other."""
    thinks = page.features & {"signed reasoning", "sealed reasoning"}
    if not thinks or "bound reasoning" not in wanted:
        return None
    page.features.add("bound reasoning")
    if not anthropic.is_manual(wanted):
        return {}
    page.features.add("manual thinking")
    return {"thinking": {"type": "enabled", "budget_tokens": 1_024}}

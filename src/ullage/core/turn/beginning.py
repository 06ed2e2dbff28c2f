"""How a window is begun for a request: its limits, what is outside its messages, its tools."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from ullage.core.contract.format import RequestHead
from ullage.core.errors import ConfigError
from ullage.core.history import canon
from ullage.core.history.builder import WindowBuilder
from ullage.core.history.ledger import PolicyRecord
from ullage.core.tokens.catalog import advice, lookup
from ullage.core.turn import names
from ullage.core.turn.caches import HistoryCache, SessionCache
from ullage.core.turn.lessons import Lesson, limits_for, within
from ullage.core.turn.request import Envelope, Request
from ullage.core.turn.settings import Settings
from ullage.core.values.events import Event
from ullage.core.values.limits import Limits
from ullage.core.values.notices import Words

Tools: TypeAlias = tuple[dict[str, Any], ...]


class PreparedWindow(NamedTuple):
    """A window that is to be walked for a request.

    Attributes:
        builder: of the window.
        tools: the recall tools that are added to the request.
        offers: whether a call of one in the reply is ours to answer.
        events: what was found of the model's limits.
        lesson: what was learnt of the provider's limits in this conversation.
        limits: those that hold before that; None: the model's own, or those that are assumed.
    """

    builder: WindowBuilder
    tools: Tools
    offers: bool
    events: tuple[Event, ...]
    lesson: Lesson
    limits: Limits | None


def prepare_window(
    history: HistoryCache,
    opened: PolicyRecord,
    request: Request,
    settings: Settings,
    cache: SessionCache,
    added_tokens: int,
) -> PreparedWindow:
    """The window of a line, begun for this request.

    Args:
        history: the line of history that the request goes on.
        opened: what decides in it.
        request: the request at hand.
        settings: of the session at hand.
        cache: which unknown models were reported.
        added_tokens: room to leave for what will be added to the view.

    Raises:
        ConfigError: the model's window is not known, and the policy takes no other.
    """
    envelope = request.envelope
    policy = settings.policy
    words = names.words_of(opened, history.transcript, policy.toolset)
    tools, offers = _tools(request, words, settings.recall)
    if history.builder is None or history.builder.window.words != words:
        history.builder = WindowBuilder(
            history.transcript, history.meter, words
        )
    builder = history.builder
    lesson = settings.lessons.of(history.transcript, envelope.model)
    given = _given(envelope, settings)
    assumed, events = _assumed(envelope, given, settings, cache, lesson)
    limits = limits_for(envelope.model, given or assumed, lesson)
    asked_tokens = envelope.head.asked_output_tokens
    events += _large_reserve(envelope, limits, cache)
    limit_tokens = limits.prompt_tokens(asked_tokens)
    context_tokens = limits.window_tokens
    if (
        lesson.room_tokens is not None
    ):  # a refusal's own arithmetic, the answer left out of it
        whole = limits_for(
            envelope.model, given or assumed, Lesson()
        ).prompt_tokens(asked_tokens)
        limit_tokens = context_tokens = min(lesson.room_tokens, whole)
    builder.limit(
        limit_tokens,
        context_tokens,
        _head_tokens(history, envelope.head, tools) + added_tokens,
        (*envelope.head.texts, *envelope.head.schemas),
    )
    builder.reason(envelope.reasoning, thinks_first=envelope.thinks_first)
    return PreparedWindow(builder, tools, offers, tuple(events), lesson, given)


def _tools(
    request: Request, words: Words, recall: bool | Literal["auto", "host"]
) -> tuple[Tools, bool]:
    """The recall tools to be added, and whether a call of one in the reply is ours to answer."""
    envelope = request.envelope
    if not words.recall:
        return (), False
    if recall == "host" or names.holds(request, words.prefix, words.toolset):
        return (), True
    if not envelope.takes_tools or (recall == "auto" and not envelope.tools):
        return (), False
    is_renamed = bool(words.former)
    tools = names.definitions(
        request.wire, words.prefix, words.toolset, is_renamed=is_renamed
    )
    return tools, True


def _given(envelope: Envelope, settings: Settings) -> Limits | None:
    """The limits of the session, within the window that the request asks for."""
    window_tokens = envelope.window_tokens
    if window_tokens is None:
        return settings.limits
    limits = settings.limits or Limits(window_tokens=window_tokens)
    return within(limits, window_tokens)


def _assumed(
    envelope: Envelope,
    given: Limits | None,
    settings: Settings,
    cache: SessionCache,
    lesson: Lesson,
) -> tuple[Limits | None, list[Event]]:
    """The limits of a window that nobody tells, as the policy wants them, told of once."""
    model = envelope.model
    default = envelope.default_tokens
    info = lookup(model)
    rule = settings.policy.unknown_model
    is_known = info.known and default is None
    if is_known or given is not None or lesson.window_tokens is not None:
        return None, []
    unknown = f"no window is known for {model!r}"
    if rule == "error":
        remedy = "Give limits=Limits(window_tokens=…)."
        raise ConfigError("model", f"{unknown}{advice(model)}", remedy)
    limits = Limits(
        window_tokens=rule if rule != "warn" else default or info.window_tokens
    )
    if model in cache.unknown_models:
        return limits, []
    cache.unknown_models.add(model)
    whose = (
        ""
        if default is None
        else ", as its server has without options.num_ctx"
    )
    reason = f"{unknown}; {limits.window_tokens:,} tokens are assumed{whose}{advice(model)}"
    return limits, [Event(kind="unknown_model", where="model", why=reason)]


def _large_reserve(
    envelope: Envelope, limits: Limits, cache: SessionCache
) -> list[Event]:
    """That the answer which is asked takes half of the window, told of once.

    Some clients ask for the longest answer of a model always, whatever the window.
    """
    asked_tokens = envelope.head.asked_output_tokens
    if asked_tokens is None or not limits.asks_too_much(asked_tokens):
        return []
    if envelope.model in cache.large_reserves:
        return []
    cache.large_reserves.add(envelope.model)
    reason = (
        f"an answer of {asked_tokens:,} tokens is asked in a window of "
        f"{limits.window_tokens:,}: half is kept for it, and "
        f"{limits.prompt_tokens(asked_tokens):,} are left for the prompt"
    )
    return [Event(kind="large_reserve", where="max_tokens", why=reason)]


def _head_tokens(
    history: HistoryCache, head: RequestHead, tools: Tools
) -> int:
    """Tokens of the head and of the tools that are added to it; counted when they change."""
    if history.head is None or history.head[:2] != (head, tools):
        meter = history.meter
        tool_texts = [canon.canonical_json(tool) for tool in tools]
        tokens = meter.head((*head.texts, *tool_texts))
        for schema in head.schemas:
            tokens += meter.text(schema)
        history.head = (head, tools, tokens)
    return history.head[2]

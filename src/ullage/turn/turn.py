"""One turn, from a provider's request to a request that fits.

    request ──parse──▶ transcript ──engine──▶ window ──render──▶ request
                           ▲                     │
                     Find: the ledger      Commit: what was set aside, and the edits

A turn is a generator of effects; `ullage.session.drivers` runs it. What lasts between turns is one
frozen `State`; the `Memo` beside it only saves time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ullage.errors import ConfigError, FormatError
from ullage.history import canon
from ullage.history.builder import WindowBuilder
from ullage.history.ledger import Ledger, Observed, Opened
from ullage.history.transcript import Transcript
from ullage.history.window import Window
from ullage.spend.cost import cost_usd
from ullage.stages.policy import Policy
from ullage.tokens.catalog import lookup
from ullage.turn.batches import Fitted
from ullage.turn.engine import fit
from ullage.turn.filling import Asking
from ullage.turn.memo import Line, Memo
from ullage.values.effects import Commit, Find, Output, Record, Steps
from ullage.values.events import Event
from ullage.values.limits import Limits
from ullage.values.notices import Words
from ullage.values.toolset import RECALL_TOOLS, Toolset
from ullage.values.usage import Usage
from ullage.wires import Format, Head, format_of, recognise
from ullage.wires.base import field, text_at
from ullage.wires.repaired import Repaired, news, remember

__all__ = ["Settings", "State", "Turned", "observe", "turn", "wire_of"]

_CLASH_PREFIX = "ullage_"
Tools: TypeAlias = tuple[dict[str, Any], ...]

_HELD_ELSEWHERE = (
    "previous_response_id",
    "conversation",
    "cachedContent",
    "cached_content",
)


class Settings(Struct, frozen=True, kw_only=True):
    """What a session was asked to be. See `ullage.Session` for the meaning of each."""

    model: str
    policy: Policy
    limits: Limits | None = None
    format: Format | None = None
    tenant: str = ""
    recall: bool | Literal["auto"] = "auto"
    repair: bool = False
    asking: Asking | None = None


class State(Struct, frozen=True, kw_only=True):
    """Everything a session knows between two turns. Small, frozen, serialisable.

    Attributes:
        format: name of the wire format, pinned by the first request.
        opened: how the session began, pinned by the first request.
        ledger: what was decided and observed, by place in the chain.
        usage: the sum of everything reported.
        cost_usd: what that cost at list price; None once a reply had no known price.
    """

    format: str | None = None
    opened: Opened | None = None
    ledger: Ledger = Ledger()
    usage: Usage = Usage()
    cost_usd: float | None = 0.0


class Turned(Struct, frozen=True):
    """What a turn gives.

    Attributes:
        request: a new request that fits; untouched messages are the caller's own objects.
        state: the state after it.
        events: what happened, in order.
        window: the window behind the request.
    """

    request: dict[str, Any]
    state: State
    events: tuple[Event, ...]
    window: Window


def turn(
    request: Mapping[str, Any],
    state: State,
    memo: Memo,
    settings: Settings,
    added_tokens: int = 0,
    *,
    now: bool = False,
) -> Steps[Turned]:
    """Make a request fit.

    Args:
        request: a request of one of the formats, with the whole history. Never changed.
        state: what the last turn left.
        memo: what is remembered for speed.
        settings: how the session is to behave.
        added_tokens: room to leave for what will be added to the view.
        now: compact, whatever the pressure.

    Raises:
        FormatError: the request is not what its format says it is.
        OverLimitError: it cannot be made to fit.
        StoreError: what is set aside could not be kept. Then no view is returned.
    """
    wire = _format(request, state, settings)
    model = text_at(request.get("model") or settings.model, "model")
    memo.meter_for(model, wire.media_detail(request))
    request, repaired, fresh = _repaired(request, wire, model, memo, settings)
    raws = wire.history(request)
    head = memo.head(request, wire)
    lost: tuple[Record, ...] = ()
    while True:
        state = replace(state, format=wire.name, ledger=state.ledger.with_records(lost))
        root = canon.root(wire.name, settings.tenant)
        line, is_new = memo.follow(raws, head.leading, wire, root)
        events: list[Event] = []
        records: list[Record] = []
        if is_new:
            state = yield from _look_up(line.transcript, state)
            state, events, records = _open(line.transcript, state, request, model, settings, wire)
            opened = state.opened or Opened("", recall=False)
            words = _words(opened, settings.policy)
            line.builder = line.builder_for(words, memo.meter)
        try:
            tools = _added_tools(request, model, wire, line.window.words)
            events += _measure(line.builder, head, tools, model, settings, memo, added_tokens)
            reasoning, first = wire.reasoning(request, model), wire.thinks_first(request)
            line.builder.reason(reasoning, thinks_first=first)
            joined = any(event.kind == "joined" for event in events)
            asking, policy = settings.asking, settings.policy
            steps = fit(line.builder, state.ledger, policy, joined=joined, asking=asking, now=now)
            fitted = yield from steps
            lost = yield from _keep(fitted, records, fresh.outputs)
        except BaseException:
            memo.forget(line)  # the window moved on, but what it decided was not kept
            raise
        if not lost:
            memo.keep(line)
            memo.repaired = remember(repaired, memo.repaired)
            memo.outdate(line.window, (record.key for record in fitted.records))
            state = replace(state, ledger=fitted.ledger)
            rendered = _render(request, head, tools, line, wire)
            told = (*fresh.events, *events, *fitted.events)
            return Turned(rendered, state, told, line.window)
        memo.forget(line)


def _format(request: Mapping[str, Any], state: State, settings: Settings) -> Format:
    for key in _HELD_ELSEWHERE:
        if request.get(key) or field(request.get("config"), key):
            raise FormatError(
                key,
                "the history is held by the provider, not in this request",
                "Send the whole history in the request, or send this request unfitted.",
            )
    return wire_of(state, settings) or recognise(request, settings.model)


def wire_of(state: State, settings: Settings) -> Format | None:
    """The format that a conversation has, or is to have; None while that is open.

    Raises:
        ConfigError: the conversation is in a format that was not given and is not known.
    """
    given = settings.format
    if state.format is None or (given is not None and given.name == state.format):
        return given
    return format_of(state.format)


def _repaired(
    request: Mapping[str, Any], wire: Format, model: str, memo: Memo, settings: Settings
) -> tuple[Mapping[str, Any], Repaired, Repaired]:
    """The request with a history that its provider takes, what was repaired, and what of it now."""
    if not settings.repair:
        return request, Repaired(()), Repaired(())
    from ullage.wires.repair.apply import repair  # loaded for a session that repairs, no other

    raws = wire.history(request)
    found = repair(wire, raws, memo.repaired, strips=wire.reasoning(request, model) == "strip")
    if found.messages is not raws:
        request = wire.compose(request, list(found.messages), ())
    return request, found, news(found, memo.repaired)


def _look_up(transcript: Transcript, state: State) -> Steps[State]:
    """Fetch what the store holds for this line of history."""
    records = yield Find(tuple(transcript.chain[1:]))
    return replace(state, ledger=state.ledger.with_records(records)) if records else state


def _open(
    transcript: Transcript,
    state: State,
    request: Mapping[str, Any],
    model: str,
    settings: Settings,
    wire: Format,
) -> tuple[State, list[Event], list[Record]]:
    """Pin how the session runs: as it was opened before, or as is right for this history."""
    if state.opened is not None:
        return state, [], []
    known = (state.ledger.at(key).opened for key in transcript.chain)
    found = next((opened for opened in known if opened is not None), None)
    if found is not None:
        return replace(state, opened=found), [], []
    tools = wire.tools(request)
    toolset = settings.policy.toolset
    present = all(tool in tools for tool in recall_tools(wire, "", toolset))
    clash = not present and any(wire.tool_name(tool) in RECALL_TOOLS for tool in tools)
    under_way = any(message.role == "assistant" for message in transcript.messages)
    recall, takes = settings.recall, wire.takes_tools(request, model)
    if recall == "auto":
        recall = present or (toolset.offered and not under_way and takes)
    elif recall and not (present or takes):
        raise ConfigError(
            "recall",
            f"{model!r} takes no functions in this request",
            "Give recall=False, another wire format, or a function beside the provider's tools.",
        )
    opened = Opened(settings.policy.name, recall, _CLASH_PREFIX if clash else "")
    ledger, record = state.ledger.with_opened(transcript.chain[-1], opened)
    events = [_joined(len(transcript), recall)] if under_way else []
    return replace(state, opened=opened, ledger=ledger), events, [record]


def _words(opened: Opened, policy: Policy) -> Words:
    directory = policy.spill_directory
    place = directory if isinstance(directory, str) else None
    return Words(opened.recall, opened.prefix, policy.toolset, place)


def _joined(messages: int, recall: bool) -> Event:
    tools = "are offered" if recall else "are not offered; recall=True adds them"
    why = (
        f"{messages:,} messages stood before this session first saw them: its cuts count as one "
        f"batch, reasoning bound to the whole history may be dropped, and recall tools {tools}"
    )
    return Event(kind="joined", where="the whole history", why=why)


def _measure(
    builder: WindowBuilder,
    head: Head,
    tools: Tools,
    model: str,
    settings: Settings,
    memo: Memo,
    added_tokens: int,
) -> list[Event]:
    """Set the window's limit and the tokens of what stands outside its messages."""
    events = []
    limits = settings.limits
    if limits is None:
        info = lookup(model)
        window_tokens = info.window_tokens
        if not info.known:
            window_tokens = _assumed(model, settings.policy.unknown_model, info.window_tokens)
        limits = Limits(window_tokens=window_tokens)
        if not info.known and model not in memo.unknown_models:
            memo.unknown_models.add(model)
            why = f"no window is known for {model!r}; {window_tokens:,} tokens are assumed"
            events = [Event(kind="unknown_model", where="model", why=why)]
    builder.limit(
        limits.prompt_tokens(head.asked_output_tokens),
        limits.window_tokens,
        memo.head_tokens(head, tools) + added_tokens,
        (*head.texts, *head.schemas),
    )
    return events


def _assumed(model: str, rule: Literal["warn", "error"] | int, cautious_tokens: int) -> int:
    """The window of a model nobody knows, as the policy wants it."""
    if rule == "error":
        raise ConfigError(
            "model", f"no window is known for {model!r}", "Give limits=Limits(window_tokens=…)."
        )
    return cautious_tokens if rule == "warn" else rule


def _keep(
    fitted: Fitted, opened: list[Record], repaired: Iterable[Output]
) -> Steps[tuple[Record, ...]]:
    """Commit what was set aside and decided; returns the records that stand in our place."""
    records, outputs = (*opened, *fitted.records), (*repaired, *fitted.outputs.values())
    if not outputs and not records:
        return ()
    lost: tuple[Record, ...] = yield Commit(outputs, records)
    return lost


def _render(
    request: Mapping[str, Any], head: Head, tools: Tools, line: Line, wire: Format
) -> dict[str, Any]:
    """The view as a request: untouched messages are the caller's own objects."""
    raws = wire.history(request)
    messages = line.rendering.messages(raws, line.copies, head.leading, line.window, wire)
    return wire.compose(request, messages, tools)


def _added_tools(request: Mapping[str, Any], model: str, wire: Format, words: Words) -> Tools:
    """The recall tools, unless they are not offered or the request holds or takes none."""
    if not words.recall:
        return ()
    ours, present = recall_tools(wire, words.prefix, words.toolset), wire.tools(request)
    if all(tool in present for tool in ours):
        return ()
    return ours if wire.takes_tools(request, model) else ()


@lru_cache(maxsize=32)
def recall_tools(wire: Format, prefix: str, toolset: Toolset) -> Tools:
    """The tools of a toolset in the wire form of a format; constant within a session."""
    return tuple(wire.tool(replace(spec, name=prefix + spec.name)) for spec in toolset.tools)


def observe(usage: Usage, state: State, window: Window) -> Steps[State]:
    """Take in what a provider reported for the newest view. Records only, decides nothing.

    Args:
        usage: the classes of tokens it reported.
        state: the state the view was made with.
        window: the window behind the view.
    """
    price = cost_usd(usage, lookup(window.meter.model))
    spent = None if price is None or state.cost_usd is None else state.cost_usd + price
    state = replace(state, usage=state.usage + usage, cost_usd=spent)
    if usage.sent_tokens <= 0:
        return state  # a stream without usage says nothing about the context (F63)
    observed = Observed(usage.sent_tokens, window.tokens, usage.output_tokens)
    key = window.transcript.decision_key(window.size)
    ledger, record = state.ledger.with_observed(key, observed)
    yield Commit((), (record,))
    return replace(state, ledger=ledger)

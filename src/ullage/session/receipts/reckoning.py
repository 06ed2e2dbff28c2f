"""What a request would have come to without ullage, and what recall took of it.

What was sent is measured: the provider reports it. What would have been sent is that and what was
left out, in the provider's tokens: our own count of what differs, times what the provider reported
for each token that we counted. So where nothing was left out, both are the same to the token.

    left out before the newest reply    it would have been read from the cache, as far as the
                                        provider read what we sent before from it
    left out of what is new             it would have been written to the cache, or is fresh
    a prefix that we broke, or made     it would have been read from the cache, if the request
    too short for a cache               before was not longer ago than a cache lives

Not in it are our own tools, and what the model asked them for: calls, pages, and requests that
were made for nothing else. That is what recall cost.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ullage.core.history import canon
from ullage.core.history.measures import Measure
from ullage.core.history.remembered import REMEMBERED
from ullage.core.history.window import Window
from ullage.core.turn import names
from ullage.core.values.messages import (
    Media,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from ullage.core.values.receipts import ReceiptTotals, TokenCounts
from ullage.core.values.usage import Usage
from ullage.session.spend.calls import Spent
from ullage.session.spend.cost import cost_usd, price_of
from ullage.session.view import RequestInfo

_BREAKS = frozenset(
    (
        "pruned",
        "condensed",
        "compacted",
        "reasoning",
        "cut",
        "joined",
        "changed",
        "renamed",
    )
)
"""Events of a view that shows what was sent before otherwise."""
_SHORT_TOKENS = 8_192
"""A prompt of twice the least that any provider caches (`provider-rules` §3.4): of one that is no
longer, the prompt before may have been too short for a cache."""
_LIVES_S = 300.0
"""How long a cache lives: the vendors' usual time."""
_LIVES_LONG_S = 3_600.0
"""And the longer one that may be paid for."""
_HIT_SHARE = 0.8
"""From this share on what was sent before was in the cache: the rest is rounding, and ours."""
_MOST_SCALE = 2.0
"""A provider that reports so many times what we count, or so much less, counts something else."""
_NEVER_RECALL = frozenset((Text, Reasoning, Media))
"""Kinds of parts that neither call a tool nor answer a call."""


class RangeTokens(Struct):
    """Tokens of some messages of a history, as we count them.

    Attributes:
        raw: tokens as they came, without recall.
        view: tokens as they are in the view.
        recall: of those, tokens of recall: calls and pages.
    """

    raw: int = 0
    view: int = 0
    recall: int = 0


class RequestCounts(Struct, frozen=True, kw_only=True):
    """One request, counted in our own tokens.

    Attributes:
        prefix: what the request before it held, without the head.
        suffix: what came since then: the newest reply and what follows it.
        head: tokens of the head without our tools.
        tools: tokens of our tools in it.
        recalls: how many calls of the newest reply are of recall.
        recall_output: tokens of these calls.
        is_extra: whether it was made for recall alone.
        is_first: whether it is the first of its conversation.
        model: the model it was made for.
        tokens: uncalibrated tokens of the whole view.
        breaks: whether its view changes what was sent before, which breaks the prompt cache.
        begins: names its conversation, by the first message.
        wire: the name of its wire.
    """

    prefix: RangeTokens
    suffix: RangeTokens
    head: int
    tools: int
    recalls: int = 0
    recall_output: int = 0
    is_extra: bool = False
    is_first: bool = False
    model: str = ""
    tokens: int = 0
    breaks: bool = False
    begins: bytes = b""
    wire: str = ""


def sums_of(
    request: RequestCounts,
    usage: Usage,
    *,
    is_reported: bool = True,
    caches: bool = False,
    gap_s: float = 0.0,
) -> ReceiptTotals:
    """What one request came to, and would have come to.

    Args:
        request: it, as the session counts it.
        usage: what the provider reported; our estimate where it reported nothing.
        is_reported: whether it did.
        caches: whether a prompt cache was seen at work in this conversation before.
        gap_s: how long ago the reply before this one came.
    """
    caches = caches or bool(
        usage.cache_read_tokens or usage.cache_write_tokens
    )
    lives_s = _LIVES_LONG_S if usage.long_write_tokens else _LIVES_S
    raw, without_recall = _reckoned(
        usage, request, is_warm=caches and gap_s < lives_s
    )
    price = price_of(request.model, request.wire)
    tokens = _tokens(usage)
    sent_usd = cost_usd(usage, price)
    raw_usd = sent_usd if raw is usage else cost_usd(raw, price)
    cheaper_usd = (
        sent_usd
        if without_recall is usage
        else cost_usd(without_recall, price)
    )
    is_priced = (
        sent_usd is not None
        and raw_usd is not None
        and cheaper_usd is not None
    )
    return ReceiptTotals(
        requests=1,
        conversations=int(request.is_first),
        unreported=int(not is_reported),
        unpriced=int(not is_priced),
        unbilled=int(not price.is_billed),
        sent=tokens,
        raw=tokens if raw is usage else _tokens(raw),
        recalls=request.recalls,
        recall_tokens=(
            0
            if without_recall is usage
            else usage.input_tokens - without_recall.input_tokens
        ),
        sent_usd=sent_usd or 0.0 if is_priced else 0.0,
        raw_usd=raw_usd or 0.0 if is_priced else 0.0,
        recall_usd=(sent_usd or 0.0) - (cheaper_usd or 0.0)
        if is_priced
        else 0.0,
    )


def raw_prompt_tokens(request: RequestCounts, usage: Usage) -> int:
    """Tokens of a request's prompt without ullage: those that its receipt has.

    Args:
        request: it, as the session counts it.
        usage: what the provider reported.
    """
    raw, _ = _reckoned(usage, request, is_warm=False)
    return _tokens(raw).prompt


def as_it_came(
    usage: Usage, model: str, wire: str = "", *, is_reported: bool = True
) -> ReceiptTotals:
    """The sums of a request that was sent as it came: the same on both sides.

    Args:
        usage: what its reply came to; our estimate where nothing was reported.
        model: the model that was called.
        wire: the name of its wire; ``""`` if it is not known.
        is_reported: whether the provider reported it.
    """
    price = price_of(model, wire)
    usd = cost_usd(usage, price)
    tokens = _tokens(usage)
    return ReceiptTotals(
        requests=1,
        unreported=int(not is_reported),
        unpriced=int(usd is None),
        unbilled=int(not price.is_billed),
        sent=tokens,
        raw=tokens,
        sent_usd=usd or 0.0,
        raw_usd=usd or 0.0,
    )


def beside(spent: Spent) -> ReceiptTotals:
    """The sums of summaries that a model wrote: without ullage nobody would have asked for them.

    Args:
        spent: what they cost.
    """
    return ReceiptTotals(
        unpriced=int(spent.cost_usd is None),
        sent=_tokens(spent.usage),
        sent_usd=spent.cost_usd or 0.0,
    )


def counted(
    info: RequestInfo, window: Window | None = None, *, adds_tools: bool = True
) -> RequestCounts:
    """A request as the session counts it: what is old and new, raw and shown.

    On a working window the work is proportional to what is new: the window keeps running sums.

    Args:
        info: the view that was sent.
        window: what shows the same as the view; None: the frozen one, which is summed up again.
        adds_tools: whether recall tools in it are ours, not the caller's own.
    """
    window = window or info.window
    transcript = window.transcript
    size = window.size
    start = transcript.turn_start(size)
    is_first = not size or transcript.messages[start].role != "assistant"
    end = 0 if is_first else transcript.decision_index(size)
    left_out = window.tally(_LEFT_OUT, with_hidden=True)
    recall = window.tally(_RECALL)
    suffix = RangeTokens(
        view=window.tokens_from(start),
        recall=sum(recall.each[start:]),
    )
    suffix_left_out = sum(left_out.each[start:])
    tokens = window.tokens
    view_tokens = (
        tokens
        - window.head_tokens
        - (_added_tokens(window) if window.added else 0)
    )
    prefix = RangeTokens(
        view=view_tokens - suffix.view, recall=recall.sum - suffix.recall
    )
    summaries = window.summaries_tokens if window.summaries else 0
    prefix.raw = (
        prefix.view
        - summaries
        - prefix.recall
        + left_out.sum
        - suffix_left_out
    )
    suffix.raw = suffix.view - suffix.recall + suffix_left_out
    tools = _tools_tokens(info) if adds_tools and info.offers else 0
    # of what a summary hides the sum tells nothing
    may_recall = any(recall.each[start:end]) or bool(window.summaries)
    recalls = _recall_calls(window, start, end) if may_recall else 0
    return RequestCounts(
        prefix=prefix,
        suffix=suffix,
        head=window.head_tokens - tools,
        tools=tools,
        recalls=recalls,
        recall_output=sum(
            _recall_tokens(window, at) for at in range(start, end)
        )
        if recalls
        else 0,
        is_extra=bool(recalls) and _is_extra(window, start, end, recalls),
        is_first=is_first,
        model=info.model,
        tokens=tokens,
        breaks=bool(info.events)
        and any(event.kind in _BREAKS for event in info.events),
        begins=transcript.chain[min(1, size)],
        wire=info.wire.wire,
    )


def _reckoned(
    usage: Usage, request: RequestCounts, *, is_warm: bool
) -> tuple[Usage, Usage]:
    """The usage without ullage; and the usage with it, but without recall."""
    scale = _scale(request, usage)
    prefix = request.prefix
    suffix = request.suffix
    hit = _hit_share(usage, request, scale)
    # without ullage this request would not have been made: its words alone would be paid for
    if request.is_extra:
        output = max(usage.output_tokens - request.recall_output, 0)
        return Usage(output_tokens=output), Usage(
            output_tokens=usage.output_tokens
        )
    pages = (
        scale * prefix.recall * hit,
        scale * (prefix.recall * (1 - hit) + suffix.recall),
    )
    without = _less(usage, *pages)
    left_out = prefix.raw - prefix.view - request.tools
    if is_warm and (request.breaks or _is_short(usage, hit)):
        read = scale * (request.head + prefix.raw)
        more = scale * suffix.raw
        nothing = replace(
            usage, fresh_tokens=0, cache_read_tokens=0, cache_write_tokens=0
        )
        return _less(nothing, -read, -more, into=usage), without
    more = left_out * (1 - hit) + suffix.raw - suffix.view
    return _less(usage, -scale * left_out * hit, -scale * more), without


def _is_short(usage: Usage, hit: float) -> bool:
    """Whether what was sent before may have been too short for a cache."""
    return hit < _HIT_SHARE and usage.input_tokens < _SHORT_TOKENS


def _less(
    usage: Usage, read: float, uncached: float, *, into: Usage | None = None
) -> Usage:
    """A usage of fewer tokens: of those read from the cache, and of the others.

    The others are those written to the cache, where the provider of ``into`` writes any; else
    fresh. No class falls below nought: what is left over is taken from the next one.
    """
    if not (into or read or uncached):
        return (
            usage
            if usage.prompt_tokens is None
            else replace(usage, prompt_tokens=None)
        )
    into = into or usage
    writes = bool(into.cache_write_tokens)
    fresh = usage.fresh_tokens
    written = usage.cache_write_tokens
    rest = usage.cache_read_tokens - round(read)
    if writes:
        written -= round(uncached)
    else:
        fresh -= round(uncached)
    for _ in range(2):  # what one class lacks the others have
        lack = sum(min(count, 0) for count in (fresh, written, rest))
        fresh = max(fresh, 0)
        written = max(written, 0)
        rest = max(rest, 0)
        moved = min(rest, -lack)
        rest -= moved
        lack += moved
        moved = min(written, -lack)
        written -= moved
        lack += moved
        fresh += lack
    long_share = (
        into.long_write_tokens / into.cache_write_tokens if writes else 0.0
    )
    return replace(
        usage,
        fresh_tokens=max(fresh, 0),
        cache_read_tokens=rest,
        cache_write_tokens=written,
        long_write_tokens=round(written * long_share),
        prompt_tokens=None,
    )


def _scale(request: RequestCounts, usage: Usage) -> float:
    """How many tokens the provider counts for each of ours."""
    reported = usage.sent_tokens or usage.input_tokens
    if not request.tokens or not reported:
        return 1.0
    scale = reported / request.tokens
    return min(max(scale, 1 / _MOST_SCALE), _MOST_SCALE)


def _hit_share(usage: Usage, request: RequestCounts, scale: float) -> float:
    """The share of the prefix that the provider read from its cache, from 0 to 1."""
    prefix_tokens = scale * (
        request.head + request.tools + request.prefix.view
    )
    if prefix_tokens <= 0:
        return 0.0
    share = usage.cache_read_tokens / prefix_tokens
    return 1.0 if share >= _HIT_SHARE else share


def _added_tokens(window: Window) -> int:
    """Tokens of the user's texts that the provider still reads."""
    placed = (
        placed
        for placed in window.added
        if placed.message_index >= window.read_from
    )
    return window.texts_tokens([one.edit.text for one in placed])


def _left_out_tokens(window: Window, index: int) -> int:
    """Tokens of a message as it came that are not in the view; less than 0 where it grew.

    What recall put into a message was never left out.
    """
    is_hidden = window.hidden(index)
    if not (
        is_hidden
        or index in window.changed
        or index in window.reasoning_dropped
    ):
        return 0
    full_tokens = window.meter.framing(
        window.transcript.messages[index]
    ) + sum(window.leaf_counts(index))
    return full_tokens - (
        _recall_tokens(window, index)
        if is_hidden
        else window.message_tokens(index)
    )


def _recall_tokens(window: Window, index: int) -> int:
    """Tokens of recall in a message: calls with their frames, or pages with theirs."""
    parts = window.transcript.messages[index].parts
    overhead = window.meter.overhead
    total = 0
    for number, part in enumerate(parts):
        if type(part) in _NEVER_RECALL or not window.is_recall(
            (index, number, 0)
        ):
            continue
        items = len(part.content) if isinstance(part, ToolResult) else 1
        frame = (
            overhead.call if isinstance(part, ToolCall) else overhead.result
        )
        total += frame if items else 0
        total += sum(
            window.leaf_tokens((index, number, item)) for item in range(items)
        )
    return total


_LEFT_OUT = Measure("ullage.left_out", _left_out_tokens)
_RECALL = Measure("ullage.recall", _recall_tokens)


def _recall_calls(window: Window, start: int, end: int) -> int:
    """How many calls of some messages are of recall."""
    messages = window.transcript.messages
    is_recall = window.words.is_recall
    return sum(
        is_recall(call.name, at)
        for at in range(start, end)
        for call in messages[at].calls
    )


def _is_extra(window: Window, start: int, end: int, recalls: int) -> bool:
    """Whether the newest reply called recall alone, and nothing else came since."""
    messages = window.transcript.messages
    calls = [part for message in messages[start:end] for part in message.calls]
    answers = [
        part
        for message in messages[end : window.size]
        for part in message.parts
    ]
    is_answered = bool(answers) and all(
        isinstance(part, ToolResult) for part in answers
    )
    return recalls == len(calls) and is_answered


def _tools_tokens(info: RequestInfo) -> int:
    """Tokens of our tools, as they stand in a view; counted once in this process."""
    words = info.words
    meter = info.frozen.meter
    naming = words.prefix, words.toolset, bool(words.former)
    key = (
        "recall tools",
        info.wire.name,
        *naming,
        meter.counts_as,
        meter.overhead.tool,
    )
    tokens: int | None = REMEMBERED.get(key)
    if tokens is None:
        prefix, toolset, is_renamed = naming
        tools = names.definitions(
            info.wire, prefix, toolset, is_renamed=is_renamed
        )
        texts = [canon.canonical_json(tool) for tool in tools]
        tokens = sum(meter.overhead.tool + meter.text(text) for text in texts)
        REMEMBERED.put(key, tokens, sum(map(len, texts)))
    return tokens


def _tokens(usage: Usage) -> TokenCounts:
    return TokenCounts(
        fresh=usage.fresh_tokens,
        read=usage.cache_read_tokens,
        written=usage.cache_write_tokens,
        output=usage.output_tokens,
    )

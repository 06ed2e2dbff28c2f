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

from collections.abc import Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from ullage.core.history import canon
from ullage.core.history.transcript import leaves_of
from ullage.core.history.window import Window
from ullage.core.tokens.catalog import lookup
from ullage.core.turn import names
from ullage.core.values.messages import ToolCall, ToolResult
from ullage.core.values.receipts import Sums, Tokens
from ullage.core.values.usage import Usage
from ullage.session.spend.calls import Spent
from ullage.session.spend.cost import cost_usd
from ullage.session.view import Sent

_BREAKS = frozenset(
    ("pruned", "condensed", "compacted", "reasoning", "cut", "joined", "changed", "renamed")
)
"""Events of a view that shows what was sent before otherwise."""
_SHORT_TOKENS = 8_192
"""A prompt of twice the least that any provider caches (`provider-rules` §3.4): of one that is no
longer, the prompt before may have been too short for a cache."""
_LIVES_S, _LIVES_LONG_S = 300.0, 3_600.0
"""How long a cache lives: the vendors' usual time, and the longer one that may be paid for."""
_HIT_SHARE = 0.8
"""From this share on what was sent before was in the cache: the rest is rounding, and ours."""
_MOST_SCALE = 2.0
"""A provider that reports so many times what we count, or so much less, counts something else."""


class Side(Struct):
    """Some messages of a history, counted as the session counts.

    Attributes:
        raw: tokens as they came, without recall.
        shown: tokens as they are in the view.
        recall: of those, tokens of recall: calls and pages.
    """

    raw: int = 0
    shown: int = 0
    recall: int = 0


class Request(Struct, frozen=True, kw_only=True):
    """One request, counted as the session counts.

    Attributes:
        old: what the request before it held, the head left out.
        new: what came since then: the newest reply and what follows it.
        head: tokens of the head without our tools.
        tools: tokens of our tools in it.
        recalls: how many calls of the newest reply are of recall.
        recall_output: tokens of these calls.
        is_extra: whether it was made for recall alone.
        is_first: whether it is the first of its conversation.
    """

    old: Side
    new: Side
    head: int
    tools: int
    recalls: int = 0
    recall_output: int = 0
    is_extra: bool = False
    is_first: bool = False


def sums_of(
    sent: Sent,
    usage: Usage,
    *,
    is_reported: bool = True,
    caches: bool = False,
    gap_s: float = 0.0,
    adds_tools: bool = True,
) -> Sums:
    """What one request came to, and would have come to.

    Args:
        sent: the view that was sent, and the window behind it. It takes time proportional to its
            length, so this is no work for a turn.
        usage: what the provider reported; our estimate where it reported nothing.
        is_reported: whether it did.
        caches: whether a prompt cache was seen at work in this conversation before.
        gap_s: how long ago the reply before this one came.
        adds_tools: whether recall tools in it are ours, not the caller's own.
    """
    request = counted(sent, adds_tools=adds_tools)
    caches = caches or bool(usage.cache_read_tokens or usage.cache_write_tokens)
    lives_s = _LIVES_LONG_S if usage.long_write_tokens else _LIVES_S
    raw, without_recall = _reckoned(sent, usage, request, is_warm=caches and gap_s < lives_s)
    price = lookup(sent.model)
    sent_usd, raw_usd, cheaper_usd = (
        cost_usd(each, price) for each in (usage, raw, without_recall)
    )
    is_priced = sent_usd is not None and raw_usd is not None and cheaper_usd is not None
    return Sums(
        requests=1,
        conversations=int(request.is_first),
        unreported=int(not is_reported),
        unpriced=int(not is_priced),
        sent=_tokens(usage),
        raw=_tokens(raw),
        recalls=request.recalls,
        recall_tokens=usage.input_tokens - without_recall.input_tokens,
        sent_usd=sent_usd or 0.0 if is_priced else 0.0,
        raw_usd=raw_usd or 0.0 if is_priced else 0.0,
        recall_usd=(sent_usd or 0.0) - (cheaper_usd or 0.0) if is_priced else 0.0,
    )


def as_it_came(usage: Usage, model: str) -> Sums:
    """What a request came to that was sent as it came: the same on both sides."""
    usd = cost_usd(usage, lookup(model))
    tokens = _tokens(usage)
    return Sums(
        requests=1,
        unpriced=int(usd is None),
        sent=tokens,
        raw=tokens,
        sent_usd=usd or 0.0,
        raw_usd=usd or 0.0,
    )


def beside(spent: Spent) -> Sums:
    """What summaries cost that a model wrote: without ullage nobody would have asked for them."""
    return Sums(
        unpriced=int(spent.cost_usd is None),
        sent=_tokens(spent.usage),
        sent_usd=spent.cost_usd or 0.0,
    )


def counted(sent: Sent, *, adds_tools: bool = True) -> Request:
    """A request as the session counts it: what is old and new, raw and shown."""
    window, messages = sent.window, sent.transcript.messages
    size = window.size
    asks = [index for index in range(size) if messages[index].role == "assistant"]
    end = asks[-1] + 1 if asks else 0
    start = end
    while start and messages[start - 1].role == "assistant":
        start -= 1
    old, new = Side(), Side()
    for index in range(size):
        side = old if index < start else new
        recall = _recall_tokens(window, index)
        is_hidden = window.hidden(index)
        is_touched = is_hidden or index in window.changed or index in window.reasoning_dropped
        shown = 0 if is_hidden else window.message_tokens(index)
        side.raw += (_as_it_came(window, index) if is_touched else shown) - recall
        side.shown += shown
        side.recall += 0 if is_hidden else recall
    old.shown += window.summaries_tokens
    tools = _tools_tokens(sent) if adds_tools and sent.offers else 0
    replies = range(start, end)
    return Request(
        old=old,
        new=new,
        head=window.head_tokens - tools,
        tools=tools,
        recalls=sum(1 for index in replies for _ in _recall_calls(window, index)),
        recall_output=sum(_recall_tokens(window, index) for index in replies),
        is_extra=_is_extra(window, start, end),
        is_first=not asks,
    )


def _reckoned(sent: Sent, usage: Usage, request: Request, *, is_warm: bool) -> tuple[Usage, Usage]:
    """What would have been reported without ullage; and of what was, that without recall."""
    scale = _scale(sent, usage)
    old, new = request.old, request.new
    hit = _hit_share(usage, request, scale)
    if request.is_extra:
        output = max(usage.output_tokens - request.recall_output, 0)
        return Usage(output_tokens=output), Usage(output_tokens=usage.output_tokens)
    pages = scale * old.recall * hit, scale * (old.recall * (1 - hit) + new.recall)
    without = _less(usage, *pages)
    left_out = old.raw - old.shown - request.tools
    is_broken = any(event.kind in _BREAKS for event in sent.events)
    is_short = hit < _HIT_SHARE and usage.input_tokens < _SHORT_TOKENS
    if is_warm and (is_broken or is_short):
        read, more = scale * (request.head + old.raw), scale * new.raw
        nothing = replace(usage, fresh_tokens=0, cache_read_tokens=0, cache_write_tokens=0)
        return _less(nothing, -read, -more, into=usage), without
    more = left_out * (1 - hit) + new.raw - new.shown
    return _less(usage, -scale * left_out * hit, -scale * more), without


def _less(usage: Usage, read: float, uncached: float, *, into: Usage | None = None) -> Usage:
    """A usage of fewer tokens: of those read from the cache, and of the others.

    The others are those written to the cache, where the provider of ``into`` writes any; else
    fresh. No class falls below nought: what is left over is taken from the next one.
    """
    into = into or usage
    writes = bool(into.cache_write_tokens)
    fresh, written = usage.fresh_tokens, usage.cache_write_tokens
    rest = usage.cache_read_tokens - round(read)
    if writes:
        written -= round(uncached)
    else:
        fresh -= round(uncached)
    for _ in range(2):  # what one class lacks the others have
        lack = sum(min(count, 0) for count in (fresh, written, rest))
        fresh, written, rest = max(fresh, 0), max(written, 0), max(rest, 0)
        taken = min(rest, -lack)
        rest, lack = rest - taken, lack + taken
        taken = min(written, -lack)
        written, lack = written - taken, lack + taken
        fresh += lack
    long_share = into.long_write_tokens / into.cache_write_tokens if writes else 0.0
    return replace(
        usage,
        fresh_tokens=max(fresh, 0),
        cache_read_tokens=rest,
        cache_write_tokens=written,
        long_write_tokens=round(written * long_share),
        prompt_tokens=None,
    )


def _scale(sent: Sent, usage: Usage) -> float:
    """The provider's tokens for each of ours."""
    reported = usage.sent_tokens or usage.input_tokens
    scale = reported / sent.tokens if sent.tokens and reported else 1.0
    return min(max(scale, 1 / _MOST_SCALE), _MOST_SCALE)


def _hit_share(usage: Usage, request: Request, scale: float) -> float:
    """How much of what was sent before the provider read from its cache, from 0 to 1."""
    before = scale * (request.head + request.tools + request.old.shown)
    share = usage.cache_read_tokens / before if before > 0 else 0.0
    return 1.0 if share >= _HIT_SHARE else share


def _as_it_came(window: Window, index: int) -> int:
    message = window.transcript.messages[index]
    return window.meter.framing(message) + sum(window.leaf_counts(index))


def _recall_tokens(window: Window, index: int) -> int:
    """Tokens of recall in a message: calls with their frames, or pages with theirs."""
    message, overhead = window.transcript.messages[index], window.meter.overhead
    total = 0
    for number, item, _ in leaves_of(message):
        spot = (index, number, item)
        if window.is_recall(spot):
            is_call = isinstance(message.parts[number], ToolCall)
            frame = overhead.call if is_call else overhead.result
            total += window.leaf_tokens(spot) + frame * (is_call or not item)
    return total


def _recall_calls(window: Window, index: int) -> Iterator[ToolCall]:
    """The calls of a message that are of recall."""
    for part in window.transcript.messages[index].parts:
        if isinstance(part, ToolCall) and window.words.is_recall(part.name, index):
            yield part


def _is_extra(window: Window, start: int, end: int) -> bool:
    """Whether the newest reply called recall alone, and nothing else came since."""
    messages = window.transcript.messages
    calls = [part for message in messages[start:end] for part in message.calls]
    asked = sum(1 for index in range(start, end) for _ in _recall_calls(window, index))
    after = [part for message in messages[end : window.size] for part in message.parts]
    is_answered = bool(after) and all(isinstance(part, ToolResult) for part in after)
    return bool(calls) and asked == len(calls) and is_answered


def _tools_tokens(sent: Sent) -> int:
    """Tokens of our tools, as they stand in a view."""
    words, meter = sent.words, sent.frozen.meter
    tools = names.definitions(sent.wire, words.prefix, words.toolset, is_renamed=bool(words.former))
    count: Callable[[str], int] = meter.text
    return sum(meter.overhead.tool + count(canon.canonical_json(tool)) for tool in tools)


def _tokens(usage: Usage) -> Tokens:
    return Tokens(
        fresh=usage.fresh_tokens,
        read=usage.cache_read_tokens,
        written=usage.cache_write_tokens,
        output=usage.output_tokens,
    )

"""A conversation of a store, turn by turn, without the history that its caller has.

The store keeps an outline of each request, with the tokens that its provider reported, and every
decision; and what the same prompts would have held without ullage, as the receipts reckon it. That
is enough for the same picture that a replay draws. What is not kept is worked out: four characters
count as a token, scaled so that each request comes to what was reported, and a cache is taken to
hold what stayed the same since the request before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from ullage.core.history.ledger import UsageRecord
from ullage.core.history.outline import Outline
from ullage.core.values.edits import Replace, ReplaceSpan
from ullage.session.stored.conversation import (
    CHARS_PER_TOKEN,
    Leaf,
    StoredConversation,
)
from ullage.tools.replay.stored import StoredRun
from ullage.tools.replay.trace import (
    KINDS,
    SHORTENED,
    STUB,
    SUMMED_UP,
    WHOLE,
    Role,
    Trace,
    TracedEdit,
    TracedPart,
    TracedRun,
)
from ullage.tools.replay.tracer import clipped

_SHOWN_CHARS = 900
_MEDIA_TOKENS = 1_600
"""The most that an image counts for: its characters are bytes, and say little of its tokens."""
_NO_LIMIT = 1_000_000_000
_TEXTS = ("text", "call", "result")
_AT = {kind: index for index, kind in enumerate(KINDS)}
_NOTICE_CHARS = 300
"""The most that a notice has: what is longer are lines that are kept."""
_FIRST_SIGHT = "a large result was shortened when it arrived"


class Savings(Struct, frozen=True):
    """What one conversation sent, and would have sent without ullage, over all its requests.

    Attributes:
        requests: how many.
        sent_tokens: of their prompts, as the provider reported them.
        raw_tokens: reckoned: of the same prompts without ullage.
    """

    requests: int
    sent_tokens: int
    raw_tokens: int

    @property
    def saved_share(self) -> float:
        """What was saved, as a share of what would have been sent."""
        return (
            1 - self.sent_tokens / self.raw_tokens if self.raw_tokens else 0.0
        )


def savings_of(stored: StoredConversation, trace: Trace) -> Savings:
    """What a conversation comes to over all its requests, as `ullage run` reckons it.

    A request that was made only to open what was set aside would not have been made.

    Args:
        stored: the conversation.
        trace: of it.
    """
    sent_tokens = sum(map(sum, trace.sizes))
    raw_tokens = 0
    for outline, reckoned_tokens in zip(
        stored.outlines, trace.raw, strict=True
    ):
        report = _report(stored, outline)
        if report is None or report.raw_tokens < 0:
            raw_tokens += reckoned_tokens
        else:
            raw_tokens += report.raw_tokens
    return Savings(len(trace.lengths), sent_tokens, raw_tokens)


def from_outline(stored: StoredConversation) -> StoredRun:
    """Show a conversation turn by turn, from what its store keeps.

    Args:
        stored: the conversation.
    """
    trace = _trace(stored)
    return StoredRun(
        policy=trace.policy,
        trace=trace,
        story=_story(stored),
        bills=[],
        unfit=0,
    )


def _trace(stored: StoredConversation) -> Trace:
    limit_tokens = stored.outline.limit_tokens or _NO_LIMIT
    trace = Trace(
        policy=_policy(stored),
        window_tokens=limit_tokens,
        limit_tokens=limit_tokens,
    )
    spans = _span_chars(stored)
    batch_indexes = [
        index
        for index, key in enumerate(stored.transcript.chain)
        if stored.ledger.at(key).batches
    ]
    leaves: list[Leaf] = []
    states: dict[int, int] = {}
    length = 0
    head_tokens = -1
    earlier: list[float] = []
    for turn, outline in enumerate(stored.outlines):
        if any(length < index <= outline.length for index in batch_indexes):
            leaves = stored.leaves(outline.length)
        else:
            leaves += stored.leaves(outline.length, start=length)
        length = outline.length
        record_tokens = _tokens_of_spans(leaves, spans)
        sent_tokens = _sent_tokens(stored, outline)
        if head_tokens < 0:
            head_tokens = max(sent_tokens - int(sum(map(_shown, leaves))), 0)
        sizes, scale = _sizes(leaves, sent_tokens, head_tokens, record_tokens)
        left_out = (
            sum(map(_whole, leaves)) - sum(map(_shown, leaves)) - record_tokens
        )
        trace.lengths.append(length)
        trace.sizes.append(sizes)
        raw_tokens = sent_tokens + max(round(left_out * scale), 0)
        report = _report(stored, outline)
        if report is not None and report.raw_tokens > 0:
            raw_tokens = report.raw_tokens
        trace.raw.append(raw_tokens)
        messages = _by_message(leaves, length, head_tokens + record_tokens)
        _take_cache(trace, earlier, messages, sent_tokens)
        earlier = messages
        now = _states(leaves)
        trace.changes.extend(
            (turn, index, now.get(index, WHOLE))
            for index in sorted({*now, *states})
            if now.get(index, WHOLE) != states.get(index, WHOLE)
        )
        states = now
    trace.marks.extend(sorted(_marks(stored), key=lambda mark: mark.turn))
    return trace


def _policy(stored: StoredConversation) -> str:
    """The policy that the conversation was opened under last."""
    records = [
        record
        for key in stored.transcript.chain
        for record in stored.ledger.at(key).policies
    ]
    return records[-1].policy if records else "default"


# ── counting ─────────────────────────────────────────────────────────────────────────────


def _report(
    stored: StoredConversation, outline: Outline
) -> UsageRecord | None:
    """What the provider reported for a request; None: nothing."""
    key = stored.transcript.decision_key(outline.length)
    observed = stored.ledger.at(key).observed
    return observed.get(outline.model) or next(iter(observed.values()), None)


def _sent_tokens(stored: StoredConversation, outline: Outline) -> int:
    """Tokens of a request as its provider reported them; else as they were estimated."""
    report = _report(stored, outline)
    return outline.tokens if report is None else report.reported_tokens


def _whole(leaf: Leaf) -> float:
    """Tokens of a leaf, unscaled, without any edit."""
    tokens = leaf.chars / CHARS_PER_TOKEN
    return tokens if leaf.kind in _TEXTS else min(tokens, _MEDIA_TOKENS)


def _shown(leaf: Leaf) -> float:
    """Tokens of a leaf, unscaled, as it is shown."""
    if leaf.state == "whole":
        return _whole(leaf)
    return leaf.shown_chars / CHARS_PER_TOKEN


def _kind(leaf: Leaf) -> str:
    """What a leaf is of, as it is shown (`KINDS`)."""
    kind = _kind_of_original(leaf)
    if leaf.state == "set aside" or (
        kind == "result" and leaf.state != "whole"
    ):
        is_line = leaf.shown_chars <= _NOTICE_CHARS
        return "notice" if is_line else "excerpt"
    return kind


def _kind_of_original(leaf: Leaf) -> str:
    if leaf.kind == "call":
        return "call"
    if leaf.kind == "result" or leaf.tool:
        return "result"
    return {"system": "head", "tool": "result"}.get(leaf.role, leaf.role)


def _sizes(
    leaves: list[Leaf],
    sent_tokens: int,
    head_tokens: int,
    record_tokens: float,
) -> tuple[list[int], float]:
    """Tokens of a request by kind, their sum as it was reported, and the scale of our count."""
    counts = [0.0] * len(KINDS)
    counts[_AT["record"]] = record_tokens
    for leaf in leaves:
        counts[_AT[_kind(leaf)]] += _shown(leaf)
    messages_tokens = max(sent_tokens - head_tokens, 0)
    scale = messages_tokens / sum(counts) if sum(counts) else 1.0
    sizes = [int(count * scale) for count in counts]
    # what rounding leaves over is the head's, so that the sum is the reported one
    sizes[_AT["head"]] += sent_tokens - sum(sizes)
    return sizes, scale


def _span_chars(stored: StoredConversation) -> Mapping[str, int]:
    """How many characters stand in place of a run of messages, by the ref of the run."""
    return {
        edit.ref: sum(map(len, edit.texts))
        for _, batch, is_undone in stored.batches()
        for edit in batch.edits
        if isinstance(edit, ReplaceSpan) and not is_undone
    }


def _tokens_of_spans(leaves: list[Leaf], spans: Mapping[str, int]) -> float:
    refs = {leaf.ref for leaf in leaves if leaf.ref in spans}
    return sum(spans[ref] for ref in refs) / CHARS_PER_TOKEN


def _by_message(leaves: list[Leaf], length: int, begins: float) -> list[float]:
    """Unscaled tokens that are shown of each message, behind those of the head."""
    tokens = [begins, *(0.0 for _ in range(length))]
    for leaf in leaves:
        tokens[leaf.message + 1] += _shown(leaf)
    return tokens


def _take_cache(
    trace: Trace, earlier: list[float], messages: list[float], sent_tokens: int
) -> None:
    """Reckon what a prompt cache would have read: what is the same as in the request before."""
    same = 0
    while (
        same < min(len(earlier), len(messages))
        and earlier[same] == messages[same]
    ):
        same += 1
    total = sum(messages)
    scale = sent_tokens / total if total else 0.0
    read = min(round(sum(messages[:same]) * scale), sent_tokens)
    trace.cached.append(read)
    trace.written.append(sent_tokens - read)
    trace.fresh.append(0)
    trace.rewritten.append(round(sum(earlier[same:]) * scale))
    trace.cost_usd.append(None)
    trace.raw_cost_usd.append(None)


# ── what changed ─────────────────────────────────────────────────────────────────────────


def _states(leaves: list[Leaf]) -> dict[int, int]:
    """Every message that is not shown whole, and how it is shown."""
    states: dict[int, int] = {}
    for leaf in leaves:
        if leaf.state == "whole":
            continue
        state = SHORTENED
        if leaf.state == "set aside":
            state = STUB if leaf.shown_chars else SUMMED_UP
        states[leaf.message] = max(state, states.get(leaf.message, WHOLE))
    return states


def _marks(stored: StoredConversation) -> Iterator[TracedEdit]:
    """Every edit, with the request that was the first to show it."""
    lengths = [outline.length for outline in stored.outlines]
    chain = stored.transcript.chain
    index_of = {key: index for index, key in reversed(list(enumerate(chain)))}
    leaves = stored.leaves()
    for leaf in leaves:
        if leaf.state == "in short" and not leaf.batch:
            yield _mark(
                leaf,
                turn=_turn_of(lengths, leaf.message + 1),
                kind="truncated",
                reason=_FIRST_SIGHT,
            )
    by_ref: dict[str, list[Leaf]] = {}
    for leaf in leaves:
        by_ref.setdefault(leaf.ref, []).append(leaf)
    for handle, batch, is_undone in stored.batches():
        if is_undone:
            continue
        turn = _turn_of(lengths, index_of[handle.key])
        for edit in batch.edits:
            if isinstance(edit, Replace | ReplaceSpan):
                yield from _marks_of(edit, turn, by_ref.get(edit.ref, []))


def _marks_of(
    edit: Replace | ReplaceSpan, turn: int, leaves: list[Leaf]
) -> Iterator[TracedEdit]:
    """The mark of an edit that still shows; of one that a later edit covers there is none."""
    if not leaves:
        return
    text = edit.text
    if isinstance(edit, ReplaceSpan):
        text = "\n\n".join(edit.texts)
        start = leaves[0].message
        stop = leaves[-1].message + 1
        yield TracedEdit(
            turn=turn,
            message=start,
            stop=stop,
            kind=edit.kind,
            is_new=False,
            subject=f"messages {start + 1} to {stop}",
            reason=edit.why,
            ref=edit.ref,
            tokens_before=int(sum(map(_whole, leaves))),
            tokens_after=len(text) // CHARS_PER_TOKEN,
            text=clipped(text, _SHOWN_CHARS),
        )
        return
    yield _mark(
        leaves[0],
        turn=turn,
        kind=edit.kind,
        reason=edit.why,
        ref=edit.ref,
        text=text,
    )


def _mark(
    leaf: Leaf,
    *,
    turn: int,
    kind: str,
    reason: str,
    ref: str = "",
    text: str = "",
) -> TracedEdit:
    return TracedEdit(
        turn=turn,
        message=leaf.message,
        stop=leaf.message + 1,
        kind=kind,
        is_new=kind == "truncated",
        subject=f"{leaf.tool or leaf.role} {leaf.head}"[:120],
        reason=reason,
        ref=ref,
        tokens_before=int(_whole(leaf)),
        tokens_after=int(_shown(leaf)),
        text=clipped(text, _SHOWN_CHARS),
    )


def _turn_of(lengths: list[int], length: int) -> int:
    """The first request that had at least so many messages."""
    turns = (turn for turn, size in enumerate(lengths) if size >= length)
    return next(turns, len(lengths) - 1)


# ── the messages ─────────────────────────────────────────────────────────────────────────


def _story(stored: StoredConversation) -> TracedRun:
    parts: list[list[TracedPart]] = [[] for _ in stored.messages]
    for leaf in stored.leaves():
        tokens = int(_whole(leaf))
        part = TracedPart(
            _kind(leaf), leaf.tool, leaf.head, tokens, leaf.chars
        )
        parts[leaf.message].append(part)
    roles: list[Role] = [message.role for message in stored.messages]  # type: ignore[misc]
    clipped_texts = sum(
        part.chars > len(part.text) for message in parts for part in message
    )
    return TracedRun(
        run=stored.outline.name,
        head="",
        roles=roles,
        parts=parts,
        clipped=clipped_texts,
        model=stored.outline.model,
    )

"""What left a conversation's window: when, why, by whom, what it cost and what it saves.

    StoredConversation ──why_of──▶ WindowRecord ─┬─ breaks of the prompt cache
                                                 ├─ batches
                                                 └─ what left, by tool, MCP server and file

All of it follows from what a store keeps: the outlines, the ledger, and what was reported of each
request. Tokens that are not sent are reckoned, at four characters a token; a saved dollar is one
that reading them from the cache would have cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ullage.core.history.hand import name_of
from ullage.core.tokens.catalog import lookup
from ullage.core.values.cache_breaks import CacheBreak
from ullage.core.values.edits import Batch, Replace, ReplaceSpan
from ullage.core.values.usage import Usage
from ullage.session.prompt_cache.sent import SentRequest
from ullage.session.spend.cost import cost_usd
from ullage.session.stored.conversation import (
    CHARS_PER_TOKEN,
    Leaf,
    StoredConversation,
)

_MILLION = 1_000_000
_MEDIA_TOKENS = 1_600
"""The most that an image counts for: its characters are bytes."""
_TEXTS = ("text", "call", "result")
_STAGES = {
    "without_slack": "large result",
    "equal_shares": "large results",
}
"""What stages of ours are called where people read it; any other by its own name."""


class BreakNote(NamedTuple):
    """A break of the prompt cache, and the request that it came with.

    Attributes:
        request: the number of the request, from 1.
        at_s: when its reply came, in seconds since 1970.
        broken: the break.
    """

    request: int
    at_s: int
    broken: CacheBreak


class BatchNote(NamedTuple):
    """What left the window at once.

    Attributes:
        name: the short name, which `undo` takes.
        author: by whom: the stage of ullage's, or the user.
        request: the number of the first request that showed it, from 1; 0: none was answered yet.
        at_s: when that was, in seconds since 1970; 0: not known.
        why: the reason.
        texts: how many texts left with it first, so that the batches add up to what left.
        cut_before: how many more it took that an earlier batch had cut already.
        tools: whose results they all are, the most first.
        tokens_before: of the view before it, as estimated.
        tokens_after: of the view after it.
        requests: how many requests were sent without them.
        saved_usd: what these would have cost more, reckoned; None: no price is known.
        broken: what it cost: the break of the cache; None: it broke none.
        is_undone: whether it was taken back.
    """

    name: str
    author: str
    request: int
    at_s: int
    why: str
    texts: int
    cut_before: int
    tools: tuple[str, ...]
    tokens_before: int
    tokens_after: int
    requests: int
    saved_usd: float | None
    broken: CacheBreak | None
    is_undone: bool

    @property
    def fewer_tokens(self) -> int:
        """How much shorter it made a request."""
        return max(self.tokens_before - self.tokens_after, 0)


class LeftOut(NamedTuple):
    """What of one tool, MCP server or file is not in the window.

    Attributes:
        name: of the tool, the server or the file.
        texts: how many texts.
        tokens: about how many tokens of them are left out of each request.
        unsent_tokens: the same, over all requests so far.
        saved_usd: what these would have cost, reckoned; None: no price is known.
    """

    name: str
    texts: int = 0
    tokens: int = 0
    unsent_tokens: int = 0
    saved_usd: float | None = 0.0


class CauseTotal(NamedTuple):
    """The breaks by one party.

    Attributes:
        party: whose doing they are.
        breaks: how many.
        tokens: that were billed again.
        cost_usd: what that cost; None: no price is known.
    """

    party: str
    breaks: int = 0
    tokens: int = 0
    cost_usd: float | None = 0.0


class WindowRecord(NamedTuple):
    """What happened to the window of one conversation.

    Attributes:
        name: of the conversation.
        requests: how many were answered.
        cost_usd: what these cost at list price; None: a price is not known.
        breaks: of the prompt cache, in order.
        causes: the same by party, the dearest first.
        batches: in order.
        tools: what left, by tool.
        servers: what left, by MCP server.
        files: what left, by file.
    """

    name: str
    requests: int
    cost_usd: float | None
    breaks: tuple[BreakNote, ...]
    causes: tuple[CauseTotal, ...]
    batches: tuple[BatchNote, ...]
    tools: tuple[LeftOut, ...]
    servers: tuple[LeftOut, ...]
    files: tuple[LeftOut, ...]


def why_of(stored: StoredConversation) -> WindowRecord:
    """What happened to the window of a conversation, from its store alone.

    Args:
        stored: the conversation.
    """
    requests = [request for _, request in stored.sent]
    leaves = stored.leaves()
    breaks = tuple(
        BreakNote(number, request.at_s, request.broken)
        for number, request in enumerate(requests, 1)
        if request.broken is not None
    )
    costs = [_cost_usd(request) for request in requests]
    by = _Requests(stored)
    return WindowRecord(
        name=stored.outline.name,
        requests=len(requests),
        cost_usd=_sum(costs),
        breaks=breaks,
        causes=causes_of(note.broken for note in breaks),
        batches=tuple(_batch_notes(stored, leaves, by)),
        tools=_left_out(leaves, by, lambda leaf: leaf.tool),
        servers=_left_out(leaves, by, lambda leaf: server_of(leaf.tool)),
        files=_left_out(leaves, by, lambda leaf: leaf.file),
    )


def causes_of(breaks: Iterable[CacheBreak]) -> tuple[CauseTotal, ...]:
    """Breaks summed up by party, the one with the most tokens first.

    Args:
        breaks: in any order.
    """
    totals: dict[str, CauseTotal] = {}
    for broken in breaks:
        total = totals.get(broken.party, CauseTotal(broken.party))
        totals[broken.party] = CauseTotal(
            broken.party,
            total.breaks + 1,
            total.tokens + broken.tokens,
            _sum((total.cost_usd, broken.cost_usd)),
        )
    return tuple(
        sorted(totals.values(), key=lambda total: total.tokens, reverse=True)
    )


def server_of(tool: str) -> str:
    """The MCP server of a tool, by the names that agents give: ``mcp__SERVER__TOOL``.

    Args:
        tool: the name of the tool.

    Returns:
        The server; ``""`` where the name tells of none.
    """
    parts = tool.split("__")
    if parts[0] == "mcp" and len(parts) > 2:
        return parts[1]
    return parts[0] if len(parts) == 2 and all(parts) else ""


# ── requests ─────────────────────────────────────────────────────────────────────────────


class _Requests:
    """The answered requests of a conversation, by how many messages they had."""

    def __init__(self, stored: StoredConversation) -> None:
        self.places = [place for place, _ in stored.sent]
        self.sent = [request for _, request in stored.sent]
        self._read_usd = lookup(stored.outline.model).prices.cache_read_usd
        self._batches = {
            name_of(handle): stored.transcript.find(handle.key) or 0
            for handle, _, _ in stored.batches()
        }

    def without(self, leaf: Leaf) -> int:
        """How many were sent without a text that is not whole."""
        if leaf.batch:
            return self.since_place(self._batches.get(leaf.batch, 0))
        return sum(request.size > leaf.message for request in self.sent)

    def since_place(self, place: int) -> int:
        """How many were sent at a place of the chain, or behind it."""
        return sum(at >= place for at in self.places)

    def at_place(self, place: int) -> int:
        """The number of the first at a place or behind it, from 1; 0: there is none."""
        for number, at in enumerate(self.places, 1):
            if at >= place:
                return number
        return 0

    def saved_usd(self, tokens: int) -> float | None:
        """What it would have cost to read so many tokens from the cache."""
        if self._read_usd is None:
            return None
        return tokens * self._read_usd / _MILLION


def _cost_usd(request: SentRequest) -> float | None:
    fresh, read, written, long_written, output = request.usage
    usage = Usage(
        fresh_tokens=fresh,
        cache_read_tokens=read,
        cache_write_tokens=written,
        long_write_tokens=long_written,
        output_tokens=output,
    )
    return cost_usd(usage, lookup(request.model))


def _sum(costs: Iterable[float | None]) -> float | None:
    """Costs together; None if one of them is not known."""
    total = 0.0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total


# ── batches ──────────────────────────────────────────────────────────────────────────────


def _batch_notes(
    stored: StoredConversation, leaves: Sequence[Leaf], by: _Requests
) -> Iterable[BatchNote]:
    broken_by = {
        request.broken.name: request.broken
        for request in by.sent
        if request.broken is not None and request.broken.name
    }
    authors = {
        entry.name: entry.decision.author or "a user"
        for entry in stored.hand.decisions
    }
    cut_so_far = set[str]()
    for handle, batch, is_undone in stored.batches():
        if not batch.edits:
            continue
        name = name_of(handle)
        place = stored.transcript.find(handle.key) or 0
        number = by.at_place(place)
        author = author_of(batch)
        if batch.decision:
            author = authors.get(batch.decision, "a user")
        requests = 0 if is_undone else by.since_place(place)
        cut_leaves = stored.cut_by(batch, leaves)
        names = {leaf.name for leaf in cut_leaves}
        cut_before = 0 if is_undone else len(names & cut_so_far)
        if not is_undone:
            cut_so_far |= names
        fewer = max(batch.tokens_before - batch.tokens_after, 0)
        yield BatchNote(
            name=name,
            author=author,
            request=number,
            at_s=by.sent[number - 1].at_s if number else 0,
            why=_reason(batch),
            texts=len(cut_leaves) - cut_before,
            cut_before=cut_before,
            tools=_tools_of(cut_leaves),
            tokens_before=batch.tokens_before,
            tokens_after=batch.tokens_after,
            requests=requests,
            saved_usd=by.saved_usd(fewer * requests),
            broken=broken_by.get(batch.decision or name),
            is_undone=is_undone,
        )


def author_of(batch: Batch) -> str:
    """Who made a batch that no user decided: ullage, and by which stage.

    Args:
        batch: the batch.
    """
    return f"ullage ({_STAGES.get(batch.stage, batch.stage)})"


def _reason(batch: Batch) -> str:
    """The reason of the first edit that leaves something out, else of the first."""
    for edit in batch.edits:
        if isinstance(edit, Replace | ReplaceSpan):
            return edit.why
    return batch.edits[0].why


def _tools_of(leaves: Sequence[Leaf]) -> tuple[str, ...]:
    counts: dict[str, int] = {}
    for leaf in leaves:
        if leaf.tool:
            counts[leaf.tool] = counts.get(leaf.tool, 0) + 1
    return tuple(sorted(counts, key=lambda tool: (-counts[tool], tool)))


# ── by tool, server and file ─────────────────────────────────────────────────────────────


def _left_out(
    leaves: Sequence[Leaf], by: _Requests, group: Callable[[Leaf], str]
) -> tuple[LeftOut, ...]:
    """What is left out of the window, by what a function makes of each text; the most first."""
    totals: dict[str, LeftOut] = {}
    for leaf in leaves:
        name = group(leaf)
        if not name or leaf.state == "whole":
            continue
        tokens = _left_tokens(leaf)
        unsent = tokens * by.without(leaf)
        total = totals.get(name, LeftOut(name))
        totals[name] = LeftOut(
            name,
            total.texts + 1,
            total.tokens + tokens,
            total.unsent_tokens + unsent,
            _sum((total.saved_usd, by.saved_usd(unsent))),
        )
    return tuple(
        sorted(totals.values(), key=lambda total: (-total.tokens, total.name))
    )


def _left_tokens(leaf: Leaf) -> int:
    """About how many tokens of a text are not in the window."""
    tokens = (leaf.chars - leaf.shown_chars) // CHARS_PER_TOKEN
    if leaf.kind not in _TEXTS:
        tokens = min(tokens, _MEDIA_TOKENS)
    return max(tokens, 0)

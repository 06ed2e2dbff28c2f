"""What left a window, in words and tables: for a terminal, and for a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from ullage.core.values.cache_breaks import dollars
from ullage.session.stored.why import (
    BatchNote,
    CauseTotal,
    LeftOut,
    WindowRecord,
)

When = Callable[[int], str]
"""A time in seconds since 1970, in words."""

RECKONED = (
    "Left out, not sent and saved are reckoned: four characters a token, at the price of "
    "reading them from the cache."
)
COLUMNS = ("texts", "tokens left out", "not sent so far", "saved")
_MOST_ROWS = 12
_MOST_TOOLS = 4


def lead_of(record: WindowRecord) -> str:
    """What a conversation came to, in a sentence.

    Args:
        record: of the conversation.
    """
    if not record.requests:
        return f"{record.name}: no reply was observed by a version that keeps what requests cost."
    cost = _cost(record.cost_usd)
    return (
        f"{record.name}: {_many(record.requests, 'answered request')}{cost}."
    )


def breaks_of(record: WindowRecord, when: When) -> Iterator[str]:
    """Each break of the prompt cache, in a line.

    Args:
        record: of the conversation.
        when: says when it was.
    """
    for note in record.breaks:
        yield f"{when(note.at_s)}, request {note.request:,}: {note.broken}"


def cause_line(total: CauseTotal) -> str:
    """The breaks by one party, in a line.

    Args:
        total: of the party.
    """
    return (
        f"By {total.party}: {_many(total.breaks, 'time')}, {total.tokens:,} tokens"
        f"{_cost(total.cost_usd)}."
    )


def batches_of(record: WindowRecord, when: When) -> Iterator[str]:
    """Each batch that left the window, in a line.

    Args:
        record: of the conversation.
        when: says when it was.
    """
    for note in record.batches:
        yield _batch(note, when)


def tables_of(
    record: WindowRecord,
) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """What left the window by tool, MCP server and file: a heading, and rows of `COLUMNS`.

    Args:
        record: of the conversation.
    """
    for heading, totals in (
        ("tool", record.tools),
        ("MCP server", record.servers),
        ("file", record.files),
    ):
        if totals:
            yield heading, list(_rows(totals))


def page_data(record: WindowRecord) -> dict[str, Any]:
    """A record for the page of a conversation.

    Args:
        record: of the conversation.
    """
    return {
        "lead": lead_of(record),
        "breaks": list(breaks_of(record, _date)),
        "causes": [cause_line(total) for total in record.causes],
        "batches": list(batches_of(record, _date)),
        "columns": COLUMNS,
        "tables": list(tables_of(record)),
        "note": RECKONED,
    }


def _date(at_s: int) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%d %b %H:%M} UTC"


def _batch(note: BatchNote, when: When) -> str:
    """What left at once, in one line."""
    moment = "with the next request"
    if note.at_s:
        moment = f"{when(note.at_s)}, request {note.request:,}"
    tools = ", ".join(note.tools[:_MOST_TOOLS])
    more = len(note.tools) - _MOST_TOOLS
    tools += f" and {more:,} more" if more > 0 else ""
    of_tools = f" of {tools}" if tools else ""
    texts = f"{_many(note.texts, 'text')}{of_tools}"
    if note.cut_before and note.texts:
        texts += f" and {note.cut_before:,} more that had been cut before"
    elif note.cut_before:
        texts = f"{_many(note.cut_before, 'text')}{of_tools} that had been cut before"
    line = (
        f"{note.name}, {moment}, by {note.author}: {texts}, "
        f"{note.tokens_before:,} → {note.tokens_after:,} tokens: {note.why}."
    )
    if note.is_undone:
        return f"{line} It was taken back."
    if note.broken is not None:
        line += (
            f" It cost {note.broken.tokens:,} tokens again"
            f"{_cost(note.broken.cost_usd)}, once."
        )
    if note.fewer_tokens and note.requests:
        line += (
            f" It saved about {note.fewer_tokens:,} tokens in each of "
            f"{_many(note.requests, 'request')}{_cost(note.saved_usd)}."
        )
    return line


def _rows(totals: Sequence[LeftOut]) -> Iterator[tuple[str, ...]]:
    for total in totals[:_MOST_ROWS]:
        saved = "–" if total.saved_usd is None else dollars(total.saved_usd)
        yield (
            total.name,
            f"{total.texts:,}",
            f"{total.tokens:,}",
            f"{total.unsent_tokens:,}",
            saved,
        )
    more = len(totals) - _MOST_ROWS
    if more > 0:
        yield (f"and {more:,} more", "", "", "", "")


def _cost(cost_usd: float | None) -> str:
    return "" if cost_usd is None else f", {dollars(cost_usd)}"


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}{'s' * (count != 1)}"

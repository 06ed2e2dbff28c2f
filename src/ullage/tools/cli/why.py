"""``ullage window --why``: what left a window, when, why, by whom, what it cost and saves."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ullage.session.stored.why import BatchNote, WindowRecord
from ullage.tools.cli._options import ago, harmless
from ullage.tools.replay.report.why import (
    COLUMNS,
    RECKONED,
    When,
    batches_of,
    breaks_of,
    cause_line,
    lead_of,
    tables_of,
)


def as_json(record: WindowRecord) -> dict[str, Any]:
    """A record for ``--json``.

    Args:
        record: of one conversation.
    """
    return {
        "name": record.name,
        "requests": record.requests,
        "cost_usd": record.cost_usd,
        "breaks": [
            {
                "request": note.request,
                "at_s": note.at_s,
                "cause": note.broken.cause,
                "by": note.broken.party,
                "place": note.broken.place,
                "tokens": note.broken.tokens,
                "reckoned_tokens": note.broken.reckoned_tokens,
                "read_tokens": note.broken.read_tokens,
                "cost_usd": note.broken.cost_usd,
                "is_measured": note.broken.is_measured,
                "why": str(note.broken),
            }
            for note in record.breaks
        ],
        "causes": [total._asdict() for total in record.causes],
        "batches": [_batch_json(note) for note in record.batches],
        "tools": [total._asdict() for total in record.tools],
        "servers": [total._asdict() for total in record.servers],
        "files": [total._asdict() for total in record.files],
    }


def _batch_json(note: BatchNote) -> dict[str, Any]:
    fields = note._asdict()
    broken = fields.pop("broken")
    fields["fewer_tokens"] = note.fewer_tokens
    fields["cost_usd"] = None if broken is None else broken.cost_usd
    fields["rebilled_tokens"] = 0 if broken is None else broken.tokens
    return fields


def show(record: WindowRecord) -> None:
    """Print a record for people.

    Args:
        record: of one conversation.
    """
    console = Console(highlight=False)
    now_s = time.time()
    for line in _lines(record, lambda at_s: ago(now_s - at_s)):
        console.print(harmless(line), markup=False, soft_wrap=True)
    for heading, rows in tables_of(record):
        console.print()
        console.print(_table(heading, rows), markup=False)
    if record.tools:
        console.print(RECKONED, style="dim", markup=False)


def _lines(record: WindowRecord, when: When) -> Iterator[str]:
    yield lead_of(record)
    yield ""
    if not record.breaks:
        yield "The prompt cache never broke."
    else:
        yield "Why the prompt cache broke"
    for line in breaks_of(record, when):
        yield f"  {line}"
    for total in record.causes:
        yield f"  {cause_line(total)}"
    if record.batches:
        yield ""
        yield "What left the window"
    for line in batches_of(record, when):
        yield f"  {line}"


def _table(heading: str, rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(heading, overflow="fold")
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(*(Text(harmless(cell)) for cell in row))
    return table

"""``ullage report``: what requests cost, and what they would have cost without ullage."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import click
import msgspec
from msgspec import Struct
from rich.console import Console

from ullage.core.errors import ConfigError
from ullage.core.values.receipts import By, Receipt, ReceiptTotals, summed
from ullage.core.values.spending import SpendingRow, spending_totals
from ullage.stores import receipts_of, spending_of
from ullage.tools.cli._choices import NamedChoice
from ullage.tools.cli._options import (
    harmless,
    json_option,
    one_store,
    open_kept,
    print_json,
    store_argument,
    store_option,
)
from ullage.tools.cli._page import FILE, save
from ullage.tools.cli._report_csv import csv_of
from ullage.tools.cli._report_page import Figure, PageTable, page_of
from ullage.tools.replay.tables import Figures

_OPTIONAL = (
    "$ opened",
    "opened",
    "held out",
    "requests",
    "without",
    "sent",
)
"""What a narrow terminal does without, the least first."""
_UNLIMITED = 100_000
"""Characters of a line where nobody looks at a terminal: nothing is wrapped or left out."""
_DAYS = {"d": 1, "w": 7}
_HEADINGS = (
    "requests",
    "sent",
    "without",
    "$ sent",
    "$ without",
    "$ saved",
    "saved",
    "opened",
    "$ opened",
)
_HELD_OUT_HEADINGS = ("held out", "$ held out", "$ in all")
"""More columns, where conversations were held out."""
_BUDGET_HEADINGS = (
    "budget",
    "tenant",
    "period",
    "requests",
    "tokens",
    "$",
    "spent",
    "starts again (UTC)",
)
_NOTES = (
    "sent: tokens of prompts and answers as providers reported them, and $ at list price: measured",
    "without: what the same requests would have come to without ullage: reckoned",
    "opened: how often a model opened what was set aside · $ opened: the part of $ sent that this "
    "took: reckoned",
)
_HELD_OUT_NOTE = (
    "held out: requests of conversations that pass unfitted · $ in all: $ sent and $ held out "
    "together, what budgets count"
)


class ReportLine(Struct, frozen=True, kw_only=True):
    """One line of a report.

    Attributes:
        names: what it sums up: the day, tenant, model or client asked for; empty for all.
        sums: what it comes to, without conversations that were held out.
        held_out: what those come to.
    """

    names: tuple[str, ...]
    sums: ReceiptTotals
    held_out: ReceiptTotals = ReceiptTotals()

    @property
    def in_all(self) -> ReceiptTotals:
        """What both come to: what a provider bills, and a budget counts."""
        return self.sums + self.held_out


class LedgerReport(Struct, frozen=True, kw_only=True):
    """What a ledger of receipts says of some days.

    Attributes:
        since: the first day.
        until: the last day.
        by: what the lines are by.
        lines: the lines.
        total: of all fitted conversations.
        held_out: of those that were held out.
        open_writers: processes that run, or ended without saying so.
        budgets: what teams spent of their budgets in the periods of these days.
    """

    since: str
    until: str
    by: tuple[By, ...]
    lines: list[ReportLine]
    total: ReceiptTotals
    held_out: ReceiptTotals
    open_writers: int
    budgets: list[SpendingRow] = []

    @property
    def in_all(self) -> ReceiptTotals:
        """Of all conversations: what a provider bills, and a budget counts."""
        return self.total + self.held_out


def first_day(value: str) -> str:
    """The first day of a report, from ``7d``, ``2w`` or a date.

    Raises:
        ConfigError: it is none of these.
    """
    match = re.fullmatch(r"(\d{1,5})([dw])", value.strip().lower())
    if match is not None:
        days = int(match[1]) * _DAYS[match[2]]
        return (
            datetime.now(UTC).date() - timedelta(days=max(days - 1, 0))
        ).isoformat()
    try:
        return date.fromisoformat(value.strip()).isoformat()
    except ValueError:
        raise ConfigError(
            "since", f"{value!r} is no time", "Write 7d, 2w or 2026-11-01."
        ) from None


def _since(value: str) -> str:
    try:
        return first_day(value)
    except ConfigError:
        raise click.BadParameter(
            f"{value!r} is not a time: write 7d, 2w or 2026-11-01."
        ) from None


@click.command("report", short_help="What requests cost, and what they saved.")
@click.option(
    "--since",
    default="7d",
    show_default=True,
    callback=lambda _context, _option, value: _since(value),
    help="How far back: 7d, 2w, or a day in UTC, as 2026-11-01.",
)
@click.option(
    "--by",
    multiple=True,
    type=NamedChoice(("day", "tenant", "model", "client")),
    help="What to sum up by. Default: day.",
)
@store_argument
@store_option
@json_option
@click.option(
    "--csv", "as_csv", is_flag=True, help="Print comma-separated values."
)
@click.option("--html", "page", type=FILE, help="Write a page to look at.")
def command(
    since: str,
    by: tuple[By, ...],
    place: str | None,
    address: str | None,
    page: Path | None,
    *,
    as_json: bool,
    as_csv: bool,
) -> None:
    """Report what the sessions on a store cost, from the receipts that are kept there.

    What was sent is measured; what would have been sent without ullage is reckoned. Receipts stay
    when conversations are forgotten, and hold no content.
    """
    if as_json and as_csv:
        raise click.UsageError("give --json or --csv, one of them.")
    with closing(open_kept(one_store(place, address))) as store:
        report = report_from(store, since, by or ("day",))
    if page is not None:
        save(page, html_of(report))
    if as_json:
        print_json(json_of(report))
    elif as_csv:
        click.echo(csv_of(report), nl=False)
    else:
        show(report)


def report_from(store: object, since: str, by: tuple[By, ...]) -> LedgerReport:
    """What a store tells of the days up to today.

    Args:
        store: any store whose methods are not awaited, however it is wrapped.
        since: the first day.
        by: what to sum up by.

    Raises:
        ConfigError: it keeps no receipts.
    """
    keeper, spending = receipts_of(store), spending_of(store)
    if keeper is None:
        reason = f"a {type(store).__name__} keeps no receipts"
        raise ConfigError(
            "store", reason, "Use an SQLite file or a PostgreSQL server."
        )
    since_s = int(
        datetime.fromisoformat(since).replace(tzinfo=UTC).timestamp()
    )
    rows = spending.spending(since_s) if spending else ()
    today = datetime.now(UTC).date().isoformat()
    return report_of(
        keeper.receipts(since), since, today, by, spending_totals(rows)
    )


def report_for_page(
    store: Any, since: str, by: Sequence[str], *, as_html: bool = False
) -> bytes:
    """A report, for a page of the proxy that is asked for it.

    Args:
        store: of the proxy.
        since: ``7d``, ``2w`` or a day.
        by: what to sum up by; empty: days.
        as_html: whether as a page to look at; else as JSON.

    Raises:
        ConfigError: that cannot be meant.
    """
    names: tuple[By, ...] = tuple(name for name in get_args(By) if name in by)
    unknown = sorted({*by} - {*get_args(By)})
    if unknown:
        listed = ", ".join(get_args(By))
        raise ConfigError(
            "by", f"{unknown[0]!r} is no column", f"Use {listed}."
        )
    day, blocking = first_day(since), getattr(store, "blocking", None)
    report = report_from(blocking or store, day, names or ("day",))
    if as_html:
        return html_of(report).encode()
    return msgspec.json.encode(json_of(report))


def report_of(
    receipts: tuple[Receipt, ...],
    since: str,
    until: str,
    by: tuple[By, ...],
    budgets: list[SpendingRow] | None = None,
) -> LedgerReport:
    """What receipts come to.

    Args:
        receipts: those of the days.
        since: the first day.
        until: the last one.
        by: what to sum up by.
        budgets: what teams spent of their budgets, in the order of the budgets.
    """
    fitted = [one for one in receipts if not one.key.is_held_out]
    held_out = [one for one in receipts if one.key.is_held_out]
    sums, held_out_sums = summed(fitted, by), summed(held_out, by)
    nothing = ReceiptTotals()
    return LedgerReport(
        since=since,
        until=until,
        by=by,
        lines=[
            ReportLine(
                names=names,
                sums=sums.get(names, nothing),
                held_out=held_out_sums.get(names, nothing),
            )
            for names in sorted({*sums, *held_out_sums})
        ],
        total=summed(fitted).get((), nothing),
        held_out=summed(held_out).get((), nothing),
        open_writers=len({one.writer for one in receipts if one.is_open}),
        budgets=budgets or [],
    )


def sentences(report: LedgerReport) -> list[str]:
    """A report in words: what was measured, and what is reckoned."""
    total = report.total
    in_all = report.in_all
    lines = [
        f"{_days(report)}: {_many(in_all.requests, 'request')}, "
        f"{_many(in_all.conversations, 'new conversation')}, ${in_all.sent_usd:,.2f} at list price."
    ]
    lines += _held_out(report)
    if total.saved_share is not None:
        change = "less" if total.saved_usd >= 0 else "more"
        they = "the others" if report.held_out.requests else "they"
        lines.append(
            f"Without ullage {they} would have come to ${total.raw_usd:,.2f} (reckoned): "
            f"${abs(total.saved_usd):,.2f} {change}, {abs(total.saved_share):.0%}."
        )
    if total.recalls:
        lines.append(
            f"Models opened what was set aside {total.recalls:,} times, for "
            f"${total.recall_usd:,.2f} of what was sent."
        )
    lines += _compared(report)
    lines += _counted(total)
    if in_all.unreported:
        lines.append(
            f"Of {_many(in_all.unreported, 'request')} nobody reported the usage: estimated."
        )
    if in_all.unpriced:
        lines.append(
            f"{_many(in_all.unpriced, 'request')} without a known price: in no sum of $."
        )
    if in_all.unbilled:
        lines.append(
            f"{_many(in_all.unbilled, 'request')} not billed by anybody (Ollama on a machine of "
            "your own): $0."
        )
    if report.open_writers:
        lines.append(
            f"{_many(report.open_writers, 'process', 'es')} still running, or ended without "
            "saying so: what came in the last 10 seconds before that may be missing."
        )
    return lines


def _days(report: LedgerReport) -> str:
    """The days of a report, in words."""
    if report.since == report.until:
        return report.since
    return f"{report.since} to {report.until}"


def _counted(total: ReceiptTotals) -> list[str]:
    """What providers counted themselves of the requests as they came, beside what is reckoned."""
    if not total.counted:
        return []
    counted, reckoned = total.counted_tokens, total.counted_raw_tokens
    share = total.counted / total.requests if total.requests else 0.0
    apart = abs(reckoned - counted) / counted
    change = "more" if reckoned >= counted else "less"
    return [
        f"Providers counted {_many(total.counted, 'request')} as they came ({share:.1%} of all): "
        f"{counted:,} tokens, measured. For the same ones {reckoned:,} are reckoned, "
        f"{apart:.1%} {change}."
    ]


def _held_out(report: LedgerReport) -> list[str]:
    """How much of the sum is of fitted conversations, and how much of those held out."""
    held_out, fitted = report.held_out, report.total
    if not held_out.requests:
        return []
    return [
        f"Of them {_many(held_out.requests, 'request')}, ${held_out.sent_usd:,.2f}, are of "
        "conversations that were held out: they pass unfitted, and save nothing. "
        f"The other {_many(fitted.requests, 'request')} came to ${fitted.sent_usd:,.2f}."
    ]


def _compared(report: LedgerReport) -> list[str]:
    """A fitted conversation beside one that was held out: both are measured."""
    held_out, fitted = report.held_out, report.total
    if not held_out.conversations or not fitted.conversations:
        return []
    held_out_usd = held_out.sent_usd / held_out.conversations
    fitted_usd = fitted.sent_usd / fitted.conversations
    sentence = (
        f"On average a new conversation cost ${fitted_usd:,.2f} fitted, and "
        f"${held_out_usd:,.2f} held out"
    )
    if held_out_usd:
        share = abs(1 - fitted_usd / held_out_usd)
        change = "less" if fitted_usd <= held_out_usd else "more"
        sentence += f": {share:.0%} {change}"
    return [
        f"{sentence} (measured, of {fitted.conversations:,} and "
        f"{held_out.conversations:,} conversations; few of them say little)."
    ]


def headings(report: LedgerReport) -> tuple[str, ...]:
    """The headings of the figures of `table_rows`."""
    more = _HELD_OUT_HEADINGS if report.held_out.requests else ()
    return (*_HEADINGS, *more)


def notes(report: LedgerReport) -> tuple[str, ...]:
    """What the headings mean."""
    return (*_NOTES, _HELD_OUT_NOTE) if report.held_out.requests else _NOTES


def table_rows(report: LedgerReport) -> list[tuple[str, ...]]:
    """The lines of a report as cells: names, then a figure for each heading; last all of them."""
    lines = [(_joined(line.names), line) for line in report.lines]
    if len(lines) > 1:
        total = ReportLine(
            names=(), sums=report.total, held_out=report.held_out
        )
        lines.append(("all", total))
    with_held_out = report.held_out.requests > 0
    return [
        (
            name,
            *_cells(line.sums),
            *(_held_out_cells(line) if with_held_out else ()),
        )
        for name, line in lines
    ]


def _joined(names: Sequence[str]) -> str:
    return " · ".join(name or "–" for name in names)


def _cells(sums: ReceiptTotals) -> tuple[str, ...]:
    share = sums.saved_share
    return (
        f"{sums.requests:,}",
        f"{sums.sent.prompt + sums.sent.output:,}",
        f"{sums.raw.prompt + sums.raw.output:,}",
        f"{sums.sent_usd:,.2f}",
        f"{sums.raw_usd:,.2f}",
        f"{sums.saved_usd:,.2f}",
        "" if share is None else f"{share:.0%}",
        f"{sums.recalls:,}",
        f"{sums.recall_usd:,.2f}",
    )


def _held_out_cells(line: ReportLine) -> tuple[str, ...]:
    return (
        f"{line.held_out.requests:,}",
        f"{line.held_out.sent_usd:,.2f}",
        f"{line.in_all.sent_usd:,.2f}",
    )


def budget_rows(report: LedgerReport) -> list[tuple[str, ...]]:
    """Each budget of a report as cells: what it is, and what of it is spent."""
    return [
        (
            row.key.budget,
            row.key.tenant or "–",
            row.key.period,
            f"{row.calls:,}",
            _of_limit(f"{row.tokens:,}", row.limit_tokens, ""),
            _of_limit(f"{row.usd:,.2f}", row.limit_usd, ".2f"),
            f"{row.share:.0%}",
            f"{datetime.fromtimestamp(row.resets_s, UTC):%Y-%m-%d %H:%M}",
        )
        for row in report.budgets
    ]


def _of_limit(amount: str, limit: float, precision: str) -> str:
    return f"{amount} of {limit:,{precision}}" if limit else amount


def _console() -> Console:
    """A terminal has its width, or that of COLUMNS; a file or a pipe without COLUMNS has none."""
    console = Console()
    if not console.is_terminal and not os.environ.get("COLUMNS"):
        console.width = _UNLIMITED
    return console


def show(report: LedgerReport) -> None:
    """Print a report for people: its sentences, then a table."""
    console = _console()
    for sentence in sentences(report):
        console.print(sentence, highlight=False, markup=False)
    table = Figures(box=None, pad_edge=False, caption_justify="left")
    table.optional = _OPTIONAL
    table.add_column(_joined(report.by), overflow="fold")
    for heading in headings(report):
        table.add_column(heading, justify="right", no_wrap=True)
    for cells in table_rows(report):
        table.add_row(*map(harmless, cells))
    if report.lines:
        console.print()
        console.print(table, markup=False)
        console.print(
            "\n".join(notes(report)),
            style="dim",
            highlight=False,
            markup=False,
        )
    if report.budgets:
        console.print()
        console.print(_budget_table(report), markup=False)


def _budget_table(report: LedgerReport) -> Figures:
    """The budgets of teams, with what is spent of each."""
    table = Figures(box=None, pad_edge=False, caption_justify="left")
    table.optional = ("requests", "starts again (UTC)")
    names = 3
    for heading in _BUDGET_HEADINGS[:names]:
        table.add_column(heading, overflow="fold")
    for heading in _BUDGET_HEADINGS[names:]:
        table.add_column(heading, justify="right", no_wrap=True)
    for cells in budget_rows(report):
        table.add_row(*map(harmless, cells))
    return table


def html_of(report: LedgerReport) -> str:
    """A report as a page to look at."""
    names = _joined(report.by)
    return page_of(
        _days(report),
        _figures(report),
        sentences(report),
        (
            PageTable(
                f"By {names}",
                (names, *headings(report)),
                table_rows(report),
                notes(report),
            ),
            PageTable("Budgets", _BUDGET_HEADINGS, budget_rows(report)),
        ),
    )


def _figures(report: LedgerReport) -> list[Figure]:
    """The sums at the head of the page: first what was saved, if anything can be said of it."""
    total = report.total
    in_all = report.in_all
    figures = []
    if total.saved_share is not None:
        share = abs(total.saved_share)
        change = "less" if total.saved_usd >= 0 else "more"
        figures.append(
            Figure(
                "Saved",
                _dollars(total.saved_usd),
                f"{share:.0%} {change} than {_dollars(total.raw_usd)} without ullage, reckoned",
            )
        )
    figures += [
        Figure("Cost", _dollars(in_all.sent_usd), "at list price, measured"),
        Figure(
            "Requests",
            f"{in_all.requests:,}",
            f"{_many(in_all.conversations, 'new conversation')}",
        ),
        Figure(
            "Opened again",
            f"{total.recalls:,}",
            f"of what was set aside, for {_dollars(total.recall_usd)} of the cost, reckoned",
        ),
    ]
    return figures


def _dollars(usd: float) -> str:
    """An amount; the sign stands before the currency."""
    amount = f"${abs(usd):,.2f}"
    return f"-{amount}" if usd < 0 and amount != "$0.00" else amount


def json_of(report: LedgerReport) -> dict[str, Any]:
    """A report for ``--json``: each line with its names, and the sums of all.

    ``sums`` and ``total`` are of fitted conversations; ``in_all`` holds those held out as well.
    """
    lines = [
        dict(zip(report.by, one.names, strict=True))
        | {
            "sums": one.sums,
            "held_out": one.held_out,
            "in_all": one.in_all,
        }
        for one in report.lines
    ]
    return {
        "since": report.since,
        "until": report.until,
        "measured": [
            "requests",
            "conversations",
            "sent",
            "sent_usd",
            "held_out",
            "in_all",
            "counted_tokens",
        ],
        "reckoned": [
            "raw",
            "raw_usd",
            "recall_tokens",
            "recall_usd",
            "counted_raw_tokens",
        ],
        "lines": lines,
        "total": report.total,
        "held_out": report.held_out,
        "in_all": report.in_all,
        "open_writers": report.open_writers,
        "budgets": [
            {
                "budget": row.key.budget,
                "tenant": row.key.tenant,
                "period": row.key.period,
                "calls": row.calls,
                "tokens": row.tokens,
                "limit_tokens": row.limit_tokens,
                "usd": row.usd,
                "limit_usd": row.limit_usd,
                "share": row.share,
                "resets_s": row.resets_s,
            }
            for row in report.budgets
        ],
    }


def _many(count: int, word: str, plural: str = "s") -> str:
    return f"{count:,} {word}{plural * (count != 1)}"

"""A report as comma-separated values, for spreadsheets and other programs."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ullage.tools.cli.report import LedgerReport


def csv_of(report: LedgerReport) -> str:
    """A report as comma-separated values: a row for each line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [
        *("requests", "conversations", "unreported", "unpriced", "unbilled"),
        *(
            "sent_prompt_tokens",
            "sent_output_tokens",
            "raw_prompt_tokens",
            "raw_output_tokens",
        ),
        *("sent_usd", "raw_usd", "recalls", "recall_tokens", "recall_usd"),
        *("counted", "counted_tokens", "counted_raw_tokens"),
        *("saved_usd", "held_out_requests", "held_out_usd"),
        *("in_all_requests", "in_all_usd"),
    ]
    writer.writerow([*report.by, *names])
    for line in report.lines:
        sums = line.sums
        writer.writerow(
            [
                *map(_no_formula, line.names),
                *(
                    sums.requests,
                    sums.conversations,
                    sums.unreported,
                    sums.unpriced,
                    sums.unbilled,
                ),
                *(
                    sums.sent.prompt,
                    sums.sent.output,
                    sums.raw.prompt,
                    sums.raw.output,
                ),
                *(f"{sums.sent_usd:.6f}", f"{sums.raw_usd:.6f}"),
                *(sums.recalls, sums.recall_tokens, f"{sums.recall_usd:.6f}"),
                *(
                    sums.counted,
                    sums.counted_tokens,
                    sums.counted_raw_tokens,
                ),
                f"{sums.saved_usd:.6f}",
                line.held_out.requests,
                f"{line.held_out.sent_usd:.6f}",
                line.in_all.requests,
                f"{line.in_all.sent_usd:.6f}",
            ]
        )
    return text.getvalue()


def _no_formula(name: str) -> str:
    """A name that no spreadsheet takes for a formula: a client may call itself ``=1+1``."""
    return f"'{name}" if name[:1] in ("=", "+", "-", "@", "\t", "\r") else name

"""What came of a replay in a sentence or two, before any table of it."""

from __future__ import annotations

from ullage.replay.calls import label_of
from ullage.replay.rows import Row
from ullage.replay.tables import dollars, percent


def in_words(row: Row) -> str:
    """What came of a policy in a room: what was sent, its cost, what was there when needed.

    Args:
        row: the sum over all runs.
    """
    runs, calls = _many(row.runs, "run"), _many(row.calls, "call")
    said = f"{row.policy} · {label_of(row.room)}: {runs}, {calls}, {row.tokens:,} tokens sent "
    said += f"instead of {row.raw_tokens:,}"
    charge = row.charges[0] if row.charges else None
    if charge is not None and charge.usd_share is not None:
        usd, raw = dollars(charge.shown.cost_usd), dollars(charge.raw.cost_usd)
        said += f", for ${usd} instead of ${raw} with prompt caching"
    kept = row.evidence
    if kept.visible is None or kept.lost is None or kept.recallable is None:
        return f"{said}. Nothing was needed of old results."
    aside = f", {percent(kept.recallable)} could be recalled" if kept.recallable else ""
    lost = percent(kept.lost) if kept.lost else "nothing"
    needed = f"Of what was needed from old results {percent(kept.visible)} was in view"
    return f"{said}. {needed}{aside}, {lost} was lost."


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}{'s' * (count != 1)}"

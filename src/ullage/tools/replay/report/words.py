"""The outcome of a replay in a sentence or two, before any table of it."""

from __future__ import annotations

from ullage.tools.replay.calls import label_of
from ullage.tools.replay.rows import ReplaySummary
from ullage.tools.replay.tables import dollars, percent


def in_words(row: ReplaySummary) -> str:
    """The outcome of a policy in a room: what was sent, its cost, what was there when needed.

    Args:
        row: the sum over all runs.
    """
    runs, calls = _many(row.runs, "run"), _many(row.calls, "call")
    room = "the model's own window" if row.is_own else label_of(row.room)
    sentence = (
        f"{row.policy} · {room}: {runs}, {calls}, {row.tokens:,} tokens sent "
    )
    sentence += f"instead of {row.raw_tokens:,}"
    sentence += _bill(row)
    evidence = row.evidence
    if (
        evidence.visible is None
        or evidence.lost is None
        or evidence.recallable is None
    ):
        return f"{sentence}. Nothing was needed of old results."
    aside = (
        f", {percent(evidence.recallable)} could be recalled"
        if evidence.recallable
        else ""
    )
    lost = percent(evidence.lost) if evidence.lost else "nothing"
    needed = f"Of what was needed from old results {percent(evidence.visible)} was in view"
    return f"{sentence}. {needed}{aside}, {lost} was lost."


def _bill(row: ReplaySummary) -> str:
    """The whole bill of a row, and in how many of its runs nothing was saved."""
    charge = row.charges[0] if row.charges else None
    if charge is None or charge.usd_share is None:
        return ""
    usd, raw = dollars(charge.shown.cost_usd), dollars(charge.raw.cost_usd)
    change = abs(1 - charge.usd_share)
    saved = f"{percent(change)} {'less' if charge.usd_share < 1 else 'more'}"
    bill = f". The whole bill, answers included: ${usd} instead of ${raw}, {saved}"
    if row.runs == 1:
        return bill
    return f"{bill}; nothing was saved in {row.unsaved:,} of {row.runs:,} runs"


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}{'s' * (count != 1)}"

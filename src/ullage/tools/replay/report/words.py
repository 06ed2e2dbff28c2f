"""The outcome of a replay in a sentence or two, before any table of it."""

from __future__ import annotations

from ullage.tools.replay.calls import label_of
from ullage.tools.replay.rows import Charge, ReplaySummary
from ullage.tools.replay.tables import dollars, percent


def in_words(row: ReplaySummary) -> str:
    """The outcome of a policy in a room: what was sent, its cost, what was there when needed.

    Args:
        row: the sum over all runs.
    """
    runs = _many(row.runs, "run")
    calls = _many(row.calls, "call")
    room = "the model's own window" if row.is_own else label_of(row.room)
    sentence = (
        f"{row.policy} · {room}: {runs}, {calls}, {row.tokens:,} tokens sent "
    )
    sentence += f"instead of {row.raw_tokens:,}"
    sentence += _bill(row)
    if row.over_limit:
        left = _many(row.over_limit, "call")
        sentence += f". {left} did not fit; what has no view is in no sum"
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
    needed = "Of what was needed from old results"
    if row.runs > 1:
        needed = "Of what a run needed from old results, on average"
    needed = f"{needed} {percent(evidence.visible)} was in view"
    return f"{sentence}. {needed}{aside}, {lost} was lost."


def _bill(row: ReplaySummary) -> str:
    """The whole bill of a row, and in how many of its runs nothing was saved."""
    charge = row.charges[0] if row.charges else None
    if charge is None:
        return ""
    if charge.is_free:
        return _prefill(charge)
    if charge.usd_share is None:
        return ""
    usd = dollars(charge.shown.cost_usd)
    raw = dollars(charge.raw.cost_usd)
    saved = _change(charge.usd_share)
    bill = f". The whole bill, answers included: ${usd} instead of ${raw}, {saved}"
    if row.runs == 1 or not row.unsaved:
        return bill
    return f"{bill}; nothing was saved in {row.unsaved:,} of {row.runs:,} runs"


def _prefill(charge: Charge) -> str:
    """What a server of one's own works out."""
    share = charge.prefill_share
    if share is None:
        return ""
    tokens = charge.shown.prefill_tokens
    raw_tokens = charge.raw.prefill_tokens
    return (
        f". Your own server works out {tokens:,} prompt tokens instead of "
        f"{raw_tokens:,}, {_change(share)}; its cache holds the rest"
    )


def _change(share: float) -> str:
    """How much less, or more, a share is than all."""
    change = percent(abs(1 - share))
    return f"{change} {'less' if share < 1 else 'more'}"


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}{'s' * (count != 1)}"

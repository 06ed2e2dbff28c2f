"""What a provider reported for a view goes to the ledger. Nothing is decided here."""

from __future__ import annotations

from msgspec.structs import replace

from ullage.core.history.ledger import UsageRecord
from ullage.core.history.outline import outlined
from ullage.core.history.transcript import Transcript
from ullage.core.history.window import Window
from ullage.core.turn.changes import note_answered
from ullage.core.turn.state import State
from ullage.core.values.effects import Commit, Record, Steps
from ullage.core.values.usage import Usage


def observe(
    usage: Usage,
    cost_usd: float | None,
    state: State,
    transcript: Transcript,
    size: int,
    *,
    model: str,
    estimated_tokens: int,
    raw_tokens: int = -1,
    outlining: tuple[Window, str, str, str, str] | None = None,
    beside: tuple[Record, ...] = (),
) -> Steps[State]:
    """Record what a provider reported for a view.

    Args:
        usage: what it reported.
        cost_usd: what that cost at list price; None if a price is not known.
        state: of the conversation.
        transcript: the history behind the view, which may have gone on since.
        size: how many messages the view was made of.
        model: the model it was made for.
        estimated_tokens: what it was reckoned to hold.
        raw_tokens: reckoned: what its prompt would have held without ullage; -1: not known.
        outlining: the window behind the view, its format, its agent and the agent's names of the
            session and of the sub-agent, where an outline is kept.
        beside: records to be kept with the report.

    Returns:
        The state with the report in its ledger and in its sums.
    """
    total_usd = None
    if cost_usd is not None and state.cost_usd is not None:
        total_usd = state.cost_usd + cost_usd
    state = replace(state, usage=state.usage + usage, cost_usd=total_usd)
    if usage.sent_tokens <= 0:
        return state  # a stream without usage says nothing about the context (F63)
    report = UsageRecord(
        usage.sent_tokens,
        estimated_tokens,
        usage.output_tokens,
        model,
        raw_tokens,
    )
    key = transcript.decision_key(size)
    ledger, record = state.ledger.with_observed(key, report)
    ledger, records = note_answered(transcript, size, ledger)
    if outlining is not None:
        window, wire, agent, client_session, subagent = outlining
        ledger, outline = outlined(
            window,
            size,
            ledger,
            wire=wire,
            tokens=usage.sent_tokens,
            agent=agent,
            client_session=client_session,
            subagent=subagent,
        )
        records = (*records, *outline)
    yield Commit((), (record, *records, *beside))
    return replace(state, ledger=ledger)

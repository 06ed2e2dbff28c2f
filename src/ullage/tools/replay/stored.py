"""A session, turn by turn, made again from its history and its store.

What a session decided is in its store, under the chain of its history. So the history and
the store give every view again: each prefix that was sent is fitted by a session that shows
what the ledger holds and decides nothing itself. The store is only read.

What is cut on arrival is in no ledger: it follows from the policy, whose name is. Settings
of a preset other than its document's are not kept, so with such the first-sight cuts shown
may differ from those that were sent.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from ullage import Limits, Policy, Session, State
from ullage.core.errors import ConfigError, OverLimitError
from ullage.core.history.ledger import Ledger, PolicyRecord
from ullage.documents import NAMES, preset
from ullage.stores import Store
from ullage.tools.replay.calls import (
    answer_of,
    boundaries,
    model_of,
    request_of,
)
from ullage.tools.replay.cost.money import Bill, CostMeter, clocks_of
from ullage.tools.replay.cost.prefix import head_of
from ullage.tools.replay.cost.prices import (
    Profile,
    ProfileChoice,
    profiles_for,
)
from ullage.tools.replay.gates import Judge
from ullage.tools.replay.readers import Run
from ullage.tools.replay.trace import Trace, TracedRun
from ullage.tools.replay.tracer import Tracer
from ullage.wires import FORMATS


class StoredRun(Struct, frozen=True, kw_only=True):
    """One session, shown again from its history and its ledger.

    Attributes:
        policy: the name it was opened with.
        bills: what it costs under each profile and clock, beside the same without edits.
        unfit: turns that cannot be shown: over the limit, so never sent like this.
    """

    policy: str
    trace: Trace
    story: TracedRun
    bills: list[Bill]
    unfit: int


def from_store(
    run: Run,
    store: Store,
    *,
    profiles: Sequence[ProfileChoice],
    window_tokens: int | None = None,
    policy: str | None = None,
    tenant: str = "",
    user_tools: Sequence[str] = (),
) -> StoredRun:
    """Show a session again from its history and its store.

    It ran in ``window_tokens``, or its model's window, under ``policy``, or as the ledger names it,
    with these ``user_tools``.

    Raises:
        ConfigError: the store holds no session with this history.
    """
    limits = (
        Limits(window_tokens=window_tokens)
        if window_tokens is not None
        else None
    )
    ledger, opened = _ledger_of(run, store, tenant)
    if not run.model:  # of several that reported, any
        named = {
            name
            for entry in ledger.entries.values()
            for name in entry.observed
            if name
        }
        name = FORMATS[run.format].model_field
        run = replace(
            run, request={**run.request, name: min(named, default="")}
        )
    presets = {candidate.name: candidate for candidate in map(preset, NAMES)}
    chosen = (
        presets.get(opened.policy, preset("default"))
        if policy is None
        else preset(policy)
    )
    session = Session(
        model_of(run),
        policy=_first_sight(chosen),
        limits=limits,
        format=run.format,
        tenant=tenant,
        user_tools=user_tools,
        state=State(format=run.format, policy_record=opened, ledger=ledger),
    )
    return _shown(run, session, opened.policy, profiles_for(profiles, run))


def _shown(
    run: Run, session: Session, policy: str, profiles: Sequence[Profile]
) -> StoredRun:
    """Every view of the run that the session shows, traced and priced."""
    wire = FORMATS[run.format]
    lengths = boundaries(run)
    judge = Judge()
    tracer = Tracer(judge.text)
    meter = None
    unfit = 0
    for number, length in enumerate(lengths):
        history = run.messages[:length]
        try:
            fitted = session.fit(request_of(run, history))
        except OverLimitError:
            unfit += 1
            continue
        if meter is None:
            heads = head_of(run.request), head_of(fitted)
            meter = CostMeter(
                profiles,
                heads,
                clocks_of(run.id, lengths, run.stamps),
                judge.text,
            )
        meter.take(
            number,
            history,
            wire.history(fitted),
            judge.tokens(answer_of(run, length)),
        )
        if meter.newest is not None:
            tracer(session.window, meter.newest)
    return StoredRun(
        policy=policy,
        trace=tracer.trace(policy),
        story=tracer.story(run),
        bills=meter.bills() if meter is not None else [],
        unfit=unfit,
    )


def _ledger_of(
    run: Run, store: Store, tenant: str
) -> tuple[Ledger, PolicyRecord]:
    """What the store holds of this history, and how it was opened."""
    roomy = Limits(window_tokens=1_000_000_000)
    policy = _first_sight(preset("default"))
    session = Session(
        model_of(run),
        policy=policy,
        limits=roomy,
        format=run.format,
        tenant=tenant,
    )
    session.fit(request_of(run, run.messages))
    chain = session.window.transcript.chain
    ledger = Ledger().with_records(store.find(tenant, chain))
    openings = [opened for key in chain for opened in ledger.at(key).policies]
    opened = openings[-1] if openings else None
    if opened is None:
        raise ConfigError(
            "the ledger",
            "it holds no session with this history",
            "Give the store the session was given, its --tenant, and the history as it was sent.",
        )
    return ledger, opened


def _first_sight(policy: Policy) -> Policy:
    """The policy with its cuts at first sight and nothing that decides."""
    return replace(
        policy,
        under_pressure=(),
        guard=None,
        on_request=None,
        spill_directory=None,
    )

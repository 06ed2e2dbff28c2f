"""Which policy is in force in a history, and what follows where another one decides now.

Two questions are asked before anything is decided:

    look_up           what did the ledger learn of this history since it was last looked at?
    resolve_policy    is it still decided by what it was opened with? If not, what follows?

Another policy, wording, or model family is a difference. What follows depends on the part of the
fingerprint that changed (`ullage.policy.stages.fingerprints`):

    shown again at every turn   The history counts as joined: what was cut on arrival may have
                                been sent otherwise, so those cuts become a batch, the reasoning
                                behind them goes where it is bound, and the new fingerprint holds
                                from there. From then on cuts on arrival are recorded, so that
                                a worker of before the change shows them too; it decides nothing
                                by itself any more but what the guard must.
    recorded once decided       The change is told, once. Everything that was shown stays as it is,
                                and old and new workers decide what comes next side by side.

A history that was under way when it was first seen waits (`ullage.core.turn.recall_offer`). Then it
is opened once more (`join`), and from there on it is shown as if the recall tools had been there
from its start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from ullage.core.contract.policy import Policy
from ullage.core.history.ledger import Ledger, PolicyRecord
from ullage.core.turn import names
from ullage.core.turn.active_policy import (
    ActivePolicy,
    PolicyResolution,
    active_policy,
)
from ullage.core.turn.joining import is_under_way
from ullage.core.turn.openings import (
    Opening,
    changed_at,
    is_shown_alike,
    openings_of,
)
from ullage.core.turn.recall_offer import (
    NO_NAMES,
    cuts_new,
    digest_of_tools,
    has_no_names,
    is_frozen,
    is_offered,
    may_join,
    may_open_again,
)
from ullage.core.turn.settings import Settings
from ullage.core.values.events import Event

if TYPE_CHECKING:
    from ullage.core.turn.caches import HistoryCache
    from ullage.core.turn.request import Request

_EVERYWHERE = "the whole history"


def resolve_policy(
    history: HistoryCache,
    ledger: Ledger,
    request: Request,
    settings: Settings,
    previous: PolicyRecord | None,
) -> PolicyResolution:
    """The policy in force in a history, and an opening of it where one is due.

    Args:
        history: as it was walked so far. It is walked again where it was walked otherwise.
        ledger: with everything that is known of it.
        request: the request at hand.
        settings: of the session at hand.
        previous: what was in force in the session's last turn, for a history that has nothing.

    Raises:
        ConfigError: recall is asked for, and the request takes no functions.
    """
    case = _Case(history, ledger, request, settings)
    openings = _before_refusal(case)
    if openings is None:
        resolution = _resolve(case, previous)
    else:
        history.builder = None  # it was walked with the tools
        resolution = _open(case, None, openings)
    active = resolution.active
    is_inherited = active.changed_at < 0 and active == history.inherited
    if history.active is None and not is_inherited:
        history.builder = None  # another history began it under another policy
    resolution = _with_free_names(case, resolution)
    history.active = resolution.active
    return resolution


def join(
    history: HistoryCache,
    ledger: Ledger,
    request: Request,
    settings: Settings,
    waiting: PolicyResolution,
) -> PolicyResolution:
    """Open a history that waited once more: the recall tools are offered from its end on.

    What was sent before is cut as if they had been there from its start. Where another policy cut
    some of it, what is cut now is recorded as a change of the policy
    (`ullage.core.turn.arrival`).

    Args:
        history: the history.
        ledger: with everything that was known of it before this turn.
        request: the request at hand.
        settings: of the session at hand.
        waiting: the policy under which it waited; what is reported of it is told anyway.
    """
    case = _Case(history, ledger, request, settings)
    openings = case.openings()
    changed = changed_at(openings) >= 0
    for _, policy in openings:
        changed = changed or not case.shows_alike(policy)
    toolset = settings.policy.toolset
    policy = PolicyRecord(
        policy=settings.policy.name,
        recall=True,
        prefix=names.prefix_beside(request, history.transcript, toolset),
        policy_fingerprint=settings.policy_fingerprint,
        family=request.envelope.family,
        folder=_folder(settings.policy),
        joined=True,
        changed=changed,
        adds_tools=True,
    )
    resolution = _write(case, policy, waiting.events)
    history.builder = None  # it was walked under another policy
    history.active = resolution.active
    return resolution


class _Case(NamedTuple):
    """What a policy is resolved for: see `resolve_policy`."""

    history: HistoryCache
    ledger: Ledger
    request: Request
    settings: Settings

    def openings(self) -> list[Opening]:
        """What the ledger says of the history."""
        return list(openings_of(self.history.transcript, self.ledger))

    def shows_alike(self, policy: PolicyRecord) -> bool:
        """Whether a policy shows what arrives as the session's own does."""
        fingerprint = self.settings.policy_fingerprint
        return is_shown_alike(policy.policy_fingerprint, fingerprint)

    def may_open_again(self, policy: PolicyRecord) -> bool:
        """See `ullage.core.turn.recall_offer.may_open_again`."""
        return may_open_again(
            policy, self.history, self.request, self.settings
        )

    def is_announced(self, active: ActivePolicy) -> bool:
        """Whether the session's policy is in force, and nothing is left to be told of it."""
        is_same_family = active.record.family == self.request.envelope.family
        return (
            is_same_family
            and self.settings.policy_fingerprint in active.announced
        )


def _resolve(case: _Case, previous: PolicyRecord | None) -> PolicyResolution:
    """The policy in force, where no refusal changes it."""
    ledger = case.ledger
    settings = case.settings
    cached = case.history.active
    if cached is not None and not case.may_open_again(cached.record):
        if cached.superseded:
            return PolicyResolution(cached, ledger)
        if case.is_announced(cached):
            return PolicyResolution(replace(cached, is_new=False), ledger)
    openings = case.openings()
    if not openings:
        return _open(case, previous)
    newest = openings[-1][1]
    if case.may_open_again(newest):
        return _open(case, None, openings)
    active = active_policy(openings, may_join=may_join(settings))
    if case.is_announced(active):
        return PolicyResolution(active, ledger)
    if case.shows_alike(newest):
        if newest.family == case.request.envelope.family:
            return _go_on(case, newest)
    elif any(case.shows_alike(policy) for _, policy in openings):
        # this policy decided here before, and a newer one took its place
        return _superseded(active, ledger)
    policy = _reopened(case, newest, active)
    return _write(case, policy, (_changed(newest, policy),))


def _superseded(active: ActivePolicy, ledger: Ledger) -> PolicyResolution:
    """Leave what comes next to the newer policy that decides here."""
    reason = _SUPERSEDED % active.record.policy
    event = Event(kind="superseded", where=_EVERYWHERE, why=reason)
    active = replace(active, superseded=True, waits=False)
    return PolicyResolution(active, ledger, (), (event,))


def _reopened(
    case: _Case, newest: PolicyRecord, active: ActivePolicy
) -> PolicyRecord:
    """What is in force from here on, where what was sent may have been shown otherwise."""
    request = case.request
    settings = case.settings
    is_alike = case.shows_alike(newest)
    folder = newest.folder
    if not is_alike:
        folder = _folder(settings.policy) or newest.folder
    cuts = newest.cuts_new
    if active.waits and not cuts:
        cuts = cuts_new(case.history, request, settings)
    return replace(
        newest,
        policy=settings.policy.name,
        policy_fingerprint=settings.policy_fingerprint,
        family=request.envelope.family,
        folder=folder,
        joined=is_alike,
        changed=not is_alike,
        cuts_new=cuts,
    )


def _go_on(case: _Case, newest: PolicyRecord) -> PolicyResolution:
    """Go on where another policy or wording decides under pressure: it is told, and that is all.

    What it decided so far is in the ledger, and what is shown on arrival is shown alike.
    """
    settings = case.settings
    policy = replace(
        newest,
        policy=settings.policy.name,
        policy_fingerprint=settings.policy_fingerprint,
        joined=False,
        changed=False,
        adds_tools=False,
        # a history that was met under way is not opened again for its first tools
        has_no_tools=newest.has_no_tools and not newest.joined,
    )
    reason = _GOES_ON.format(before=newest.policy, now=policy.policy)
    event = Event(kind="changed", where=_EVERYWHERE, why=reason)
    return replace(_write(case, policy, (event,)), shows_same=True)


def _before_refusal(case: _Case) -> list[Opening] | None:
    """The openings before this place, where this very request offered the recall tools first.

    They were refused, so no view with them was accepted, and the history is opened once more, as
    one that uses none: it is offered them as soon as they may be added (`may_open_again`). None
    where nothing is to be opened: a history that has views with the tools keeps their notices, and
    what comes now is not cut for want of tools (`RequestRecord`).
    """
    request = case.request
    settings = case.settings
    if settings.recall != "auto" or request.envelope.bars_tools != "refused":
        return None
    transcript = case.history.transcript
    key = transcript.decision_key(len(transcript))
    policies = case.ledger.at(key).policies
    if not policies or not policies[-1].recall:
        return None
    if names.holds(request, policies[-1].prefix, settings.policy.toolset):
        return None
    end = transcript.find(key) or 0
    openings = [opening for opening in case.openings() if opening[0] != end]
    if any(policy.recall for _, policy in openings):
        return None
    return openings


def _open(
    case: _Case,
    previous: PolicyRecord | None,
    openings: Sequence[Opening] = (),
) -> PolicyResolution:
    """Open a history that nothing is known of, or one that used no tools until now.

    Args:
        case: the history, and what it is opened for.
        previous: what was in force in the session's last turn, or None.
        openings: of a history that used no tools; what it sent is shown as it was.
    """
    history = case.history
    request = case.request
    settings = case.settings
    transcript = history.transcript
    is_host = settings.recall == "host"
    present = names.holds(request, "", settings.policy.toolset)
    uses = _uses_tools(case, present=present)
    joined = is_under_way(transcript)
    offered = _offers(case, present=present, under_way=joined and not openings)
    prefix = ""
    if previous is not None and previous.recall and uses:
        offered = True
        prefix = previous.prefix
    prefix = _prefix_for(case, prefix)
    waits = joined and not offered and may_join(settings)
    adds_tools = offered and not present and not is_host
    replied = any(
        message.role == "assistant" for message in transcript.messages
    )
    newest = openings[-1][1] if openings else None
    policy = PolicyRecord(
        policy=settings.policy.name,
        recall=offered,
        prefix=prefix,
        policy_fingerprint=settings.policy_fingerprint,
        family=request.envelope.family,
        folder=_folder(settings.policy),
        joined=joined,
        changed=newest is not None and not case.shows_alike(newest),
        adds_tools=replied and adds_tools,
        has_no_tools=not uses,
        cuts_new=joined
        and not offered
        and cuts_new(history, request, settings),
        tools=digest_of_tools(request) if waits and uses else "",
    )
    events: list[Event] = []
    if newest is not None and policy.changed:
        events.append(_changed(newest, policy))
    if joined and not waits:
        events.append(_joined(len(transcript), offered))
    if not offered and has_no_names(request, settings):
        events.append(NO_NAMES)
    return _write(case, policy, tuple(events))


def _uses_tools(case: _Case, *, present: bool) -> bool:
    """Whether the request uses tools that ours may stand beside, or has ours already."""
    if present or case.settings.recall != "auto":
        return True
    envelope = case.request.envelope
    return envelope.uses_tools and not envelope.bars_tools


def _offers(case: _Case, *, present: bool, under_way: bool) -> bool:
    """Whether the recall tools are offered where a history is opened."""
    if has_no_names(case.request, case.settings):
        return False
    offered = is_offered(
        case.request, case.settings, present=present, under_way=under_way
    )
    if not under_way or present or case.settings.recall == "host":
        return offered
    # the tools would void frozen reasoning: they wait for the end of its turn
    return offered and not is_frozen(case.history, case.request)


def _write(
    case: _Case, policy: PolicyRecord, events: tuple[Event, ...] = ()
) -> PolicyResolution:
    """Write an opening at the end of the history."""
    transcript = case.history.transcript
    key = transcript.decision_key(len(transcript))
    ledger, record = case.ledger.with_policy(key, policy)
    openings = list(openings_of(transcript, ledger))
    active = active_policy(openings, may_join=may_join(case.settings))
    active = replace(active, is_new=policy.changed)
    return PolicyResolution(active, ledger, (record,), events)


def _with_free_names(
    case: _Case, resolution: PolicyResolution
) -> PolicyResolution:
    """The policy with other names for our tools, where the caller has taken one of ours."""
    policy = resolution.active.record
    if not policy.recall:
        return resolution
    prefix = _prefix_for(case, policy.prefix)
    if prefix == policy.prefix:
        return resolution
    transcript = case.history.transcript
    key = transcript.decision_key(len(transcript))
    renamed, event = names.renaming(policy, key, prefix)
    ledger, record = resolution.ledger.with_policy(key, renamed)
    return PolicyResolution(
        active=replace(resolution.active, record=renamed),
        ledger=ledger,
        records=(*resolution.records, record),
        events=(*resolution.events, event),
    )


def _prefix_for(case: _Case, prefix: str) -> str:
    """What stands before our names, where the one at hand is this."""
    request = case.request
    toolset = case.settings.policy.toolset
    if case.settings.recall == "host":
        return names.prefix_of_host(request, toolset, prefix)
    transcript = case.history.transcript
    return names.prefix_beside(request, transcript, toolset, prefix)


def _folder(policy: Policy) -> str | None:
    """The folder of spill files, as notices name it."""
    directory = policy.spill_directory
    return directory if isinstance(directory, str) else None


_GOES_ON = (
    "another policy, setting or wording decides under pressure from here on ({before} before, "
    "{now} now): everything that was shown stays as it is"
)
_SUPERSEDED = (
    "a newer policy, wording or version (%s) decides here: what it decided is shown, and nothing "
    "is added but what the hard limit asks for"
)


def _changed(earlier: PolicyRecord, later: PolicyRecord) -> Event:
    """The event of another policy or family from which on what was sent counts as one batch."""
    subject = "policy, limits or wording"
    names_of_both = (earlier.policy, later.policy)
    if is_shown_alike(earlier.policy_fingerprint, later.policy_fingerprint):
        subject = "model family"
        names_of_both = (earlier.family, later.family)
    reason = (
        f"another {subject} decides from here on ({names_of_both[0]} before, "
        f"{names_of_both[1]} now): what was sent counts as one batch, and reasoning bound to it "
        "is dropped"
    )
    return Event(kind="changed", where=_EVERYWHERE, why=reason)


def _joined(messages: int, recall: bool) -> Event:
    """The event of a history that was under way when it was first seen."""
    tools = "are offered" if recall else "are not offered"
    reason = (
        f"{messages:,} messages stood before this session first saw them: its cuts count as one "
        f"batch, reasoning bound to the whole history may be dropped, and recall tools {tools}"
    )
    return Event(kind="joined", where=_EVERYWHERE, why=reason)

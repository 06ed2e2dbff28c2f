"""On what terms a history is shown: what decided in it so far, here and elsewhere.

Two questions are asked before anything is decided:

    look_up    what did the ledger learn of this history since it was last looked at?
    agree      is it still decided by what it was opened with? If not, what follows?

Any number of sessions may work on one conversation. Each looks up the keys behind its last
decision at every turn, and one record that says whether anything was decided further back
(`latest`); what it finds there holds, whoever wrote it.

Another policy, wording, or model family is a difference. What follows depends on the part of the
fingerprint that changed (`ullage.policy.stages.prints`):

    shown anew at every turn    The history counts as joined: what was cut on arrival may have
                                been sent otherwise, so those cuts become a batch, the reasoning
                                behind them goes where it is bound, and the new fingerprint holds
                                from there. From then on cuts on arrival are recorded, so that
                                a worker of before the change shows them too; it decides nothing
                                by itself any more but what the guard must (DESIGN §11, "Place").
    recorded once decided       The change is told, once. Everything that was shown stays as it is,
                                and old and new workers decide what comes next side by side.

A history that was under way when it was first seen waits: it is shown as it was sent, until
`ullage.core.turn.joining` says that it pays to offer the recall tools. Then it is opened once more
(`join`), and from there on it is shown as if the tools had been there from its start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from ullage.core.contract.format import Format, Formats
from ullage.core.contract.policy import Policy, Safeguards
from ullage.core.errors import ConfigError
from ullage.core.history import canon
from ullage.core.history.ledger import Ledger, Opened, latest_key
from ullage.core.history.transcript import Transcript
from ullage.core.redaction import Redact
from ullage.core.turn import changes, names
from ullage.core.turn.filling import Asking
from ullage.core.turn.joining import Cuts, Offer, is_under_way
from ullage.core.turn.learnt import Learnt
from ullage.core.turn.openings import (
    announced,
    changed_at,
    cuts_from,
    is_shown_alike,
    openings,
    recall_from,
)
from ullage.core.values.effects import Find, Record, Steps
from ullage.core.values.events import Event
from ullage.core.values.limits import Limits

if TYPE_CHECKING:
    from ullage.core.turn.memo import Line
    from ullage.core.turn.request import Request


class Terms(Struct, frozen=True):
    """On what terms a line of history is shown.

    Attributes:
        opened: what is in force at its end.
        changed_at: the chain position at which what decides changed last, or -1.
        superseded: something newer decides here; we add what the guard must.
        is_new: the change is made by this turn.
        recall_from: the chain position from which the recall tools are offered, or -1: nowhere.
        waits: the recall tools are not offered, and are once that pays.
        cuts_from: the chain position from which what is new is cut on arrival though no
            recall tools are offered, or -1: what the policy does without them.
        announced: the fingerprints that were told of, and show on arrival what the newest shows.
    """

    opened: Opened
    changed_at: int = -1
    superseded: bool = False
    is_new: bool = False
    recall_from: int = 0
    waits: bool = False
    cuts_from: int = -1
    announced: frozenset[str] = frozenset()

    def offers_recall(self, place: int) -> bool:
        """Whether the recall tools are offered at a chain position."""
        return 0 <= self.recall_from <= place


class Settings(Struct, frozen=True, kw_only=True):
    """What a session was asked to be. See `ullage.Session` for the meaning of each.

    Attributes:
        safeguards: what runs behind the policy.
        formats: the formats that there are.
        learnt: what the provider's answers taught of its limits.
        asking: who is asked for summaries.
        user_tools: tools of the host's own whose results are the user's words, beside
            `ullage.core.values.authors.QUESTION_TOOLS`.
        decides: the fingerprint of the policy, and of the settings that decide with it
            (`ullage.policy.fingerprint`).
        outlines: whether an outline of the history is kept beside the ledger
            (`ullage.core.history.outline`).
        may_add_tools: whether the recall tools may be added to the request at hand; False where
            its provider refused them.
    """

    model: str
    policy: Policy
    safeguards: Safeguards
    formats: Formats
    limits: Limits | None = None
    learnt: Learnt = Learnt()
    format: Format | None = None
    tenant: str = ""
    recall: bool | Literal["auto", "host"] = "auto"
    joins: bool = True
    repair: bool = False
    asking: Asking | None = None
    redact: Redact | None = None
    user_tools: tuple[str, ...] = ()
    decides: str = ""
    outlines: bool = False
    may_add_tools: bool = True


class Agreed(Struct, frozen=True):
    """What `agree` comes to: the terms, the ledger with them, and what is to be kept and told.

    Attributes:
        terms: the terms.
        ledger: with what is to be kept.
        records: what is to be kept.
        events: what is to be told.
        shows_same: the records and events are of a change that shows nothing otherwise.
    """

    terms: Terms
    ledger: Ledger
    records: tuple[Record, ...] = ()
    events: tuple[Event, ...] = ()
    shows_same: bool = False


# ── what is new in the ledger ────────────────────────────────────────────────────────────


def look_up(line: Line, ledger: Ledger) -> Steps[Ledger]:
    """The ledger with what the store holds for a line of history; at every turn.

    Where something was decided behind what is already walked, the line is walked anew.
    """
    transcript = line.transcript
    window = None if line.builder is None else line.builder.window
    pointer, shown = latest_key(transcript.chain), changes.key_of(transcript)
    beside = (pointer,) if shown is None else (pointer, shown)
    walked = 0 if window is None else transcript.decision_index(window.size)
    whole = window is None or line.latest is None
    start = 1 if whole else max(walked, 1)
    records = yield Find((*beside, *transcript.chain[start:]))
    ledger, changed = ledger.merged(records)
    latest = ledger.at(pointer).latest
    if not whole and latest != line.latest:
        records = yield Find(tuple(transcript.chain[1:start]))
        ledger, further = ledger.merged(records)
        changed |= further
    decided = changed.difference(beside)
    # another line of this session may have opened there; of one begun by another `agree` sees it
    unwalked = () if line.terms is None else transcript.chain[walked + 1 :]
    reopened = any(ledger.at(key).opened for key in (*decided, *unwalked))
    if window is not None and (reopened or _reaches_back(transcript, decided, walked)):
        line.begin_again()
    line.latest = latest
    return ledger


def _reaches_back(
    transcript: Transcript, changed: frozenset[bytes], walked: int
) -> bool:
    places = (transcript.find(key) for key in changed)
    return any(place is not None and place <= walked for place in places)


# ── what decides ─────────────────────────────────────────────────────────────────────────


def agree(
    line: Line,
    ledger: Ledger,
    asked: Request,
    settings: Settings,
    before: Opened | None,
) -> Agreed:
    """The terms on which a line is shown, the line's from now on; an opening where one is due.

    Args:
        line: the line of history.
        ledger: with everything that is known of it.
        asked: the request at hand.
        settings: of the session at hand.
        before: what was in force in the session's last turn, for a history that has nothing.

    Raises:
        ConfigError: recall is asked for, and the request takes no functions.
    """
    before_refusal = _before_refusal(line, ledger, asked, settings)
    if before_refusal is None:
        agreed = _agree(line, ledger, asked, settings, before)
    else:
        line.builder = None  # it was walked with the tools
        agreed = _open(line, ledger, asked, settings, None, before_refusal)
    if line.terms is None and (
        agreed.terms.changed_at >= 0 or agreed.terms != line.begun_on
    ):
        line.builder = None  # another line began it on other terms
    agreed = _named(agreed, line, asked, settings)
    line.terms = agreed.terms
    return agreed


def _named(agreed: Agreed, line: Line, asked: Request, settings: Settings) -> Agreed:
    """The terms with other names for our tools, where the caller has taken one of ours."""
    opened, transcript = agreed.terms.opened, line.transcript
    if settings.recall == "host" or not opened.recall:
        return agreed
    toolset = settings.policy.toolset
    prefix = names.prefix_beside(asked, transcript, toolset, opened.prefix)
    if prefix == opened.prefix:
        return agreed
    key = transcript.decision_key(len(transcript))
    renamed, event = names.renaming(opened, key, prefix)
    ledger, record = agreed.ledger.with_opened(key, renamed)
    terms = replace(agreed.terms, opened=renamed)
    return Agreed(terms, ledger, (*agreed.records, record), (*agreed.events, event))


def _agree(
    line: Line,
    ledger: Ledger,
    asked: Request,
    settings: Settings,
    before: Opened | None,
) -> Agreed:
    known, decides, family = line.terms, settings.decides, asked.envelope.family
    if known is not None and not _may_open_again(known.opened, line, asked, settings):
        if known.superseded:
            return Agreed(known, ledger)
        if _is_announced(known, decides, family):
            return Agreed(replace(known, is_new=False), ledger)
    transcript = line.transcript
    found = list(openings(transcript, ledger))
    if not found:
        return _open(line, ledger, asked, settings, before)
    newest = found[-1][1]
    if _may_open_again(newest, line, asked, settings):
        return _open(line, ledger, asked, settings, None, found)
    terms = _terms(found, settings)
    if _is_announced(terms, decides, family):
        return Agreed(terms, ledger)
    if is_shown_alike(newest.decides, decides):
        if newest.family == family:
            return _go_on(line, ledger, newest, settings)
    elif any(is_shown_alike(opened.decides, decides) for _, opened in found):
        event = Event(
            kind="superseded",
            where="the whole history",
            why=_SUPERSEDED % newest.policy,
        )
        terms = replace(terms, superseded=True, waits=False)
        return Agreed(terms, ledger, (), (event,))
    opened = _opened_anew(line, newest, terms, asked, settings)
    return _write(line, ledger, opened, settings, _changed(newest, opened))


def _is_announced(terms: Terms, decides: str, family: str) -> bool:
    """Whether a fingerprint and a family are in force, and nothing is left to be told of them."""
    return decides in terms.announced and terms.opened.family == family


def _opened_anew(
    line: Line, newest: Opened, terms: Terms, asked: Request, settings: Settings
) -> Opened:
    """What is in force from here on, where what was sent may have been shown otherwise."""
    same = is_shown_alike(newest.decides, settings.decides)
    return replace(
        newest,
        policy=settings.policy.name,
        decides=settings.decides,
        family=asked.envelope.family,
        folder=newest.folder if same else _folder(settings.policy) or newest.folder,
        joined=same,
        changed=not same,
        cuts_new=newest.cuts_new or (terms.waits and _cuts_new(line, asked, settings)),
    )


def _go_on(line: Line, ledger: Ledger, newest: Opened, settings: Settings) -> Agreed:
    """Go on where another policy or wording decides under pressure: it is told, and that is all.

    What it decided so far is in the ledger, and what is shown on arrival is shown alike.
    """
    opened = replace(
        newest,
        policy=settings.policy.name,
        decides=settings.decides,
        joined=False,
        changed=False,
        adds_tools=False,
        # a history that was met under way is not opened again for its first tools
        has_no_tools=newest.has_no_tools and not newest.joined,
    )
    why = _GOES_ON.format(before=newest.policy, now=opened.policy)
    event = Event(kind="changed", where="the whole history", why=why)
    agreed = _write(line, ledger, opened, settings, (event,))
    return Agreed(
        agreed.terms, agreed.ledger, agreed.records, agreed.events, shows_same=True
    )


def _before_refusal(
    line: Line, ledger: Ledger, asked: Request, settings: Settings
) -> list[tuple[int, Opened]] | None:
    """The openings before this place, where this very request offered the recall tools first.

    They were refused, so no view with them was accepted, and the history is opened once more, as
    one that uses none: it is offered them as soon as they may be added (`_may_open_again`). None
    where nothing is to be opened: a history that has views with the tools keeps their notices, and
    what comes now is not cut for want of tools (`Seen`).
    """
    if settings.recall != "auto" or asked.envelope.bars_tools != "refused":
        return None
    transcript, toolset = line.transcript, settings.policy.toolset
    key = transcript.decision_key(len(transcript))
    here = ledger.at(key).opened
    if not here or not here[-1].recall or names.holds(asked, here[-1].prefix, toolset):
        return None
    end = transcript.find(key) or 0
    before = [each for each in openings(transcript, ledger) if each[0] != end]
    return None if any(opened.recall for _, opened in before) else before


def _terms(found: Sequence[tuple[int, Opened]], settings: Settings) -> Terms:
    """The terms that openings come to."""
    newest = found[-1][1]
    return Terms(
        newest,
        changed_at(found),
        recall_from=recall_from(found),
        waits=not newest.recall and _may_join(settings),
        cuts_from=cuts_from(found),
        announced=announced(found),
    )


def _write(
    line: Line,
    ledger: Ledger,
    opened: Opened,
    settings: Settings,
    events: tuple[Event, ...] = (),
) -> Agreed:
    """An opening at the end of the history."""
    transcript = line.transcript
    ledger, record = ledger.with_opened(
        transcript.decision_key(len(transcript)), opened
    )
    terms = _terms(list(openings(transcript, ledger)), settings)
    return Agreed(replace(terms, is_new=opened.changed), ledger, (record,), events)


def _open(
    line: Line,
    ledger: Ledger,
    asked: Request,
    settings: Settings,
    before: Opened | None,
    found: Sequence[tuple[int, Opened]] = (),
) -> Agreed:
    """Open a history that nothing is known of, or one that used no tools until now (``found``)."""
    transcript, envelope, toolset = (
        line.transcript,
        asked.envelope,
        settings.policy.toolset,
    )
    present = names.holds(asked, "", toolset)
    joined = is_under_way(transcript)
    tools_are_new = bool(found)  # what used no tools was sent as it is shown
    under_way = joined and not tools_are_new
    offered, prefix = _offers(asked, settings, present=present, under_way=under_way), ""
    uses = (
        present
        or settings.recall != "auto"
        or (envelope.uses_tools and not envelope.bars_tools)
    )
    if (
        under_way
        and not present
        and settings.recall != "host"
        and _is_frozen(line, asked)
    ):
        offered = False  # the tools would void it: they wait for the end of its turn
    if before is not None and before.recall and uses:
        offered, prefix = True, before.prefix
    if settings.recall != "host":
        prefix = names.prefix_beside(asked, transcript, toolset, prefix)
    waits = joined and not offered and _may_join(settings)
    said = any(message.role == "assistant" for message in transcript.messages)
    opened = Opened(
        policy=settings.policy.name,
        recall=offered,
        prefix=prefix,
        decides=settings.decides,
        family=envelope.family,
        folder=_folder(settings.policy),
        joined=joined,
        changed=bool(found)
        and not is_shown_alike(found[-1][1].decides, settings.decides),
        adds_tools=said and offered and not present and settings.recall != "host",
        has_no_tools=not uses,
        cuts_new=joined and not offered and _cuts_new(line, asked, settings),
        tools=_digest_of_tools(asked) if waits and uses else "",
    )
    events = _changed(found[-1][1], opened) if opened.changed else ()
    if joined and not waits:
        events += (_joined(len(transcript), offered),)
    return _write(line, ledger, opened, settings, events)


# ── a history that was under way ─────────────────────────────────────────────────────────


def join(
    line: Line, ledger: Ledger, asked: Request, settings: Settings, waiting: Agreed
) -> Agreed:
    """Open a history that waited once more: the recall tools are offered from its end on.

    What was sent before is cut as if they had been there from its start. Where another policy cut
    some of it, what is cut now is recorded as a change of what decides
    (`ullage.core.turn.arrival`).

    Args:
        line: the line of history.
        ledger: with everything that was known of it before this turn.
        asked: the request at hand.
        settings: of the session at hand.
        waiting: the terms on which it waited; what is told of them is told all the same.
    """
    found = list(openings(line.transcript, ledger))
    others = not all(
        is_shown_alike(opened.decides, settings.decides) for _, opened in found
    )
    opened = Opened(
        policy=settings.policy.name,
        recall=True,
        prefix=names.prefix_beside(asked, line.transcript, settings.policy.toolset),
        decides=settings.decides,
        family=asked.envelope.family,
        folder=_folder(settings.policy),
        joined=True,
        changed=others or changed_at(found) >= 0,
        adds_tools=True,
    )
    agreed = _write(line, ledger, opened, settings, waiting.events)
    line.builder = None  # it was walked on other terms
    line.terms = agreed.terms
    return agreed


def offer_of(agreed: Agreed, asked: Request, settings: Settings) -> Offer | None:
    """What a request says about joining its conversation; None where that does not wait for it.

    Args:
        agreed: the terms so far.
        asked: the request at hand.
        settings: of the session at hand.
    """
    opened = agreed.terms.opened
    if not agreed.terms.waits or asked.elsewhere:
        return None
    envelope, broken = asked.envelope, ""
    is_met_now = bool(agreed.records) and not agreed.shows_same
    if _is_asked(settings):
        broken = "the recall tools are asked for"
    elif opened.tools and opened.tools != _digest_of_tools(asked):
        broken = "the request's own tools changed"
    elif is_met_now and any(event.kind == "changed" for event in agreed.events):
        broken = "another model, policy or wording decides"
    cuts: Cuts = "nothing" if agreed.terms.cuts_from < 0 else "new"
    return Offer(
        can_add=envelope.takes_tools
        and envelope.uses_tools
        and _may_call(asked, settings),
        broken=broken,
        is_met_now=is_met_now,
        cuts="all" if settings.policy.without_recall is None else cuts,
    )


def _may_join(settings: Settings) -> bool:
    """Whether a history under way may be offered the recall tools later."""
    on_its_own = settings.recall == "auto" and settings.joins
    return _is_asked(settings) or (
        on_its_own and settings.policy.toolset.offered != "no"
    )


def _is_asked(settings: Settings) -> bool:
    """Whether the recall tools are asked for whatever they cost, by the caller or a document."""
    always = settings.policy.toolset.offered == "always"
    return settings.recall is True or (settings.recall == "auto" and always)


def _cuts_new(line: Line, asked: Request, settings: Settings) -> bool:
    """Whether a history that waits is cut on arrival from here on, though nothing opens it yet.

    That is where reasoning is bound to what was sent: it is lost when the history is joined, and
    that may not even be allowed for as long as its turn is open. What is new breaks nothing. A
    policy that cuts without the tools too does so at once, if it may.
    """
    if settings.policy.without_recall is None:
        return _is_frozen(line, asked)
    if asked.envelope.bars_tools:
        return False  # nothing tells when it can be joined
    return (
        _may_join(settings) and asked.envelope.reasoning != "free" and _is_bound(line)
    )


def _is_frozen(line: Line, asked: Request) -> bool:
    """Whether reasoning is there that must stay as it is while its turn is open."""
    return asked.envelope.reasoning == "frozen" and _is_bound(line)


def _is_bound(line: Line) -> bool:
    """Whether a history holds reasoning that is bound to what was sent before it."""
    transcript = line.transcript
    return bool(transcript.marked("bound", 0, len(transcript)))


def _may_call(asked: Request, settings: Settings) -> bool:
    """Whether the model may call our tools in its reply, once they are among its tools."""
    choice = asked.envelope.choice
    return choice.takes_more or choice.allows(settings.policy.toolset.names)


def _digest_of_tools(asked: Request) -> str:
    """A digest of the caller's own tools, by their names."""
    tools = [asked.wire.tool_name(tool) or "" for tool in asked.envelope.tools]
    return canon.ref_of("\n".join(tools))


def _may_open_again(
    opened: Opened, line: Line, asked: Request, settings: Settings
) -> bool:
    """Whether nothing was decided of recall tools, and now it can be.

    The caller's own tools are new to the request then, so that ours break no prefix that these do
    not. Or ours were refused, or had no room, and may be added now: that breaks it, so what was
    sent whole is cut with it. Of a history that was met under way this is not known: it waits like
    any other.
    """
    envelope = asked.envelope
    is_new = opened.has_no_tools and not opened.joined
    may_add = envelope.uses_tools and not envelope.bars_tools
    return (
        is_new and may_add and settings.recall == "auto" and not _is_frozen(line, asked)
    )


def _offers(
    asked: Request, settings: Settings, *, present: bool, under_way: bool
) -> bool:
    """Whether the requests of a history are to offer the recall tools."""
    recall = settings.recall
    if recall == "host":
        return settings.joins or not under_way
    takes = asked.envelope.takes_tools
    if recall == "auto":
        wanted = ("always",) if under_way else ("always", "from the start")
        uses = takes and asked.envelope.uses_tools
        return present or (uses and settings.policy.toolset.offered in wanted)
    if recall and not (present or takes):
        raise ConfigError(
            "recall",
            f"{asked.envelope.model!r} takes no functions in this request",
            "Give recall=False, another wire format, or a function beside the provider's tools.",
        )
    return recall


def _folder(policy: Policy) -> str | None:
    """The folder of spill files, as notices name it."""
    return policy.spill_directory if isinstance(policy.spill_directory, str) else None


_GOES_ON = (
    "another policy, setting or wording decides under pressure from here on ({before} before, "
    "{now} now): everything that was shown stays as it is"
)
_SUPERSEDED = (
    "a newer policy, wording or version (%s) decides here: what it decided is shown, and nothing "
    "is added but what the hard limit asks for"
)


def _changed(old: Opened, new: Opened) -> tuple[Event, ...]:
    what, before, now = "model family", old.family, new.family
    if not is_shown_alike(old.decides, new.decides):
        what, before, now = "policy, limits or wording", old.policy, new.policy
    why = (
        f"another {what} decides from here on ({before} before, {now} now): what was sent counts "
        "as one batch, and reasoning bound to it is dropped"
    )
    return (Event(kind="changed", where="the whole history", why=why),)


def _joined(messages: int, recall: bool) -> Event:
    tools = "are offered" if recall else "are not offered"
    why = (
        f"{messages:,} messages stood before this session first saw them: its cuts count as one "
        f"batch, reasoning bound to the whole history may be dropped, and recall tools {tools}"
    )
    return Event(kind="joined", where="the whole history", why=why)

"""Conversations of a store, without their callers: what is in the window, and deciding about it.

Their outlines say which messages there are (`ullage.core.history.outline`), the ledger what became
of them. A decision is written there too, and the agent's next request shows it, whoever carries
that on. Everything here is steps of the core, but for listing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ullage.core.errors import ConfigError, StoreError
from ullage.core.history.hand import (
    UserDecisions,
    hand_of,
    index_of,
    locations_of,
    name_of,
)
from ullage.core.history.ledger import Ledger, latest_record
from ullage.core.history.outline import (
    Item,
    Outline,
    OutlinedMessage,
    messages_of,
    outline_of,
    transcript_of,
)
from ullage.core.history.transcript import Location, Transcript
from ullage.core.values.decisions import (
    Decision,
    LedgerRef,
    Target,
    Verb,
    When,
)
from ullage.core.values.edits import (
    Batch,
    Drop,
    Insert,
    Replace,
    ReplaceSpan,
    Restore,
)
from ullage.core.values.effects import Find, Record, Steps
from ullage.session.decisions.deciding import new_decision, with_lost_race
from ullage.session.decisions.entries import (
    ConversationEntry,
    gone_on_with,
    largest,
    newest_of,
    read_outlines,
)
from ullage.session.decisions.targets import (
    range_of,
    refuse_other_names,
    target_of,
    undone_by,
)
from ullage.session.drivers import run
from ullage.session.prompt_cache.sent import SentRequest, sent_in
from ullage.stores import Store

CHARS_PER_TOKEN = 4
CONVERSATIONS = 5_000
"""The newest outlines that are looked through for conversations."""
State: TypeAlias = Literal["whole", "in short", "set aside"]
"""How a leaf is shown: as it came, in part, or not at all."""


class Leaf(NamedTuple):
    """One text, result item or call of a message, as it stands.

    Attributes:
        name: its short name, such as ``m12.2``.
        message: the index of its message.
        role: whose the message is.
        kind: what it is: ``text``, ``call``, ``result``, or of media such as ``image``.
        tool: the name of the tool; ``""`` for none.
        head: how it begins.
        chars: how many characters it has.
        state: how it is shown.
        is_pinned: whether a user pinned it, or lines of it.
        batch: the name of the batch that took it out; ``""``: none did.
        ref: what opens it, where it was set aside; ``""``: nothing has to.
        why: why it was.
        shown_chars: how many characters are shown in its place.
        file: the path that its call names, or the end of it; ``""``: none.
        is_copied: whether a user had a copy of it shown further on.
    """

    name: str
    message: int
    role: str
    kind: str
    tool: str
    head: str
    chars: int
    state: State
    is_pinned: bool
    batch: str = ""
    ref: str = ""
    why: str = ""
    shown_chars: int = 0
    file: str = ""
    is_copied: bool = False


class StoredConversation(Struct, frozen=True, eq=False):
    """A conversation of a store, as it stands.

    Attributes:
        tenant: the owner.
        outline: its newest outline.
        outlines: all of them, the oldest first: one for each request that was kept.
        messages: all of its messages, in outline.
        transcript: the same as stand-ins, with the chain of the real ones.
        ledger: everything that was decided in it.
        hand: the users' decisions that stand.
        sent: its requests that were answered, oldest first, each behind its place in the chain.
        left_for: the name of the conversation that its client went on with, having compacted this
            one; ``""``: none.
        went_along: whether what was pinned and noted in it went along into that one.
    """

    tenant: str
    outline: Outline
    outlines: tuple[Outline, ...]
    messages: tuple[OutlinedMessage, ...]
    transcript: Transcript
    ledger: Ledger
    hand: UserDecisions
    sent: tuple[tuple[int, SentRequest], ...] = ()
    left_for: str = ""
    went_along: bool = False

    @property
    def key(self) -> bytes:
        """Where a decision about it is kept: behind the newest reply that was seen."""
        return self.transcript.decision_key(len(self.transcript))

    def follows_at(self, key: bytes) -> bool:
        """Whether decisions of an earlier conversation went along into this one at a place.

        Args:
            key: the chain at the place.
        """
        return bool(self.ledger.at(key).follows)

    def leaves(
        self, length: int | None = None, *, start: int = 0
    ) -> list[Leaf]:
        """Every leaf of it, in order.

        Args:
            length: as it stood when it had so many messages; None: now.
            start: leave out the messages before this one.
        """
        end = len(self.messages) if length is None else length
        return list(_leaves(self, start, end))

    def cut_by(self, batch: Batch, leaves: Sequence[Leaf]) -> list[Leaf]:
        """The leaves that a batch cut or took out, whatever became of them since.

        Args:
            batch: one of its batches.
            leaves: all of its leaves, as they stand.
        """
        leaf_states = dict[Location, "_LeafState | None"]()
        message_states = dict[int, _LeafState]()
        for edit in batch.edits:
            _apply(self.transcript, edit, "", leaf_states, message_states)
        names = set[str]()
        for spot, state in leaf_states.items():
            if state is not None:
                names.add(f"m{spot[0] + 1}.{number_of(self, spot)}")
        return [
            leaf
            for leaf in leaves
            if leaf.message in message_states or leaf.name in names
        ]

    def batches(self) -> Iterator[tuple[LedgerRef, Batch, bool]]:
        """Every batch of it in order, and whether it is undone."""
        for key in dict.fromkeys(self.transcript.chain):
            for n, batch in enumerate(self.ledger.at(key).batches):
                handle = LedgerRef("batch", key, n)
                yield handle, batch, handle in self.hand.undone


def conversations(store: Store, tenant: str) -> list[ConversationEntry]:
    """The conversations of a tenant, the newest first.

    Args:
        store: where they are kept.
        tenant: whose they are.

    Raises:
        StoreError: the store cannot list, or it failed.
    """
    rows = store.newest(tenant, "outline", CONVERSATIONS)
    outlines = dict[bytes, Outline]()
    for record, _ in rows:
        outline = outline_of(record)
        if outline is not None:
            outlines[record.key] = outline
    named_since = _named_since(outlines)
    listed = [
        ConversationEntry(outlines[record.key], used_s)
        for record, used_s in rows
        if record.key in outlines and record.key not in named_since
    ]
    # times are in whole seconds: of two at once the longer is the later
    listed.sort(
        key=lambda entry: (entry.used_s, entry.outline.length), reverse=True
    )
    newest = dict[str, ConversationEntry]()
    for entry in listed:
        newest.setdefault(entry.outline.name, entry)
    return list(newest.values())


def _named_since(outlines: Mapping[bytes, Outline]) -> set[bytes]:
    """The keys of outlines without a client session, of histories that one went on with.

    So a conversation that was begun before its client named its session is listed once.
    """
    named_since = set[bytes]()
    for outline in outlines.values():
        key = outline.before if outline.client_session else b""
        while key in outlines and key not in named_since:
            if outlines[key].client_session:
                break
            named_since.add(key)
            key = outlines[key].before
    return named_since


def conversation(
    store: Store, tenant: str, name: str | None = None
) -> StoredConversation:
    """One conversation of a tenant, as it stands.

    Args:
        store: where it is kept.
        tenant: the owner.
        name: its short name, ``c…``, or its client's own name of the session, of which the
            first eight characters do; None: the newest (`newest_of`). Of a client's session, the
            conversation is meant that it went on with, and none of a sub-agent.

    Raises:
        ConfigError: there is none of this name.
        StoreError: the store failed, or what it holds of the conversation is damaged.
    """
    listed = conversations(store, tenant)
    newest = newest_of(listed) if name is None else _named(listed, name)
    if newest is None:
        problem = (
            "no conversation is kept for this tenant"
            if name is None
            else "no such conversation"
        )
        remedy = "`ullage window` lists them; outlines are kept unless that is switched off."
        raise ConfigError("conversation", problem, remedy)
    stored = conversation_of(store, tenant, newest.outline)
    later = gone_on_with(newest, listed)
    if later is newest or newest.outline.subagent:
        return stored
    return replace(
        stored,
        left_for=later.outline.name,
        went_along=_follows(store, tenant, later.outline),
    )


def _follows(store: Store, tenant: str, outline: Outline) -> bool:
    """Whether decisions went along into a conversation, as far as it can be read."""
    try:
        successor = conversation_of(store, tenant, outline)
    except StoreError:
        return False  # one that is damaged does not hide the other
    return any(map(successor.follows_at, successor.transcript.chain))


def under_way(
    listed: Sequence[ConversationEntry],
) -> list[ConversationEntry]:
    """The conversations that a user may mean, the newest first.

    None is a sub-agent's, and none is one that its client compacted and left for another.

    Args:
        listed: as `conversations` lists them.
    """
    return [
        entry
        for entry in listed
        if not entry.outline.subagent and gone_on_with(entry, listed) is entry
    ]


def _named(
    listed: Sequence[ConversationEntry], name: str
) -> ConversationEntry | None:
    """The conversation that a name means: its own, or its client's session; None: there is none."""
    for entry in listed:
        if entry.outline.name == name:
            return entry
    for entry in listed:  # as it was called before client sessions told apart
        if entry.outline.begins_as(name):
            return entry
    of_session = [
        entry for entry in listed if entry.outline.is_of_session(name)
    ]
    if not of_session:
        return None
    own = [entry for entry in of_session if not entry.outline.subagent]
    return gone_on_with(largest(own or of_session), of_session)


def conversation_of(
    store: Store, tenant: str, outline: Outline
) -> StoredConversation:
    """The conversation that an outline is the newest of, as it stands.

    Args:
        store: where it is kept.
        tenant: the owner.
        outline: as `conversations` lists it.

    Raises:
        StoreError: the store failed, or what it holds of the conversation is damaged.
    """
    return run(read_conversation(tenant, outline), store, tenant)


def read_conversation(
    tenant: str, outline: Outline
) -> Steps[StoredConversation]:
    """The conversation that an outline is the newest of, by steps; see `conversation_of`.

    Args:
        tenant: the owner.
        outline: its newest.
    """
    outlines = yield from read_outlines(outline)
    transcript = transcript_of(outlines)
    records: Sequence[Record] = yield Find(tuple(transcript.chain))
    ledger = Ledger().with_records(records)
    hand = hand_of(transcript, ledger)
    return StoredConversation(
        tenant,
        outline,
        tuple(outlines),
        tuple(messages_of(outlines)),
        transcript,
        ledger,
        hand,
        sent_in(records, transcript),
    )


def decide(
    store: Store,
    stored: StoredConversation,
    decision: Decision,
    check: Callable[[StoredConversation], None] = lambda stored: None,
) -> str:
    """Write a decision about a conversation.

    Args:
        store: where the conversation is kept.
        stored: the conversation.
        decision: as `decision_of` made it.
        check: is given the conversation again where others decided meanwhile, and may raise.

    Returns:
        The name of the decision.

    Raises:
        StoreError: it could not be kept, or a newer version decided here.
    """
    ledger = stored.ledger
    key = stored.key
    while True:
        handle = LedgerRef("decision", key, len(ledger.at(key).decisions))
        ledger, record = ledger.with_decision(key, decision)
        pointer = latest_record(stored.transcript.chain, (record,))
        lost = store.commit(stored.tenant, (), (record, pointer))
        if not lost:
            return name_of(handle)
        ledger = with_lost_race(lost, ledger, handle)
        hand = hand_of(stored.transcript, ledger)
        check(replace(stored, ledger=ledger, hand=hand))


def decision_of(
    stored: StoredConversation,
    verb: Verb,
    reference: str | None = None,
    *,
    lines: tuple[int, int] | None = None,
    when: When = "batch",
    text: str = "",
    reason: str = "",
    author: str = "",
) -> Decision:
    """A decision about a stored conversation, not yet written.

    Args:
        stored: the conversation.
        verb: see `ullage.Session.preview`.
        reference: what is meant: a name of a leaf or decision, or a ref.
        lines: see `ullage.Session.pin`.
        when: see `ullage.Session.restore`.
        text: of a note.
        reason: see `ullage.Session.pin`.
        author: see `ullage.Session.pin`.

    Texts are kept as they are given: the function that redacts is known to the session alone. See
    `ullage.Session.pin` for errors.
    """
    return new_decision(
        verb,
        lambda: _target(stored, reference or "", lines),
        lambda: undone_by(
            stored.transcript, stored.ledger, stored.hand, reference
        ),
        text=text,
        when=when,
        reason=reason,
        author=author,
    )


# ── reading it ───────────────────────────────────────────────────────────────────────────


def _target(
    stored: StoredConversation, reference: str, lines: tuple[int, int] | None
) -> Target:
    """The target of a name or a ref; a ref means the leaf that a batch set aside under it."""
    batches = _batches_in_range(stored, reference)
    refuse_other_names(stored.transcript, stored.ledger, reference, batches)
    for leaf in stored.leaves():
        if reference and leaf.ref == reference:
            reference = leaf.name
            break
    target = target_of(stored.transcript, None, reference)
    if lines is None:
        return target
    spots = spots_of(stored, target)
    start, stop = lines
    if len(spots) != 1 or not 1 <= start <= stop:
        problem = f"{start} to {stop} are no lines of one text"
        raise ConfigError(
            "lines",
            problem,
            'Name one text, such as "m12.1", and count from 1.',
        )
    place = stored.transcript.address(spots[0])
    return Target(target.message, place, lines)


def _batches_in_range(
    stored: StoredConversation, reference: str
) -> Sequence[str]:
    """The batches that took out what a range of messages names."""
    messages = range_of(reference)
    if messages is None:
        return ()
    _, first, last = messages
    leaves = stored.leaves(min(last, len(stored.messages)), start=first - 1)
    return list(dict.fromkeys(leaf.batch for leaf in leaves if leaf.batch))


def spots_of(stored: StoredConversation, target: Target) -> Sequence[Location]:
    """The places of the texts that a target means."""
    return locations_of(stored.transcript, target)


class _LeafState(NamedTuple):
    """The state of a leaf, and the batch that caused it."""

    state: State
    batch: str
    ref: str
    why: str
    shown_chars: int = 0


def _leaves(
    stored: StoredConversation, start: int, length: int
) -> Iterator[Leaf]:
    leaf_states, message_states = _find_states(stored, length)
    pins = stored.hand.pins
    files = _files(stored)
    copied = _copied(stored)
    for index, message in enumerate(stored.messages[start:length], start):
        for number, part, item, outlined, item_index in _number_leaves(
            message
        ):
            spot = index, part, item_index
            state = message_states.get(index) or leaf_states.get(spot)
            if state is None:
                is_short = item.shown_chars >= 0 and spot not in leaf_states
                shown_chars = item.shown_chars if is_short else item.chars
                state = _LeafState(
                    "in short" if is_short else "whole",
                    "",
                    "",
                    "",
                    shown_chars,
                )
            call = stored.transcript.call_for(index, part)
            yield Leaf(
                name=f"m{index + 1}.{number}",
                message=index,
                role=message.role,
                kind=item.kind or outlined.kind,
                tool=outlined.name or (call.name if call else ""),
                head=item.head,
                chars=item.chars,
                state=state.state,
                is_pinned=pins.covers(spot) or spot in pins.lines,
                batch=state.batch,
                ref=state.ref,
                why=state.why,
                shown_chars=state.shown_chars,
                file=outlined.file or files.get(outlined.id, ""),
                is_copied=spot in copied,
            )


def _copied(stored: StoredConversation) -> set[Location]:
    """The leaves of which a copy stands further on: brought back at the end of the view."""
    added = dict[str, str]()
    for _, batch, is_undone in stored.batches():
        for edit in batch.edits:
            if isinstance(edit, Insert) and not is_undone:
                added[edit.name] = edit.text
    copied = set[Location]()
    for entry in stored.hand.decisions:
        target = entry.decision.target
        if target is not None and added.get(entry.name):
            copied.update(spots_of(stored, target))
    return copied


def _files(stored: StoredConversation) -> dict[str, str]:
    """The file that each call names, by the id of the call."""
    files = dict[str, str]()
    for message in stored.messages:
        for part in message.parts:
            if part.file and part.id:
                files[part.id] = part.file
    return files


def _number_leaves(
    message: OutlinedMessage,
) -> Iterator[tuple[int, int, Item, Any, int]]:
    """Every leaf of a message with its number in names, counted as `target_of` counts."""
    number = 0
    for at, part in enumerate(message.parts):
        if part.kind == "reasoning":
            number += 1
            continue
        for item_at, item in enumerate(part.items):
            number += 1
            yield number, at, item, part, item_at


def number_of(stored: StoredConversation, spot: Location) -> int:
    """The number of a text in its message, from 1; 0 where there is none at the place."""
    rows = _number_leaves(stored.messages[spot[0]])
    return next(
        (number for number, part, _, _, at in rows if (part, at) == spot[1:]),
        0,
    )


def _find_states(
    stored: StoredConversation, length: int
) -> tuple[dict[Location, _LeafState | None], dict[int, _LeafState]]:
    """The state of each leaf and of each hidden message, by the batches that are not undone.

    Batches are looked at that were decided when the conversation had at most ``length`` messages.
    """
    leaf_states = dict[Location, "_LeafState | None"]()
    message_states = dict[int, _LeafState]()
    transcript = stored.transcript
    for key in dict.fromkeys(transcript.chain[: length + 1]):
        for n, batch in enumerate(stored.ledger.at(key).batches):
            handle = LedgerRef("batch", key, n)
            if handle in stored.hand.undone:
                continue
            for edit in batch.edits:
                _apply(
                    transcript,
                    edit,
                    name_of(handle),
                    leaf_states,
                    message_states,
                )
    return leaf_states, message_states


def _apply(
    transcript: Transcript,
    edit: Replace | ReplaceSpan | Drop | Restore | Insert,
    batch: str,
    leaf_states: dict[Location, _LeafState | None],
    message_states: dict[int, _LeafState],
) -> None:
    match edit:
        case Replace():
            spot = transcript.locate(edit.address)
            state: State = "set aside" if edit.kind == "pruned" else "in short"
            if spot is not None:
                leaf_states[spot] = _LeafState(
                    state, batch, edit.ref, edit.why, len(edit.text)
                )
        case ReplaceSpan():
            start = transcript.find(edit.after)
            stop = transcript.find(edit.upto)
            keeps = {(transcript.find(key) or 0) - 1 for key in edit.keeps}
            keeps.update(transcript.marked("permanent", start or 0, stop or 0))
            for index in range(start or 0, stop or 0):
                if index not in keeps:
                    message_states[index] = _LeafState(
                        "set aside", batch, edit.ref, edit.why
                    )
        case Restore():
            message = index_of(transcript, edit.message)
            if message is None:
                return
            group = (
                transcript.inseparable(message, len(transcript))
                if message in message_states
                else ()
            )
            for at in group:
                message_states.pop(at, None)
            for spot in locations_of(
                transcript, Target(edit.message, edit.leaf)
            ):
                leaf_states[spot] = None

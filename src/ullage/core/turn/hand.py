"""A user's decisions are carried out: each becomes a batch of edits, at the end of the history.

    due decision ──▶ cuts ──▶ lawful cuts ──▶ batch of the ledger, under the decision's name

What users decided comes before any stage is asked, and what is due with the next batch behind
the stages that made one. The guard comes last, and may overrule what does not fit; legality comes
before both. A decision that would change what reasoning is bound to, where that must stay as it
is for now, waits for the end of the turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from ullage.core.contract.bound import (
    HELD,
    editable_from,
    frozen_before,
    left_out,
)
from ullage.core.contract.kinds import fields_of
from ullage.core.history import canon
from ullage.core.history.hand import (
    EMPTY,
    DecisionEntry,
    Pins,
    UserDecisions,
    batch_of,
    entered_in,
    hand_of,
    index_of,
    locations_of,
    name_of,
    with_consequences,
)
from ullage.core.history.ledger import Ledger
from ullage.core.history.outline import is_sealed_summary
from ullage.core.history.transcript import Location, Transcript, leaves_of
from ullage.core.history.window import Window
from ullage.core.tokens.catalog import lookup
from ullage.core.turn.batches import Walk, edited_from, removed_tokens
from ullage.core.turn.request import Request
from ullage.core.values.decisions import (
    EVERY_ITEM,
    Decision,
    LedgerRef,
    Target,
)
from ullage.core.values.edits import Insert, ProposedEdit, Replace, Restore
from ullage.core.values.effects import Output
from ullage.core.values.events import Event
from ullage.core.values.messages import Media, Message, Text, ToolCall

_MILLION = 1_000_000
STAGE = "user"
"""What a batch that carries out a decision names as its stage."""
_OVERRULED = "overruled"
"""What a batch names as its stage that notes behind the guard that a pin could not be kept."""


def hand_in(
    transcript: Transcript, ledger: Ledger, request: Request
) -> UserDecisions:
    """What users decided of a history; nothing holds of one that the provider has."""
    if not ledger.by_user or request.elsewhere:
        return EMPTY
    reasoning = request.envelope.reasoning
    frozen = frozen_before(transcript, len(transcript), reasoning)
    return hand_of(transcript, ledger, is_frozen=frozen > 0)


def carry_out(walk: Walk, hand: UserDecisions, key: bytes) -> None:
    """Carry out what is due at once.

    Args:
        walk: the window at the end of its history.
        hand: what users decided of it.
        key: where decisions of this place are kept.
    """
    for entered in hand.due:
        if not _waits_for_batch(entered):
            _carry_out(walk, entered, key)
    for entered in hand.decisions:
        if not entered.carried_out:
            continue
        if _is_unread(walk, entered) or _is_lost(walk, entered):
            _carry_out(walk, entered, key)


def carry_out_with_batch(walk: Walk, hand: UserDecisions, key: bytes) -> None:
    """Carry out what waits for the next batch; see `carry_out`."""
    for entered in hand.due:
        if _waits_for_batch(entered):
            _carry_out(walk, entered, key)


def described(decision: Decision, transcript: Transcript) -> str:
    """A decision in a few words, such as ``pin message 12``; no content."""
    if decision.undoes is not None:
        return f"undo {name_of(decision.undoes)}"
    origin = ""
    if decision.origin:
        origin = f", carried from conversation {decision.origin}"
    if decision.target is None:
        return f"{decision.verb}{origin}"
    return f"{decision.verb} {place_of(decision.target, transcript)}{origin}"


def place_of(target: Target, transcript: Transcript) -> str:
    """Where a target is, such as ``message 12, lines 10 to 40``; no content."""
    index = index_of(transcript, target.message)
    place = "a message of another history"
    if index is not None:
        place = f"message {index + 1}"
    leaf = target.leaf
    if leaf is not None:
        place += f", {leaf.kind}"
        if leaf.item != EVERY_ITEM:
            place += f" {leaf.item + 1}"
    if target.lines is not None:
        start, end = target.lines
        place += f", lines {start} to {end}"
    return place


def _waits_for_batch(entered: DecisionEntry) -> bool:
    """Whether a decision is carried out with the next batch only."""
    decision = entered.decision
    return decision.verb == "restore" and decision.when == "batch"


def _is_unread(walk: Walk, entered: DecisionEntry) -> bool:
    """Whether a note stands where the provider does not read any more, or nowhere.

    It stands nowhere where the user rewound the history, or the client changed it, to before the
    message that it stood behind.
    """
    window = walk.window
    if entered.decision.verb != "note":
        return False
    for placed in window.added:
        if placed.edit.name == entered.name:
            return placed.message_index < window.read_from
    for handle in entered.carried_out:
        batch = batch_of(handle, walk.ledger)
        for edit in () if batch is None else batch.edits:
            if not isinstance(edit, Insert):
                continue
            if window.transcript.find(edit.after) is not None:
                return False  # the guard took it out
    return True


def _is_lost(walk: Walk, entered: DecisionEntry) -> bool:
    """Whether what a pin keeps is out all the same, and the guard did not have to take it.

    A branch may have set it aside before the pin was made on another; and where two pins keep it,
    the one that brought it back may be taken back.
    """
    if not _is_pin_out(walk, entered):
        return False
    newest = batch_of(entered.carried_out[-1], walk.ledger)
    return newest is not None and newest.stage != _OVERRULED


def _is_pin_out(walk: Walk, entered: DecisionEntry) -> bool:
    """Whether a decision is a pin, and what it keeps is not shown so."""
    target = entered.decision.target
    window = walk.window
    if entered.decision.verb != "pin" or target is None:
        return False
    locations = locations_of(window.transcript, target)
    pins = walk.hand.pins
    for location in locations:
        if not window.read_from <= location[0] < window.size:
            return False
        if not pins.covers(location) and location not in pins.lines:
            return False  # a later drop takes it out
    if target.lines is None:
        return _is_out(window, locations)
    return any(window.hidden(location[0]) for location in locations)


def _carry_out(walk: Walk, entered: DecisionEntry, key: bytes) -> None:
    """Make the batch of a decision, an empty one where there is nothing to do."""
    window = walk.window
    decision = entered.decision
    proposed = _cuts(window, entered)
    if proposed is None:
        return  # it is tried again at the next turn
    cuts = list(proposed)
    for pin in _pins_again(walk, entered, key):
        cuts += _cuts(window, pin) or ()
    start = edited_from(window, [cut.edit for cut in cuts])
    bound = start
    if decision.undoes is not None:
        undone_start, undone_bound = _undone_from(walk, decision.undoes)
        bound = min(start, undone_bound)
        start = min(start, undone_start)
    place = described(decision, window.transcript)
    if start < editable_from(window):
        walk.events.append(Event(kind="held", where=place, why=HELD))
        return
    lawful = _lawful(walk, cuts)
    tokens_before = window.estimate
    if bound < window.size:
        lawful += left_out(window, bound, lawful)
    pinned = _pinned_outputs(window, decision)
    walk.keep(STAGE, key, lawful, decision=entered.name, pinned=pinned)
    returns = decision.verb == "restore" and decision.when != "end"
    if returns and decision.target is not None:
        # it is in its place again: the guard takes others before it
        locations = locations_of(window.transcript, decision.target)
        walk.builder.pin(window.pins.also(locations))
    walk.events.append(_event(window, entered, place, start, tokens_before))


def _pinned_outputs(window: Window, decision: Decision) -> list[Output]:
    """What a pin keeps in the view, to be kept in the store as well."""
    outputs: list[Output] = []
    if decision.verb == "pin" and decision.target is not None:
        for location in locations_of(window.transcript, decision.target):
            output = window.transcript.output(location)
            if output is not None:
                outputs.append(output)
    return outputs


def _pins_again(
    walk: Walk, entered: DecisionEntry, key: bytes
) -> list[DecisionEntry]:
    """The pins to be carried out once more, because an undo is undone.

    They are those which were made since, for what is shown again now may take out what they keep;
    and the pin that stands again, where the history has gone on while it did not.
    """
    decisions = list(entered_in(walk.window.transcript, walk.ledger))
    number = _number_of(decisions, entered.decision.undoes)
    if number is None:
        return []
    undo = decisions[number]
    if undo.decision.undoes is None:
        return []
    standing = {one.name for one in walk.hand.decisions}
    again = [one for one in decisions[number:] if one.name in standing]
    has_gone_on = any(handle.key != key for handle in undo.carried_out)
    if has_gone_on:
        earlier = decisions[:number]
        again += [one for one in earlier if one.ref == undo.decision.undoes]
    pins = [one for one in again if one.decision.verb == "pin"]
    return [replace(pin, name=entered.name) for pin in pins]


def _number_of(
    decisions: Sequence[DecisionEntry], handle: LedgerRef | None
) -> int | None:
    """Which of some decisions the ledger keeps there, or None."""
    for number, entered in enumerate(decisions):
        if entered.ref == handle:
            return number
    return None


def _lawful(walk: Walk, cuts: Sequence[ProposedEdit]) -> list[ProposedEdit]:
    """The cuts that may be shown. What is shown again or added breaks no law of a cut."""
    lawful: list[ProposedEdit] = []
    proposed: list[ProposedEdit] = []
    for cut in cuts:
        if isinstance(cut.edit, (Restore, Insert)):
            lawful.append(cut)
        else:
            proposed.append(cut)
    lawful += walk.check(STAGE, proposed, is_guard=True)
    return lawful


def _event(
    window: Window,
    entered: DecisionEntry,
    place: str,
    start: int,
    tokens_before: int,
) -> Event:
    """What is told of a decision that was carried out, with its price."""
    rewritten = rewritten_tokens(window, start)
    price = "no cache is broken"
    if rewritten:
        price = f"{rewritten:,} tokens are written to the prompt cache again"
        price_usd = rewriting_usd(window.meter.model, rewritten)
        if price_usd is not None:
            price += f", about ${price_usd:.4f} at list price"
    author = entered.decision.author or "a user"
    return Event(
        kind="decided",
        where=place,
        why=f"{author} asked for it ({entered.name}); {price}",
        tokens_before=tokens_before,
        tokens_after=window.estimate,
    )


def rewritten_tokens(window: Window, start: int) -> int:
    """Tokens of a view from a message on: what a change there has written to the cache again."""
    tokens = 0
    for index in window.visible_in(start, window.size):
        tokens += window.message_tokens(index)
    return window.calibration.apply(tokens)


def rewriting_usd(model: str, tokens: int) -> float | None:
    """What it costs that so many tokens are written to the cache and not read from it.

    Args:
        model: the model that is asked.
        tokens: the tokens.

    Returns:
        At list price; None: the model's prices are unknown.
    """
    price = lookup(model).prices_at(tokens)
    if price.input_usd is None:
        return None
    write_usd = price.cache_write_usd
    if write_usd is None:
        write_usd = price.input_usd
    read_usd = price.cache_read_usd
    if read_usd is None:
        read_usd = price.input_usd
    return tokens * (write_usd - read_usd) / _MILLION


# ── what each decision comes to ──────────────────────────────────────────────────────────


def _cuts(
    window: Window, entered: DecisionEntry
) -> Sequence[ProposedEdit] | None:
    """The cuts of a decision; None where it cannot be carried out yet."""
    decision = entered.decision
    target = entered.decision.target
    reason = f"{decision.author or 'a user'} asked for it"
    if decision.verb == "note":
        return _added(window, entered, decision.text, reason)
    if target is None:
        return ()
    locations = [
        location
        for location in locations_of(window.transcript, target)
        if location[0] < window.size
    ]
    if decision.verb == "drop":
        return _dropped(window, locations, reason)
    if decision.verb == "restore" and decision.when == "end":
        text = _copy(window, target, locations)
        return _added(window, entered, text, reason)
    whole = ProposedEdit(
        Restore(target.message, target.leaf, reason, entered.name), ()
    )
    if target.lines is None:
        return [whole] if _is_out(window, locations) else []
    cuts: list[ProposedEdit] = []
    for location in locations:
        cuts += _with_lines(window, whole, location, reason)
    return cuts


def _is_out(window: Window, locations: Sequence[Location]) -> bool:
    """Whether any of some leaves is hidden, or shown otherwise than it came."""
    for location in locations:
        if window.hidden(location[0]) or window.edit_at(location) is not None:
            return True
    return False


def _with_lines(
    window: Window, whole: ProposedEdit, location: Location, reason: str
) -> Iterator[ProposedEdit]:
    """The cuts that show some lines of a leaf, if it is not whole: checks add the lines."""
    output = window.transcript.output(location)
    edit = window.edit_at(location)
    is_hidden = window.hidden(location[0])
    if output is None or (edit is None and not is_hidden):
        return
    if is_hidden:
        yield whole
    notice = window.words.aside(output.ref, len(output.text))
    text = notice if edit is None else edit.text
    yield _replacing(window, location, output, text, reason)


def _replacing(
    window: Window, location: Location, output: Output, text: str, reason: str
) -> ProposedEdit:
    """The cut that shows a text in place of a leaf."""
    place = window.transcript.address(location)
    return ProposedEdit(
        Replace(place, output.ref, text, "pruned", reason), (output,)
    )


def _dropped(
    window: Window, locations: Sequence[Location], reason: str
) -> Sequence[ProposedEdit]:
    """The cuts that take leaves out of the view, but for those that cannot be."""
    cuts: list[ProposedEdit] = []
    for location in locations:
        output = window.transcript.output(location)
        text = (
            None
            if output is None
            else _text_for_dropped(window, location, output)
        )
        if output is not None and text is not None:
            cuts.append(_replacing(window, location, output, text, reason))
    return cuts


def _text_for_dropped(
    window: Window, location: Location, output: Output
) -> str | None:
    """What is shown in place of a leaf that the user took out; None where it has to stay."""
    leaf = window.transcript.leaf(location)
    words = window.words
    ref = output.ref
    chars = len(output.text)
    if isinstance(leaf, Text):
        return words.taken_out(ref, chars)
    if isinstance(leaf, Media):
        return words.media(ref, f"{leaf.kind}, taken out by the user,")
    if not isinstance(leaf, ToolCall):
        return None
    if window.signed(location[0]) or fields_of(leaf.arguments) is None:
        return None
    return canon.canonical_json({"_ullage": words.arguments(ref, chars)})


def _copy(
    window: Window, target: Target, locations: Sequence[Location]
) -> str:
    """A target as text, for the end of the view."""
    texts: list[str] = []
    for location in locations:
        output = window.transcript.output(location)
        if output is None:
            continue
        text = output.text
        if target.lines is not None:
            text = lines_of(text, target.lines)
        texts.append(text)
    place = place_of(target, window.transcript)
    return window.words.again(place, "\n\n".join(texts))


def lines_of(text: str, lines: tuple[int, int]) -> str:
    """Some lines of a text, the first and the last counted from 1."""
    start, end = lines
    selected = text.splitlines(keepends=True)[start - 1 : end]
    return "".join(selected).rstrip("\r\n")


def _added(
    window: Window, entered: DecisionEntry, text: str, reason: str
) -> Sequence[ProposedEdit] | None:
    """The cut that adds a text at the end of the view; None where none can stand there."""
    transcript = window.transcript
    size = window.size
    while size > 1 and _stays_last(transcript.messages[size - 1]):
        size -= 1
    message = transcript.messages[size - 1]
    if message.role not in ("user", "tool") or message.is_control:
        return None
    if not transcript.closed(size):
        return None
    end = transcript.chain[size]
    return [ProposedEdit(Insert(end, text, reason, entered.name), ())]


def _stays_last(message: Message) -> bool:
    """Whether a text of the user's goes before a message that ends a request.

    It does before what the system says of the reply, and before a summary that the provider wrote.
    """
    return message.before_reply or is_sealed_summary(message)


def _undone_from(walk: Walk, undoes: LedgerRef) -> tuple[int, int]:
    """The first message that an undo shows otherwise, and the first that binds reasoning.

    What was thought before a batch was bound to the view that is shown again now; what was thought
    since is bound to the view with it.
    """
    window = walk.window
    start = bound = window.size
    for handle, since in _changed_by(walk, undoes):
        batch = batch_of(handle, walk.ledger)
        place = window.transcript.find(since)
        if batch is None or place is None:
            continue
        edited = edited_from(window, batch.edits)
        start = min(start, edited)
        if window.bound_reasoning(place):
            bound = min(bound, edited)
    return start, bound


def _changed_by(
    walk: Walk, undoes: LedgerRef
) -> Iterator[tuple[LedgerRef, bytes]]:
    """The batches that an undo takes back or shows again, and the place since when it was so."""
    if undoes.kind == "batch":
        yield undoes, undoes.key
        return
    decisions = list(entered_in(walk.window.transcript, walk.ledger))
    number = _number_of(decisions, undoes)
    if number is None:
        return
    entered = decisions[number]
    for batch in entered.carried_out:
        for handle in with_consequences(batch, walk.ledger.at(batch.key)):
            yield handle, batch.key
        again = entered.decision.undoes
        if again is not None:
            for handle, _ in _changed_by(walk, again):
                yield handle, batch.key


# ── what the guard overrules ─────────────────────────────────────────────────────────────


def overrule(walk: Walk, key: bytes, ask: Callable[[], None]) -> None:
    """Have the guard take what otherwise has to stay, and tell what it took of the users'.

    What an undo brought back leaves the window before what a pin keeps, the oldest results first.

    Args:
        walk: its window does not fit.
        key: where decisions of this place are kept.
        ask: asks the guard.
    """
    window = walk.window
    pins = walk.window.pins
    pinned = set(filter(walk.hand.firm.covers, pinned_in(window)))
    shown = [
        entered
        for entered in walk.hand.decisions
        if not _is_pin_out(walk, entered)
    ]
    if pins != walk.hand.firm:
        give_up_returned(walk, key)
    is_over = not window.within(window.limit_tokens, surely=True)
    if is_over and pins != walk.hand.firm:
        walk.builder.pin(walk.hand.firm)
        ask()
        walk.builder.pin(pins)
    if not window.within(window.limit_tokens, surely=True):
        walk.builder.hold_back(holds_back=False)
        ask()
        walk.builder.hold_back(holds_back=True)
    walk.events += overruled(walk.window, pinned)
    for entered in shown:
        if _is_pin_out(walk, entered):
            walk.keep(_OVERRULED, key, (), decision=entered.name)
    give_up_added(walk, key)


def give_up_returned(walk: Walk, key: bytes) -> None:
    """Set aside results that an undo or a restore brought back, the oldest first, until it fits.

    Args:
        walk: its window does not fit.
        key: where decisions of this place are kept.
    """
    cuts = walk.check("guard", _returned_cuts(walk), is_guard=True)
    walk.keep("guard", key, cuts)
    # the next turn knows less of the view, too: what fits now has to fit then
    walk.builder.removed(removed_tokens(walk))


def _returned_cuts(walk: Walk) -> list[ProposedEdit]:
    """The cuts of as many results that came back as the view has too much."""
    window = walk.window
    firm = walk.hand.firm
    limit = window.limit_tokens
    reason = f"the view was over its hard limit of {limit:,} tokens"
    tokens = window.tokens
    editable = editable_from(window)
    cuts: list[ProposedEdit] = []
    for location in _visible_in(window, window.pins):
        is_firm = firm.covers(location) or location in firm.lines
        if is_firm or location[0] < editable:
            continue
        removed = window.calibration.removed_tokens + window.tokens - tokens
        if window.calibration.without(removed).upper(tokens) <= limit:
            return cuts
        output = window.transcript.output(location)
        kind = window.transcript.address(location).kind
        if output is None or kind != "result":
            continue
        text = window.words.aside(output.ref, len(output.text))
        won = window.leaf_tokens(location) - window.texts_tokens((text,))
        if won > 0:
            cuts.append(_replacing(window, location, output, text, reason))
            tokens -= won
    return cuts


def pinned_in(window: Window) -> set[Location]:
    """The leaves that are shown as a user pinned them: not hidden, and whole."""
    locations: set[Location] = set()
    for location in _visible_in(window, window.pins):
        if window.edit_at(location) is None:
            locations.add(location)
    return locations


def _visible_in(window: Window, pins: Pins) -> Iterator[Location]:
    """The leaves of messages that stay and are not hidden, in order; some may be cut."""
    for index in sorted(pins.messages):
        if index >= window.size or window.hidden(index):
            continue
        message = window.transcript.messages[index]
        for number, item, _ in leaves_of(message):
            yield index, number, item


def give_up_added(walk: Walk, key: bytes) -> None:
    """Take texts that users added out of the view, the longest first, until it fits."""
    window = walk.window
    texts = sorted(
        window.added, key=lambda placed: len(placed.edit.text), reverse=True
    )
    for placed in texts:
        if window.within(window.limit_tokens, surely=True):
            return
        reason = f"the view was over its hard limit of {window.limit_tokens:,} tokens"
        tokens_before = window.estimate
        edit = replace(placed.edit, text="", why=reason)
        walk.keep("guard", key, [ProposedEdit(edit, ())])
        event = Event(
            kind="overruled",
            where=f"behind message {placed.message_index}",
            why=f"the text added by {placed.edit.name} was taken out: {reason}",
            tokens_before=tokens_before,
            tokens_after=window.estimate,
        )
        walk.events.append(event)


def overruled(window: Window, pinned: set[Location]) -> Iterator[Event]:
    """What is told where the guard cut what users pinned.

    Args:
        window: the window behind the guard.
        pinned: what was shown before it (`pinned_in`).
    """
    lost = pinned - pinned_in(window) if pinned else pinned
    if not lost:
        return
    messages = sorted({location[0] + 1 for location in lost})
    reason = (
        f"{len(lost):,} pinned texts of {len(messages):,} messages were cut or hidden: the "
        f"view was over its hard limit of {window.limit_tokens:,} tokens. Take back a pin, or "
        "use a model with a larger window"
    )
    yield Event(kind="overruled", where=f"message {messages[0]}", why=reason)

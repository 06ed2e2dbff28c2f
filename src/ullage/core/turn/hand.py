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

from ullage.core.contract.bound import HELD, editable_from, frozen_before, left_out
from ullage.core.contract.kinds import fields_of
from ullage.core.history import canon
from ullage.core.history.hand import (
    EMPTY,
    Entered,
    Hand,
    batch_of,
    entered_in,
    hand_of,
    index_of,
    name_of,
    spots_of,
    with_consequences,
)
from ullage.core.history.ledger import Ledger
from ullage.core.history.transcript import Location, Transcript, leaves_of
from ullage.core.history.window import Window
from ullage.core.tokens.catalog import lookup
from ullage.core.turn.batches import Walk, edited_from
from ullage.core.turn.request import Request
from ullage.core.values.decisions import EVERY_ITEM, Decision, Made, Target
from ullage.core.values.edits import Added, Cut, Replace, Whole
from ullage.core.values.events import Event
from ullage.core.values.messages import Media, Message, Text, ToolCall

_MILLION = 1_000_000
STAGE = "user"
"""What a batch that carries out a decision names as its stage."""


def hand_in(transcript: Transcript, ledger: Ledger, request: Request) -> Hand:
    """What users decided of a history; nothing holds of one that the provider has."""
    if not ledger.by_user or request.elsewhere:
        return EMPTY
    reasoning = request.envelope.reasoning
    is_frozen = frozen_before(transcript, len(transcript), reasoning) > 0
    return hand_of(transcript, ledger, is_frozen=is_frozen)


def carry_out(walk: Walk, hand: Hand, key: bytes) -> None:
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
        if entered.carried_out and _is_unread(walk.window, entered):
            _carry_out(walk, entered, key)


def carry_out_with_batch(walk: Walk, hand: Hand, key: bytes) -> None:
    """Carry out what waits for the next batch; see `carry_out`."""
    for entered in hand.due:
        if _waits_for_batch(entered):
            _carry_out(walk, entered, key)


def described(decision: Decision, transcript: Transcript) -> str:
    """A decision in a few words, such as ``pin message 12``; no content."""
    if decision.undoes is not None:
        return f"undo {name_of(decision.undoes)}"
    if decision.target is None:
        return decision.verb
    return f"{decision.verb} {place_of(decision.target, transcript)}"


def place_of(target: Target, transcript: Transcript) -> str:
    """Where a target is, such as ``message 12, lines 10 to 40``; no content."""
    index = index_of(transcript, target.message)
    where = "a message of another history" if index is None else f"message {index + 1}"
    if target.leaf is not None:
        item = "" if target.leaf.item == EVERY_ITEM else f" {target.leaf.item + 1}"
        where += f", {target.leaf.kind}{item}"
    if target.lines is not None:
        where += f", lines {target.lines[0]} to {target.lines[1]}"
    return where


def _waits_for_batch(entered: Entered) -> bool:
    return entered.decision.verb == "restore" and entered.decision.when == "batch"


def _is_unread(window: Window, entered: Entered) -> bool:
    """Whether a note stands where the provider does not read any more."""
    if entered.decision.verb != "note":
        return False
    places = [placed.at for placed in window.added if placed.edit.name == entered.name]
    return any(at < window.read_from for at in places)


def _carry_out(walk: Walk, entered: Entered, key: bytes) -> None:
    """Make the batch of a decision, an empty one where there is nothing to do."""
    window, decision = walk.window, entered.decision
    cuts = _cuts(window, entered)
    if cuts is None:
        return  # it is tried again at the next turn
    cuts = [
        *cuts,
        *(
            cut
            for pin in _pins_again(walk, entered, key)
            for cut in _cuts(window, pin) or ()
        ),
    ]
    first = bound = edited_from(window, [cut.edit for cut in cuts])
    if decision.undoes is not None:
        changed, bound = _undone_from(walk, decision.undoes)
        first, bound = min(first, changed), min(first, bound)
    where = described(decision, window.transcript)
    if first < editable_from(window):
        walk.events.append(Event(kind="held", where=where, why=HELD))
        return
    lawful = _lawful(walk, cuts)
    before = window.estimate
    if bound < window.size:
        lawful += left_out(window, bound, lawful)
    walk.keep(STAGE, key, lawful, decision=entered.name)
    if (
        decision.verb == "restore" and decision.target is not None
    ):  # the guard takes others first
        walk.builder.pin(window.pins.also(spots_of(window.transcript, decision.target)))
    walk.events.append(_event(window, entered, where, first, before))


def _pins_again(walk: Walk, entered: Entered, key: bytes) -> list[Entered]:
    """The pins to be carried out once more, because an undo is undone.

    They are those which were made since, for what is shown again now may take out what they keep;
    and the pin that stands again, where the history has gone on while it did not.
    """
    order = list(entered_in(walk.window.transcript, walk.ledger))
    at = next(
        (at for at, one in enumerate(order) if one.made == entered.decision.undoes),
        None,
    )
    if at is None or order[at].decision.undoes is None:
        return []
    undo, standing = order[at], {one.name for one in walk.hand.decisions}
    has_gone_on = any(made.key != key for made in undo.carried_out)
    pins = [one for one in order[at:] if one.name in standing]
    pins += [
        one for one in order[:at] if has_gone_on and one.made == undo.decision.undoes
    ]
    return [
        replace(one, name=entered.name) for one in pins if one.decision.verb == "pin"
    ]


def _lawful(walk: Walk, cuts: Sequence[Cut]) -> list[Cut]:
    """The cuts that may be shown. What is shown again or added breaks no law of a cut."""
    shown = [cut for cut in cuts if isinstance(cut.edit, (Whole, Added))]
    others = [cut for cut in cuts if not isinstance(cut.edit, (Whole, Added))]
    return [*shown, *walk.check(STAGE, others, is_guard=True)]


def _event(
    window: Window, entered: Entered, where: str, first: int, before: int
) -> Event:
    """What is told of a decision that was carried out, with its price."""
    rewritten = rewritten_tokens(window, first)
    author = entered.decision.author or "a user"
    why = f"{author} asked for it ({entered.name}); "
    why += (
        f"{rewritten:,} tokens are written to the prompt cache anew"
        if rewritten
        else "no cache"
    )
    why += "" if rewritten else " is broken"
    price = rewriting_usd(window, rewritten)
    if rewritten and price is not None:
        why += f", about ${price:.4f} at list price"
    after = window.estimate
    return Event(
        kind="decided", where=where, why=why, tokens_before=before, tokens_after=after
    )


def rewritten_tokens(window: Window, first: int) -> int:
    """Tokens of a view from a message on: what a change there has written to the cache anew."""
    shown = window.visible_in(first, window.size)
    return window.calibration.apply(sum(map(window.message_tokens, shown)))


def rewriting_usd(window: Window, tokens: int) -> float | None:
    """What it costs that so many tokens are written to the cache and not read from it."""
    price = lookup(window.meter.model).prices_at(tokens)
    if price.input_usd is None:
        return None
    write_usd = (
        price.input_usd if price.cache_write_usd is None else price.cache_write_usd
    )
    read_usd = price.input_usd if price.cache_read_usd is None else price.cache_read_usd
    return tokens * (write_usd - read_usd) / _MILLION


# ── what each decision comes to ──────────────────────────────────────────────────────────


def _cuts(window: Window, entered: Entered) -> Sequence[Cut] | None:
    """The cuts of a decision; None where it cannot be carried out yet."""
    decision, target = entered.decision, entered.decision.target
    why = f"{decision.author or 'a user'} asked for it"
    if decision.verb == "note":
        return _added(window, entered, decision.text, why)
    if target is None:
        return ()
    spots = [
        spot for spot in spots_of(window.transcript, target) if spot[0] < window.size
    ]
    if decision.verb == "drop":
        return [
            cut for spot in spots if (cut := _dropped(window, spot, why)) is not None
        ]
    if decision.verb == "restore" and decision.when == "end":
        return _added(window, entered, _copy(window, target, spots), why)
    whole = Cut(Whole(target.message, target.leaf, why, entered.name), ())
    if target.lines is not None:
        return [cut for spot in spots for cut in _with_lines(window, whole, spot, why)]
    return [whole] if _is_out(window, spots) else []


def _is_out(window: Window, spots: Sequence[Location]) -> bool:
    """Whether any of some leaves is hidden, or shown otherwise than it came."""
    return any(
        window.hidden(spot[0]) or window.edit_at(spot) is not None for spot in spots
    )


def _with_lines(window: Window, whole: Cut, spot: Location, why: str) -> Iterator[Cut]:
    """The cuts that show some lines of a leaf, if it is not whole: checks add the lines."""
    edit, output = window.edit_at(spot), window.transcript.output(spot)
    if output is None or (edit is None and not window.hidden(spot[0])):
        return
    if window.hidden(spot[0]):
        yield whole
    text = (
        window.words.aside(output.ref, len(output.text)) if edit is None else edit.text
    )
    place = window.transcript.place(spot)
    yield Cut(Replace(place, output.ref, text, "pruned", why), (output,))


def _dropped(window: Window, spot: Location, why: str) -> Cut | None:
    """The cut that takes a leaf out of the view; None where it cannot be."""
    leaf, output = window.transcript.leaf(spot), window.transcript.output(spot)
    if output is None or not isinstance(leaf, (Text, Media, ToolCall)):
        return None
    words, text = window.words, ""
    if isinstance(leaf, ToolCall):
        if window.signed(spot[0]) or fields_of(leaf.arguments) is None:
            return None
        notice = words.arguments(output.ref, len(output.text))
        text = canon.canonical_json({"_ullage": notice})
    elif isinstance(leaf, Media):
        text = words.media(output.ref, f"{leaf.kind}, taken out by the user,")
    else:
        text = words.taken_out(output.ref, len(output.text))
    place = window.transcript.place(spot)
    return Cut(Replace(place, output.ref, text, "pruned", why), (output,))


def _copy(window: Window, target: Target, spots: Sequence[Location]) -> str:
    """A target as text, for the end of the view."""
    outputs = [window.transcript.output(spot) for spot in spots]
    texts = [output.text for output in outputs if output is not None]
    if target.lines is not None:
        texts = [lines_of(text, target.lines) for text in texts]
    return window.words.again(place_of(target, window.transcript), "\n\n".join(texts))


def lines_of(text: str, lines: tuple[int, int]) -> str:
    """Some lines of a text, the first and the last counted from 1."""
    return "".join(text.splitlines(keepends=True)[lines[0] - 1 : lines[1]]).rstrip(
        "\r\n"
    )


def _added(
    window: Window, entered: Entered, text: str, why: str
) -> Sequence[Cut] | None:
    """The cut that adds a text at the end of the view; None where none can stand there."""
    transcript, last = window.transcript, window.transcript.messages[window.size - 1]
    is_open = last.role in ("user", "tool") and not last.is_control
    if not is_open or not transcript.closed(window.size):
        return None
    return [Cut(Added(transcript.chain[window.size], text, why, entered.name), ())]


def _undone_from(walk: Walk, undoes: Made) -> tuple[int, int]:
    """The first message that an undo shows otherwise, and the first that binds reasoning.

    What was thought before a batch was bound to the view that is shown again now; what was thought
    since is bound to the view with it.
    """
    window = walk.window
    first = bound = window.size
    for made, since in _changed_by(walk, undoes):
        batch, place = batch_of(made, walk.ledger), window.transcript.find(since)
        if batch is None or place is None:
            continue
        edited = edited_from(window, batch.edits)
        first = min(first, edited)
        if window.bound_reasoning(place):
            bound = min(bound, edited)
    return first, bound


def _changed_by(walk: Walk, undoes: Made) -> Iterator[tuple[Made, bytes]]:
    """The batches that an undo takes back or shows again, and the place since when it was so."""
    if undoes.kind == "batch":
        yield undoes, undoes.key
        return
    everything = {
        one.made: one for one in entered_in(walk.window.transcript, walk.ledger)
    }
    one = everything.get(undoes)
    for batch in one.carried_out if one else ():
        for made in with_consequences(batch, walk.ledger.at(batch.key)):
            yield made, batch.key
        again = one.decision.undoes if one else None
        for made, _ in _changed_by(walk, again) if again else ():
            yield made, batch.key


# ── what the guard overrules ─────────────────────────────────────────────────────────────


def overrule(walk: Walk, key: bytes, ask: Callable[[], None]) -> None:
    """Have the guard take what otherwise has to stay, and tell what it took of the users'.

    Args:
        walk: its window does not fit.
        key: where decisions of this place are kept.
        ask: asks the guard.
    """
    window, pinned = walk.window, pinned_in(walk.window)
    walk.builder.hold_back(holds_back=False)
    ask()
    walk.builder.hold_back(holds_back=True)
    walk.events += overruled(window, pinned)
    give_up_added(walk, key)


def pinned_in(window: Window) -> set[Location]:
    """The leaves that are shown as a user pinned them: not hidden, and whole."""
    pins, shown = window.pins, set[Location]()
    for index in pins.messages:
        if index >= window.size or window.hidden(index):
            continue
        spots = [
            (index, number, item)
            for number, item, _ in leaves_of(_message(window, index))
        ]
        shown.update(spot for spot in spots if window.edit_at(spot) is None)
    return shown


def give_up_added(walk: Walk, key: bytes) -> None:
    """Take texts that users added out of the view, the longest first, until it fits."""
    window = walk.window
    texts = sorted(window.added, key=lambda placed: len(placed.edit.text), reverse=True)
    for placed in texts:
        if window.within(window.limit_tokens, surely=True):
            return
        why = f"the view was over its hard limit of {window.limit_tokens:,} tokens"
        before, edit = window.estimate, replace(placed.edit, text="", why=why)
        walk.keep("guard", key, [Cut(edit, ())])
        event = Event(
            kind="overruled",
            where=f"behind message {placed.at}",
            why=f"the text added by {placed.edit.name} was taken out: {why}",
            tokens_before=before,
            tokens_after=window.estimate,
        )
        walk.events.append(event)


def _message(window: Window, index: int) -> Message:
    return window.transcript.messages[index]


def overruled(window: Window, pinned: set[Location]) -> Iterator[Event]:
    """What is told where the guard cut what users pinned.

    Args:
        window: the window behind the guard.
        pinned: what was shown before it (`pinned_in`).
    """
    if not pinned:
        return
    lost = sorted(pinned - pinned_in(window))
    if lost:
        messages = sorted({spot[0] + 1 for spot in lost})
        why = (
            f"{len(lost):,} pinned texts of {len(messages):,} messages were cut or hidden: the "
            f"view was over its hard limit of {window.limit_tokens:,} tokens. Take back a pin, or "
            "use a model with a larger window"
        )
        yield Event(kind="overruled", where=f"message {messages[0]}", why=why)

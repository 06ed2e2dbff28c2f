"""The laws of a leaf: what may take the place of one text, of one result, of one call's arguments.

A leaf is replaced (`Replace`)
    place     where the history has it; a definition of tools, what a block has beside its texts
              and what a program reads stay as they are; so do what the system says, what the user
              answered to a tool and what the user pinned, unless there would be no view otherwise
    moment    on arrival only if it was never sent; later only outside a turn whose reasoning is
              frozen, and never where the account of other messages stands
    signed    arguments stay under a signature of theirs
    text      by a text that is not blank; arguments that are an object, by an object

What holds for every cut beside is in `ullage.core.turn.cuts`.
"""

from __future__ import annotations

from msgspec.structs import replace

from ullage.core.contract.bound import HELD, editable_from
from ullage.core.contract.kinds import fields_of, is_plain_text
from ullage.core.history import canon
from ullage.core.history.transcript import Location
from ullage.core.history.window import Window
from ullage.core.turn.again import with_lines
from ullage.core.turn.cuts import LEAVE, Broken, Proposal
from ullage.core.values.edits import ProposedEdit, Replace, ReplaceSpan
from ullage.core.values.effects import Output
from ullage.core.values.messages import (
    BlockFrame,
    Opaque,
    ToolCall,
    ToolResult,
)

_PLACE = "Take the place from window.transcript.address(location)."
_LATER = "Return it from a stage under pressure."


def replacement(
    proposal: Proposal, cut: ProposedEdit, edit: Replace
) -> ProposedEdit:
    """A cut of a leaf as it may be shown.

    Args:
        proposal: the cuts of its decision.
        cut: as it was proposed.
        edit: that of the cut.

    Raises:
        Broken: it breaks a law and cannot be repaired.
    """
    window = proposal.window
    location, original = _located(window, edit)
    _check_place(proposal, location)
    _check_moment(proposal, location)
    _check_text(window, location, edit.text)
    is_page = _is_page(window, location)
    if edit.ref != original.ref:
        remedy = "its ref was not that of the text which it replaces; it is"
        proposal.mend("ref", edit, remedy)
    text = edit.text
    if not is_page and not _is_named(edit, original):
        text = _naming(window, location, text, original)
        remedy = (
            f"what it shows did not name {original.ref}, which opens the rest"
        )
        proposal.mend("named", edit, remedy)
    if not proposal.on_arrival:
        for lines in window.pins.lines.get(location, ()):
            text = with_lines(window, text, original.text, *lines)
    if (original.ref, text) != (edit.ref, edit.text):
        edit = replace(edit, ref=original.ref, text=text)
    needed = () if is_page else (original,)
    return ProposedEdit(edit, proposal.kept(cut, needed), cut.brief)


def _located(window: Window, edit: Replace) -> tuple[Location, Output]:
    """Where the leaf of an edit is, and its original; refuse a place that has none."""
    transcript = window.transcript
    location = transcript.locate(edit.address)
    if location is not None and location[0] < window.size:
        original = transcript.output(location)
        if original is not None:
            return location, original
    problem = f"none of the {window.size:,} messages has a text at this place"
    raise Broken(problem, _PLACE)


def _check_text(window: Window, location: Location, text: str) -> None:
    """Refuse a text that no wire can show in place of a leaf."""
    if _is_text_for(window, location, text):
        return
    call = window.transcript.leaf(location)
    name = call.name if isinstance(call, ToolCall) else "a call"
    raise Broken(
        f"it shows {len(text):,} characters that are no JSON object as the arguments "
        f"of {name}, call {location[1] + 1} of message {location[0] + 1}",
        "Show the same keys with shorter values, written by json.dumps.",
    )


def _check_place(proposal: Proposal, location: Location) -> None:
    """Refuse a place that stays as it came."""
    window = proposal.window
    transcript = proposal.window.transcript
    index = location[0]
    number = location[1]
    message = transcript.messages[index]
    part = message.parts[number]
    if transcript.reader(index, number) == "program":
        raise Broken(
            "a program reads this, and would work on a part of it", LEAVE
        )
    if isinstance(transcript.leaf(location), BlockFrame):
        raise Broken("a block keeps what stands beside its texts", LEAVE)
    if not _is_editable(window, location):
        raise Broken(
            "a block of the provider's stands as it came or not at all", LEAVE
        )
    if isinstance(part, ToolCall) and window.signed(index):
        raise Broken("these arguments are signed", LEAVE)
    if proposal.is_guard:
        return
    # a pin counts from the next batch on
    if not proposal.on_arrival and window.is_pinned(location):
        raise Broken("the user pinned this", LEAVE)
    if message.role == "system":
        raise Broken("the system says this", LEAVE)
    if (
        isinstance(part, ToolResult)
        and transcript.author(index, number) == "user"
    ):
        raise Broken("the user answered this", LEAVE)


def _check_moment(proposal: Proposal, location: Location) -> None:
    """Refuse what may not be replaced now."""
    window = proposal.window
    index = location[0]
    if proposal.on_arrival and window.age_of(index) < window.fresh:
        start = window.fresh + 1
        problem = (
            f"on arrival nothing is cut before message {start}: it was sent"
        )
        raise Broken(problem, _LATER)
    if index < editable_from(window):
        raise Broken(HELD, "Propose it again once the turn is over.")
    if not window.holds_account(location):
        return
    if not _is_summarised_from(proposal, index + 1):
        problem = "the account of the messages behind it stands in this result"
        raise Broken(
            problem, "Summarise these messages again in the same batch."
        )


def _is_summarised_from(proposal: Proposal, start: int) -> bool:
    """Whether a summary that begins at a message was proposed as well."""
    for cut in proposal.cuts:
        if isinstance(cut.edit, ReplaceSpan):
            span = proposal.window.range_of(cut.edit)
            if span is not None and span[0] == start:
                return True
    return False


def is_lawful(window: Window, edit: Replace) -> bool:
    """Whether a replacement of a record keeps the laws that the history alone decides."""
    location = window.location_for(edit, window.size)
    if location is None:
        return True
    if not _is_editable(window, location):
        return False
    if not _is_text_for(window, location, edit.text):
        return False
    original = window.transcript.output(location)
    return _is_named(edit, original) or _is_page(window, location)


def _is_editable(window: Window, location: Location) -> bool:
    """Whether a wire can show a text in place of a leaf."""
    leaf = window.transcript.leaf(location)
    return not isinstance(leaf, Opaque)


def _is_page(window: Window, location: Location) -> bool:
    """Whether this is what a recall tool gave: the same call gives it again, so it is not kept."""
    message = window.transcript.messages[location[0]]
    part = message.parts[location[1]]
    return isinstance(part, ToolResult) and window.is_recall(location)


def _is_named(edit: Replace, original: Output | None) -> bool:
    """Whether a text names what opens the original, or holds all of it (beside an account)."""
    if original is None or not edit.text.strip():
        return False
    if original.ref in edit.text:
        return True
    return original.kind == "text" and original.text in edit.text


def _is_text_for(window: Window, location: Location, text: str) -> bool:
    """Whether a wire can show this text in place of a leaf.

    Arguments are an object on most wires, and stay text only where they were plain text.
    """
    leaf = window.transcript.leaf(location)
    if not isinstance(leaf, ToolCall) or is_plain_text(leaf.arguments):
        return True
    return fields_of(text) is not None


def _naming(
    window: Window, location: Location, text: str, original: Output
) -> str:
    """A text that names what opens the original, behind what it says already."""
    leaf = window.transcript.leaf(location)
    words = window.words
    chars = len(original.text)
    fields = fields_of(text) if isinstance(leaf, ToolCall) else None
    if fields is not None:
        notice = words.arguments(original.ref, chars)
        return canon.canonical_json({**fields, "_ullage": notice})
    notice = words.aside(original.ref, chars)
    if not text.strip():
        return notice
    return f"{text}\n{notice}"

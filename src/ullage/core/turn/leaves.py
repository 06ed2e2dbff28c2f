"""The laws of a leaf: what may take the place of one text, of one result, of one call's arguments.

A leaf is replaced (`Replace`)
    place     where the history has it; a definition of tools, what a program reads, what the
              system says and what the user answered to a tool stay as they are
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
from ullage.core.values.messages import Opaque, ToolCall, ToolResult

_PLACE = "Take the place from window.transcript.place(location)."
_LATER = "Return it from a stage under pressure."


def replacement(proposal: Proposal, cut: ProposedEdit, edit: Replace) -> ProposedEdit:
    """A cut of a leaf as it may be shown.

    Args:
        proposal: the cuts of its decision.
        cut: as it was proposed.
        edit: that of the cut.

    Raises:
        Broken: it breaks a law and cannot be mended.
    """
    window, transcript = proposal.window, proposal.window.transcript
    spot = transcript.locate(edit.address)
    original = None if spot is None else transcript.output(spot)
    if spot is None or spot[0] >= window.size or original is None:
        problem = f"none of the {window.size:,} messages has a text at this place"
        raise Broken(problem, _PLACE)
    _check_place(proposal, spot)
    _check_moment(proposal, spot)
    if not _is_text_for(window, spot, edit.text):
        call = transcript.leaf(spot)
        name = call.name if isinstance(call, ToolCall) else "a call"
        raise Broken(
            f"it shows {len(edit.text):,} characters that are no JSON object as the arguments "
            f"of {name}, call {spot[1] + 1} of message {spot[0] + 1}",
            "Show the same keys with shorter values, written by json.dumps.",
        )
    ref, text = original.ref, edit.text
    if edit.ref != ref:
        proposal.mend(
            "ref", edit, "its ref was not that of the text which it replaces; it is"
        )
    is_page = _is_page(window, spot)
    if not (is_page or _is_named(edit, original)):
        text = _naming(window, spot, text, original)
        proposal.mend(
            "named", edit, f"what it shows did not name {ref}, which opens the rest"
        )
    for first, last in () if proposal.on_arrival else window.pins.lines.get(spot, ()):
        text = with_lines(window, text, original.text, first, last)
    if (ref, text) != (edit.ref, edit.text):
        edit = replace(edit, ref=ref, text=text)
    needed = () if is_page else (original,)
    return ProposedEdit(edit, proposal.kept(cut, needed), cut.brief)


def _check_place(proposal: Proposal, spot: Location) -> None:
    """Refuse a place that stays as it came."""
    window, transcript = proposal.window, proposal.window.transcript
    part = transcript.messages[spot[0]].parts[spot[1]]
    if transcript.reader(spot[0], spot[1]) == "program":
        raise Broken("a program reads this, and would work on a part of it", LEAVE)
    if not _is_editable(window, spot):
        raise Broken("a block of the provider's stands as it came or not at all", LEAVE)
    if isinstance(part, ToolCall) and window.signed(spot[0]):
        raise Broken("these arguments are signed", LEAVE)
    if proposal.is_guard:
        return
    if (
        window.is_pinned(spot) and not proposal.on_arrival
    ):  # a pin counts from the next batch on
        raise Broken("the user pinned this", LEAVE)
    if transcript.messages[spot[0]].role == "system":
        raise Broken("the system says this", LEAVE)
    if isinstance(part, ToolResult) and transcript.author(spot[0], spot[1]) == "user":
        raise Broken("the user answered this", LEAVE)


def _check_moment(proposal: Proposal, spot: Location) -> None:
    """Refuse what may not be replaced now."""
    window = proposal.window
    if proposal.on_arrival and window.age_of(spot[0]) < window.fresh:
        problem = (
            f"on arrival nothing is cut before message {window.fresh + 1}: it was sent"
        )
        raise Broken(problem, _LATER)
    if spot[0] < editable_from(window):
        raise Broken(HELD, "Propose it again once the turn is over.")
    if window.holds_account(spot) and not _is_summarised_from(proposal, spot[0] + 1):
        problem = "the account of the messages behind it stands in this result"
        raise Broken(problem, "Summarise these messages anew in the same batch.")


def _is_summarised_from(proposal: Proposal, start: int) -> bool:
    """Whether a summary that begins at a message was proposed as well."""
    edits = (cut.edit for cut in proposal.cuts)
    ranges = (
        proposal.window.range_of(edit)
        for edit in edits
        if isinstance(edit, ReplaceSpan)
    )
    return any(around is not None and around[0] == start for around in ranges)


def stands(window: Window, edit: Replace) -> bool:
    """Whether a replacement of a record keeps the laws that the history alone decides."""
    spot = window.location_for(edit, window.size)
    return spot is None or (
        _is_editable(window, spot)
        and _is_text_for(window, spot, edit.text)
        and (_is_named(edit, window.transcript.output(spot)) or _is_page(window, spot))
    )


def _is_editable(window: Window, spot: Location) -> bool:
    """Whether a wire can show a text in place of a leaf."""
    leaf = window.transcript.leaf(spot)
    return not isinstance(leaf, Opaque)


def _is_page(window: Window, spot: Location) -> bool:
    """Whether this is what a recall tool gave: the same call gives it again, so it is not kept."""
    part = window.transcript.messages[spot[0]].parts[spot[1]]
    return isinstance(part, ToolResult) and window.is_recall(spot)


def _is_named(edit: Replace, original: Output | None) -> bool:
    """Whether a text names what opens the original, or holds all of it (beside an account)."""
    if original is None or not edit.text.strip():
        return False
    return original.ref in edit.text or (
        original.kind == "text" and original.text in edit.text
    )


def _is_text_for(window: Window, spot: Location, text: str) -> bool:
    """Whether a wire can show this text in place of a leaf.

    Arguments are an object on most wires, and stay text only where they were plain text.
    """
    leaf = window.transcript.leaf(spot)
    is_plain = not isinstance(leaf, ToolCall) or is_plain_text(leaf.arguments)
    return is_plain or fields_of(text) is not None


def _naming(window: Window, spot: Location, text: str, original: Output) -> str:
    """A text that names what opens the original, behind what it says already."""
    leaf, words = window.transcript.leaf(spot), window.words
    fields = fields_of(text) if isinstance(leaf, ToolCall) else None
    if fields is not None:
        notice = words.arguments(original.ref, len(original.text))
        return canon.canonical_json({**fields, "_ullage": notice})
    notice = words.aside(original.ref, len(original.text))
    return f"{text}\n{notice}" if text.strip() else notice

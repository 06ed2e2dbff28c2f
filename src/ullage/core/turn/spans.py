"""The laws of a range: what may take the place of messages, and where reasoning may be left out.

A range is summarised (`Summary`)
    seams     from a seam to a seam: it parts no reply, no call from its result, no system message
              from the reply behind it, and no turn from the reasoning it has to begin with
    nesting   around each earlier summary, or beside it
    stays     around what has to stay: tools that a search loaded, what is new at an old place, a
              compaction of the provider's, what the host added for the provider
    text      by a text that is not blank, or by the result before it that names the ref
Reasoning is left out (`Drop`)
    run       from the beginning up to the open turn, or up to the newest reply: what stays is one
              run that ends with the newest

Where a range may begin and end is in `ullage.core.turn.seams`, what holds for every cut in
`ullage.core.turn.cuts`.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ullage.core.contract.bound import HELD, editable_from, newest_shown
from ullage.core.contract.ranges import control_tail, coverable, set_aside
from ullage.core.history.index import holds_range, outputs_of
from ullage.core.history.window import Window
from ullage.core.turn.cuts import LEAVE, Broken, Proposal, holds_account
from ullage.core.turn.seams import Ground
from ullage.core.values.edits import Cut, Drop, Edit, Summary
from ullage.core.values.messages import Reasoning


def summary(
    proposal: Proposal, cut: Cut, edit: Summary, start: int, stop: int
) -> Cut | None:
    """A cut of a range as it may be shown; None where it would hide nothing.

    Args:
        proposal: the cuts of its decision.
        cut: as it was proposed.
        edit: that of the cut.
        start: the first message of the range.
        stop: one past its last.

    Raises:
        Broken: it breaks a law and cannot be mended.
    """
    window, chain = proposal.window, proposal.window.transcript.chain
    is_told = not edit.text.strip() and proposal.is_told(edit.ref)
    first, last = _seams(proposal, edit, start, stop, speaks=not is_told)
    if (first, last) != (start, stop):
        what = f"it stands for messages {first + 1} to {last}, where the history can be parted"
        proposal.mend("seams", edit, what)
        edit = replace(edit, after=chain[first], upto=chain[last], said_upto=b"")
    stays = [at for at in sorted(window.staying(first, last)) if not window.hidden(at)]
    if stays and not coverable(window, first, last):
        return None
    index = next((output for output in cut.outputs if output.ref == edit.ref), None)
    if index is None or not holds_range(window.transcript, first, last, index.text):
        index = set_aside(window, first, last)[-1]
        what = f"its ref opened no index of the messages; {index.ref} opens one"
        proposal.mend("ref", edit, what)
        edit = replace(edit, ref=index.ref)
    # what was thought by itself has no step in the chain, and goes with what follows it
    steps = [at for at in stays if not window.transcript.messages[at].only_thought]
    edit = replace(edit, keeps=tuple(chain[at + 1] for at in steps))
    if is_told and not proposal.is_told(edit.ref, before=first):
        problem = f"its account does not stand in the result before message {first + 1}"
        raise Broken(problem, "Give it a text of its own.")
    edit = _with_texts(proposal, edit, first, last, is_told=is_told)
    shown = window.visible_in(first, last)
    needed = [
        output for at in shown for output in outputs_of(window.transcript, at, at + 1)
    ]
    return Cut(
        edit, proposal.kept(cut._replace(edit=edit), [*needed, index]), cut.brief
    )


def _seams(
    proposal: Proposal, edit: Summary, start: int, stop: int, *, speaks: bool
) -> tuple[int, int]:
    """The range of a summary: as it is, or wider, or narrower, from a seam to a seam."""
    speaks = speaks or bool(edit.retain.strip())
    ground = _ground(proposal, start, stop, speaks=speaks)
    if ground.fits(start, stop):
        return start, stop
    inner = max(start, ground.first), min(stop, ground.last)
    if inner[0] < inner[1]:
        wide = ground.widened(*inner)
        # what the model has not seen yet is hidden by nobody's mistake
        hides_new = wide[1] > _answered(proposal) >= inner[1]
        ways = (
            [ground.narrowed(*inner)] if hides_new else [wide, ground.narrowed(*inner)]
        )
        for first, last in ways:
            if ground.fits(first, last):
                return first, last
    size = proposal.window.size
    problem = f"no range around or within it can be parted from the {size:,} messages"
    raise Broken(problem, "Ask window.may_cut(index) where a range may end.")


def _answered(proposal: Proposal) -> int:
    """The first message behind the newest reply: the model has seen none from here on."""
    window = proposal.window
    return window.transcript.reply(window.turn_start, window.size).stop


def _ground(proposal: Proposal, start: int, stop: int, *, speaks: bool) -> Ground:
    """Where a summary of a range may begin and end."""
    window = proposal.window
    # what the provider compacted stays, also where the range has to be widened
    compacted = window.transcript.compaction(0, stop)
    first = window.read_from
    if compacted is not None:
        first = max(first, compacted + 1)
    editable = editable_from(window)
    if stop < editable:
        raise Broken(HELD, "Propose it again once the turn is over.")
    edits = (proposal.passed[number].edit for number in proposal.ranges)
    proposed = (window.range_of(edit) for edit in edits if isinstance(edit, Summary))
    placed = ((summary.start, summary.stop) for summary in window.summaries)
    others = [*placed, *(around for around in proposed if around is not None)]
    last = control_tail(window)
    later = window.transcript.marked("compacted", stop, last)
    if later:
        last = later[0]
    return Ground(window, first, last, others, editable, speaks, proposal.is_guard)


def _with_texts(
    proposal: Proposal, edit: Summary, start: int, stop: int, *, is_told: bool
) -> Summary:
    """The summary with texts that can be sent and name its ref."""
    pinned = len(proposal.window.transcript.marked("pinned", start, stop))
    later = tuple(text if text.strip() else "" for text in edit.later[:pinned])
    retain = edit.retain if edit.retain.strip() else ""
    text = edit.text if edit.text.strip() else ""
    if edit.ref not in text and not is_told:
        notice = proposal.window.words.everything(edit.ref, start + 1, stop)
        text = f"{text}\n\n{notice}" if text else notice
        proposal.mend(
            "named",
            edit,
            f"what it shows did not name {edit.ref}, which opens the rest",
        )
    if (text, retain, later) == (edit.text, edit.retain, edit.later):
        return edit
    return replace(edit, text=text, retain=retain, later=later)


def drop(proposal: Proposal, cut: Cut, edit: Drop, start: int, stop: int) -> Cut | None:
    """A cut of reasoning as it may be shown; None where it leaves nothing more out.

    The arguments are those of `summary`.

    Raises:
        Broken: the open turn goes on from this reasoning.
    """
    window, chain = proposal.window, proposal.window.transcript.chain
    newest_asked = window.transcript.newest_asked(window.size)
    last = min(
        stop,
        newest_shown(window, ()),
        window.size if newest_asked is None else newest_asked,
    )
    if last <= 0:
        raise Broken("the open turn goes on from this reasoning", LEAVE)
    reasoned = _reasoned(window, last)
    if reasoned <= window.reasoning_dropped:
        return None
    if (start, stop) == (0, last):
        return Cut(edit, ())
    proposal.mend(
        "run", edit, f"reasoning is left out of messages 1 to {last}: an unbroken run"
    )
    return Cut(replace(edit, after=chain[0], upto=chain[last]), ())


def stands(window: Window, edit: Summary, batch: Sequence[Edit]) -> bool:
    """Whether a summary of a record keeps the laws that the history alone decides."""
    start, stop = window.range_of(edit) or (0, 0)
    if start == stop:
        return True
    transcript = window.transcript
    is_named = edit.ref in edit.text or holds_account(window, batch, edit.ref, start)
    return (
        is_named
        and transcript.may_split(start)
        and transcript.closed(stop)
        and transcript.compaction(start, stop) is None
        and all(text.strip() for text in edit.texts)
        and _keeps_steps_whole(window, edit, start, stop)
    )


def _reasoned(window: Window, stop: int) -> set[int]:
    """The messages before an index that hold reasoning."""
    messages = window.transcript.messages[:stop]
    return {
        index
        for index, message in enumerate(messages)
        if any(isinstance(part, Reasoning) for part in message.parts)
    }


def _keeps_steps_whole(window: Window, edit: Summary, start: int, stop: int) -> bool:
    """Whether what a summary leaves in its range is no part of a step."""
    kept, transcript = window.kept_by(edit), window.transcript
    for index in kept:
        step = transcript.together(index, stop)
        apart = {at for at in step if start <= at < stop} - kept
        if any(not transcript.messages[at].only_thought for at in apart):
            return False
    return True

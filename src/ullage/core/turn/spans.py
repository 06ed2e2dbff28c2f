"""The laws of a range: what may take the place of messages, and where reasoning may be left out.

A range is summarised (`ReplaceSpan`)
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
from ullage.core.values.edits import Drop, Edit, ProposedEdit, ReplaceSpan
from ullage.core.values.effects import Output
from ullage.core.values.messages import Reasoning


def summary(
    proposal: Proposal,
    cut: ProposedEdit,
    edit: ReplaceSpan,
    start: int,
    stop: int,
) -> ProposedEdit | None:
    """A cut of a range as it may be shown; None where it would hide nothing.

    Args:
        proposal: the cuts of its decision.
        cut: as it was proposed.
        edit: that of the cut.
        start: the first message of the range.
        stop: one past its last.

    Raises:
        Broken: it breaks a law and cannot be repaired.
    """
    window = proposal.window
    has_account = not edit.text.strip() and proposal.is_told(edit.ref)
    proposed = (start, stop)
    start, stop = _seams(proposal, edit, start, stop, speaks=not has_account)
    if (start, stop) != proposed:
        edit = _moved(proposal, edit, start, stop)
    staying = sorted(window.staying(start, stop))
    if staying and not coverable(window, start, stop):
        return None
    index = _index_of(proposal, cut, edit, start, stop)
    if index.ref != edit.ref:
        edit = replace(edit, ref=index.ref)
    edit = replace(edit, keeps=_steps(window, staying))
    if has_account and not proposal.is_told(edit.ref, before=start):
        problem = f"its account does not stand in the result before message {start + 1}"
        raise Broken(problem, "Give it a text of its own.")
    edit = _with_texts(proposal, edit, start, stop, has_account=has_account)
    needed: list[Output] = []
    for shown_index in window.visible_in(start, stop):
        needed += outputs_of(window.transcript, shown_index, shown_index + 1)
    needed.append(index)
    outputs = proposal.kept(cut._replace(edit=edit), needed)
    return ProposedEdit(edit, outputs, cut.brief)


def _moved(
    proposal: Proposal, edit: ReplaceSpan, start: int, stop: int
) -> ReplaceSpan:
    """A summary of another range than it was proposed for."""
    chain = proposal.window.transcript.chain
    remedy = f"it stands for messages {start + 1} to {stop}, where the history can be parted"
    proposal.mend("seams", edit, remedy)
    return replace(edit, after=chain[start], upto=chain[stop], model_upto=b"")


def _index_of(
    proposal: Proposal,
    cut: ProposedEdit,
    edit: ReplaceSpan,
    start: int,
    stop: int,
) -> Output:
    """What the ref of a summary opens: an index of all the messages of its range."""
    window = proposal.window
    for output in cut.outputs:
        if output.ref != edit.ref:
            continue
        if holds_range(window.transcript, start, stop, output.text):
            return output
        break
    index = set_aside(window, start, stop)[-1]
    remedy = f"its ref opened no index of the messages; {index.ref} opens one"
    proposal.mend("ref", edit, remedy)
    return index


def _steps(window: Window, indices: Sequence[int]) -> tuple[bytes, ...]:
    """The chain behind each of some messages, as a summary names what it keeps."""
    transcript = window.transcript
    steps: list[bytes] = []
    for index in indices:
        # what was thought by itself has no step in the chain, and goes with what follows it
        if not transcript.messages[index].only_thought:
            steps.append(transcript.chain[index + 1])
    return tuple(steps)


def _seams(
    proposal: Proposal,
    edit: ReplaceSpan,
    start: int,
    stop: int,
    *,
    speaks: bool,
) -> tuple[int, int]:
    """The range of a summary: as it is, or wider, or narrower, from a seam to a seam."""
    speaks = speaks or bool(edit.retain.strip())
    ground = _ground(proposal, start, stop, speaks=speaks)
    if ground.fits(start, stop):
        return start, stop
    start = max(start, ground.first)
    stop = min(stop, ground.last)
    if start < stop:
        ways = [ground.widened(start, stop), ground.narrowed(start, stop)]
        # no repair may hide what the model has not seen yet
        if ways[0][1] > _answered(proposal) >= stop:
            del ways[0]
        for way in ways:
            if ground.fits(*way):
                return way
    size = proposal.window.size
    problem = f"no range around or within it can be parted from the {size:,} messages"
    raise Broken(problem, "Ask window.may_cut(index) where a range may end.")


def _answered(proposal: Proposal) -> int:
    """The first message behind the newest reply: the model has seen none from here on."""
    window = proposal.window
    return window.transcript.reply(window.turn_start, window.size).stop


def _ground(
    proposal: Proposal, start: int, stop: int, *, speaks: bool
) -> Ground:
    """Where a summary of a range may begin and end."""
    window = proposal.window
    editable = editable_from(window)
    if stop < editable:
        raise Broken(HELD, "Propose it again once the turn is over.")
    first = window.read_from
    last = control_tail(window)
    # what the provider compacted stays, also where the range has to be widened
    compacted = window.transcript.compaction(0, stop)
    if compacted is not None:
        first = max(first, compacted + 1)
    later = window.transcript.marked("compacted", stop, last)
    if later:
        last = later[0]
    return Ground(
        window=window,
        first=first,
        last=last,
        summarised=_summarised(proposal),
        editable=editable,
        speaks=speaks,
        is_guard=proposal.is_guard,
    )


def _summarised(proposal: Proposal) -> list[tuple[int, int]]:
    """The ranges of all summaries that stand, and of those that were checked before."""
    window = proposal.window
    ranges = [(summary.start, summary.stop) for summary in window.summaries]
    for number in proposal.ranges:
        edit = proposal.passed[number].edit
        if isinstance(edit, ReplaceSpan):
            span = window.range_of(edit)
            if span is not None:
                ranges.append(span)
    return ranges


def _with_texts(
    proposal: Proposal,
    edit: ReplaceSpan,
    start: int,
    stop: int,
    *,
    has_account: bool,
) -> ReplaceSpan:
    """The summary with texts that can be sent and name its ref."""
    pinned = len(proposal.window.transcript.marked("permanent", start, stop))
    later = tuple(_unless_blank(text) for text in edit.later[:pinned])
    retain = _unless_blank(edit.retain)
    text = _unless_blank(edit.text)
    if edit.ref not in text and not has_account:
        notice = proposal.window.words.everything(edit.ref, start + 1, stop)
        text = f"{text}\n\n{notice}" if text else notice
        remedy = f"what it shows did not name {edit.ref}, which opens the rest"
        proposal.mend("named", edit, remedy)
    if (text, retain, later) == (edit.text, edit.retain, edit.later):
        return edit
    return replace(edit, text=text, retain=retain, later=later)


def _unless_blank(text: str) -> str:
    """A text; none where it says nothing."""
    return text if text.strip() else ""


def drop(
    proposal: Proposal, cut: ProposedEdit, edit: Drop, start: int, stop: int
) -> ProposedEdit | None:
    """A cut of reasoning as it may be shown; None where it leaves nothing more out.

    The arguments are those of `summary`.

    Raises:
        Broken: the open turn goes on from this reasoning.
    """
    window = proposal.window
    last = min(stop, newest_shown(window, ()), window.size)
    question = window.transcript.newest_request(window.size)
    if question is not None:
        last = min(last, question)
    if last <= 0:
        raise Broken("the open turn goes on from this reasoning", LEAVE)
    if _reasoned(window, last) <= window.reasoning_dropped:
        return None
    if (start, stop) == (0, last):
        return ProposedEdit(edit, ())
    remedy = f"reasoning is left out of messages 1 to {last}: an unbroken run"
    proposal.mend("run", edit, remedy)
    chain = window.transcript.chain
    return ProposedEdit(replace(edit, after=chain[0], upto=chain[last]), ())


def is_lawful(
    window: Window, edit: ReplaceSpan, batch: Sequence[Edit]
) -> bool:
    """Whether a summary of a record keeps the laws that the history alone decides."""
    start, stop = window.range_of(edit) or (0, 0)
    if start == stop:
        return True
    if edit.ref not in edit.text and not holds_account(
        window, batch, edit.ref, start
    ):
        return False
    transcript = window.transcript
    # a reply may have gone on behind the range since: where it was to end, only its calls tell
    if not transcript.may_split(start) or not transcript.closed(stop):
        return False
    if transcript.compaction(start, stop) is not None:
        return False
    if not all(text.strip() for text in edit.texts):
        return False
    return _keeps_steps_whole(window, edit, start, stop)


def _reasoned(window: Window, stop: int) -> set[int]:
    """The messages before an index that hold reasoning."""
    reasoned: set[int] = set()
    for index, message in enumerate(window.transcript.messages[:stop]):
        if any(isinstance(part, Reasoning) for part in message.parts):
            reasoned.add(index)
    return reasoned


def _keeps_steps_whole(
    window: Window, edit: ReplaceSpan, start: int, stop: int
) -> bool:
    """Whether what a summary leaves in its range is no part of a step."""
    keeps = window.kept_by(edit)
    transcript = window.transcript
    for index in keeps:
        for member in transcript.inseparable(index, stop):
            if not start <= member < stop or member in keeps:
                continue
            if not transcript.messages[member].only_thought:
                return False
    return True

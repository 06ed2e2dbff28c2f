"""The laws of a cut, checked where it becomes part of a view, whoever proposed it.

A stage proposes cuts: one of ours, a preset's, a user's, the guard, or one that shows what a
model wrote. What passes here is legal on every wire and can be opened again, so no stage has to
be trusted. What can be mended is mended (`Mend`); of the rest no part is shown (`StageError`).

A leaf is replaced (`Replace`)
    place     where the history has it; a definition of tools, what a program reads, what the
              system says and what the user answered to a tool stay as they are
    moment    on arrival only if it was never sent; later only outside a turn whose reasoning is
              frozen, and never where the account of other messages stands
    signed    arguments stay under a signature of theirs
    text      by a text that is not blank; arguments that are an object, by an object
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
And of each
    kept      what leaves the view is among the outputs, each under the ref of its own content
    ref       the ref is that of the leaf, or of an index of the whole range
    named     what is shown names the ref, or holds the whole text that it stands for

A record of the ledger is checked by `stands`: by those of these laws that the history alone
decides, so that every worker comes to the same at any later request.

Work is proportional to what a cut touches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from ullage.errors import StageError
from ullage.history import canon
from ullage.history.index import holds_range, outputs_of
from ullage.history.transcript import Location
from ullage.history.window import Window
from ullage.stages.bound import HELD, editable_from, newest_shown
from ullage.stages.kinds import fields_of, is_plain_text
from ullage.stages.ranges import control_tail, coverable, set_aside
from ullage.turn.again import may_be_added, with_lines
from ullage.turn.seams import Ground
from ullage.values.edits import Added, Address, Cut, Drop, Edit, Replace, Summary, Whole
from ullage.values.effects import Output
from ullage.values.messages import Opaque, Reasoning, ToolCall, ToolResult

Law: TypeAlias = Literal["seams", "nesting", "stays", "text", "run", "kept", "ref", "named"]
"""A law that can be mended, by its name above."""
_PLACE = "Take the place from window.transcript.place(location)."
_ENDS = "Take both ends from window.transcript.chain, the first before the second."
_LEAVE = "Leave it out of the cuts."
_LATER = "Return it from a stage under pressure."


class Mend(NamedTuple):
    """What was mended of a cut.

    Attributes:
        law: the law that the cut broke.
        where: the place, such as ``message 12``. Never content.
        what: what was done about it, with its numbers.
    """

    law: Law
    where: str
    what: str


class Checked(NamedTuple):
    """Cuts that keep the laws.

    Attributes:
        cuts: these, in the order in which they were proposed.
        mends: what was mended of them.
        errors: why each of the others is not among them.
    """

    cuts: list[Cut]
    mends: list[Mend]
    errors: list[StageError]


def check(
    window: Window,
    stage: str,
    cuts: Sequence[Cut],
    *,
    on_arrival: bool = False,
    is_guard: bool = False,
) -> Checked:
    """The cuts that may be shown, mended where they had to be.

    Args:
        window: the window at the boundary at hand.
        stage: the name of whoever proposed them.
        cuts: what was proposed. Each is checked beside those before it.
        on_arrival: whether they are made before what is new was ever sent.
        is_guard: whether there would be no view without them: then what is said may be cut too.
    """
    batch = _Batch(window, cuts, on_arrival, is_guard, {}, {}, [], [])
    errors = list[StageError]()
    # the account of a summary may stand in a result, so results are checked first
    order = sorted(range(len(cuts)), key=lambda number: isinstance(cuts[number].edit, Summary))
    for number in order:
        try:
            cut = batch.lawful(cuts[number])
        except _Broken as broken:
            errors.append(StageError(stage, batch.where(cuts[number].edit), *broken.args))
            cut = None
        if cut is None:
            batch.leave_untold(cuts[number].edit)
        else:
            batch.take(number, cut)
    return Checked([batch.passed[number] for number in sorted(batch.passed)], batch.mends, errors)


def stands(window: Window, edit: Edit, batch: Sequence[Edit]) -> bool:
    """Whether an edit of a record keeps the laws that the history alone decides.

    An edit of what this history does not hold has no effect, and breaks none.

    Args:
        window: the window at the boundary at hand.
        edit: the edit.
        batch: all edits of its record.
    """
    if isinstance(edit, (Drop, Whole)):
        return True
    if isinstance(edit, Added):
        return may_be_added(window, edit)
    if isinstance(edit, Replace):
        spot = window.spot_for(edit, window.size)
        return spot is None or (
            _is_editable(window, spot)
            and _is_text_for(window, spot, edit.text)
            and (_is_named(edit, window.transcript.output(spot)) or _is_page(window, spot))
        )
    start, stop = window.range_of(edit) or (0, 0)
    if start == stop:
        return True
    transcript = window.transcript
    is_named = edit.ref in edit.text or _holds_account(window, batch, edit.ref, start)
    return (
        is_named
        and transcript.may_split(start)
        and transcript.closed(stop)
        and transcript.compaction(start, stop) is None
        and all(text.strip() for text in edit.texts)
        and _keeps_steps_whole(window, edit, start, stop)
    )


class _Broken(Exception):
    """A cut that breaks a law and cannot be mended: the problem, and what to do."""


class _Batch(NamedTuple):
    """The cuts that are checked together, and what has come of them so far.

    Attributes:
        window: the window at the boundary at hand.
        cuts: what was proposed.
        on_arrival: see `check`.
        is_guard: see `check`.
        passed: the cuts that may be shown, by their number among the proposed ones.
        leaves: of these the number of what replaces a leaf.
        ranges: of these the numbers of those of ranges.
        mends: what was mended of them.
    """

    window: Window
    cuts: Sequence[Cut]
    on_arrival: bool
    is_guard: bool
    passed: dict[int, Cut]
    leaves: dict[Address, int]
    ranges: list[int]
    mends: list[Mend]

    def lawful(self, cut: Cut) -> Cut | None:
        """The cut as it may be shown; None where it would hide nothing."""
        edit = cut.edit
        if isinstance(edit, Replace):
            return self._replacement(cut, edit)
        if isinstance(edit, (Whole, Added)):
            raise _Broken("only a user's decision shows this", _LEAVE)
        if self.on_arrival:
            raise _Broken("on arrival only new texts are replaced, and this is a range", _LATER)
        start, stop = self.window.range_of(edit) or (0, 0)
        if start == stop:
            problem = f"it names no range of the {self.window.size:,} messages"
            raise _Broken(problem, _ENDS)
        if isinstance(edit, Summary):
            return self._summary(cut, edit, start, stop)
        return self._drop(cut, edit, start, stop)

    def where(self, edit: Edit) -> str:
        """The place of an edit, for people."""
        if isinstance(edit, Replace):
            spot = self.window.transcript.locate(edit.place)
            return "a place of no message" if spot is None else f"message {spot[0] + 1}"
        if isinstance(edit, (Whole, Added)):
            return "the view"
        start, stop = self.window.range_of(edit) or (0, 0)
        return "a range of no messages" if start == stop else f"messages {start + 1} to {stop}"

    def take(self, number: int, cut: Cut) -> None:
        """Take in a cut that may be shown, in place of those that it would cover.

        A record is shown again edit by edit, so no place may have two of them.
        """
        edit = cut.edit
        if isinstance(edit, Replace):
            earlier = self.leaves.get(edit.place)
            covered = [] if earlier is None else [earlier]
            self.leaves[edit.place] = number
        else:
            covered = [at for at in self.ranges if self._covers(edit, self.passed[at].edit)]
            self.ranges.append(number)
        for at in covered:
            del self.passed[at]
        self.ranges[:] = [at for at in self.ranges if at not in covered]
        self.passed[number] = cut

    def leave_untold(self, edit: Edit) -> None:
        """Take out the account of a summary that is not shown, from the result before it."""
        around = self.window.range_of(edit) if isinstance(edit, Summary) else None
        if around is None or not isinstance(edit, Summary) or edit.text.strip():
            return
        for place, number in list(self.leaves.items()):
            if _holds_account(self.window, [self.passed[number].edit], edit.ref, around[0]):
                del self.leaves[place], self.passed[number]

    def _covers(self, edit: Edit, earlier: Edit) -> bool:
        """Whether a range holds all of an earlier one of its kind."""
        if not isinstance(edit, (Summary, Drop)) or type(edit) is not type(earlier):
            return False
        start, stop = self.window.range_of(edit) or (0, 0)
        return isinstance(earlier, (Summary, Drop)) and self._is_within(earlier, start, stop)

    def _is_within(self, edit: Summary | Drop, start: int, stop: int) -> bool:
        first, last = self.window.range_of(edit) or (0, 0)
        return start <= first and last <= stop

    def _mend(self, law: Law, edit: Edit, what: str) -> None:
        self.mends.append(Mend(law, self.where(edit), what))

    def _kept(self, cut: Cut, needed: Sequence[Output]) -> tuple[Output, ...]:
        """The outputs of a cut, with those that it left out; none under the ref of another."""
        given = {output.ref: output for output in cut.outputs}
        missing = [output for output in needed if given.get(output.ref) != output]
        known = {output.ref for output in needed}
        forged = {
            output.ref
            for output in cut.outputs
            if output.ref not in known and canon.ref_of(output.text, output.kind) != output.ref
        }
        if missing:
            what = f"{len(missing):,} of {len(needed):,} texts that it takes out were not kept"
            self._mend("kept", cut.edit, f"{what}; they are")
        if forged:
            self._mend("kept", cut.edit, f"{len(forged):,} outputs had the ref of another content")
        wrong = forged | {output.ref for output in missing}
        if not wrong:
            return cut.outputs
        return (*missing, *(output for output in cut.outputs if output.ref not in wrong))

    # ── a leaf ───────────────────────────────────────────────────────────────────────

    def _replacement(self, cut: Cut, edit: Replace) -> Cut:
        window, transcript = self.window, self.window.transcript
        spot = transcript.locate(edit.place)
        original = None if spot is None else transcript.output(spot)
        if spot is None or spot[0] >= window.size or original is None:
            problem = f"none of the {window.size:,} messages has a text at this place"
            raise _Broken(problem, _PLACE)
        self._check_place(spot)
        self._check_moment(spot)
        if not _is_text_for(window, spot, edit.text):
            call = transcript.leaf(spot)
            name = call.name if isinstance(call, ToolCall) else "a call"
            raise _Broken(
                f"it shows {len(edit.text):,} characters that are no JSON object as the arguments "
                f"of {name}, call {spot[1] + 1} of message {spot[0] + 1}",
                "Show the same keys with shorter values, written by json.dumps.",
            )
        ref, text = original.ref, edit.text
        if edit.ref != ref:
            self._mend("ref", edit, "its ref was not that of the text which it replaces; it is")
        is_page = _is_page(window, spot)
        if not (is_page or _is_named(edit, original)):
            text = _naming(window, spot, text, original)
            self._mend("named", edit, f"what it shows did not name {ref}, which opens the rest")
        for first, last in () if self.on_arrival else window.pins.lines.get(spot, ()):
            text = with_lines(window, text, original.text, first, last)
        if (ref, text) != (edit.ref, edit.text):
            edit = replace(edit, ref=ref, text=text)
        needed = () if is_page else (original,)
        return Cut(edit, self._kept(cut, needed), cut.brief)

    def _check_place(self, spot: Location) -> None:
        """Refuse a place that stays as it came."""
        window, transcript = self.window, self.window.transcript
        part = transcript.messages[spot[0]].parts[spot[1]]
        if transcript.reader(spot[0], spot[1]) == "program":
            raise _Broken("a program reads this, and would work on a part of it", _LEAVE)
        if not _is_editable(window, spot):
            raise _Broken("a block of the provider's stands as it came or not at all", _LEAVE)
        if isinstance(part, ToolCall) and window.signed(spot[0]):
            raise _Broken("these arguments are signed", _LEAVE)
        if self.is_guard:
            return
        if window.is_pinned(spot) and not self.on_arrival:  # a pin counts from the next batch on
            raise _Broken("the user pinned this", _LEAVE)
        if transcript.messages[spot[0]].role == "system":
            raise _Broken("the system says this", _LEAVE)
        if isinstance(part, ToolResult) and transcript.author(spot[0], spot[1]) == "user":
            raise _Broken("the user answered this", _LEAVE)

    def _check_moment(self, spot: Location) -> None:
        """Refuse what may not be replaced now."""
        window = self.window
        if self.on_arrival and window.age_of(spot[0]) < window.fresh:
            problem = f"on arrival nothing is cut before message {window.fresh + 1}: it was sent"
            raise _Broken(problem, _LATER)
        if spot[0] < editable_from(window):
            raise _Broken(HELD, "Propose it again once the turn is over.")
        if window.holds_account(spot) and not self._is_summarised_from(spot[0] + 1):
            problem = "the account of the messages behind it stands in this result"
            raise _Broken(problem, "Summarise these messages anew in the same batch.")

    def _is_summarised_from(self, start: int) -> bool:
        """Whether a summary that begins at a message was proposed as well."""
        edits = (cut.edit for cut in self.cuts)
        ranges = (self.window.range_of(edit) for edit in edits if isinstance(edit, Summary))
        return any(around is not None and around[0] == start for around in ranges)

    # ── a range ──────────────────────────────────────────────────────────────────────

    def _summary(self, cut: Cut, edit: Summary, start: int, stop: int) -> Cut | None:
        window, chain = self.window, self.window.transcript.chain
        is_told = not edit.text.strip() and self._is_told(edit.ref)
        first, last = self._seams(edit, start, stop, speaks=not is_told)
        if (first, last) != (start, stop):
            what = f"it stands for messages {first + 1} to {last}, where the history can be parted"
            self._mend("seams", edit, what)
            edit = replace(edit, after=chain[first], upto=chain[last], said_upto=b"")
        stays = [at for at in sorted(window.staying(first, last)) if not window.hidden(at)]
        if stays and not coverable(window, first, last):
            return None
        index = next((output for output in cut.outputs if output.ref == edit.ref), None)
        if index is None or not holds_range(window.transcript, first, last, index.text):
            index = set_aside(window, first, last)[-1]
            what = f"its ref opened no index of the messages; {index.ref} opens one"
            self._mend("ref", edit, what)
            edit = replace(edit, ref=index.ref)
        # what was thought by itself has no step in the chain, and goes with what follows it
        steps = [at for at in stays if not window.transcript.messages[at].only_thought]
        edit = replace(edit, keeps=tuple(chain[at + 1] for at in steps))
        if is_told and not self._is_told(edit.ref, before=first):
            problem = f"its account does not stand in the result before message {first + 1}"
            raise _Broken(problem, "Give it a text of its own.")
        edit = self._with_texts(edit, first, last, is_told=is_told)
        shown = window.visible_in(first, last)
        needed = [output for at in shown for output in outputs_of(window.transcript, at, at + 1)]
        return Cut(edit, self._kept(cut._replace(edit=edit), [*needed, index]), cut.brief)

    def _is_told(self, ref: str, before: int | None = None) -> bool:
        """Whether an account stands in what replaces a text, before a message or anywhere."""
        edits = [cut.edit for cut in self.passed.values()]
        return _holds_account(self.window, edits, ref, before)

    def _seams(self, edit: Summary, start: int, stop: int, *, speaks: bool) -> tuple[int, int]:
        """The range of a summary: as it is, or wider, or narrower, from a seam to a seam."""
        speaks = speaks or bool(edit.retain.strip())
        ground = self._ground(start, stop, speaks=speaks)
        if ground.fits(start, stop):
            return start, stop
        inner = max(start, ground.first), min(stop, ground.last)
        if inner[0] < inner[1]:
            wide = ground.widened(*inner)
            # what the model has not seen yet is hidden by nobody's mistake
            hides_new = wide[1] > self._answered() >= inner[1]
            ways = [ground.narrowed(*inner)] if hides_new else [wide, ground.narrowed(*inner)]
            for first, last in ways:
                if ground.fits(first, last):
                    return first, last
        problem = (
            f"no range around or within it can be parted from the {self.window.size:,} messages"
        )
        raise _Broken(problem, "Ask window.may_cut(index) where a range may end.")

    def _answered(self) -> int:
        """The first message behind the newest reply: the model has seen none from here on."""
        window = self.window
        return window.transcript.reply(window.turn_start, window.size).stop

    def _ground(self, start: int, stop: int, *, speaks: bool) -> Ground:
        """Where a summary of a range may begin and end."""
        window = self.window
        compacted = window.transcript.compaction(start, stop)
        first = window.read_from if compacted is None else compacted + 1
        editable = editable_from(window)
        if stop < editable:
            raise _Broken(HELD, "Propose it again once the turn is over.")
        edits = (self.passed[number].edit for number in self.ranges)
        batch = (window.range_of(edit) for edit in edits if isinstance(edit, Summary))
        placed = ((summary.start, summary.stop) for summary in window.summaries)
        others = [*placed, *(around for around in batch if around is not None)]
        last = control_tail(window)
        return Ground(window, first, last, others, editable, speaks, self.is_guard)

    def _with_texts(self, edit: Summary, start: int, stop: int, *, is_told: bool) -> Summary:
        """The summary with texts that can be sent and name its ref."""
        pinned = len(self.window.transcript.marked("pinned", start, stop))
        later = tuple(text if text.strip() else "" for text in edit.later[:pinned])
        retain = edit.retain if edit.retain.strip() else ""
        text = edit.text if edit.text.strip() else ""
        if edit.ref not in text and not is_told:
            notice = self.window.words.everything(edit.ref, start + 1, stop)
            text = f"{text}\n\n{notice}" if text else notice
            self._mend(
                "named", edit, f"what it shows did not name {edit.ref}, which opens the rest"
            )
        if (text, retain, later) == (edit.text, edit.retain, edit.later):
            return edit
        return replace(edit, text=text, retain=retain, later=later)

    # ── reasoning ────────────────────────────────────────────────────────────────────

    def _drop(self, cut: Cut, edit: Drop, start: int, stop: int) -> Cut | None:
        window, chain = self.window, self.window.transcript.chain
        asked = window.transcript.newest_asked(window.size)
        last = min(stop, newest_shown(window, ()), window.size if asked is None else asked)
        if last <= 0:
            raise _Broken("the open turn goes on from this reasoning", _LEAVE)
        reasoned = _reasoned(window, last)
        if reasoned <= window.reasoning_dropped:
            return None
        if (start, stop) == (0, last):
            return Cut(edit, ())
        self._mend("run", edit, f"reasoning is left out of messages 1 to {last}: an unbroken run")
        return Cut(replace(edit, after=chain[0], upto=chain[last]), ())


# ── what a law asks of one value ─────────────────────────────────────────────────────────


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
    return original.ref in edit.text or (original.kind == "text" and original.text in edit.text)


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


def _reasoned(window: Window, stop: int) -> set[int]:
    """The messages before an index that hold reasoning."""
    messages = window.transcript.messages[:stop]
    return {
        index
        for index, message in enumerate(messages)
        if any(isinstance(part, Reasoning) for part in message.parts)
    }


def _holds_account(window: Window, edits: Sequence[Edit], ref: str, before: int | None) -> bool:
    """Whether one of some edits shows what names a ref, in the message before another."""
    for edit in edits:
        if not isinstance(edit, Replace) or ref not in edit.text:
            continue
        spot = window.transcript.locate(edit.place)
        if spot is not None and before in (None, spot[0] + 1):
            return True
    return False


def _keeps_steps_whole(window: Window, edit: Summary, start: int, stop: int) -> bool:
    """Whether what a summary leaves in its range is no part of a step."""
    kept, transcript = window.kept_by(edit), window.transcript
    for index in kept:
        step = transcript.together(index, stop)
        apart = {at for at in step if start <= at < stop} - kept
        if any(not transcript.messages[at].only_thought for at in apart):
            return False
    return True

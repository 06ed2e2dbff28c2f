"""The messages of a view: what is edited is made once, and handed out until it changes.

An edited message is kept with all it was made from: the caller's own object, the snapshot that
it still equals, and the changes. If one of them is another, it is made anew; of the caller's
objects only one that is written otherwise, since whoever reads JSON has others at every turn.
A caller may write into what he was handed (cache markers, say), so a snapshot of the result
is kept too: a message that was written into is not handed out again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ullage.core.contract.format import Change, Format
from ullage.core.history.again import seat_of
from ullage.core.history.shown import ShownHistory
from ullage.core.history.snapshots import is_written_alike, snapshot
from ullage.core.history.window import Window
from ullage.core.values.messages import WHOLE, Opaque

if TYPE_CHECKING:
    from ullage.core.turn.caches import HistoryCache
    from ullage.core.turn.request import Request


class Rendered(Struct, frozen=True, gc=False):
    """An edited message, and what it was made from."""

    raw: Any
    copy: Any
    changes: Sequence[Change]
    drop_reasoning: bool
    message: Any
    unwritten: Any

    def holds(
        self, raw: Any, copy: Any, changes: Sequence[Change], drop_reasoning: bool
    ) -> bool:
        """Whether it may be handed out again."""
        return (
            self.copy is copy
            and self.changes is changes
            and self.drop_reasoning is drop_reasoning
            and (self.raw is raw or is_written_alike(raw, copy))
            and bool(self.unwritten == self.message)
        )


def render(
    request: Request,
    history: HistoryCache,
    view: Window,
    tools: Sequence[dict[str, Any]],
    allowed: Sequence[str] = (),
) -> dict[str, Any]:
    """The view as a request: untouched messages are the caller's own objects.

    The tools stand behind the request's own, and the names of those that are to be allowed behind
    its own list.
    """
    body = request.wire.compose(request.raw, _messages(request, history, view), tools)
    if not allowed:
        return body
    return request.wire.allowing(body, allowed)


def _messages(request: Request, history: HistoryCache, view: Window) -> list[Any]:
    """The raw messages of the view. The first of the caller's are system text outside the chain."""
    wire, raws, leading = request.wire, request.history, request.envelope.head.leading
    messages, parsed, made = list(raws), view.transcript.messages, history.rendered
    for index, changes in _edited(view):
        raw, copy = raws[index + leading], history.copies[index]
        drop_reasoning = index in view.reasoning_dropped
        kept = made.get(index)
        if kept is None or not kept.holds(raw, copy, changes, drop_reasoning):
            message = wire.edit(
                raw, parsed[index], changes, drop_reasoning=drop_reasoning
            )
            kept = Rendered(
                raw, copy, changes, drop_reasoning, message, snapshot(message)
            )
            made[index] = kept
        messages[index + leading] = kept.message
    for index in _parted(view):
        messages[index + leading] = wire.apart(messages[index + leading])
    if view.summaries or view.added:
        messages[leading:] = _as_messages(request, messages[leading:], view)
    return messages


def _as_messages(request: Request, body: Sequence[Any], view: Window) -> list[Any]:
    """What is shown, in its order, as messages of the request."""
    wire, model = request.wire, request.envelope.model
    if not wire.wants_turns(model):
        return [
            wire.user(each) if isinstance(each, str) else body[each]
            for each in layout(view)
        ]
    return [_as_message(wire, body, group) for group in groups(view, wire, model)]


def _as_message(wire: Format, body: Sequence[Any], group: Sequence[int | str]) -> Any:
    """One message of the view: a raw one, a summary, or several that the user says."""
    raws = [wire.user(each) if isinstance(each, str) else body[each] for each in group]
    return raws[0] if len(raws) == 1 else wire.together(raws)


def groups(view: Window, wire: Format, model: str) -> list[list[int | str]]:
    """What is shown, in its order: each group is one message (`layout`).

    Where user and assistant may have to speak in turn, a summary goes into the message of the user
    beside it, and only messages of the user that stood side by side in the history still do.
    """
    in_turn = wire.wants_turns(model)
    made: list[list[int | str]] = []
    for each in layout(view):
        if made and in_turn and _joins(view, made[-1][-1], each, wire):
            made[-1].append(each)
        else:
            made.append([each])
    return made


def _joins(
    view: ShownHistory, before: int | str, each: int | str, wire: Format
) -> bool:
    """Whether two things shown one behind the other become one message."""
    if isinstance(before, int) and isinstance(each, int) and each == before + 1:
        return False
    is_behind = _may_join(view, before, has_results=wire.joins_results)
    return is_behind and _may_join(view, each, has_results=False)


def _may_join(view: ShownHistory, each: int | str, *, has_results: bool) -> bool:
    """Whether something shown is a message of the user, and no item of another kind."""
    if isinstance(each, str):
        return True
    message = view.transcript.messages[each]
    is_item = any(
        isinstance(part, Opaque) and part.at == WHOLE for part in message.parts
    )
    is_said = has_results or not message.results
    return message.role == "user" and not message.is_control and is_said and not is_item


def layout(view: Window) -> list[int | str]:
    """What is shown, in its order: a message by its index, a summary by its texts.

    What a summary leaves in the view comes before its texts: a turn that it ends in goes on behind
    these, and has to begin with its thinking (A14). The texts come first where nothing is before
    them, for a history begins with the user (A1), and where else a reply would stand behind
    another one, for calls follow the user (G4).

    What the system said within a range that a summary stands for still holds. It comes behind
    the summary, and what the user said after it comes behind that (`Summary.later`).

    Where a wire wants a reply behind it (A20), and the user speaks on before the model does (a
    request was never answered), it waits for the reply, or for what the host added last for the
    provider alone (R14).
    """
    laid, pinned = list[int | str](), list[int]()
    at, stands = 0, view.transcript.marked("pinned", 0, view.size)
    for start, stop, edit in (*view.summaries, (view.size, view.size, None)):
        while pinned and at < start:
            message = view.transcript.messages[at]
            if message.role not in ("user", "tool") or message.is_control:
                laid += pinned
                pinned.clear()
            laid.append(at)
            at += 1
        laid += range(at, start)
        if edit is not None:
            revealed = {index for index in view.revealed if start <= index < stop}
            kept = sorted((view.kept_by(edit) | revealed) - set(stands))
            kept = [index for index in kept if not view.hidden(index)]
            comes_first = not laid or _would_follow_a_reply(view, laid[-1], kept)
            laid += [*edit.opening, *kept] if comes_first else [*kept, *edit.opening]
            within = [index for index in stands if start <= index < stop]
            for number, index in enumerate(within):
                if view.transcript.messages[index].before_reply:
                    pinned.append(index)
                else:
                    laid.append(index)
                laid += filter(None, edit.later[number : number + 1])
        at = stop
    laid += pinned
    for placed in view.added:
        laid.insert(seat_of(view, laid, placed.at), placed.edit.text)
    return laid


def _would_follow_a_reply(view: Window, before: int | str, kept: Sequence[int]) -> bool:
    """Whether what a summary leaves in the view begins with a reply, and stands behind another.

    Not where a turn has to begin with its thinking: a text of the user's would begin another turn.
    """
    if view.thinks_first or not kept or isinstance(before, str):
        return False
    messages = view.transcript.messages
    return messages[before].role == messages[kept[0]].role == "assistant"


def _edited(view: ShownHistory) -> Iterator[tuple[int, Sequence[Change]]]:
    """Every message to be shown otherwise, and its changes."""
    changed = view.changed
    yield from changed.items()
    for index in view.reasoning_dropped:
        if index not in changed and not view.hidden(index):
            yield index, ()


def _parted(view: ShownHistory) -> Iterator[int]:
    """The shown messages with a result whose call is in a summary: it came late.

    It could not be known when the call was summarised, and nothing may be left out now.
    """
    if not view.summaries:
        return
    transcript = view.transcript
    for index in dict.fromkeys(
        transcript.marked("late", view.summaries[0].stop, view.size)
    ):
        if view.hidden(index):
            continue
        for number in range(len(transcript.messages[index].parts)):
            home = transcript.home(index, number)
            if home is not None and view.hidden(home):
                yield index
                break

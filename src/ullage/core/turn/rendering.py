"""The messages of a view: what is edited is made once, and handed out until it changes.

An edited message is kept with all it was made from: the caller's own object, the snapshot that
it still equals, and the changes. If one of them is another, it is made again; of the caller's
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
from ullage.core.values.edits import ReplaceSpan
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
        self,
        raw: Any,
        copy: Any,
        changes: Sequence[Change],
        drop_reasoning: bool,
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
    window: Window,
    tools: Sequence[dict[str, Any]],
    allowed: Sequence[str] = (),
) -> dict[str, Any]:
    """The view as a request: untouched messages are the caller's own objects.

    The tools stand behind the request's own, and the names of those that are to be allowed behind
    its own list.
    """
    messages = _messages(request, history, window)
    body = request.wire.compose(request.raw, messages, tools)
    if not allowed:
        return body
    return request.wire.allowing(body, allowed)


def _messages(
    request: Request, history: HistoryCache, window: Window
) -> list[Any]:
    """The raw messages of the view, behind leading system text, which stands outside the chain."""
    leading = request.envelope.head.leading
    messages = list(request.history)
    for index, changes in _edited(window):
        raw = request.history[index + leading]
        messages[index + leading] = _edit(
            request, history, window, index, raw, changes
        )
    for index in _parted(window):
        messages[index + leading] = request.wire.apart(
            messages[index + leading]
        )
    if window.summaries or window.added:
        messages[leading:] = _as_messages(request, messages[leading:], window)
    return messages


def _edit(
    request: Request,
    history: HistoryCache,
    window: Window,
    index: int,
    raw: Any,
    changes: Sequence[Change],
) -> Any:
    """An edited message: the one that was handed out before, if that still holds."""
    copy = history.copies[index]
    drop_reasoning = index in window.reasoning_dropped
    rendered = history.rendered.get(index)
    if rendered is not None and rendered.holds(
        raw, copy, changes, drop_reasoning
    ):
        return rendered.message
    message = request.wire.edit(
        raw,
        window.transcript.messages[index],
        changes,
        drop_reasoning=drop_reasoning,
    )
    history.rendered[index] = Rendered(
        raw=raw,
        copy=copy,
        changes=changes,
        drop_reasoning=drop_reasoning,
        message=message,
        unwritten=snapshot(message),
    )
    return message


def _as_messages(
    request: Request, body: Sequence[Any], window: Window
) -> list[Any]:
    """What is shown, in its order, as messages of the request."""
    wire = request.wire
    model = request.envelope.model
    if wire.wants_turns(model):
        return [
            _as_message(wire, body, group)
            for group in groups(window, wire, model)
        ]
    return _raws(wire, body, layout(window))


def _as_message(
    wire: Format, body: Sequence[Any], group: Sequence[int | str]
) -> Any:
    """One message of the view: a raw one, a summary, or several that the user says."""
    raws = _raws(wire, body, group)
    if len(raws) == 1:
        return raws[0]
    return wire.together(raws)


def _raws(
    wire: Format, body: Sequence[Any], items: Sequence[int | str]
) -> list[Any]:
    """A raw message for each thing shown: the caller's, or one of the user for a text."""
    raws: list[Any] = []
    for item in items:
        raws.append(wire.user(item) if isinstance(item, str) else body[item])
    return raws


def groups(window: Window, wire: Format, model: str) -> list[list[int | str]]:
    """What is shown, in its order: each group is one message (`layout`).

    Where user and assistant may have to speak in turn, a summary goes into the message of the user
    beside it, and only messages of the user that stood side by side in the history still do.
    """
    in_turn = wire.wants_turns(model)
    grouped: list[list[int | str]] = []
    for item in layout(window):
        if in_turn and grouped and _joins(window, grouped[-1][-1], item, wire):
            grouped[-1].append(item)
        else:
            grouped.append([item])
    return grouped


def _joins(
    window: ShownHistory, earlier: int | str, later: int | str, wire: Format
) -> bool:
    """Whether two things shown one behind the other become one message."""
    is_next = isinstance(earlier, int) and later == earlier + 1
    if is_next:
        return False
    if not _may_join(window, earlier, has_results=wire.joins_results):
        return False
    return _may_join(window, later, has_results=False)


def _may_join(
    window: ShownHistory, item: int | str, *, has_results: bool
) -> bool:
    """Whether something shown is a message of the user, and no item of another kind."""
    if isinstance(item, str):
        return True
    message = window.transcript.messages[item]
    if message.role != "user" or message.is_control:
        return False
    if message.results and not has_results:
        return False
    opaque = [part for part in message.parts if isinstance(part, Opaque)]
    return not any(part.at == WHOLE for part in opaque)


def layout(window: Window) -> list[int | str]:
    """What is shown, in its order: a message by its index, a summary by its texts.

    What a summary leaves in the view comes before its texts: a turn that it ends in goes on behind
    these, and has to begin with its thinking (A14). The texts come first where nothing is before
    them, for a history begins with the user (A1), and where else a reply would stand behind
    another one, for calls follow the user (G4).

    What the system said within a range that a summary stands for still holds. It comes behind
    the summary, and what the user said after it comes behind that (`ReplaceSpan.later`).

    Where a wire wants a reply behind it (A20), and the user speaks on before the model does (a
    request was never answered), it waits for the reply, or for what the host added last for the
    provider alone (R14).
    """
    items: list[int | str] = []
    deferred: list[int] = []
    index = 0
    system_indices = window.transcript.marked("permanent", 0, window.size)
    for start, stop, edit in (
        *window.summaries,
        (window.size, window.size, None),
    ):
        while deferred and index < start:
            message = window.transcript.messages[index]
            if message.role not in ("user", "tool") or message.is_control:
                items += deferred
                deferred.clear()
            items.append(index)
            index += 1
        items += range(index, start)
        if edit is not None:
            within = [one for one in system_indices if start <= one < stop]
            _lay_summary(window, items, start, stop, edit, system_indices)
            if within:
                _lay_system(window, items, deferred, within, edit.later)
        index = stop
    items += deferred
    for placed in window.added:
        items.insert(
            seat_of(window, items, placed.message_index), placed.edit.text
        )
    return items


def _lay_summary(
    window: Window,
    items: list[int | str],
    start: int,
    stop: int,
    edit: ReplaceSpan,
    system_indices: Sequence[int],
) -> None:
    """Lay out a summary's texts, and the messages that it leaves in the view."""
    remaining = window.kept_by(edit)
    if window.revealed:
        remaining |= {one for one in window.revealed if start <= one < stop}
    visible = list[int]()
    for index in sorted(remaining):
        if index not in system_indices and not window.hidden(index):
            visible.append(index)
    if not items or _would_follow_a_reply(window, items[-1], visible):
        items += [*edit.opening, *visible]
    else:
        items += [*visible, *edit.opening]


def _lay_system(
    window: Window,
    items: list[int | str],
    deferred: list[int],
    indices: Sequence[int],
    later: Sequence[str],
) -> None:
    """Lay out what the system said within a summary's range, each before what the user said then.

    What has to stand before a reply goes to those that are deferred.
    """
    for number, index in enumerate(indices):
        if window.transcript.messages[index].before_reply:
            deferred.append(index)
        else:
            items.append(index)
        if number < len(later) and later[number]:
            items.append(later[number])


def _would_follow_a_reply(
    window: Window, previous: int | str, visible: Sequence[int]
) -> bool:
    """Whether what a summary leaves in the view begins with a reply, and stands behind another.

    Not where a turn has to begin with its thinking: a text of the user's would begin another turn.
    """
    if window.thinks_first or not visible or isinstance(previous, str):
        return False
    messages = window.transcript.messages
    earlier = messages[previous]
    later = messages[visible[0]]
    return earlier.role == later.role == "assistant"


def _edited(window: ShownHistory) -> Iterator[tuple[int, Sequence[Change]]]:
    """Every message to be shown otherwise, and its changes."""
    changed = window.changed
    yield from changed.items()
    for index in window.reasoning_dropped:
        if index not in changed and not window.hidden(index):
            yield index, ()


def _parted(window: ShownHistory) -> Iterator[int]:
    """The shown messages with a result whose call is in a summary: it came late.

    It could not be known when the call was summarised, and nothing may be left out now.
    """
    if not window.summaries:
        return
    start = window.summaries[0].stop
    late = window.transcript.marked("late", start, window.size)
    for index in dict.fromkeys(late):
        if not window.hidden(index) and _answers_hidden(window, index):
            yield index


def _answers_hidden(window: ShownHistory, index: int) -> bool:
    """Whether a message holds a result whose call is hidden."""
    transcript = window.transcript
    for number in range(len(transcript.messages[index].parts)):
        home = transcript.call_index(index, number)
        if home is not None and window.hidden(home):
            return True
    return False

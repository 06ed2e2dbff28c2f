"""Reasoning that is bound to what is before it: when it must stay, and what goes with a batch.

It is no stage of a policy: the engine asks it of every batch (`provider-rules` A13 to A16).
"""

from __future__ import annotations

from collections.abc import Sequence

from ullage.core.history.transcript import Transcript
from ullage.core.history.window import Window
from ullage.core.values.edits import Drop, ProposedEdit, ReplaceSpan
from ullage.core.values.messages import ReasoningRule

HELD = "reasoning must stay as it is while its turn is open (manual thinking)"
"""Why a stage that is due does nothing."""


def left_out(
    window: Window, edited: int, cuts: Sequence[ProposedEdit]
) -> list[ProposedEdit]:
    """The cut that drops reasoning bound to a history that an edit changes.

    Where the newest reply shown loses its reasoning by that, or lost it before, all of it goes:
    the newest may not be missing while older stays (A13).

    Args:
        window: the view before the edits.
        edited: the first message that is edited; -1: the head of the request.
        cuts: the edits that are proposed with it.
    """
    if window.reasoning == "free":
        return []
    newest = newest_shown(window, cuts)
    reply = window.transcript.reply(newest, window.size)
    has_lost = not window.reasoning_dropped.isdisjoint(reply)
    loses = edited < newest and window.bound_reasoning(newest)
    start = 0 if loses or has_lost else edited + 1
    if not window.bound_reasoning(start):
        return []
    chain = window.transcript.chain
    cause = "a request without the recall tools"
    if edited >= 0:
        cause = f"messages that an edit of message {edited + 1} changed"
    reason = f"it was bound to {cause}"
    return [ProposedEdit(Drop(chain[start], chain[window.size], reason), ())]


def newest_shown(window: Window, cuts: Sequence[ProposedEdit]) -> int:
    """Where the newest reply begins that is still shown when these cuts are made."""
    transcript = window.transcript
    hidden = set[int]()
    for cut in cuts:
        if isinstance(cut.edit, ReplaceSpan):
            hidden.update(range(*(window.range_of(cut.edit) or (0, 0))))
    for index in reversed(window.visible):
        is_reply = transcript.messages[index].role == "assistant"
        if is_reply and index not in hidden:
            return transcript.reply(index, window.size).start
    return 0


def is_frozen(window: Window) -> bool:
    """Whether the open turn was thought about, and its thinking must stay as it is (A14).

    A turn is open while results wait for the model. Asked of the history and not of the view: once
    the guard left that thinking out, a second call must decide as the first one did.
    """
    return editable_from(window) > 0


def editable_from(window: Window) -> int:
    """The first message that may be edited while the thinking of the open turn stays (A14)."""
    return frozen_before(window.transcript, window.size, window.reasoning)


def frozen_before(
    transcript: Transcript, size: int, reasoning: ReasoningRule
) -> int:
    """`editable_from` of the first messages of a history, before any window shows them."""
    if reasoning != "frozen":
        return 0
    newest = transcript.messages[transcript.turn_start(size) : size]
    if not any(message.results for message in newest):
        return 0
    request = transcript.newest_request(size)
    start = 0 if request is None else request + 1
    thoughts = transcript.marked("bound", start, size)
    return transcript.reply(thoughts[-1], size).stop if thoughts else 0

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
    window: Window, first: int, cuts: Sequence[ProposedEdit]
) -> list[ProposedEdit]:
    """The cut that drops reasoning bound to a history that an edit of ``first`` changes.

    Where the newest reply shown loses its reasoning by that, or lost it before, all of it goes:
    the newest may not be missing while older stays (A13).
    """
    if window.reasoning == "free":
        return []
    newest = newest_shown(window, cuts)
    lost = not window.reasoning_dropped.isdisjoint(
        window.transcript.reply(newest, window.size)
    )
    loses = first < newest and window.bound_reasoning(newest)
    start = 0 if loses or lost else first + 1
    if not window.bound_reasoning(start):
        return []
    chain = window.transcript.chain
    edited = f"messages that an edit of message {first + 1} changed"
    why = f"it was bound to {edited if first >= 0 else 'a request without the recall tools'}"
    return [ProposedEdit(Drop(chain[start], chain[window.size], why), ())]


def newest_shown(window: Window, cuts: Sequence[ProposedEdit]) -> int:
    """Where the newest reply begins that is still shown when these cuts are made."""
    transcript = window.transcript
    new = [
        window.range_of(cut.edit) for cut in cuts if isinstance(cut.edit, ReplaceSpan)
    ]
    for index in reversed(window.visible):
        hidden = any(index in range(*each) for each in new if each)
        if transcript.messages[index].role == "assistant" and not hidden:
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


def frozen_before(transcript: Transcript, size: int, reasoning: ReasoningRule) -> int:
    """`editable_from` of the first messages of a history, before any window shows them."""
    messages, start = transcript.messages, transcript.turn_start(size)
    if reasoning != "frozen" or not any(
        messages[at].results for at in range(start, size)
    ):
        return 0
    asked = transcript.newest_request(size)
    thought = transcript.marked("bound", 0 if asked is None else asked + 1, size)
    return transcript.reply(thought[-1], size).stop if thought else 0

"""What a window shows, by kind: counted when somebody looks, never during a turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ullage.core.history.transcript import leaves_of
from ullage.core.history.window import Window
from ullage.core.values.messages import Reasoning, ToolResult
from ullage.session.picture.values import KINDS, OneWindow

_HEAD, _USER, _MODEL, _RESULTS, _REFERRED = KINDS
_OF_ROLE = {
    "system": _HEAD,
    "user": _USER,
    "assistant": _MODEL,
    "tool": _RESULTS,
}


def one_window(window: Window, title: str) -> OneWindow:
    """The picture of a window.

    Args:
        window: what is shown.
        title: what it is of; names no content.
    """
    history = Counter({_HEAD: window.head_tokens})
    view = Counter({_HEAD: window.head_tokens})
    for index in range(window.size):
        for kind, tokens, shown_tokens in _leaves(window, index):
            history[kind] += tokens
            if window.hidden(index):
                continue
            if shown_tokens is None:
                view[kind] += tokens
            else:
                view[_REFERRED] += shown_tokens
    view[_REFERRED] += window.summaries_tokens
    return OneWindow(
        title=title,
        limit_tokens=window.limit_tokens,
        history={kind: history[kind] for kind in KINDS},
        view={kind: view[kind] for kind in KINDS},
    )


def _leaves(
    window: Window, index: int
) -> Iterator[tuple[str, int, int | None]]:
    """The leaves of a message: of what kind, their tokens, and those of what is in their place."""
    message = window.transcript.messages[index]
    kind = _OF_ROLE[message.role]
    yield (
        (_RESULTS if message.results else kind),
        window.meter.framing(message),
        None,
    )
    counts = window.leaf_counts(index)
    for (number, item, leaf), tokens in zip(
        leaves_of(message), counts, strict=True
    ):
        edit = window.edit_at((index, number, item))
        dropped = (
            isinstance(leaf, Reasoning) and index in window.reasoning_dropped
        )
        shown_tokens = 0 if dropped else None
        if edit is not None:
            shown_tokens = window.edit_tokens(edit)
        yield (
            (
                _RESULTS
                if isinstance(message.parts[number], ToolResult)
                else kind
            ),
            tokens,
            shown_tokens,
        )

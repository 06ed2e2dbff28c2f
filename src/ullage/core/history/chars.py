"""Characters of a message: as it came, and as it is shown to the model.

Where costs are compared only their proportion counts, so characters do, and no tokeniser is asked.
"""

from __future__ import annotations

from collections.abc import Iterator

from ullage.core.history.measures import Measure
from ullage.core.history.transcript import PlacedLeaf, leaves_of
from ullage.core.history.window import Window
from ullage.core.values.edits import Replace
from ullage.core.values.messages import Content, Media, Part, ToolCall

_MEDIA_CHARS = 4_000
"""About what an image costs, as characters of text."""


def leaves(window: Window, index: int) -> Iterator[PlacedLeaf]:
    """What the model is shown of a message: not what a program reads."""
    transcript = window.transcript
    for number, item, leaf in leaves_of(transcript.messages[index]):
        if transcript.reader(index, number) == "model":
            yield number, item, leaf


def chars_of(edit: Replace | None, leaf: Part | Content) -> int:
    """Characters of a leaf as it is shown."""
    if edit is None and isinstance(leaf, Media):
        return _MEDIA_CHARS
    if edit is None and isinstance(leaf, ToolCall):
        return len(leaf.arguments)
    return len(getattr(edit or leaf, "text", ""))


def _whole_chars(window: Window, index: int) -> int:
    return sum(chars_of(None, leaf) for *_, leaf in leaves(window, index))


def _shown_chars(window: Window, index: int) -> int:
    edits = window.shown(index)
    chars = 0
    for number, item, leaf in leaves(window, index):
        chars += chars_of(edits.get((number, item)), leaf)
    return chars


WHOLE_CHARS = Measure("ullage.whole_chars", _whole_chars)
"""Characters of a message as it came."""
SHOWN_CHARS = Measure("ullage.shown_chars", _shown_chars)
"""Characters of a message as it is shown."""

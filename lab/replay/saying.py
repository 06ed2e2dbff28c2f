"""Whether a view still says what the user and the system said, word for word.

What they say is never evidence (`metrics` M1, condition 2), so leaving it out would be free. It
must be in the view verbatim: in its own message, or within a text that took its place.
"""

from __future__ import annotations

from bisect import bisect_left

from lab.replay.story import Story
from ullage.tools.replay.evidence.score import ParsedView


def leaves_unsaid(story: Story, length: int, view: ParsedView) -> bool:
    """Whether some text of the user or the system is missing.

    Args:
        story: the run.
        length: how many of its messages stand before the call.
        view: the view of that call.
    """
    said = story.said[: bisect_left(story.said, length)]
    gone = [index for index in said if index not in view.originals]
    texts = (
        piece.text
        for index in gone
        for piece in story.pieces[index]
        if piece.by == "user"
    )
    return any(
        text.strip()
        and not any(text in shown.text for shown in view.new_texts)
        for text in texts
    )

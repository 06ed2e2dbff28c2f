"""Reads that stay whole in a batch, for the edits that may come: what was tried, and lost.

recent_reads    the newest calls stay out of the batch as far as they read files
whole_reads     of each file that was read lately, or that the model named since, the newest read
                stands whole in the record

How often such a read is really edited is told by `lab.replay.carried.edited`.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from ullage.core.contract.kinds import fields_of, kind_of
from ullage.core.history.transcript import Location, Transcript
from ullage.core.history.window import Window
from ullage.core.values.messages import Text, ToolCall
from ullage.policy.stages.pressure import newest_share
from ullage.policy.stages.record import LINES

_PATHS = ("file_path", "path", "filename", "file", "target_file")
PARTS = ("offset", "limit", "view_range", "start_line")
"""Arguments by which a file is read in part."""
_MOST_CHARS = 30_000


def path_of(fields: Mapping[str, Any]) -> str:
    """The path among the arguments of a call; ``""`` if there is none."""
    paths = (fields.get(key) for key in _PATHS)
    return next((path for path in paths if isinstance(path, str)), "")


def is_named(transcript: Transcript, path: str, start: int, stop: int) -> bool:
    """Whether the model names a file in what it says from a message on."""
    name = path.rpartition("/")[2]
    if not name:
        return False
    return any(
        isinstance(part, Text) and name in part.text
        for message in transcript.messages[start:stop]
        if message.role == "assistant"
        for part in message.parts
    )


def recent_reads(
    window: Window, /, *, calls: int, most_share: float
) -> tuple[int, int]:
    """The protected tail of the default, and before it the newest calls that read files.

    Args:
        window: the window at the boundary at hand.
        calls: no more than so many.
        most_share: of the limit; the whole tail has no more.
    """
    stop, _ = newest_share(window, share=0.12, most_tokens=4_000)
    transcript = window.transcript
    begin = _begin(window, calls)
    reads = [
        index
        for index in range(begin, stop)
        for spot in transcript.tool_results(index)
        if kind_of(window.tool_of(spot) or "") == "read"
    ]
    if not reads:
        return stop, 0
    begin = max(begin, reads[0] - 1)
    most_tokens, tokens = int(window.limit_tokens * most_share), 0
    index = window.size
    while index > begin:
        if not window.hidden(index - 1):
            tokens += window.message_tokens(index - 1)
        if tokens > most_tokens:
            break
        index -= 1
    if index >= stop:
        return stop, 0
    return min(stop, transcript.turn_start(index)), 0


def whole_reads(
    window: Window,
    spots: Set[Location],
    *,
    calls: int | None,
    if_named: bool = False,
) -> Mapping[Location, str]:
    """Digests as the default's, but of some reads all.

    Args:
        window: the window at the boundary at hand.
        spots: the results of the batch.
        calls: reads of so many calls; None: of all.
        if_named: only of files that the model named since.
    """
    digests = dict(LINES(window, spots))
    transcript = window.transcript
    begin = 0 if calls is None else _begin(window, calls)
    seen = set[str]()
    for spot in sorted(digests, reverse=True):
        call, leaf = transcript.call_for(*spot[:2]), transcript.leaf(spot)
        path = _whole_path(call)
        if not path or path in seen or not isinstance(leaf, Text):
            continue
        seen.add(path)
        if spot[0] < begin or len(leaf.text) > _MOST_CHARS:
            continue
        if if_named and not is_named(
            transcript, path, spot[0] + 1, window.size
        ):
            continue
        # a digest that is longer than its text gives way to the text
        digests[spot] = leaf.text
    return digests


def _whole_path(call: ToolCall | None) -> str:
    """The path of a call that reads a file from its first line to its last."""
    if call is None or kind_of(call.name) != "read":
        return ""
    fields = fields_of(call.arguments) or {}
    return "" if any(part in fields for part in PARTS) else path_of(fields)


def _begin(window: Window, calls: int) -> int:
    """Where the newest so many calls begin."""
    boundaries = window.transcript.boundaries(0, window.size)
    return boundaries[-calls] if len(boundaries) >= calls else 0

"""`multi-stage-strategy.md`: typed truncation of tool output, and the emergency brake.

Its hard budget is an `ullage.Budget`, shared by any number of sessions; its sliding window
is a summary.
"""

from __future__ import annotations

from functools import partial

from ullage.policy import Policy
from ullage.presets._settings import Settings, at_least
from ullage.stages.emergency import emergency
from ullage.stages.truncate import truncate
from ullage.stages.typed import by_type

__all__ = ["MultiStageSettings", "multi_stage"]

_TEXT = "\n[truncated: {shown:,} of {total:,} characters shown. Read on: {read_on}]"
_LIST = "[truncated: the first {shown:,} of {total:,} items. All of it: {read_on}]"
_DICT = (
    "the result has {total:,} characters and the limit is {limit:,}. Ask for less: use a "
    "filter, a shorter time range, fewer fields or a lower limit. All of it: {read_on}"
)


class MultiStageSettings(Settings, frozen=True):
    """The document's settings, under the names of its environment variables.

    Attributes:
        SAFE_TRIGGER_TOKENS: estimated tokens at which the emergency brake acts; 0 for never.
        MAX_RESULT_CHARS: the most characters of a tool result.
        MAX_LIST_ITEMS: the most items of a list.
        PREVIEW_CHARS: characters shown of a dict that is too large; the document names none.

    Raises:
        ConfigError: a number is too small.
    """

    SAFE_TRIGGER_TOKENS: int = 850_000
    MAX_RESULT_CHARS: int = 200_000
    MAX_LIST_ITEMS: int = 500
    PREVIEW_CHARS: int = 2_000

    def __post_init__(self) -> None:
        at_least(0, SAFE_TRIGGER_TOKENS=self.SAFE_TRIGGER_TOKENS, PREVIEW_CHARS=self.PREVIEW_CHARS)
        at_least(1, MAX_RESULT_CHARS=self.MAX_RESULT_CHARS, MAX_LIST_ITEMS=self.MAX_LIST_ITEMS)


_DEFAULTS = MultiStageSettings()


def multi_stage(settings: MultiStageSettings = _DEFAULTS) -> Policy:
    """The policy of the document."""
    shape = partial(
        by_type,
        limit_chars=settings.MAX_RESULT_CHARS,
        max_items=settings.MAX_LIST_ITEMS,
        preview_chars=settings.PREVIEW_CHARS,
        text_marker=_TEXT,
        list_marker=_LIST,
        dict_error=_DICT,
    )
    brake = partial(emergency, start_tokens=settings.SAFE_TRIGGER_TOKENS or None, keep_messages=10)
    return Policy(
        name="multi_stage-1",
        at_first_sight=(partial(truncate, shape=shape),),
        guard=brake,
    )

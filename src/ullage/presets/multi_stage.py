"""`multi-stage-strategy.md`: typed truncation of tool output, and the emergency brake.

Its hard budget is an `ullage.Budget`, shared by any number of sessions; its sliding window
is a summary.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from ullage.policy import Policy
from ullage.presets._settings import Settings, at_least, check_types
from ullage.stages import emergency, truncate
from ullage.stages.typed import by_type

__all__ = ["MultiStageSettings", "multi_stage"]

_TEXT = "\n[truncated: {shown:,} of {total:,} characters shown. Read on: {read_on}]"
_LIST = "[truncated: the first {shown:,} of {total:,} items. All of it: {read_on}]"
_RECENT_MESSAGES = 10
_ACCOUNT_SHARE = 0.15
_HARD_SHARE = 0.94
_DICT = (
    "the result has {total:,} characters and the limit is {limit:,}. Ask for less: use a "
    "filter, a shorter time range, fewer fields or a lower limit. All of it: {read_on}"
)


class MultiStageSettings(Settings, frozen=True):
    """The document's settings, under the names of its environment variables.

    Attributes:
        SAFE_TRIGGER_TOKENS: estimated tokens of the whole view at which the emergency brake
            acts; 0: only near the hard limit.
        MAX_RESULT_CHARS: the most characters of a tool result; what is said of a text that
            was cut comes on top.
        MAX_LIST_ITEMS: the most items of a list.
        PREVIEW_CHARS: characters shown of a dict that is too large; the document names none.

    Raises:
        ConfigError: a value is no whole number, or too small.
    """

    environment: ClassVar[tuple[str, ...]] = ("SAFE_TRIGGER_TOKENS", "MAX_RESULT_CHARS")

    SAFE_TRIGGER_TOKENS: int = 850_000
    MAX_RESULT_CHARS: int = 200_000
    MAX_LIST_ITEMS: int = 500
    PREVIEW_CHARS: int = 2_000

    def __post_init__(self) -> None:
        check_types(self)
        at_least(0, SAFE_TRIGGER_TOKENS=self.SAFE_TRIGGER_TOKENS, PREVIEW_CHARS=self.PREVIEW_CHARS)
        at_least(1, MAX_RESULT_CHARS=self.MAX_RESULT_CHARS, MAX_LIST_ITEMS=self.MAX_LIST_ITEMS)


_DEFAULTS = MultiStageSettings()


def multi_stage(settings: MultiStageSettings = _DEFAULTS) -> Policy:
    """The policy of the document.

    The most recent messages stay whole wherever they and the account fit the hard limit.
    """
    shape = partial(
        by_type,
        limit_chars=settings.MAX_RESULT_CHARS,
        max_items=settings.MAX_LIST_ITEMS,
        preview_chars=settings.PREVIEW_CHARS,
        text_marker=_TEXT,
        list_marker=_LIST,
        dict_error=_DICT,
    )
    brake = partial(
        emergency,
        start=_HARD_SHARE,
        start_tokens=settings.SAFE_TRIGGER_TOKENS or None,
        target=_HARD_SHARE - _ACCOUNT_SHARE,
        keep_messages=_RECENT_MESSAGES,
        account_share=_ACCOUNT_SHARE,
        kept_share=_HARD_SHARE,
    )
    return Policy(
        name="multi_stage-1",
        at_first_sight=(partial(truncate, shape=shape),),
        guard=brake,
    )

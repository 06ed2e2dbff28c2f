"""Counting tokens: exact where a tokeniser exists offline, elsewhere estimated and corrected.

``counter_for(model)`` counts a text, ``overhead_for(model)`` says what a request costs around
its texts, ``media_tokens`` what a picture or document costs, and ``Calibration`` learns from
reported usage what all of them missed. Nothing here touches the network; the vocabulary is
loaded at the first count, or by ``preload`` before it.
"""

from __future__ import annotations

from ullage.tokens.calibrate import Calibration
from ullage.tokens.exact import Counter, exact
from ullage.tokens.media import media_tokens
from ullage.tokens.models import Family, counter_for, family_of, preload
from ullage.tokens.overhead import Overhead, argument_text, call_tokens, overhead_for

__all__ = [
    "Calibration",
    "Counter",
    "Family",
    "Overhead",
    "argument_text",
    "call_tokens",
    "counter_for",
    "exact",
    "family_of",
    "media_tokens",
    "overhead_for",
    "preload",
]

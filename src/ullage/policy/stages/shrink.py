"""Shrink: texts that stay in the view are cut to size, in the order in which they may go.

Results, arguments and the model's own words come before anything the user said, the new ones last
of them, and the first task and the newest user message go last of all.
What the system says among the messages is cut where otherwise there would be no view at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

from ullage.core.contract.bound import editable_from
from ullage.core.history import canon
from ullage.core.history.transcript import Location, leaves_of
from ullage.core.history.window import Window
from ullage.core.values.edits import ProposedEdit, Replace
from ullage.core.values.effects import Output
from ullage.core.values.messages import Passage, Text, ToolCall
from ullage.policy.stages.prune import tokens_won
from ullage.policy.stages.shorten import level, shorten

LEAST_TOKENS = 60
"""No text is cut below this: less says nothing."""
_WORTH_SHARE = 0.95
"""What was cut before is not cut again for less, so that the same request is shown as it was."""


class Tier(Enum):
    """What may be cut, in this order."""

    OLD = "results, arguments and replies of earlier turns, the largest first"
    OPEN = "the same of the open turn, the oldest first"
    NEW = "results the model has not seen yet and the words it asked for them in, the largest first"
    SAID = "what the user said, the longest first"
    TASK = "the first task and what the user said last"
    SYSTEM = "what the system says among the messages, the largest first"


BEFORE_NEW = (Tier.OLD, Tier.OPEN)
"""What makes room before a result that the model has not seen yet does (gate G8)."""


def shrink(
    window: Window, kept: Sequence[int], tiers: Sequence[Tier], excess_tokens: int
) -> tuple[list[ProposedEdit], int]:
    """Cuts of texts among the kept messages, and the tokens they win: the excess, if that can be.

    What the tiers name is cut, in their order, and nothing more than is needed.
    """
    cuts, found = (
        list[ProposedEdit](),
        {tier: list[tuple[Location, int]]() for tier in tiers},
    )
    for spot, tier in texts_of(window, kept) if excess_tokens > 0 else ():
        if tier in found:
            found[tier].append((spot, window.leaf_tokens(spot)))
    left = excess_tokens
    for tier, texts in found.items():
        sizes, is_oldest_first = [tokens for _, tokens in texts], tier is Tier.OPEN
        cap = 0 if is_oldest_first else level(sizes, sum(sizes) - left)
        for spot, tokens in (
            texts if is_oldest_first else sorted(texts, key=lambda each: -each[1])
        ):
            cut = cut_to(window, spot, tokens, max(cap, LEAST_TOKENS))
            if cut is not None:
                cuts.append(cut)
                left -= tokens_won(window, spot, cut)
            if left <= 0 and is_oldest_first:
                break
        if left <= 0:
            break
    return cuts, excess_tokens - left


def reducible_tokens(
    window: Window,
    kept: Sequence[int] | None = None,
    tiers: Sequence[Tier] = BEFORE_NEW,
) -> int:
    """Tokens that could still be won of what the tiers name.

    Args:
        window: the window at the boundary at hand.
        kept: the messages that are looked at. None: all that are shown and may be edited.
        tiers: what may be cut. By default what goes before new results.
    """
    if kept is None:
        kept = [index for index in window.visible if index >= editable_from(window)]
    texts = (spot for spot, tier in texts_of(window, kept) if tier in tiers)
    return sum(max(window.leaf_tokens(spot) - LEAST_TOKENS, 0) for spot in texts)


def texts_of(window: Window, kept: Sequence[int]) -> Iterator[tuple[Location, Tier]]:
    """Every text and every call that may be cut, and when; what a program reads has no tokens."""
    transcript = window.transcript
    asked = transcript.newest_request(window.size)
    newest = (asked, transcript.newest_words(window.size))
    task = next(
        (at for at in range(window.size) if transcript.messages[at].role == "user"), -1
    )
    for index in kept:
        message = transcript.messages[index]
        if window.hidden(index):
            continue
        signed, is_last = window.signed(index), index in (task, *newest)
        for number, item, leaf in leaves_of(message):
            spot = index, number, item
            kinds = Text if signed else (Text, ToolCall)
            if (
                not isinstance(leaf, kinds)
                or window.holds_account(spot)
                or window.is_pinned(spot)
            ):
                continue
            is_new = window.age_of(index) >= window.turn_start
            is_document = isinstance(leaf, Passage)
            is_said = transcript.author(index, number) == "user" and not is_document
            if message.role == "system":
                tier = Tier.SYSTEM
            elif is_said:
                tier = Tier.TASK if is_last or is_new else Tier.SAID
            elif is_new and not isinstance(leaf, ToolCall):
                tier = Tier.NEW
            else:
                tier = Tier.OPEN if asked is not None and index > asked else Tier.OLD
            yield spot, tier


def cut_to(
    window: Window, spot: Location, tokens: int, cap: int
) -> ProposedEdit | None:
    """A cut of one text to at most ``cap`` tokens, or None if that would win too little."""
    output = window.transcript.output(spot)
    if output is None or tokens <= cap:
        return None
    edit = window.edit_at(spot)
    shown_chars = len(edit.text) if edit is not None else len(output.text)
    text = _to_size(window, spot, output, shown_chars * cap // tokens, cap)
    if len(text) > shown_chars * _WORTH_SHARE:
        return None
    why = f"{tokens:,} tokens in one text; the view was over its hard limit"
    replace = Replace(window.transcript.address(spot), output.ref, text, "cut", why)
    return ProposedEdit(replace, (output,))


def _to_size(
    window: Window, spot: Location, output: Output, chars: int, cap: int
) -> str:
    """A text in at most ``cap`` tokens: an excerpt, a few words of a result, or its ref alone.

    Its ref alone is the least that may be shown; nothing that goes before a new result takes
    more once it has to make room (gate G8).
    """
    words, ref, original = window.words, output.ref, output.text
    if isinstance(window.transcript.leaf(spot), ToolCall):
        return canon.canonical_json({"_ullage": words.arguments(ref, len(original))})
    for _ in range(8):
        text = shorten(original, chars, ref, words)
        if text is None:
            break
        if window.meter.text(text) <= cap:
            return text
        chars = chars * 4 // 5
    named = words.placeholder(ref, original)
    if window.tool_of(spot) and window.meter.text(named) <= cap:
        return named
    return words.aside(ref, len(original))

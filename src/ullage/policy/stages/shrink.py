"""Shrink: texts that stay in the view are cut to size, in the order in which they may go.

Results, arguments and the model's own words come before anything the user gave, the new ones last
of them. Of that documents come before words, and the first task and the newest user message go
last of all.
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
_TRIES = 8
"""ProposedEdit smaller less often than this: a size in characters is an estimate."""


class Tier(Enum):
    """What may be cut, in this order."""

    OLD = "results, arguments and replies of earlier turns, the largest first"
    OPEN = "the same of the open turn, the oldest first"
    NEW = "results the model has not seen yet and the words it asked for them in, the largest first"
    HANDED = "documents that the user handed over, the largest first"
    SAID = "what the user said, the longest first"
    TASK = "the first task and what the user said last"
    SYSTEM = "what the system says among the messages, the largest first"


BEFORE_NEW = (Tier.OLD, Tier.OPEN)
"""What makes room before a result that the model has not seen yet does (gate G8)."""


def shrink(
    window: Window,
    staying: Sequence[int],
    tiers: Sequence[Tier],
    excess_tokens: int,
) -> tuple[list[ProposedEdit], int]:
    """Cuts of texts among messages that stay, and the tokens they win: the excess, if that can be.

    What the tiers name is cut, in their order, and nothing more than is needed.

    Args:
        window: the window at the boundary at hand.
        staying: the messages that are looked at, in order.
        tiers: what may be cut.
        excess_tokens: how many tokens are to be won.
    """
    cuts = list[ProposedEdit]()
    if excess_tokens <= 0:
        return cuts, 0
    texts = {tier: list[tuple[Location, int]]() for tier in tiers}
    for spot, tier in texts_of(window, staying):
        if tier in texts:
            texts[tier].append((spot, window.leaf_tokens(spot)))
    excess = excess_tokens
    for tier, sized in texts.items():
        sizes = [tokens for _, tokens in sized]
        oldest_first = tier is Tier.OPEN
        cap = LEAST_TOKENS
        if not oldest_first:
            # all of one tier come down to one height
            cap = max(level(sizes, sum(sizes) - excess), LEAST_TOKENS)
            sized.sort(key=lambda text: -text[1])
        for spot, tokens in sized:
            cut = cut_to(window, spot, tokens, cap)
            if cut is not None:
                cuts.append(cut)
                excess -= tokens_won(window, spot, cut)
            if excess <= 0 and oldest_first:
                break
        if excess <= 0:
            break
    return cuts, excess_tokens - excess


def reducible_tokens(
    window: Window,
    staying: Sequence[int] | None = None,
    tiers: Sequence[Tier] = BEFORE_NEW,
) -> int:
    """Tokens that could still be won of what the tiers name.

    Args:
        window: the window at the boundary at hand.
        staying: the messages that are looked at. None: all that are shown and may be edited.
        tiers: what may be cut. By default what goes before new results.
    """
    if staying is None:
        start = editable_from(window)
        staying = [index for index in window.visible if index >= start]
    total = 0
    for spot, tier in texts_of(window, staying):
        if tier in tiers:
            total += max(window.leaf_tokens(spot) - LEAST_TOKENS, 0)
    return total


def texts_of(
    window: Window, staying: Sequence[int]
) -> Iterator[tuple[Location, Tier]]:
    """Every text and every call that may be cut, and when; what a program reads has no tokens."""
    transcript = window.transcript
    question = transcript.newest_request(window.size)
    newest = {
        question,
        transcript.newest_user_words(window.size),
        _task(window),
    }
    for index in staying:
        if window.hidden(index):
            continue
        # a signed call may not be changed (A14)
        kinds = Text if window.signed(index) else (Text, ToolCall)
        for number, item, leaf in leaves_of(transcript.messages[index]):
            spot = index, number, item
            if not isinstance(leaf, kinds):
                continue
            if window.holds_account(spot) or window.is_pinned(spot):
                continue
            yield spot, _tier(window, spot, question, is_last=index in newest)


def _tier(
    window: Window,
    spot: Location,
    question: int | None,
    *,
    is_last: bool,
) -> Tier:
    """When a text may be cut.

    Args:
        window: the window at the boundary at hand.
        spot: where the text stands.
        question: the message that opened the turn.
        is_last: whether it stands in the first task or in what the user said last.
    """
    transcript = window.transcript
    index, number, _ = spot
    leaf = transcript.leaf(spot)
    is_new = window.age_of(index) >= window.turn_start
    if transcript.messages[index].role == "system":
        return Tier.SYSTEM
    author = transcript.author(index, number)
    if author == "user":
        if isinstance(leaf, Passage):
            return Tier.HANDED
        return Tier.TASK if is_last or is_new else Tier.SAID
    if is_new and not isinstance(leaf, ToolCall):
        return Tier.NEW
    if question is not None and index > question:
        return Tier.OPEN
    return Tier.OLD


def _task(window: Window) -> int | None:
    """The first message of the user, or None."""
    messages = window.transcript.messages
    for index in range(window.size):
        if messages[index].role == "user":
            return index
    return None


def cut_to(
    window: Window,
    spot: Location,
    tokens: int,
    cap: int,
) -> ProposedEdit | None:
    """A cut of one text to at most ``cap`` tokens, or None if that would win too little."""
    output = window.transcript.output(spot)
    if output is None or tokens <= cap:
        return None
    edited = window.edit_at(spot)
    chars = len(output.text if edited is None else edited.text)
    text = _to_size(window, spot, output, chars * cap // tokens, cap)
    if len(text) > chars * _WORTH_SHARE:
        return None
    edit = Replace(
        address=window.transcript.address(spot),
        ref=output.ref,
        text=text,
        kind="cut",
        why=f"{tokens:,} tokens in one text; the view was over its hard limit",
    )
    return ProposedEdit(edit, (output,))


def _to_size(
    window: Window,
    spot: Location,
    output: Output,
    chars: int,
    cap: int,
) -> str:
    """A text in at most ``cap`` tokens: an excerpt, a few words of a result, or its ref alone.

    Its ref alone is the least that may be shown; nothing that goes before a new result takes
    more once it has to make room (gate G8).
    """
    # each time a fifth less, until the tokens fit; then the least that may be shown
    words = window.words
    ref = output.ref
    original = output.text
    if isinstance(window.transcript.leaf(spot), ToolCall):
        notice = words.arguments(ref, len(original))
        return canon.canonical_json({"_ullage": notice})
    for _ in range(_TRIES):
        text = shorten(original, chars, ref, words)
        if text is None:
            break
        if window.meter.text(text) <= cap:
            return text
        chars = chars * 4 // 5
    if window.tool_of(spot):
        placeholder = words.placeholder(ref, original)
        if window.meter.text(placeholder) <= cap:
            return placeholder
    return words.aside(ref, len(original))

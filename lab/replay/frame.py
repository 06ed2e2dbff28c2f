"""Policies to compare with: what any reader would try first, and what nobody can beat.

    recency     the newest messages that fit
    masking     results older than the last ten are left out
    head_tail   every result cut to its beginning and end
    random      results left out at random (seeded)
    belady      knows what will be demanded, and keeps the lines of it

These are the frame of a score, not policies to run: nothing they leave out can be read again.
Each is a plain function from the past and a budget to a view, keeps what users and the system
say as long as that takes no more than half of the budget, and never parts a call from its
results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any

from lab.replay.past import Block, Frame, Past, Shown
from ullage.tools.replay.evidence.demands import Demand, Demands
from ullage.tools.replay.evidence.score import lines_of

MASKED = "[output left out]"
KEPT_RESULTS = 10
LIMITS_CHARS = (20_000, 10_000, 5_000, 2_500, 1_200, 600, 300, 150)
FRAMES = ("recency", "masking", "head_tail", "random", "belady")
BASE, ORACLE = "recency", "belady"
"""The two ends of the scale of skill. The oracle knows the future: no one could run it."""


def frame(name: str, demands: Demands) -> Frame:
    """The frame policy of this name, one of `FRAMES`.

    Args:
        name: its name.
        demands: what will be demanded; only the oracle looks.
    """
    policies: Mapping[str, Frame] = {
        "recency": recency,
        "masking": masking,
        "head_tail": head_tail,
        "random": random_eviction,
        "belady": partial(belady, demands=demands),
    }
    return policies[name]


def recency(past: Past, budget_tokens: int) -> Shown:
    """The newest messages that fit."""
    return Shown(newest(past, budget_tokens, {}))


def masking(past: Past, budget_tokens: int) -> Shown:
    """All results but the last ten are left out; of what is still too much the newest stays."""
    older = past.results[:-KEPT_RESULTS]
    return Shown(newest(past, budget_tokens, past.with_results(_mask, older)))


def head_tail(past: Past, budget_tokens: int) -> Shown:
    """Every result is cut to its head and tail, as little as is enough."""
    edited: Mapping[int, Any] = {}
    for limit in LIMITS_CHARS:
        edited = past.with_results(
            partial(_head_and_tail, limit=limit), past.results
        )
        if (
            past.tokens(_messages(past, range(past.length), edited))
            <= budget_tokens
        ):
            break
    return Shown(newest(past, budget_tokens, edited))


def random_eviction(past: Past, budget_tokens: int, *, seed: int = 0) -> Shown:
    """Results are left out in an order drawn by lot, until the rest fits."""
    last = past.blocks[-1] if past.blocks else range(0)
    order = sorted(
        (place for place in past.results if place[0] not in last),
        key=lambda place: blake2b(f"{seed} {place}".encode()).digest(),
    )
    excess = past.tokens(past.story.messages[: past.length]) - budget_tokens
    evicted: list[tuple[int, int]] = []
    for place in order:
        if excess <= 0:
            break
        evicted.append(place)
        excess -= sum(map(past.text_tokens, past.result_texts(*place)))
    return Shown(
        newest(past, budget_tokens, past.with_results(_mask, evicted))
    )


def belady(past: Past, budget_tokens: int, *, demands: Demands) -> Shown:
    """The lines that this call and later ones will demand, and as much of the newest as fits.

    Every policy that fits the budget may show these lines; none can show more of them, but
    where the lines alone are more than the budget: then those of most weight a token stay.
    """
    kept = fixed(past, budget_tokens)
    last = past.blocks[-1] if past.blocks else range(0)
    stays = sorted({index for block in (*kept, last) for index in block})
    room = (
        budget_tokens
        - past.tokens([past.story.messages[index] for index in stays])
        - 4
    )
    recorded = {past.story.origins[index] for index in stays}
    lines: dict[str, None] = {}
    for line, tokens in sorted(_wanted(past, demands, recorded), key=_price):
        if line not in lines and tokens[1] <= room:
            lines[line] = None
            room -= tokens[1]
    words = "\n".join(lines)
    rest = newest(past, budget_tokens - past.text_tokens(words) - 4, {})
    return Shown(with_note(past, rest, words))


def _wanted(
    past: Past, demands: Demands, in_view: set[int]
) -> list[tuple[str, tuple[float, int]]]:
    """Each line that is still demanded and that nothing told later, with weight and tokens."""
    found: dict[str, tuple[float, int]] = {}
    told = past.length - past.story.origins[: past.length].count(-1)
    for later in demands[past.call :]:
        for demand in later:
            indices = [index for index, _ in demand.sources]
            if indices[-1] < told and in_view.isdisjoint(indices):
                text = _line_of(demand)
                weight, tokens = found.get(text) or (
                    0.0,
                    past.text_tokens(text) + 1,
                )
                found[text] = (weight + demand.weight, tokens)
    return list(found.items())


def _price(line: tuple[str, tuple[float, int]]) -> float:
    weight, tokens = line[1]
    return -weight / tokens


def _line_of(demand: Demand) -> str:
    line = lines_of(demand)[0]
    return line.prefix + demand.atom.text + line.suffix


def fixed(past: Past, budget_tokens: int) -> list[Block]:
    """What users and the system say; only the first of it if all is more than half the budget."""
    blocks = [block for block in past.blocks if past.is_fixed(block)]
    messages = past.story.messages
    if (
        past.tokens([messages[i] for block in blocks for i in block])
        <= budget_tokens // 2
    ):
        return blocks
    leading = [block for block in blocks if block.start < 2]
    return leading


def newest(
    past: Past, budget_tokens: int, edited: Mapping[int, Any]
) -> list[Any]:
    """What is fixed, and the newest blocks that fit beside it; the last one always stays."""
    kept = set(fixed(past, budget_tokens))
    room = budget_tokens - sum(
        past.tokens(_messages(past, block, edited)) for block in kept
    )
    for number, block in enumerate(reversed(past.blocks)):
        if block in kept:
            continue
        room -= past.tokens(_messages(past, block, edited))
        if room < 0 and number:
            break
        kept.add(block)
    return [
        raw
        for block in past.blocks
        if block in kept
        for raw in _messages(past, block, edited)
    ]


def with_note(past: Past, messages: Sequence[Any], text: str) -> list[Any]:
    """The view with one more user message, if it says anything, behind what is said first."""
    if not text:
        return list(messages)
    first = next(
        (block for block in past.blocks if not past.is_fixed(block)), range(0)
    )
    return [
        *messages[: first.start],
        past.story.wire.user(text),
        *messages[first.start :],
    ]


def _messages(
    past: Past, block: Block, edited: Mapping[int, Any]
) -> list[Any]:
    return [edited.get(index, past.story.messages[index]) for index in block]


def _mask(text: str) -> str:
    return MASKED


def _head_and_tail(text: str, *, limit: int) -> str:
    if len(text) <= limit:
        return text
    left_out = len(text) - limit
    return f"{text[: limit // 2]}\n[{left_out:,} characters left out]\n{text[-(limit // 2) :]}"

"""Ranking: which spans of some texts answer a query best.

    weight of a term     idf², for it counts in the query and in the line, and more where the query
                         has it more than once
    weight of a span     of the terms on it, and half of what is on the spans beside it
    and of its text      a tenth of the weight of all terms in the text it is of
    for its length       a page has room for more of what is short

The rarer a term the more it weighs, as in BM25. Of equals the newer text comes first. Weights are
whole numbers, so that every process comes to the same order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from math import log
from typing import NamedTuple

from ullage.session.recall.index import Index
from ullage.session.recall.terms import Splitter

MOST_TERMS = 20_000
"""Of a longer query the first terms count: of a model's reply all of them."""
MOST_PLACES = 40_000
"""So many places are looked at, those of rare terms first: what stands everywhere tells nothing."""
MOST_SPANS = 2_000
"""So many spans are ranked, those with the most of the query on themselves, and what is beside."""
_SCALE = 1_000
_TEXT_SHARE = 10
"""One part in so many of what a text has of the query counts for each of its spans that answer."""
_SPAN_CHARS = 100
"""What a span costs beside its own characters: it is worth more than to be as short as can be."""


class Hit(NamedTuple):
    """A span that answers a query.

    Attributes:
        weight: the larger, the better.
        text: the number of its text.
        span: its number in the text, from 0.
        own_weight: of the terms on it alone.
    """

    weight: int
    text: int
    span: int
    own_weight: int


def ranked(indexes: Sequence[Index], query: str) -> list[Hit]:
    """The spans that answer a query, best first.

    Args:
        indexes: of the blocks of all texts, in order, the oldest first.
        query: words, as anybody writes them.
    """
    terms = _term_weights(indexes, query)
    block_weights = [_span_weights(index, terms) for index in indexes]
    least = _least_weight(block_weights)
    hits = list[Hit]()
    text_number = 0
    for index, weights in zip(indexes, block_weights, strict=True):
        if weights:
            shares = _text_shares(index, terms)
            hits += _hits(index, weights, least, shares, text_number)
        text_number += len(index.starts) - 1
    return sorted(hits, reverse=True)


def _least_weight(block_weights: Sequence[dict[int, int]]) -> int:
    """The weight of the last span that is ranked for its own sake; 0 where there is none.

    Spans that weigh less are not ranked, unless they stand beside one that does not.
    """
    sizes = list[int]()
    for weights in block_weights:
        sizes += weights.values()
    sizes.sort(reverse=True)
    ranked_sizes = sizes[:MOST_SPANS]
    return ranked_sizes[-1] if ranked_sizes else 0


def _term_weights(
    indexes: Sequence[Index], query: str
) -> list[tuple[str, int]]:
    """The terms of a query that stand somewhere, the rarest first, and the weight of each."""
    frequencies = Counter(islice(Splitter().terms(query), MOST_TERMS))
    total = sum(index.starts[-1] for index in indexes)
    counts = {
        term: sum(index.count(term) for index in indexes)
        for term in frequencies
    }
    rarest_first = sorted(
        (count, term) for term, count in counts.items() if count
    )
    weights = list[tuple[str, int]]()
    room = MOST_PLACES
    for count, term in rarest_first:
        room -= count
        if room < 0 and weights:
            break
        rarity = log(1 + (total - count + 0.5) / (count + 0.5))
        repetition = 1 + log(frequencies[term]) / 2
        weight = round(_SCALE * rarity**2 * repetition)
        weights.append((term, weight))
    return weights


def _span_weights(
    index: Index, terms: Sequence[tuple[str, int]]
) -> dict[int, int]:
    """The weight of what is on each span of a block."""
    weights = dict[int, int]()
    for term, weight in terms:
        for span in index.places(term):
            weights[span] = weights.get(span, 0) + weight
    return weights


def _text_shares(
    index: Index, terms: Sequence[tuple[str, int]]
) -> dict[int, int]:
    """What each text of a block adds to its spans."""
    shares = dict[int, int]()
    for term, weight in terms:
        for text in index.texts_at(index.places(term)):
            shares[text] = shares.get(text, 0) + weight // _TEXT_SHARE
    return shares


def _hits(
    index: Index,
    weights: dict[int, int],
    least: int,
    shares: dict[int, int],
    text_number: int,
) -> Iterator[Hit]:
    """The spans of a block that have the least weight on themselves, and those beside them."""
    starts = index.starts
    weight_of = weights.get
    text = -1
    begin = stop = 0
    for span in sorted(_candidates(weights, least, {*starts})):
        if span >= stop:
            text = bisect_right(starts, span) - 1
            begin = starts[text]
            stop = starts[text + 1]
        own_weight = weight_of(span, 0)
        weight = own_weight + shares[text]
        if span > begin:
            weight += weight_of(span - 1, 0) // 2
        if span + 1 < stop:
            weight += weight_of(span + 1, 0) // 2
        size = _SPAN_CHARS + index.chars(span)
        weight = weight * _SPAN_CHARS // size
        yield Hit(weight, text_number + text, span - begin, own_weight)


def _candidates(
    weights: dict[int, int], least: int, borders: set[int]
) -> set[int]:
    """The spans that have the least weight, and those beside them in the same text.

    Args:
        weights: of the spans of a block.
        least: the least weight.
        borders: the first span of each text, and what would come next.
    """
    heavy = [span for span, weight in weights.items() if weight >= least]
    candidates = {*heavy}
    for span in heavy:
        if span not in borders:
            candidates.add(span - 1)
        if span + 1 not in borders:
            candidates.add(span + 1)
    return candidates

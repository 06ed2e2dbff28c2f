from collections import Counter
from math import log

from hypothesis import given
from hypothesis import strategies as st

from ullage.session.recall.index import Index
from ullage.session.recall.ranking import Hit, ranked
from ullage.session.recall.spans import texts_of
from ullage.session.recall.terms import Splitter

words = st.sampled_from(
    ["gate", "tide", "water_level", "levelOf", "shut", "12"]
)
lines = st.lists(words, max_size=4)
texts = st.lists(
    st.lists(lines.map(" ".join), max_size=5).map("\n".join), max_size=5
)
queries = lines.map(" ".join)


def terms_of(text):
    return set(Splitter().terms(text))


def by_hand(some, query):
    """The same, read from its description."""
    spans = [texts_of(text) for text in some]
    terms = [[terms_of(span) for span in of] for of in spans]
    counts = Counter(term for of in terms for span in of for term in span)
    asked = Counter(Splitter().terms(query))
    total = sum(map(len, spans))

    def weight(term):
        rarity = log(1 + (total - counts[term] + 0.5) / (counts[term] + 0.5))
        return round(1_000 * rarity**2 * (1 + log(asked[term]) / 2))

    hits = []
    for text, of in enumerate(terms):
        own = [sum(weight(term) for term in span & {*asked}) for span in of]
        share = sum(weight(term) // 10 for term in set().union(*of) & {*asked})
        for number, at in enumerate(own):
            near = own[number - 1 : number] if number else []
            near += own[number + 1 : number + 2]
            if at or any(near):
                total_weight = at + sum(each // 2 for each in near) + share
                size = 100 + len(spans[text][number])
                weighed = total_weight * 100 // size
                hits.append(Hit(weighed, text, number, at))
    return sorted(hits, reverse=True)


@given(texts, queries)
def test_the_order_is_that_of_its_description(some, query):
    assert ranked([Index(some)], query) == by_hand(some, query)


@given(texts, queries, st.integers(0, 5))
def test_how_texts_are_parted_into_blocks_changes_nothing(some, query, at):
    parted = [Index(some[:at]), Index(some[at:])]
    assert ranked(parted, query) == ranked([Index(some)], query)


def best(some, query):
    hits = ranked([Index(some)], query)
    return [texts_of(some[hit.text])[hit.span] for hit in hits]


def test_rare_words_count_more():
    some = [
        "the gate\nthe gate\nthe gate\nthe lock\nthe sill\nthe quay\nthe pier"
    ]
    assert best(some, "the sill")[0] == "the sill"


def test_of_equals_the_newest_comes_first():
    hits = ranked([Index(["gate 10", "gate 20", "gate 30"])], "gate")
    assert [hit.text for hit in hits] == [2, 1, 0]


def test_the_lines_beside_a_line_that_answers_come_with_it():
    some = ["alpha\nbeta\nhigh water\nreturns 4711\ngamma\ndelta"]
    assert best(some, "high water") == ["high water", "beta", "returns 4711"]


def test_a_text_that_has_more_of_the_query_comes_first():
    some = [
        "gate\nfiller\nfiller\nfiller",
        "gate\nfiller\nfiller\ntide",
        "gate\nfiller\nfiller",
    ]
    assert [hit.text for hit in ranked([Index(some)], "gate tide")][:2] == [
        1,
        1,
    ]


def test_of_lines_that_have_the_same_the_shorter_comes_first():
    some = [f"gate {'filler ' * 20}\nfiller\nfiller\nfiller\ngate"]
    assert best(some, "gate")[0] == "gate"


def test_a_query_in_chinese_finds_its_line():
    some = ["闸门关闭了\n潮水今天涨得很高\n船在港口里", "明天有雨"]
    assert best(some, "今天的潮水")[0] == "潮水今天涨得很高"


def test_what_stands_everywhere_is_looked_at_last_and_not_without_end():
    some = ["\n".join(f"gate number{n}" for n in range(70_000))]
    hits = ranked([Index(some)], "gate number65000")
    assert hits[0].span == 65_000

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ullage.session.recall import index
from ullage.session.recall.index import Index, blocks_of, index_of
from ullage.session.recall.spans import texts_of
from ullage.session.recall.terms import Splitter

texts = st.lists(st.text("ab_1 \n\\潮水A", max_size=60), max_size=8)


@given(texts)
def test_a_term_is_at_the_spans_that_it_stands_on(some):
    made, expected = Index(some), {}
    spans = [span for text in some for span in texts_of(text)]
    for number, span in enumerate(spans):
        for term in Splitter().terms(span.replace("\\n", " ")):
            expected.setdefault(term, {})[number] = None
    assert {term: list(made.places(term)) for term in expected} == {
        term: list(numbers) for term, numbers in expected.items()
    }
    assert list(made.places("nowhere")) == []
    assert made.starts[-1] == len(spans)
    for number, span in enumerate(spans):
        text, at = made.text_of(number)
        assert texts_of(some[text])[at] == span


@given(
    st.lists(st.integers(0, 200_000), max_size=12),
    st.lists(st.integers(0, 200_000), max_size=4),
)
def test_more_texts_change_no_block_but_the_last(sizes, more):
    some, all_ = ["x" * n for n in sizes], ["x" * n for n in sizes + more]
    before, after = list(blocks_of(some)), list(blocks_of(all_))
    assert [
        place for start, stop in after for place in range(start, stop)
    ] == list(range(len(all_)))
    assert after[: len(before) - 1] == before[:-1]


def test_a_line_end_of_json_begins_no_word():
    assert list(Index(['{"text":"\\nimport gate"}']).places("import")) == [0]


def test_a_block_is_indexed_once_for_a_tenant_and_again_for_another(
    monkeypatch,
):
    made = []
    monkeypatch.setattr(
        index, "Index", lambda texts: made.append(texts) or Index(texts)
    )
    index._INDEXES.clear()
    block = ["the tide came in", "the gate is shut"]
    first = index_of(block, b"one")
    assert index_of([text[:4] + text[4:] for text in block], b"one") is first
    assert index_of(block, b"another") is not first
    assert len(made) == 2


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(index, "_INDEXES", type(index._INDEXES)(200_000))
    for number in range(60):
        index_of([" ".join(f"word{number}x{n}" for n in range(60))], b"one")
    held = {**index._INDEXES._new, **index._INDEXES._old}
    assert sum(one.size_bytes for one, _ in held.values()) <= 250_000
    assert held


def test_its_size_is_about_what_it_takes():
    one = Index(
        [f"def high_water_{n}(gauge): return level_{n}" for n in range(3_000)]
    )
    assert (
        len(
            msgspec.msgpack.encode(
                {term: bytes(p) for term, p in one._places.items()}
            )
        )
        < one.size_bytes
    )

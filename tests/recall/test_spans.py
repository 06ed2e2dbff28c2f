from hypothesis import given
from hypothesis import strategies as st

from ullage.session.recall.spans import SPAN_CHARS, spans_of, texts_of

texts = st.lists(
    st.text("ab ,\\n\r\u2028潮", max_size=40)
    | st.integers(0, 900).map("x y".__mul__),
    max_size=12,
).map("\n".join)


@given(texts)
def test_the_spans_of_a_text_are_the_text(text):
    spans = list(spans_of(text))
    assert [span.text for span in spans] == texts_of(text)
    lines = dict.fromkeys(range(1, text.count("\n") + 2), "")
    for span in spans:
        assert len(span.text) <= SPAN_CHARS
        assert text.startswith(span.text, span.start)
        lines[span.line] += span.text
    assert list(lines.values()) == text.split("\n")


def test_a_long_line_is_parted_between_words_and_behind_the_line_ends_of_json():
    row = "tide " * 100
    assert all(span.endswith("tide ") for span in texts_of(row))
    source = "def high_water(gauge):\\n" * 30
    assert {span.endswith("\\n") for span in texts_of(source)} == {True}


def test_one_line_of_five_megabytes_is_parted_at_once():
    assert "".join(texts_of("z" * 5_000_000)) == "z" * 5_000_000

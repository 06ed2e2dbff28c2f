import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.core.values.texts import on_one_line


@given(st.text(), st.integers(1, 50))
def test_a_line_has_no_line_end_and_keeps_to_its_length(text, chars):
    line = on_one_line(text, chars)
    assert "\n" not in line
    assert len(line) <= chars + len("…")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\n  b", "a b"),
        ("the tide came in", "the tide…"),
        ("the tide", "the tide"),
        ("", ""),
    ],
)
def test_what_is_cut_says_so(text, line):
    assert on_one_line(text, 8) == line

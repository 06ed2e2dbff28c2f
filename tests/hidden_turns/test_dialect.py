"""What is the same on each wire."""

import pytest

from ullage.wires.hidden_turns.dialect import joint


@pytest.mark.parametrize(
    ("before", "after", "between"),
    [
        ("a", "b", "\n\n"),
        ("a ", "b", ""),
        ("a", "\nb", ""),
        ("", "b", ""),
        ("a", "", ""),
    ],
)
def test_texts_of_two_rounds_are_parted_once(before, after, between):
    assert joint(before, after) == between

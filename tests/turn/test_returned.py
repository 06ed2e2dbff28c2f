"""Which messages an undo could not bring back, in words."""

import pytest

from ullage.core.turn.returned import _ranges


@pytest.mark.parametrize(
    ("indices", "text"),
    [
        ({4}, "message 5 is"),
        ({1, 2, 3}, "messages 2 to 4 are"),
        ({8, 1, 2, 5}, "messages 2 to 3, 6 and 9 are"),
    ],
)
def test_runs_of_messages_are_named_by_their_ends(indices, text):
    assert _ranges(indices) == text

"""What openings come to: since when another policy decides, and from where recall is offered."""

import pytest

from ullage.core.history.ledger import PolicyRecord
from ullage.core.turn.openings import changed_at, cuts_from, recall_from

OFFERED, BARE = PolicyRecord("p", recall=True), PolicyRecord("p", recall=False)
JOINED = PolicyRecord("p", recall=True, joined=True)
CHANGED = PolicyRecord("p", recall=True, changed=True)


@pytest.mark.parametrize(
    ("found", "at"),
    [
        ([(1, OFFERED)], 0),
        ([(1, OFFERED), (5, CHANGED)], 0),
        ([(1, BARE)], -1),
        ([(1, BARE), (7, OFFERED)], 7),
        ([(1, BARE), (7, JOINED)], 0),
        ([(1, BARE), (7, JOINED), (9, CHANGED)], 0),
    ],
)
def test_recall_is_offered_from_where_it_began_or_was_joined_as_if_from_the_start(
    found, at
):
    assert recall_from(found) == at


def test_the_last_change_counts_and_the_first_cut_of_what_is_new():
    new = PolicyRecord("p", recall=False, cuts_new=True)
    assert changed_at([(1, OFFERED)]) == cuts_from([(1, OFFERED)]) == -1
    assert (
        changed_at([(1, OFFERED), (4, CHANGED), (9, CHANGED), (12, JOINED)])
        == 9
    )
    assert cuts_from([(1, BARE), (3, new), (8, new)]) == 3

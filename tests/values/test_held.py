"""What is held is counted once, whoever shares it."""

import sys
from types import MappingProxyType

from hypothesis import given
from hypothesis import strategies as st

from ullage.history.snapshots import snapshot
from ullage.values.held import held_bytes
from ullage.values.messages import Message, Text

LEAVES = st.none() | st.integers() | st.text() | st.binary()
VALUES = st.recursive(
    LEAVES, lambda of: st.lists(of) | st.dictionaries(st.text(), of), max_leaves=9
)
LONG = "x" * 1_000_000


def test_a_shared_string_is_counted_once():
    one = "".join(["long "] * 20_000)
    alone = held_bytes([one])
    assert held_bytes([one] * 5) < alone + 100
    assert held_bytes([one, one[:-1]]) > 1.9 * alone


def test_what_was_seen_is_left_out():
    request = [{"role": "user", "content": "".join(["words "] * 20_000)}]
    mine = set()
    theirs = held_bytes(request, mine)
    assert theirs > 100_000
    assert held_bytes(snapshot(request), mine) < 1_000, "a snapshot shares the leaves"
    assert held_bytes(request, mine) == 0


def test_structs_and_objects_hold_their_fields():
    class Line:
        def __init__(self):
            self.message = Message(role="user", parts=(Text(LONG),))
            self.by_key = MappingProxyType({"a": LONG[:-1]})

    assert held_bytes(Line()) > 2 * len(LONG) - 10
    assert held_bytes(Line) < len(LONG)


def test_a_cycle_ends():
    ring = [1]
    ring.append(ring)
    assert held_bytes(ring) < 500


@given(VALUES)
def test_it_is_no_less_than_the_value_alone_and_grows_with_what_is_put_in(value):
    assert held_bytes(value) >= sys.getsizeof(value)
    assert held_bytes([value, object()]) > held_bytes(value)

"""What was walked is kept for the conversations used last, and no more of it than fits."""

from ullage.exchange.walks import Walks
from ullage.splice import Walk


def test_the_walk_of_the_newest_request_is_kept_and_only_so_many_bytes():
    walks = Walks(10)
    keys = [("t", "anthropic", bytes([number])) for number in range(3)]
    made = [Walk([], [], [bytes([number])], [], ()) for number in range(3)]
    walks.put(keys[0], made[0], 4)
    walks.put(keys[0], made[1], 6)
    assert walks.get(keys[0]) is made[1]
    walks.put(keys[1], made[2], 6)
    assert walks.get(keys[0]) is None
    assert walks.get(keys[1]) is made[2]
    walks.put(keys[2], None, 1)
    assert walks.get(keys[2]) is None

"""The newest requests are bounded in bytes."""

from ullage.proxy.newest import Newest, NewestRequests


def test_the_newest_of_each_conversation_and_no_more_than_so_many_bytes():
    kept = NewestRequests(10)
    for key, size in (("a", 4), ("b", 4), ("a", 5), ("c", 5)):
        kept.put(key, Newest("anthropic", "m", {}, size))
    assert kept.get("b") is None
    assert kept.get("a").size_bytes == 5
    kept.put("d", Newest("anthropic", "m", {}, 11))
    assert [kept.get(key) for key in "acd"] == [None, None, None]

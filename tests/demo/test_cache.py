from demo.cache import OpenAICache


def test_what_was_sent_before_is_read_from_the_cache_and_a_change_ends_it():
    cache = OpenAICache(lambda texts: [len(text) for text in texts])
    head = {
        "model": "gpt-4.1",
        "tools": [{"type": "function", "function": {"name": "f"}}],
    }
    first, second, third = (
        {"role": "user", "content": letter * 5_000} for letter in "abc"
    )
    assert cache.feed(head, [first]).cached_tokens == 0
    assert 4_800 <= cache.feed(head, [first, second]).cached_tokens < 5_200
    assert cache.feed(head, [third, second]).cached_tokens == 0

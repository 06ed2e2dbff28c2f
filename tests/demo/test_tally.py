from demo.tally import Memo, Tally
from tests.demo.standin import CONTINUATION, Prefix


def test_each_text_is_counted_once():
    asked = []

    def count(texts):
        asked.extend(texts)
        return [len(text) for text in texts]

    memo = Memo(count)
    assert memo(["a", "bb", "a"]) == [1, 2, 1]
    assert memo(["bb", "ccc"]) == [2, 3]
    assert asked == ["a", "bb", "ccc"]


def reply(prompt_tokens, *names):
    calls = [{"function": {"name": name, "arguments": "{}"}} for name in names]
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 7}
    return {
        "choices": [{"message": {"content": "", "tool_calls": calls}}],
        "usage": usage,
    }


def test_a_tally_sums_views_history_cache_and_recalls():
    history = {"messages": [{"role": "user", "content": "x" * 400}]}
    tally = Tally(
        history, lambda texts: [len(text) // 4 for text in texts], Prefix()
    )
    view = {"tools": [], "messages": history["messages"]}
    tally.watch(view, reply(100, "search", CONTINUATION))
    tally.watch(view, reply(60))
    assert (
        tally.calls,
        tally.recalls,
        tally.peak_tokens,
        tally.sum_tokens,
    ) == (
        2,
        1,
        100,
        160,
    )
    assert (
        tally.view_tokens,
        tally.history_tokens,
        tally.history_sum_tokens,
    ) == (
        60,
        104,
        208,
    )
    assert tally.output_tokens == 14
    assert (tally.cached_tokens, tally.cache_share) == (60, 60 / 160)

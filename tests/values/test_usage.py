import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.histories import MODEL, Turn, request, user, wire
from ullage import Budget, Session, Usage
from ullage.core.values.usage import Modalities
from ullage.wires import FORMATS

counts = st.integers(0, 10**7)
kinds = ("image_tokens", "audio_tokens", "video_tokens", "document_tokens")
media = st.builds(Modalities, **dict.fromkeys(kinds, counts))
usages = st.builds(
    Usage,
    fresh_tokens=counts,
    cache_read_tokens=counts,
    cache_write_tokens=counts,
    output_tokens=counts,
    reasoning_tokens=counts,
    long_write_tokens=counts,
    input_media=media,
    cache_read_media=media,
    output_media=media,
)


@pytest.mark.says(
    "output-cache-and-compaction",
    "2.3 Token Usage",
    "total = input + cache_creation + cache_read + output",
    lives="ullage.core.values.usage.Usage",
)
def test_the_whole_prompt_is_counted_once():
    usage = Usage(
        fresh_tokens=1, cache_read_tokens=20, cache_write_tokens=300, output_tokens=4_000,
        reasoning_tokens=3_999,
    )  # fmt: skip
    assert usage.input_tokens == 321
    assert usage.total_tokens == 4_321


@given(st.lists(usages))
def test_a_sum_of_replies_is_the_sum_of_their_counts(replies):
    total = sum(replies, Usage())
    assert total.input_tokens == sum(usage.input_tokens for usage in replies)
    assert total.total_tokens == sum(usage.total_tokens for usage in replies)
    assert total.reasoning_tokens == sum(
        usage.reasoning_tokens for usage in replies
    )
    assert total.long_write_tokens == sum(
        usage.long_write_tokens for usage in replies
    )
    for part in ("input_media", "cache_read_media", "output_media"):
        for kind in kinds:
            each = [getattr(getattr(usage, part), kind) for usage in replies]
            assert getattr(getattr(total, part), kind) == sum(each)


@pytest.mark.says(
    "output-cache-and-compaction",
    "2.3 Token Usage",
    "Being able to create `TokenUsage` from `ChatInvokeUsage`.",
    lives="ullage.wires",
)
def test_the_same_tokens_reported_by_two_vendors_are_the_same_usage():
    """Cached tokens stand inside OpenAI's count and outside Anthropic's."""
    chat = {
        "prompt_tokens": 1_000,
        "completion_tokens": 50,
        "prompt_tokens_details": {"cached_tokens": 900},
    }
    claude = {
        "input_tokens": 100,
        "cache_read_input_tokens": 900,
        "output_tokens": 50,
    }
    ours = Usage(fresh_tokens=100, cache_read_tokens=900, output_tokens=50)
    assert FORMATS["openai-chat"].usage({"usage": chat}) == ours
    assert FORMATS["anthropic"].usage({"usage": claude}) == ours
    assert FORMATS["anthropic"].usage({"content": []}) is None


GOLDEN = Path(__file__).parents[1] / "fixtures" / "usage"


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        (
            "anthropic-server-tools",
            42_100,
        ),  # the first of three replies of one server-side loop
        (
            "gemini-media",
            40_000,
        ),  # without what a tool of the server's brought in
        (
            "anthropic-compaction",
            None,
        ),  # the server compacted the prompt before it was read
    ],
)
def test_what_a_server_adds_is_paid_for_and_is_not_the_size_of_the_prompt(
    name, sent
):
    """A sum over a loop of the server's would look like a prompt three times as long (F64)."""
    golden = json.loads((GOLDEN / f"{name}.json").read_text())
    format = golden["format"]
    session = Session(
        MODEL[format], format=format, budget=Budget(tokens=10**9)
    )
    session.fit(request(format, wire(format, [])))
    session.observe(golden["reply"])
    assert session.usage.total_tokens == golden["total_tokens"]
    assert session.budget.spent.usage.total_tokens == golden["total_tokens"]
    session.fit(
        request(
            format,
            [*wire(format, [Turn(said="Done.")]), user(format, "And now?")],
        )
    )
    assert session.window.reported_tokens == sent

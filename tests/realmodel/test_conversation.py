"""A growing conversation with a real model: its window, its count of tokens, its prompt cache.

About 3,000 tokens are read in all, which takes one core three quarters of a minute.
"""

import openai
import pytest

from lab.replay.caches import CacheSimulator
from tests.realmodel.conversation import MODEL, request
from ullage import Limits, Session, Usage, is_overflow
from ullage.tools.replay.cost.prefix import head_of
from ullage.tools.replay.cost.prices import Profile

pytestmark = [
    pytest.mark.xdist_group("the real model"),
    pytest.mark.timeout(600),
]

BLOCK_TOKENS = 32
"""A block of a prompt cache is 16 to 128 tokens, by server."""


def batches(played):
    """The numbers of the calls before which what had been sent was edited."""
    edits = {"pruned", "condensed"}
    return [
        number
        for number, call in enumerate(played.calls)
        if edits & set(call.decided)
    ]


def test_the_same_request_gets_the_same_answer(model, played):
    """Asked once the conversation is over: its first call has to find a cold cache."""
    assert played.calls
    client, asked = (
        model.client(),
        request([{"role": "user", "content": "Why is it slow?"}]),
    )
    first, again = (client.chat.completions.create(**asked) for _ in range(2))
    assert first.choices[0].message.content
    assert first.choices[0].message == again.choices[0].message


def test_the_conversation_stays_in_the_window_call_after_call(model, played):
    """Every call was answered: none was over what the server takes."""
    assert (
        max(call.usage.total_tokens for call in played.calls)
        <= model.window_tokens
    )
    assert {"pruned", "condensed"} <= {
        kind for call in played.calls for kind in call.decided
    }
    assert len(batches(played)) <= 3, "rare, deep batches"


def test_without_ullage_the_server_refuses_it_and_the_refusal_is_understood(
    model, played
):
    whole = request(played.history)
    with pytest.raises(openai.BadRequestError) as caught:
        model.client().chat.completions.create(**whole)
    found = is_overflow(caught.value)
    assert found is not None
    assert found.limit_tokens == model.window_tokens
    assert found.size_tokens == model.tokens(model.prompt(whole))


def test_the_usage_is_read_as_the_server_counts(model, played):
    for call in played.calls[:: len(played.calls) // 5]:
        assert call.usage.input_tokens == model.tokens(model.prompt(call.view))
    assert (
        sum((call.usage for call in played.calls), Usage())
        == played.session.usage
    )


def test_the_estimate_is_within_a_few_per_cent_once_usage_was_seen(played):
    """While the view grows: what a batch takes away was of another kind than what was added."""
    edited = batches(played)
    for number, call in enumerate(played.calls):
        if number > 5 and number not in edited:
            assert call.estimated_tokens == pytest.approx(
                call.usage.input_tokens, rel=0.03
            )


def test_the_server_never_counts_more_than_the_bound(played):
    """Hard limits ask the bound, so a batch too may be estimated badly and still fits."""
    for call in played.calls[1:]:
        assert call.usage.input_tokens <= call.bound_tokens


def test_the_cached_prefix_grows_and_each_batch_breaks_it_once(played):
    edited = batches(played)
    for number, (before, call) in enumerate(
        zip(played.calls, played.calls[1:], strict=False), 1
    ):
        if number in edited:
            assert (
                call.usage.cache_read_tokens < before.usage.cache_read_tokens
            )
        else:
            assert call.usage.cache_read_tokens >= before.usage.input_tokens


def test_the_simulated_cache_is_that_of_the_server(model, played):
    """Shares are compared: the simulator counts messages as JSON, the server as its template."""
    profile = Profile(
        name="llama.cpp",
        write=1,
        read=0,
        min_tokens=1,
        as_of="2026-11-21",
        source="this server",
    )
    simulator = CacheSimulator(profile, model.tokens)
    for call in played.calls:
        simulated = simulator.call(call.view["messages"], head_of(call.view))
        share = simulated.cached_tokens / simulated.prompt_tokens
        served = call.usage.cache_read_tokens
        assert abs(share * call.usage.input_tokens - served) <= BLOCK_TOKENS
    assert simulator.totals.breaks == len(batches(played))


def test_after_a_refusal_the_next_view_is_taken(model, played):
    """The caller believes in a larger window than the server has."""
    session = Session(
        MODEL,
        limits=Limits(window_tokens=8_000),
        format="openai-chat",
        recall=False,
    )
    create = model.client().chat.completions.create
    whole = request(played.history)
    with pytest.raises(openai.BadRequestError) as caught:
        create(**session.fit(whole))
    assert session.refused(caught.value) is not None
    reply = create(**session.fit(whole))
    session.observe(reply)
    assert reply.usage.prompt_tokens < model.window_tokens

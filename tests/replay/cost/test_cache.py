"""The cache simulator: against a slow model of itself, and by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.replay.caches import Caches, CacheSimulator, Totals, total_usd
from ullage.core.errors import ConfigError
from ullage.tools.replay.cost.cache import CacheUse, PromptCache, usd
from ullage.tools.replay.cost.prefix import MeasuredRequest, head_of
from ullage.tools.replay.cost.prices import PROFILES, Profile, profile_named


def terms(**changes):
    plain = {
        "name": "t",
        "write": 1.25,
        "read": 0.1,
        "min_tokens": 0,
        "as_of": "",
        "source": "",
    }
    return Profile(**plain | changes)


def said(text, role="user"):
    return {"role": role, "content": text}


def size(*messages):
    return sum(4 + len(m["content"]) for m in messages)


def test_an_appended_history_is_read_up_to_where_it_ended():
    sim = CacheSimulator(terms(), len)
    history = [said("a" * 50), said("b" * 50, "assistant"), said("c" * 50)]
    first = sim.call(history[:1], head="h" * 10)
    second = sim.call(history, head="h" * 10)
    assert (first.cached_tokens, first.written_tokens) == (
        0,
        10 + size(history[0]),
    )
    assert second.prompt_tokens == 10 + size(*history)
    assert second.cached_tokens == first.prompt_tokens
    assert second.written_tokens == size(*history[1:])
    assert not second.rewritten_tokens
    assert sim.totals.calls == 2
    assert sim.totals.breaks == 0


def test_a_changed_message_loses_all_behind_its_first_changed_character():
    sim = CacheSimulator(terms(), len)
    old = [said("keep"), said("x" * 40 + "old"), said("tail")]
    new = [said("keep"), said("x" * 40 + "new"), said("tail")]
    before = sim.call(old).prompt_tokens
    call = sim.call(new)
    shared = size(old[0]) + 40
    assert call.cached_tokens == shared
    assert call.rewritten_tokens == before - shared
    assert call.rewritten_tokens


def test_explicit_caches_fall_back_to_the_end_of_an_earlier_request():
    sim = CacheSimulator(terms(hits="entry"), len)
    a, b, c, d = (said(letter * 30) for letter in "abcd")
    sim.call([a], head="h" * 20)
    sim.call([a, b, c], head="h" * 20)
    assert sim.call([a, b, d], head="h" * 20).cached_tokens == 20 + size(a)
    assert sim.call([d], head="h" * 20).cached_tokens == 20


def test_a_changed_head_loses_every_message():
    sim = CacheSimulator(terms(), len)
    sim.call([said("x")], head="abcd")
    call = sim.call([said("x")], head="abXd")
    assert call.cached_tokens == 2
    assert call.rewritten_tokens == 2 + size(said("x"))


def test_minimum_and_steps():
    sim = CacheSimulator(terms(min_tokens=1024, step_tokens=128), len)
    small = [said("w" * 996)]
    assert sim.call(small).fresh_tokens == 1000
    assert sim.call([*small, said("w" * 96)]).cached_tokens == 0
    third = sim.call([*small, said("w" * 96), said("w" * 96)])
    assert (third.cached_tokens, third.written_tokens, third.fresh_tokens) == (
        1024,
        128,
        48,
    )


def test_no_cache_means_everything_is_fresh():
    sim = CacheSimulator("none", len)
    sim.call([said("x")])
    assert sim.call([said("x"), said("y")]).fresh_tokens == size(
        said("x"), said("y")
    )


def test_cache_markers_are_no_change_but_arguments_of_that_name_are():
    block = {"type": "text", "text": "hi"}
    mark = {"cache_control": {"type": "ephemeral"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [block]}
    forms = [
        [
            said("hi"),
            {"role": "user", "content": [block | mark]},
            said([block]),
        ],
        [
            said([result]),
            said([result | mark]),
            said([result | {"content": [block | mark]}]),
        ],
    ]
    for same in forms:
        sim = CacheSimulator(terms(), len)
        calls = [sim.call([message, said("tail")]) for message in same]
        assert len({call.prompt_tokens for call in calls}) == 1
        assert not any(call.rewritten_tokens for call in calls)
    sim = CacheSimulator(terms(), len)
    use = {
        "type": "tool_use",
        "id": "t",
        "name": "f",
        "input": {"cache_control": 1},
    }
    sim.call([said([use], "assistant")])
    assert sim.call(
        [said([use | {"input": {"cache_control": 2}}], "assistant")]
    ).rewritten_tokens


def test_what_a_request_begins_with_as_the_one_before_is_not_counted_again():
    counted = []

    def count(text):
        counted.append(text)
        return len(text)

    sim = CacheSimulator(terms(), count)
    sim.call([said("a"), said("b")])
    sim.call([said("a"), said("b"), said("c")])
    assert counted == ["a", "b", "c"]


MESSAGE = st.builds(
    said, st.text("ab", max_size=4), st.sampled_from(["user", "assistant"])
)
REQUESTS = st.lists(st.tuples(st.sampled_from(["", "h", "hh"]), st.lists(MESSAGE, max_size=5)),
                    min_size=1, max_size=8)  # fmt: skip


@given(
    requests=REQUESTS,
    step=st.sampled_from([1, 4]),
    least=st.sampled_from([0, 60]),
)
def test_against_the_plain_text_of_each_request(requests, step, least):
    """With characters for tokens, a request is one string and the prefix is theirs.

    A message is its text and 4 characters of framing, which no text ends with.
    """
    sim = CacheSimulator(terms(step_tokens=step, min_tokens=least), len)
    before, known_head = "", None
    for head, messages in requests:
        now = head + "".join(
            m["content"] + m["role"][0].upper() * 4 for m in messages
        )
        call = sim.call(messages, head)
        same = _prefix(before, now)
        assert call.prompt_tokens == len(now)
        assert call.rewritten_tokens >= len(before) - same
        assert call.cached_tokens <= same
        if head == known_head:
            cut = same - same % step
            assert call.rewritten_tokens == len(before) - same
            assert call.cached_tokens == (cut if cut >= max(least, 1) else 0)
        before, known_head = now, head


def _prefix(one, other):
    at = 0
    while at < min(len(one), len(other)) and one[at] == other[at]:
        at += 1
    return at


@given(requests=REQUESTS, name=st.sampled_from(sorted(PROFILES)))
def test_every_token_is_in_one_class_and_totals_are_the_sum(requests, name):
    sim = CacheSimulator(name, lambda text: len(text) * 40)
    calls = [sim.call(messages, head) for head, messages in requests]
    for call in calls:
        assert (
            min(call.cached_tokens, call.written_tokens, call.fresh_tokens)
            >= 0
        )
        parts = call.cached_tokens + call.written_tokens + call.fresh_tokens
        assert parts == call.prompt_tokens
    assert sim.totals.prompt_tokens == sum(
        call.prompt_tokens for call in calls
    )
    assert sim.totals.breaks == sum(
        call.rewritten_tokens > 0 for call in calls
    )
    assert sim.totals.peak_tokens == max(call.prompt_tokens for call in calls)


def test_dollars():
    profile = terms(input_usd=3.0, output_usd=15.0)
    million = 1_000_000
    call = CacheUse(
        prompt_tokens=3 * million,
        cached_tokens=million,
        written_tokens=million,
        fresh_tokens=million,
    )
    assert usd(call, profile) == pytest.approx(3.0 * (0.1 + 1.25 + 1))
    assert usd(call, profile, 500_000) == pytest.approx(
        3.0 * (0.1 + 1.25 + 1) + 7.5
    )


def test_an_unknown_price_is_no_cost_of_nought():
    call = CacheUse(
        prompt_tokens=1, cached_tokens=0, written_tokens=0, fresh_tokens=1
    )
    assert usd(call, terms(input_usd=3.0)) is None


def test_the_cost_of_many_calls_is_that_of_each_at_its_own_length():
    profile = profile_named("openai-5")
    short, long = (
        CacheUse(
            prompt_tokens=tokens,
            cached_tokens=0,
            written_tokens=0,
            fresh_tokens=tokens,
        )
        for tokens in (200_000, 300_000)
    )
    totals = Totals(profile=profile).plus(short).plus(long)
    assert total_usd(totals, 0) == pytest.approx(0.2 * 2.5 + 0.3 * 5.0)
    assert total_usd(totals, 1_000_000) == pytest.approx(
        0.2 * 2.5 + 0.3 * 5.0 + 15.0
    )
    assert total_usd(Totals(profile=terms()).plus(short), 0) is None


# Markers, look-back and time to live: requests as their measures, in tokens and blocks


def request(tokens, *, common=0, blocks=1, head=10):
    return MeasuredRequest(
        prompt_tokens=tokens,
        head_tokens=head,
        common_tokens=common,
        rewritten_tokens=0,
        blocks=blocks,
    )


def read(profile, *requests, times=None):
    """What each request reads from the cache."""
    cache, times = PromptCache(profile), times or [0.0] * len(requests)
    return [
        cache.take(sent, at).cached_tokens
        for sent, at in zip(requests, times, strict=True)
    ]


def test_a_step_of_many_blocks_is_read_from_the_marker_where_the_last_request_ended():
    terms_of = [
        terms(hits="entry", look_back_blocks=20, max_breakpoints=n)
        for n in (1, 2, 3)
    ]
    grown = [request(100, blocks=5), request(200, common=100, blocks=40)]
    assert [read(profile, *grown)[1] for profile in terms_of] == [0, 10, 100]


def test_twenty_blocks_back_is_found_and_twenty_one_is_not():
    profile = terms(hits="entry", look_back_blocks=20, max_breakpoints=1)
    for step, found in ((19, 100), (20, 0)):
        assert (
            read(
                profile,
                request(100),
                request(200, common=100, blocks=1 + step),
            )[1]
            == found
        )


def test_a_deep_cut_falls_back_to_the_head_unless_the_provider_remembers():
    grown = [
        request(100 * n, common=100 * (n - 1), blocks=10 * n)
        for n in range(1, 10)
    ]
    cut = request(700, common=450, blocks=90)
    assert (
        read(terms(hits="entry", look_back_blocks=20), *grown, cut)[-1] == 10
    )
    assert read(terms(hits="entry", remembered=80), *grown, cut)[-1] == 400
    for remembered, found in ((9, 400), (6, 400), (5, 10)):
        assert (
            read(terms(hits="entry", remembered=remembered), *grown, cut)[-1]
            == found
        )


def test_blocks_are_counted_in_the_messages_themselves():
    """Twenty results in one message are twenty positions, and so are twenty calls."""
    profile = terms(hits="entry", look_back_blocks=20, max_breakpoints=1)
    results = [
        {"type": "tool_result", "tool_use_id": "t", "content": "x"}
    ] * 20
    calls = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c"}] * 20,
    }
    for many, few in (
        (said(results), said(results[1:])),
        (calls, said(results[1:])),
    ):
        for step, hits in ((many, False), (few, True)):
            sim = CacheSimulator(profile, len)
            sim.call([said("first")])
            assert bool(sim.call([said("first"), step]).cached_tokens) == hits


@pytest.mark.parametrize("hits", ["prefix", "entry"])
def test_an_entry_dies_of_disuse_and_reading_renews_it(hits):
    profile = terms(hits=hits, ttl_s=300)
    grown = [request(100), request(200, common=100), request(300, common=200)]
    assert read(profile, *grown, times=[0, 300, 600]) == [0, 100, 200]
    assert read(profile, *grown, times=[0, 301, 602]) == [0, 0, 0]
    again = [*grown, request(400, common=100)]
    assert read(profile, *again, times=[0, 300, 600, 900])[-1] == 100


def test_totals_of_two_profiles_are_not_added():
    with pytest.raises(ConfigError, match="cannot be added"):
        Totals(profile=PROFILES["none"]) + Totals(profile=PROFILES["openai-5"])


def test_several_profiles_at_once_find_what_each_finds_alone():
    profiles = [terms(), terms(name="other", hits="prefix", step_tokens=16)]
    history = [said("a" * 50), said("b" * 50, "assistant"), said("c" * 50)]
    together = Caches(profiles, len)
    for length in (1, 3):
        together.call(history[:length], "head")
    for profile, totals in zip(profiles, together.totals, strict=True):
        alone = CacheSimulator(profile, len)
        for length in (1, 3):
            alone.call(history[:length], "head")
        assert alone.totals == totals
        assert totals.calls == 2


def test_an_unknown_profile_says_which_are_known():
    with pytest.raises(ConfigError, match="'gemini-implicit'"):
        CacheSimulator("ether", len)


def test_head_is_tools_then_system_without_markers():
    mark = {"cache_control": {"type": "ephemeral"}}
    system, tool = {"type": "text", "text": "be brief"}, {"name": "run"}
    plain = head_of({"system": [system], "tools": [tool], "model": "m"})
    assert plain == head_of(
        {"tools": [tool | mark], "system": [system | mark]}
    )
    assert plain.index("run") < plain.index("be brief")
    assert head_of({"messages": []}) == ""


def test_text_with_a_lone_surrogate_is_counted():
    assert (
        CacheSimulator(terms(), len).call([said("\ud800")]).prompt_tokens > 0
    )


def test_vllm_reads_whole_blocks_from_the_start():
    sim = CacheSimulator(profile_named("vllm"), len)
    old = [said("a" * 40), said("b" * 40, "assistant"), said("c" * 40)]
    sim.call(old)
    call = sim.call([*old, said("d" * 40)])
    assert size(*old) % 16, "the last block is not full"
    assert call.cached_tokens == size(*old) // 16 * 16
    changed = [said("a" * 20 + "x" * 20), *old[1:]]
    assert sim.call(changed).cached_tokens == (4 + 20) // 16 * 16


@pytest.mark.parametrize("name", ["llama-cpp", "vllm", "sglang"])
def test_a_server_of_ones_own_works_out_the_last_token_always(name):
    profile = profile_named(name)
    sim = CacheSimulator(profile, len)
    history = [said("a" * 60)]
    assert size(*history) == 64, "whole blocks"
    sim.call(history)
    again = sim.call(history)
    assert again.cached_tokens == 64 - profile.step_tokens
    assert (
        usd(
            CacheUse(
                prompt_tokens=64,
                cached_tokens=0,
                written_tokens=64,
                fresh_tokens=0,
            ),
            profile,
            100,
        )
        == 0.0
    )

"""The cache simulator: against a slow model of itself, and by hand."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.errors import ConfigError
from ullage.replay.cache import PROFILES, CacheSimulator, Profile, Totals, head_of, usd


def terms(**changes):
    plain = {"name": "t", "write": 1.25, "read": 0.1, "min_tokens": 0, "as_of": "", "source": ""}
    return Profile(**plain | changes)


def said(text, role="user"):
    return {"role": role, "content": text}


def size(*messages):
    return sum(len(json.dumps(m, separators=(",", ":"))) for m in messages)


def test_an_appended_history_is_read_up_to_where_it_ended():
    sim = CacheSimulator(terms(), len)
    history = [said("a" * 50), said("b" * 50, "assistant"), said("c" * 50)]
    first = sim.call(history[:1], head="h" * 10)
    second = sim.call(history, head="h" * 10)
    assert (first.cached_tokens, first.written_tokens) == (0, 10 + size(history[0]))
    assert second.prompt_tokens == 10 + size(*history)
    assert second.cached_tokens == first.prompt_tokens
    assert second.written_tokens == size(*history[1:])
    assert not second.broke
    assert sim.totals.calls == 2
    assert sim.totals.breaks == 0


def test_a_changed_message_loses_all_behind_its_first_changed_character():
    sim = CacheSimulator(terms(), len)
    old = [said("keep"), said("x" * 40 + "old"), said("tail")]
    new = [said("keep"), said("x" * 40 + "new"), said("tail")]
    before = sim.call(old).prompt_tokens
    call = sim.call(new)
    shared = size(old[0]) + json.dumps(old[1], separators=(",", ":")).index("old")
    assert call.cached_tokens == shared
    assert call.rewritten_tokens == before - shared
    assert call.broke


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
    sim = CacheSimulator(terms(min_tokens=1024, step_tokens=128), lambda text: text.count("w"))
    small = [said("w" * 1000)]
    assert sim.call(small).fresh_tokens == 1000
    assert sim.call([*small, said("w" * 100)]).cached_tokens == 0
    third = sim.call([*small, said("w" * 100), said("w" * 100)])
    assert (third.cached_tokens, third.written_tokens, third.fresh_tokens) == (1024, 128, 48)


def test_no_cache_means_everything_is_fresh():
    sim = CacheSimulator("none", len)
    sim.call([said("x")])
    assert sim.call([said("x"), said("y")]).fresh_tokens == size(said("x"), said("y"))


def test_cache_markers_are_no_change_but_arguments_of_that_name_are():
    block = {"type": "text", "text": "hi"}
    mark = {"cache_control": {"type": "ephemeral"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [block]}
    forms = [
        [said("hi"), {"role": "user", "content": [block | mark]}, said([block])],
        [said([result]), said([result | mark]), said([result | {"content": [block | mark]}])],
    ]
    for same in forms:
        sim = CacheSimulator(terms(), len)
        calls = [sim.call([message, said("tail")]) for message in same]
        assert len({call.prompt_tokens for call in calls}) == 1
        assert not any(call.broke for call in calls)
    sim = CacheSimulator(terms(), len)
    use = {"type": "tool_use", "id": "t", "name": "f", "input": {"cache_control": 1}}
    sim.call([said([use], "assistant")])
    assert sim.call([said([use | {"input": {"cache_control": 2}}], "assistant")]).broke


def test_equal_messages_are_counted_once_and_identical_ones_not_even_looked_up():
    counted = []

    def count(text):
        counted.append(text)
        return len(text)

    sim = CacheSimulator(terms(), count)
    sim.call([said("a"), said("b")])
    sim.call([said("a"), said("b"), said("c")])
    assert len(counted) == 3
    sim.call([said("new"), said("b"), said("c")])
    assert sum('"b"' in text or '"c"' in text for text in counted) == 2


MESSAGE = st.builds(said, st.text("ab", max_size=4), st.sampled_from(["user", "assistant"]))
REQUESTS = st.lists(st.tuples(st.sampled_from(["", "h", "hh"]), st.lists(MESSAGE, max_size=5)),
                    min_size=1, max_size=8)  # fmt: skip


@given(requests=REQUESTS, step=st.sampled_from([1, 4]), least=st.sampled_from([0, 60]))
def test_against_the_plain_text_of_each_request(requests, step, least):
    """With characters for tokens, a request is one string and the prefix is theirs."""
    sim = CacheSimulator(terms(step_tokens=step, min_tokens=least), len)
    before, known_head = "", None
    for head, messages in requests:
        now = head + "".join(json.dumps(m, separators=(",", ":")) for m in messages)
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
        assert min(call.cached_tokens, call.written_tokens, call.fresh_tokens) >= 0
        parts = call.cached_tokens + call.written_tokens + call.fresh_tokens
        assert parts == call.prompt_tokens
    assert sim.totals.prompt_tokens == sum(call.prompt_tokens for call in calls)
    assert sim.totals.breaks == sum(call.broke for call in calls)
    assert sim.totals.peak_tokens == max(call.prompt_tokens for call in calls)


def test_dollars():
    totals = Totals(
        profile=PROFILES["anthropic-5m"],
        cached_tokens=1_000_000,
        written_tokens=1_000_000,
        fresh_tokens=1_000_000,
    )
    assert usd(totals, 3.0) == pytest.approx(3.0 * (0.1 + 1.25 + 1))
    assert usd(totals, 0.0, 500_000, 15.0) == pytest.approx(7.5)


def test_totals_of_two_profiles_are_not_added():
    with pytest.raises(ConfigError, match="cannot be added"):
        Totals(profile=PROFILES["none"]) + Totals(profile=PROFILES["openai-5"])


def test_an_unknown_profile_says_which_are_known():
    with pytest.raises(ConfigError, match="'gemini-implicit'"):
        CacheSimulator("ether", len)


def test_every_profile_says_when_and_where_from():
    assert {"anthropic-5m", "openai-5", "openai-5.6", "gemini-implicit", "none"} <= set(PROFILES)
    assert all(p.as_of and p.source for p in PROFILES.values())


def test_head_is_tools_then_system_without_markers():
    mark = {"cache_control": {"type": "ephemeral"}}
    system, tool = {"type": "text", "text": "be brief"}, {"name": "run"}
    plain = head_of({"system": [system], "tools": [tool], "model": "m"})
    assert plain == head_of({"tools": [tool | mark], "system": [system | mark]})
    assert plain.index("run") < plain.index("be brief")
    assert head_of({"messages": []}) == ""


def test_text_with_a_lone_surrogate_is_counted():
    assert CacheSimulator(terms(), len).call([said("\ud800")]).prompt_tokens > 0

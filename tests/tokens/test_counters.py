"""Counts are exact, bounded, and leave the caller's strings as they were."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
import quicktok
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.bench.token_corpus import generated
from ullage.tokens.estimate import CLAUDE_3, CLAUDE_4_8, GEMINI
from ullage.tokens.exact import exact, repaired
from ullage.tokens.models import counter_for, family_of, preload

KINDS = generated(6_000)
MODELS = ("gpt-5", "gpt-4", "claude-sonnet-4-5", "claude-opus-5-5", "gemini-2.5-pro", "llama-9")
ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=300)
ENCODINGS = ("o200k_base", "cl100k_base")


def second_opinion(text, encoding):
    return len(quicktok.get_encoding(encoding).encode_ordinary(text))


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(text=ANY_TEXT)
def test_two_tokenisers_agree_on_any_text(encoding, text):
    assert exact(encoding).count(text) == second_opinion(repaired(text), encoding)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_two_tokenisers_agree_on_what_agents_read(encoding, kind):
    assert exact(encoding).count(KINDS[kind]) == second_opinion(KINDS[kind], encoding)


@pytest.mark.parametrize("module", [threading, subprocess, Path, pytest])
def test_two_tokenisers_agree_on_the_standard_library(module):
    source = Path(sys.modules[module.__module__ if module is Path else module.__name__].__file__)
    text = source.read_text(encoding="utf-8")
    assert exact("o200k_base").count(text) == second_opinion(text, "o200k_base")


@pytest.mark.parametrize("model", MODELS)
@given(text=ANY_TEXT)
def test_the_bound_is_sound(model, text):
    counter = counter_for(model)
    assert 0 <= counter.count(text) <= counter.bound(text)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_is_sound_on_what_agents_read(model, kind):
    counter = counter_for(model)
    assert 0 < counter.count(KINDS[kind]) <= counter.bound(KINDS[kind])


@pytest.mark.parametrize("estimate", [CLAUDE_3, CLAUDE_4_8, GEMINI])
@given(text=ANY_TEXT)
def test_an_estimate_stays_within_the_range_seen(estimate, text):
    base, count = exact("o200k_base").count(text), estimate.count(text)
    assert count >= min(estimate.low * base - 1, estimate.bound(text))
    assert count <= estimate.high * base + 1


@pytest.mark.parametrize("model", MODELS)
@given(text=st.text(st.characters(min_codepoint=0x100), min_size=1, max_size=200))
def test_counting_leaves_the_callers_string_as_it_was(model, text):
    mine = "".join(reversed(text)) + "…"  # a fresh object: hypothesis may have used its own
    before = sys.getsizeof(mine)
    counter = counter_for(model)
    counter.count(mine)
    counter.bound(mine)
    assert sys.getsizeof(mine) == before


def test_lone_surrogates_count_as_replacement_characters():
    counter = exact("o200k_base")
    assert counter.count("a\ud800b") == counter.count("a\ufffdb")
    assert counter.count("\ud83d\ude00") == counter.count("😀")
    assert CLAUDE_3.count("a\udfffb") > 0


def test_special_tokens_in_a_text_are_text():
    assert exact("o200k_base").count("<|endoftext|>") > 1


def test_an_unknown_encoding_is_an_error():
    with pytest.raises(KeyError, match="o200k_base"):
        exact("p50k_base")


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("gpt-4o-2024-08-06", "openai"),
        ("o3-mini", "openai"),
        ("azure/gpt-35-turbo", "openai"),
        ("codex-mini-latest", "openai"),
        ("claude-3-5-sonnet-20241022", "claude-v3"),
        ("claude-sonnet-4-20250514", "claude-v3"),
        ("us.anthropic.claude-opus-4-5-20251101-v1:0", "claude-v3"),
        ("anthropic/claude-sonnet-4.6", "claude-v3"),
        ("claude-opus-4-6", "claude-v3"),
        ("claude-opus-4-7", "claude-v4.8"),
        ("anthropic/claude-opus-4.8", "claude-v4.8"),
        ("claude-sonnet-5", "claude-v4.8"),
        ("claude-haiku-5-5-20261007", "claude-v4.8"),
        ("claude-fable-5-2", "claude-v4.8"),
        ("claude-latest", "claude-v4.8"),
        ("models/gemini-2.5-flash", "gemini"),
        ("qwen3-coder", "unknown"),
        ("", "unknown"),
    ],
)
def test_a_models_family_shows_in_its_name(model, family):
    assert family_of(model) == family


@pytest.mark.parametrize(
    ("model", "name", "is_exact"),
    [
        ("gpt-4o", "o200k_base", True),
        ("gpt-5.2", "o200k_base", True),
        ("openai/o3", "o200k_base", True),
        ("gpt-4-0613", "cl100k_base", True),
        ("gpt-3.5-turbo", "cl100k_base", True),
        ("gpt-6-astra", "o200k_base (assumed)", False),
        ("mistral-large", "o200k_base (estimate for an unknown model)", False),
    ],
)
def test_a_counter_says_whether_it_is_exact(model, name, is_exact):
    counter = counter_for(model)
    assert (counter.name, counter.exact) == (name, is_exact)


@pytest.mark.parametrize("model", MODELS[2:5])
def test_estimates_call_themselves_so(model):
    assert not counter_for(model).exact


@settings(max_examples=20)
@given(text=st.sampled_from(sorted(KINDS)))
def test_claude_counts_more_than_openai_and_the_newer_more_than_the_older(text):
    base = exact("o200k_base").count(KINDS[text])
    assert base <= CLAUDE_3.count(KINDS[text]) <= CLAUDE_4_8.count(KINDS[text]) * 1.05


def test_a_long_text_is_counted_whole():
    line = "the quick brown fox jumps over the lazy dog\n"
    counter = exact("o200k_base")
    assert counter.count(line * 40_000) == 40_000 * counter.count(line)


FRESH = """
import threading
import ullage.tokens.models as tokens
import sys
assert "toktok" not in sys.modules, "importing loads the tokeniser"
for _ in range(20):
    tokens.preload("gpt-5")
loading = [t for t in threading.enumerate() if t.name.startswith("ullage-load")]
assert len(loading) <= 1, loading
counts = []
workers = [
    threading.Thread(target=lambda: counts.append(tokens.counter_for("gpt-5").count("a b c")))
    for _ in range(8)
]
[w.start() for w in workers]
[w.join() for w in workers]
assert counts == [3] * 8, counts
tokens.preload("claude-opus-4-5")
assert not [t for t in threading.enumerate() if t.name.startswith("ullage-load")]
"""


def test_preloading_happens_once_and_counts_wait_for_it():
    subprocess.run([sys.executable, "-c", FRESH], check=True, timeout=60)


def test_preload_is_idempotent_here_too():
    before = threading.active_count()
    exact("o200k_base").count("warm")
    preload("gpt-5")
    assert threading.active_count() <= before

"""Counts are exact, bounded, and leave the caller's strings as they were."""

import asyncio
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.bench.token_corpus import generated
from ullage import AsyncSession
from ullage.core.tokens.exact import exact
from ullage.core.tokens.models import (
    counter_for,
    family_of,
    is_ready,
    make_ready,
    preload,
)
from ullage.session import aio

KINDS = generated(6_000)
MODELS = (
    "gpt-5",
    "gpt-4",
    "claude-sonnet-4-5",
    "claude-opus-5-5",
    "gemini-2.5-pro",
    "llama-9",
)
ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=300)


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


@pytest.mark.parametrize("model", MODELS)
@given(
    text=st.text(st.characters(min_codepoint=0x100), min_size=1, max_size=200)
)
def test_counting_leaves_the_callers_string_as_it_was(model, text):
    mine = (
        "".join(reversed(text)) + "…"
    )  # a fresh object: hypothesis may have used its own
    before = sys.getsizeof(mine)
    counter = counter_for(model)
    counter.count(mine)
    counter.bound(mine)
    assert sys.getsizeof(mine) == before


def test_lone_surrogates_count_as_replacement_characters():
    counter = exact("o200k_base")
    assert counter.count("a\ud800b") == counter.count("a\ufffdb")
    assert counter.count("\ud83d\ude00") == counter.count("😀")
    assert counter_for("claude-opus-4-5").count("a\udfffb") > 0


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
        ("mistral-large", "an estimate for an unknown model", False),
    ],
)
def test_a_counter_says_whether_it_is_exact(model, name, is_exact):
    counter = counter_for(model)
    assert (counter.name, counter.exact) == (name, is_exact)


@pytest.mark.parametrize("model", MODELS[2:5])
def test_estimates_call_themselves_so(model):
    assert not counter_for(model).exact


@pytest.mark.parametrize("kind", KINDS)
def test_claude_counts_more_than_openai_and_the_newer_more_than_the_older(
    kind,
):
    base = exact("o200k_base").count(KINDS[kind])
    older, newer = (
        counter_for(model).count(KINDS[kind]) for model in MODELS[2:4]
    )
    assert base * 0.97 <= older <= newer * 1.05


def test_a_long_text_is_counted_whole():
    line = "the quick brown fox jumps over the lazy dog\n"
    counter = exact("o200k_base")
    assert counter.count(line * 40_000) == 40_000 * counter.count(line)


FRESH = """
import sys
import threading
from ullage.core.tokens.models import counter_for, is_ready, make_ready, preload

def loading():
    return [t for t in threading.enumerate() if t.name.startswith("ullage-load")]

for model in ("claude-opus-4-5", "gemini-2.5-pro", "llama-9"):
    assert is_ready(model)
    preload(model)
    make_ready(model)
    assert counter_for(model).count("a b c") > 0
assert not loading() and "toktok" not in sys.modules, "these models have no vocabulary"
assert not is_ready("gpt-5")
for _ in range(20):
    preload("gpt-5")
assert len(loading()) <= 1, loading()
counts = []
workers = [
    threading.Thread(target=lambda: counts.append(counter_for("gpt-5").count("a b c")))
    for _ in range(8)
]
[w.start() for w in workers]
[w.join() for w in workers]
assert counts == [3] * 8, counts
assert is_ready("gpt-5") and not is_ready("gpt-4")
make_ready("gpt-4")
assert is_ready("gpt-4")
"""


def test_only_openai_models_load_a_vocabulary_once_and_counts_wait_for_it():
    subprocess.run([sys.executable, "-c", FRESH], check=True, timeout=60)


def test_preload_is_idempotent_here_too():
    before = threading.active_count()
    make_ready("gpt-5")
    preload("gpt-5")
    assert threading.active_count() <= before
    assert is_ready("gpt-5")


def test_a_session_for_an_event_loop_loads_a_vocabulary_in_a_thread(
    monkeypatch,
):
    threads = []
    monkeypatch.setattr(aio, "is_ready", lambda model: bool(threads))
    monkeypatch.setattr(
        aio, "make_ready", lambda model: threads.append(threading.get_ident())
    )

    async def fits():
        session = AsyncSession("gpt-5")
        for _ in range(2):
            await session.fit(
                {"messages": [{"role": "user", "content": "hello"}]}
            )

    asyncio.run(fits())
    assert len(threads) == 1
    assert threads != [threading.get_ident()]

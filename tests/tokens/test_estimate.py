"""Estimates: a sum over bytes and pairs, near the reference counts of every kind."""

import json
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.bench.token_corpus import features, generated, split
from ullage.core.tokens import exact as exactly
from ullage.core.tokens import models
from ullage.core.tokens.estimate import STEPS, estimate
from ullage.core.tokens.weights import WEIGHTS

KINDS = generated()
FIGURES = json.loads(
    Path(__file__)
    .parents[2]
    .joinpath("lab/bench/token_figures.json")
    .read_text(encoding="utf-8")
)
FAMILIES = ("claude-v3", "claude-v4.8", "gemini")
ENCODINGS = ("o200k_base", "cl100k_base")
ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=300)


@pytest.mark.parametrize("vocabulary", WEIGHTS)
@given(text=ANY_TEXT)
def test_it_is_the_sum_of_what_was_fitted(vocabulary, text):
    counter = estimate(vocabulary, "")
    weights = counter.of_bytes + counter.of_pairs
    assert len(weights) == len(features(text)) == 512
    parts = sum(
        n * weight for n, weight in zip(features(text), weights, strict=True)
    )
    assert counter.count(text) == min(-(-parts // STEPS), counter.bound(text))


@given(
    size=st.one_of(
        st.integers(0, 600),
        st.integers(65_000, 66_000),
        st.integers(196_000, 197_000),
    ),
    piece=st.sampled_from(["x", "0", "the quick ", "{}\n\t", "é中😀"]),
)
def test_a_text_of_any_size_is_counted_whole(size, piece):
    counter = estimate("claude-v3", "")
    text = (piece * (size // len(piece) + 1))[:size]
    rate = counter.count(piece * 900) / len(piece * 900)
    assert counter.count(text) == pytest.approx(rate * size, rel=0.01, abs=4)


@pytest.mark.parametrize("kind", FIGURES)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_kind_is_within_five_percent_of_the_reference(kind, family):
    if zlib.crc32(KINDS[kind].encode()) != FIGURES[kind]["crc"]:
        pytest.skip(
            "the standard library of this Python makes another text of this kind"
        )
    counted = sum(map(estimate(family, "").count, split(KINDS[kind])))
    assert counted == pytest.approx(sum(FIGURES[kind][family]), rel=0.05)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_where_the_tokeniser_is_missing_openai_is_within_six_percent(
    kind, encoding
):
    counted = estimate(encoding, "").count(KINDS[kind])
    assert counted == pytest.approx(
        exactly.exact(encoding).count(KINDS[kind]), rel=0.06
    )


@pytest.fixture
def no_tokeniser(monkeypatch):
    monkeypatch.setattr(models, "is_installed", lambda: False)
    models.counter_for.cache_clear()
    yield
    models.counter_for.cache_clear()


@pytest.mark.parametrize(
    ("model", "encoding"), [("gpt-5", "o200k_base"), ("gpt-4", "cl100k_base")]
)
def test_without_the_tokeniser_openai_models_are_estimated_and_say_so(
    no_tokeniser, model, encoding
):
    counter = models.counter_for(model)
    assert (
        counter.name
        == f"an estimate of {encoding}: toktok-rs is not installed"
    )
    assert not counter.exact
    assert counter.count(KINDS["logs"]) == estimate(encoding, "").count(
        KINDS["logs"]
    )
    assert models.is_ready(model)


def test_whether_the_tokeniser_is_installed_is_seen_without_loading_it():
    assert exactly.is_installed()

"""Calibration finds what it does not see, and nothing a report says can lead it astray."""

import json
import zlib
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.bench.token_corpus import generated, split
from ullage.core.tokens.calibrate import (
    MAX_SCALE,
    MIN_SCALE,
    UNSEEN_TOKENS,
    Calibration,
)
from ullage.core.tokens.exact import exact
from ullage.core.tokens.models import counter_for

SIZES = st.integers(0, 2_000_000)
REPORTS = st.lists(st.tuples(st.integers(-5, 10**9), SIZES), max_size=30)


def learnt(pairs, cold=None):
    calibration = cold or Calibration()
    for reported, estimated in pairs:
        calibration = calibration.observe(reported, estimated)
    return calibration


@given(
    offset=st.integers(0, 40_000),
    scale=st.floats(0.7, 2.2),
    growth=st.lists(st.integers(400, 8_000), min_size=11, max_size=20),
)
def test_a_provider_of_an_offset_and_a_scale_is_learnt_in_ten_replies(
    offset, scale, growth
):
    estimated, pairs = 500, []
    for step in growth:
        pairs.append((round(offset + scale * estimated), estimated))
        estimated += step
    truth = offset + scale * estimated
    assert learnt(pairs).apply(estimated) == pytest.approx(
        truth, rel=0.01, abs=2
    )


@given(
    scale=st.floats(0.8, 2.0), wrong=st.floats(1.5, 2.4), at=st.integers(1, 9)
)
def test_one_summed_report_does_not_bend_the_scale(scale, wrong, at):
    pairs = [
        (round(3_000 + scale * e), e) for e in range(2_000, 24_000, 2_000)
    ]
    pairs[at] = (round(pairs[at][0] * wrong), pairs[at][1])
    assert learnt(pairs).scale == pytest.approx(scale, rel=0.02)


def test_before_the_first_report_it_is_the_identity():
    assert [Calibration().apply(n) for n in (0, 1, 70_000)] == [0, 1, 70_000]


@pytest.mark.parametrize("reported", [0, -1, 3, 10**8])
def test_reports_that_cannot_be_a_prompts_size_are_ignored(reported):
    calibration = Calibration().observe(52_000, 50_000)
    assert calibration.observe(reported, 55_000) == calibration


@given(removed=st.integers(0, 200_000), estimated=st.integers(0, 200_000))
def test_what_was_taken_out_since_makes_it_less_sure_and_never_less_than_it_was_cold(
    removed, estimated
):
    taught = Calibration().observe(40_000, 50_000)
    less_sure = taught.without(removed)
    assert less_sure.apply(estimated) == taught.apply(estimated)
    assert less_sure.upper(estimated) >= taught.upper(estimated)
    margin = less_sure.upper(estimated) - taught.apply(estimated)
    most_changed = max(estimated, abs(estimated - 50_000))
    assert (
        margin
        <= Calibration().upper(most_changed)
        - most_changed
        + 0.005 * 40_000
        + 1
    )


@given(reports=REPORTS, estimated=SIZES)
def test_no_report_moves_it_out_of_bounds(reports, estimated):
    calibration = learnt(reports)
    assert MIN_SCALE <= calibration.scale <= MAX_SCALE
    applied = calibration.apply(estimated)
    assert (
        MIN_SCALE * estimated - 1
        <= applied
        <= MAX_SCALE * estimated + UNSEEN_TOKENS + 1
    )


@given(reports=REPORTS, one=SIZES, other=SIZES, is_exact=st.booleans())
def test_it_is_monotone_and_the_upper_mode_lies_above(
    reports, one, other, is_exact
):
    calibration = learnt(reports, Calibration(exact=is_exact))
    low, high = sorted((one, other))
    assert calibration.apply(low) <= calibration.apply(high)
    assert calibration.upper(low) <= calibration.upper(high) + 1
    assert calibration.upper(low) >= calibration.apply(low)


@given(reports=REPORTS)
def test_it_can_be_kept_and_comes_back_the_same(reports):
    calibration = learnt(reports)
    packed = msgspec.msgpack.encode(calibration)
    assert msgspec.msgpack.decode(packed, type=Calibration) == calibration
    assert len(packed) < 1_000


def test_the_margin_is_larger_when_cold_and_when_inexact():
    cold, cold_exact = Calibration(), Calibration(exact=True)
    warm = learnt([(e + 900, e) for e in range(5_000, 60_000, 5_000)])

    def margin(c):
        return c.upper(60_000) - c.apply(60_000)

    assert margin(cold) > margin(cold_exact) > 0
    assert margin(warm) < margin(cold) / 5


# Reference counts of the generated kinds, made by lab/bench/fit_families.py.
FIGURES = json.loads(
    Path(__file__)
    .parents[2]
    .joinpath("lab/bench/token_figures.json")
    .read_text(encoding="utf-8")
)
KINDS = generated()
FAMILIES = {
    "claude-opus-4-5": "claude-v3",
    "claude-opus-5-5": "claude-v4.8",
    "gemini-2.5-pro": "gemini",
}


@pytest.mark.parametrize("kind", FIGURES)
@pytest.mark.parametrize("model", FAMILIES)
def test_upper_is_never_under_by_five_percent(kind, model):
    if zlib.crc32(KINDS[kind].encode()) != FIGURES[kind]["crc"]:
        pytest.skip(
            "the standard library of this Python makes another text of this kind"
        )
    counter = counter_for(model)
    estimates = [counter.count(piece) for piece in split(KINDS[kind])]
    truths = FIGURES[kind][FAMILIES[model]]
    assert sum(estimates) == pytest.approx(sum(truths), rel=0.25)
    calibration, estimated, truth = Calibration(), 0, 4_000
    for step, tokens in zip(estimates, truths, strict=True):
        estimated, truth = estimated + step, truth + tokens
        if calibration.replies:
            assert calibration.upper(estimated) >= 0.95 * truth
        assert Calibration().upper(step) >= 0.95 * tokens
        calibration = calibration.observe(truth, estimated)


def test_upper_holds_through_a_session_of_every_kind():
    counter, truth = counter_for("claude-opus-4-5"), exact("o200k_base")
    calibration, estimated, reported = Calibration(), 0, 9_000
    for seed in range(3):
        for text in generated(3_000, seed).values():
            estimated += counter.count(text)
            reported += round(truth.count(text) * 1.25) + 60
            if calibration.replies:
                assert calibration.upper(estimated) >= 0.95 * reported
            calibration = calibration.observe(reported, estimated)

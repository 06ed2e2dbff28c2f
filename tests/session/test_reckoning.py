"""What a request would have come to without ullage: properties, and odd reports."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.replay.evidence.conversation import errand
from ullage import Limits, Session
from ullage.core.values.usage import Usage
from ullage.session.reckoning import beside, counted, sums_of
from ullage.session.spend.calls import Spent

COUNTS = st.integers(0, 300_000)
USAGES = st.builds(
    Usage,
    fresh_tokens=COUNTS,
    cache_read_tokens=COUNTS,
    cache_write_tokens=COUNTS,
    output_tokens=COUNTS,
)


def views(window):
    """The views of an errand, each with the events of its turn."""
    session = Session("claude-sonnet-5", limits=Limits(window_tokens=window), recall=True)
    run = errand(1, turns=40, format="anthropic")
    request = {"model": "claude-sonnet-5", "max_tokens": 100}
    made = []
    for length in range(1, len(run.messages), 2):
        view = session.fit({**request, "messages": run.messages[:length]})
        made.append(view.sent)
        view.observe(Usage(fresh_tokens=view.sent.tokens))
    return made


SMALL = views(16_000)
CUT = next(sent for sent in reversed(SMALL) if not sent.events)
BROKEN = next(sent for sent in SMALL if any(event.kind == "condensed" for event in sent.events))


@given(st.sampled_from(SMALL), USAGES, st.booleans(), st.floats(0, 10_000))
def test_no_class_falls_below_nought_whatever_is_reported(sent, usage, caches, gap_s):
    sums = sums_of(sent, usage, caches=caches, gap_s=gap_s)
    assert min(sums.raw.fresh, sums.raw.read, sums.raw.written, sums.raw.output) >= 0
    assert sums.raw.output == usage.output_tokens
    assert sums.sent.prompt == usage.input_tokens
    assert 0 <= sums.recall_tokens <= usage.input_tokens


def test_what_was_left_out_of_old_messages_would_have_been_read():
    tokens, request = CUT.tokens, counted(CUT)
    usage = Usage(
        cache_read_tokens=tokens - request.new.shown, cache_write_tokens=request.new.shown
    )
    raw = sums_of(CUT, usage).raw
    assert raw.written == request.new.raw
    assert raw.read > 2 * usage.cache_read_tokens


def test_a_cold_cache_would_have_been_cold_for_both():
    usage = Usage(cache_write_tokens=CUT.tokens)
    raw = sums_of(CUT, usage, caches=True, gap_s=400.0).raw
    assert raw.read == 0
    assert raw.written > 2 * usage.cache_write_tokens


@pytest.mark.parametrize(("gap_s", "long", "is_read"), [(60, 0, 1), (400, 0, 0), (400, 9, 1)])
def test_a_prefix_that_we_broke_would_have_been_read_as_long_as_a_cache_lives(gap_s, long, is_read):
    usage = Usage(cache_write_tokens=BROKEN.tokens, long_write_tokens=long)
    raw = sums_of(BROKEN, usage, gap_s=gap_s).raw
    request = counted(BROKEN)
    assert raw.prompt == pytest.approx(request.head + request.old.raw + request.new.raw, abs=9)
    assert bool(raw.read) == bool(is_read)


def test_without_a_cache_all_of_it_is_fresh():
    raw = sums_of(CUT, Usage(fresh_tokens=CUT.tokens)).raw
    assert (raw.read, raw.written) == (0, 0)
    assert raw.fresh > 2 * CUT.tokens


@pytest.mark.parametrize("times", [100, 0.001])
def test_a_report_that_cannot_be_of_this_prompt_is_not_multiplied(times):
    """A server that bills tools of its own, or truncates in silence."""
    usage = Usage(fresh_tokens=int(CUT.tokens * times))
    request = counted(CUT)
    left_out = request.old.raw + request.new.raw - request.old.shown - request.new.shown
    raw = sums_of(CUT, usage).raw
    assert raw.fresh - usage.fresh_tokens <= 2 * left_out


def test_a_prompt_of_nothing_is_nothing():
    sums = sums_of(CUT, Usage())
    assert sums.sent.prompt == 0
    assert sums.raw.prompt >= 0


def test_summaries_cost_and_save_nothing_by_themselves():
    sums = beside(Spent(usage=Usage(fresh_tokens=9, output_tokens=3), cost_usd=0.5, calls=1))
    assert (sums.requests, sums.sent.fresh, sums.sent_usd, sums.raw_usd) == (0, 9, 0.5, 0.0)

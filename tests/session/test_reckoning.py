"""What a request would have come to without ullage: properties, odd reports, and work: counted."""

from cProfile import Profile
from functools import cache, partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.history.test_window import history
from tests.replay.evidence.conversation import errand
from tests.session.test_receipts import asked, recalling
from ullage import Limits, Session
from ullage.core.history.transcript import leaves_of
from ullage.core.values.messages import ToolCall
from ullage.core.values.usage import Usage
from ullage.policy.stages.default import SUMMARISED
from ullage.session.receipts import reckoning, writer
from ullage.session.receipts.reckoning import (
    RangeTokens,
    beside,
    counted,
    sums_of,
)
from ullage.session.spend.calls import Spent
from ullage.session.view import RequestInfo
from ullage.stores import receipts_of

COUNTS = st.integers(0, 300_000)
USAGES = st.builds(
    Usage,
    fresh_tokens=COUNTS,
    cache_read_tokens=COUNTS,
    cache_write_tokens=COUNTS,
    output_tokens=COUNTS,
)


def views(window, **settings):
    """The views of an errand, each with the events of its turn."""
    limits = Limits(window_tokens=window)
    session = Session(
        "claude-sonnet-5", limits=limits, recall=True, **settings
    )
    run = errand(1, turns=40, format="anthropic")
    request = {"model": "claude-sonnet-5", "max_tokens": 100}
    made = []
    for length in range(1, len(run.messages), 2):
        view = session.fit({**request, "messages": run.messages[:length]})
        made.append(view.sent)
        view.observe(Usage(fresh_tokens=view.sent.tokens))
    return made


@cache
def small():
    """The views of a small window."""
    return views(16_000)


def cut():
    """The newest of them whose turn told of no event."""
    return next(sent for sent in reversed(small()) if not sent.events)


@cache
def broken():
    """Messages left this view, and it is long enough for any provider's cache."""
    return next(
        sent
        for sent in views(26_000)
        if sent.events and sent.tokens > reckoning._SHORT_TOKENS
    )


@given(
    st.deferred(lambda: st.sampled_from(small())),
    USAGES,
    st.booleans(),
    st.floats(0, 10_000),
)
def test_no_class_falls_below_nought_whatever_is_reported(
    sent, usage, caches, gap_s
):
    sums = sums_of(counted(sent), usage, caches=caches, gap_s=gap_s)
    assert (
        min(sums.raw.fresh, sums.raw.read, sums.raw.written, sums.raw.output)
        >= 0
    )
    assert sums.raw.output == usage.output_tokens
    assert sums.sent.prompt == usage.input_tokens
    assert 0 <= sums.recall_tokens <= usage.input_tokens


def test_what_was_left_out_of_old_messages_would_have_been_read():
    tokens, request = cut().tokens, counted(cut())
    usage = Usage(
        cache_read_tokens=tokens - request.suffix.view,
        cache_write_tokens=request.suffix.view,
    )
    raw = sums_of(counted(cut()), usage).raw
    assert raw.written == request.suffix.raw
    assert raw.read > 2 * usage.cache_read_tokens


def test_a_cold_cache_would_have_been_cold_for_both():
    usage = Usage(cache_write_tokens=cut().tokens)
    raw = sums_of(counted(cut()), usage, caches=True, gap_s=400.0).raw
    assert raw.read == 0
    assert raw.written > 2 * usage.cache_write_tokens


@pytest.mark.parametrize(
    ("gap_s", "long", "is_read"), [(60, 0, 1), (400, 0, 0), (400, 9, 1)]
)
def test_a_prefix_that_we_broke_would_have_been_read_as_long_as_a_cache_lives(
    gap_s, long, is_read
):
    usage = Usage(cache_write_tokens=broken().tokens, long_write_tokens=long)
    raw = sums_of(counted(broken()), usage, gap_s=gap_s).raw
    request = counted(broken())
    assert raw.prompt == pytest.approx(
        request.head + request.prefix.raw + request.suffix.raw, abs=9
    )
    assert bool(raw.read) == bool(is_read)


def test_without_a_cache_all_of_it_is_fresh():
    raw = sums_of(counted(cut()), Usage(fresh_tokens=cut().tokens)).raw
    assert (raw.read, raw.written) == (0, 0)
    assert raw.fresh > 2 * cut().tokens


@pytest.mark.parametrize("times", [100, 0.001])
def test_a_report_that_cannot_be_of_this_prompt_is_not_multiplied(times):
    """A server that bills tools of its own, or truncates in silence."""
    usage = Usage(fresh_tokens=int(cut().tokens * times))
    request = counted(cut())
    left_out = (
        request.prefix.raw
        + request.suffix.raw
        - request.prefix.view
        - request.suffix.view
    )
    raw = sums_of(counted(cut()), usage).raw
    assert raw.fresh - usage.fresh_tokens <= 2 * left_out


def test_a_prompt_of_nothing_is_nothing():
    sums = sums_of(counted(cut()), Usage())
    assert sums.sent.prompt == 0
    assert sums.raw.prompt >= 0


def test_summaries_cost_and_save_nothing_by_themselves():
    sums = beside(
        Spent(
            usage=Usage(fresh_tokens=9, output_tokens=3), cost_usd=0.5, calls=1
        )
    )
    assert (sums.requests, sums.sent.fresh, sums.sent_usd, sums.raw_usd) == (
        0,
        9,
        0.5,
        0.0,
    )


# ── running sums ─────────────────────────────────────────────────────────────────────────


def walked(sent):
    """The same two sides, worked out of each message of a view by itself."""
    window, messages = sent.window, sent.transcript.messages
    size = end = sent.size
    while end and messages[end - 1].role != "assistant":
        end -= 1
    start = end
    while start and messages[start - 1].role == "assistant":
        start -= 1
    old, new = RangeTokens(view=window.summaries_tokens), RangeTokens()
    for index in range(size):
        side, message = (old if index < start else new), messages[index]
        recall = 0
        for number, item, _ in leaves_of(message):
            spot = (index, number, item)
            if window.is_recall(spot):
                is_call = isinstance(message.parts[number], ToolCall)
                frames = window.meter.overhead
                recall += window.leaf_tokens(spot) + (
                    frames.call if is_call else frames.result
                )
        side.raw += (
            window.meter.framing(message)
            + sum(window.leaf_counts(index))
            - recall
        )
        if not window.hidden(index):
            side.view += window.message_tokens(index)
            side.recall += recall
    return old, new


def recalled():
    """The views of a conversation that read on."""
    session, request, said = recalling()
    made = [session.fit(request)]
    made[-1].observe(Usage(fresh_tokens=made[-1].sent.estimate))
    said += [
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Thanks."},
    ]
    made.append(session.fit(request))
    made[-1].observe(Usage(fresh_tokens=made[-1].sent.estimate))
    return [view.sent for view in made]


@pytest.mark.parametrize(
    "made",
    [small, partial(views, 16_000, policy=SUMMARISED), recalled],
    ids=["cut", "summed up", "read"],
)
def test_running_sums_come_to_what_each_message_comes_to(made):
    for sent in made():
        assert sent.counts == counted(sent), (
            "the working window, and the frozen one"
        )
        assert (sent.counts.prefix, sent.counts.suffix) == walked(sent)


def test_a_reply_that_comes_late_is_counted_of_its_own_view():
    session, request, said = recalling()
    early = session.fit(request)
    said += [
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Thanks."},
    ]
    late = session.fit(request)
    for view in (late, early):
        view.observe(Usage(fresh_tokens=view.sent.estimate))
    assert (early.sent.counts.prefix, early.sent.counts.suffix) == walked(
        early.sent
    )
    assert early.sent.counts.is_extra
    assert not late.sent.counts.is_extra


def test_the_views_have_what_the_sums_are_about():
    assert any(sent.window.summaries for sent in small())
    for sent in recalled():
        assert sent.window.changed
        assert sent.counts.prefix.recall or sent.counts.suffix.recall


def observing(messages, *, observed=4):
    """The calls of functions for one of the last replies to a history of so many messages."""
    said = history(
        *(
            f"{number} the tide came in\n" * 60
            for number in range(messages // 2)
        )
    )
    session, profile = Session("gpt-4.1"), Profile()
    for length in range(1, messages, 2):
        view = session.fit({"model": "gpt-4.1", "messages": said[:length]})
        usage = Usage(fresh_tokens=view.sent.tokens, output_tokens=9)
        if length > messages - 2 * observed:
            profile.runcall(view.observe, usage)
        else:
            view.observe(usage)
    return sum(entry.callcount for entry in profile.getstats()) / observed


def test_a_reply_costs_the_same_however_many_messages_came_before(monkeypatch):
    monkeypatch.setattr(
        writer, "MOST_NOTED", 1
    )  # worked out and written with each reply
    assert observing(400) < 1.3 * observing(100)


def test_what_is_noted_holds_no_view():
    session = Session("gpt-4.1")
    for number in range(3):
        session.fit(asked(f"Go {number}."))
        session.observe(Usage(fresh_tokens=3))
    noted = writer.ledger_of(receipts_of(session.store))._notes
    assert len(noted) == 2
    assert not any(
        isinstance(value, RequestInfo) for one in noted for value in one
    )

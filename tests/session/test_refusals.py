"""What a refusal teaches of a provider's limits, how far, to whom, and what takes it back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import histories
from tests.histories import MODEL, Turn
from tests.sessions import request, turn
from ullage import Limits, OverLimitError, Session
from ullage.core.values.events import Event
from ullage.core.values.limits import ServedWindow
from ullage.core.values.usage import Usage
from ullage.session.provider.refusals import (
    LEAST_SHARE,
    LEAST_TOKENS,
    SHORT_REPLIES,
)
from ullage.stores import MemoryStore
from ullage.wires import FORMATS

every = pytest.mark.parametrize("format", tuple(FORMATS))
WINDOW = 40_000
LIMITS = Limits(window_tokens=WINDOW, output_reserve_tokens=0)
UNSEEN = "prompt is too long: 250000 tokens > 200000 maximum"
"""The request is small; something in it that is not seen (a file by its id) is large."""
UNNAMED = "context_length_exceeded"


def history(turns, start="I shall look.", format="openai-chat"):
    """A conversation of so many turns of some 1,300 tokens each, as a request."""
    said = [
        Turn(
            said=f"{start} Step {n}.",
            user=f"{n}: " + "and then it failed again, " * 220,
        )
        for n in range(turns)
    ]
    return request(format, histories.wire(format, said))


def counted(tokens):
    """The report of a prompt of so many tokens."""
    return Usage(fresh_tokens=tokens, output_tokens=9)


def too_long(size, limit):
    return f"prompt is too long: {size} tokens > {limit} maximum"


def told(session, kind="refused"):
    return [event.why for event in session.events if event.kind == kind]


# ── a floor ──────────────────────────────────────────────────────────────────────────────


@every
def test_refusals_that_cannot_be_meant_change_nothing(format):
    session = Session(MODEL[format], format=format)
    asked = history(3, format=format)
    view = session.fit(asked)
    for _ in range(6):
        assert view.refused(UNSEEN) is None, "the provider's own error stands"
        again = session.fit(asked)
        assert (again, again.sent.limit_tokens) == (
            view,
            view.sent.limit_tokens,
        )
        view = again
    assert "no shorter one is sent" in told(session)[-1]


def test_a_provider_that_names_no_window_gets_one_shorter_view_and_then_its_error_stands():
    session = Session("gpt-4.1")
    view = session.fit(history(4))
    assert view.refused(UNNAMED)
    shorter = session.fit(history(4))
    assert shorter.sent.estimate < view.sent.estimate
    assert shorter.refused(UNNAMED) is None
    assert session.fit(history(4)).sent.limit_tokens >= LEAST_SHARE * 1_000_000


def test_no_refusal_lowers_a_limit_below_what_was_accepted_before():
    session = Session("gpt-4.1", limits=LIMITS)
    session.fit(history(12)).observe(counted(17_000))
    assert session.fit(history(14)).refused(UNNAMED)
    assert session.fit(history(14)).sent.limit_tokens == 17_000
    for words in (
        UNNAMED,
        too_long(21_000, 12_000),
        too_long(9_000_000, 1_000),
    ):
        assert session.fit(history(14)).refused(words) is None
        assert session.fit(history(14)).sent.limit_tokens == 17_000
    assert "17,000 tokens were accepted before" in told(session)[-1]


def test_numbers_by_which_hardly_an_empty_request_would_do_teach_nothing():
    session = Session("gpt-4.1", limits=LIMITS)
    assert session.fit(history(14)).refused(too_long(9_000_000, 1_000)) is None
    assert session.fit(history(14)).sent.limit_tokens == WINDOW


def test_a_report_summed_over_many_calls_is_no_prompt_that_was_accepted():
    session = Session("gpt-4.1")
    session.fit(history(3)).observe(counted(900_000))
    view = session.fit(history(20))
    assert view.refused(too_long(27_000, 20_000))
    assert session.fit(history(20)).sent.limit_tokens <= 20_000


def test_a_lowered_limit_that_nothing_fits_stands_in_nobodys_way():
    said = {"role": "system", "content": "It is a rule that holds. " * 2_000}
    asked = {
        "model": "gpt-4.1",
        "messages": [said, {"role": "user", "content": "Go."}],
    }
    session = Session("gpt-4.1")
    view = session.fit(asked)
    assert view.refused(UNNAMED)
    with pytest.raises(OverLimitError):
        session.fit(asked)
    assert session.fit(asked) == view


def test_what_another_worker_had_accepted_counts():
    store = MemoryStore()
    first, second = (
        Session("gpt-4.1", limits=LIMITS, store=store) for _ in "ab"
    )
    first.fit(history(12)).observe(counted(17_000))
    for _ in range(6):
        second.fit(history(14)).refused(UNNAMED)
    assert second.fit(history(14)).sent.limit_tokens == 17_000


def test_a_long_answer_may_leave_less_than_was_accepted_beside_a_short_one():
    session = Session("gpt-4.1", limits=LIMITS)
    session.fit(history(12)).observe(counted(17_000))
    words = "input length and `max_tokens` exceed context limit: 19000 + 25000 > 40000"
    assert session.fit(history(14)).refused(words)
    assert session.fit(history(14)).sent.limit_tokens <= 40_000 - 25_000


def test_of_a_model_that_is_not_known_a_sensible_minimum_stays():
    asked = {**history(12), "model": "no-such-model-9000"}
    session = Session("no-such-model-9000", format="openai-chat")
    for _ in range(12):
        session.fit(asked).refused(UNNAMED)
    assert session.fit(asked).sent.limit_tokens == LEAST_TOKENS


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.one_of(
            st.tuples(
                st.just("named"),
                st.integers(1, 90_000),
                st.integers(1, 90_000),
            ),
            st.tuples(st.just("unnamed"), st.just(0), st.just(0)),
            st.tuples(
                st.just("accepted"), st.integers(1_000, WINDOW), st.just(0)
            ),
        ),
        max_size=12,
    )
)
def test_whatever_a_provider_says_a_limit_has_a_floor(answers):
    session = Session("gpt-4.1", limits=LIMITS)
    accepted = 0
    named = WINDOW
    for turns, (kind, size, limit) in enumerate(answers, 2):
        try:
            view = session.fit(history(turns))
        except OverLimitError:
            return  # what may not be cut is longer than what the provider takes
        if kind == "accepted":
            view.observe(counted(size))
            if (
                session.events[-1].kind == "observed"
                and size > view.sent.tokens // 2
            ):
                accepted = max(accepted, min(size, 2 * view.sent.tokens))
            continue
        shorter = view.refused(
            UNNAMED if kind == "unnamed" else too_long(size, limit)
        )
        if kind == "named" and limit >= 1_000:
            named = min(named, limit)
        if shorter is None:
            continue
        try:
            lowered = session.fit(history(turns)).sent.limit_tokens
        except OverLimitError as over:
            lowered = over.limit_tokens
        assert lowered < view.sent.estimate
        floor = 1 if kind == "unnamed" else int(named * LEAST_SHARE)
        assert lowered >= max(floor, min(accepted, view.sent.estimate - 1))


# ── to whom ──────────────────────────────────────────────────────────────────────────────


def test_each_conversation_has_its_own_limits():
    session = Session("gpt-4.1", limits=LIMITS)
    session.fit(history(14))
    assert session.refused(too_long(20_000, 12_000))
    assert session.fit(history(14)).sent.limit_tokens < 12_000
    assert (
        session.fit(history(14, start="Another task.")).sent.limit_tokens
        == WINDOW
    )
    other_model = {**history(14), "model": "gpt-4.1-mini"}
    assert session.fit(other_model).sent.limit_tokens == WINDOW
    assert session.fit(history(15)).sent.limit_tokens < 12_000, (
        "the first goes on"
    )


# ── a way back ───────────────────────────────────────────────────────────────────────────


def test_a_reply_that_was_counted_takes_a_lowered_limit_back_and_a_named_window_stays():
    session = Session("gpt-4.1", limits=LIMITS)
    session.fit(history(14))
    session.refused(too_long(20_000, 16_000))
    session.fit(history(14)).observe(counted(14_000))
    assert session.fit(history(15)).sent.limit_tokens == 16_000


def test_an_accepted_prompt_larger_than_the_named_window_takes_the_name_back():
    session = Session("gpt-4.1", limits=LIMITS)
    session.fit(history(14))
    session.refused(too_long(20_000, 12_000))
    session.fit(history(14)).observe(counted(12_500))
    assert session.fit(history(15)).sent.limit_tokens == WINDOW


def test_replies_without_usage_take_a_limit_back_step_by_step():
    session = Session("gpt-4.1", limits=LIMITS)
    session.fit(history(14))
    session.refused(UNNAMED)
    limits = []
    for turns in range(14, 24):
        view = session.fit(history(turns))
        limits.append(view.sent.limit_tokens)
        view.observe({"choices": []})
    assert limits == sorted(limits)
    assert limits[-1] == WINDOW


# ── what the model's server tells ────────────────────────────────────────────────────────


def told_of(tokens):
    return ServedWindow(
        tokens,
        Event(kind="window_found", where="model", why="the server says so"),
    )


def test_the_window_that_a_server_tells_holds_from_the_next_view_on_and_is_told_once():
    session, served = Session("gpt-4.1"), told_of(9_000)
    assert session.fit(history(2)).sent.limit_tokens > 100_000
    assert session.serve_with(served) == served.event
    assert session.serve_with(served) is None
    assert session.fit(history(2)).sent.limit_tokens == 8_000
    assert told(session, "window_found") == ["the server says so"]


def test_what_cannot_be_a_window_changes_no_limit_and_nothing_does_where_one_was_given():
    session = Session("gpt-4.1")
    assert session.serve_with(told_of(None)) is not None
    assert session.fit(history(2)).sent.limit_tokens > 100_000
    given = Session("gpt-4.1", limits=LIMITS)
    assert given.serve_with(told_of(9_000)) is None
    assert given.fit(history(2)).sent.limit_tokens == WINDOW


# ── one text over a limit of its own ─────────────────────────────────────────────────────


def text_too_long(size, limit):
    return (
        "Invalid 'input[2].output': string too long. Expected a string with maximum length "
        f"{limit}, but got a string with length {size} instead."
    )


MARK = "the one line that says it"
LONG = "x = 1\n" * 5_000 + MARK + "\n" + "y = 2\n" * 5_000


def long_result(format):
    return request(
        format, histories.wire(format, [turn("short\n"), turn(LONG)])
    )


def texts(value):
    """Every text in a request."""
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value
    return (
        [t for item in items for t in texts(item)]
        if isinstance(value, (dict, list))
        else []
    )


@every
def test_a_result_over_a_limit_of_its_own_is_cut_and_opens_again(format):
    store = MemoryStore()
    session = Session(MODEL[format], format=format, recall=False, store=store)
    first = session.fit(long_result(format))
    assert max(map(len, texts(first))) == len(LONG)
    found = first.refused(text_too_long(len(LONG), 20_000))
    assert (found.by, found.limit_chars) == ("text", 20_000)
    view = session.fit(long_result(format))
    assert max(map(len, texts(view))) <= 20_000
    (event,) = [event for event in view.events if event.kind == "truncated"]
    assert session.output_ref(event.ref).byte_size == len(LONG)
    cold = Session(MODEL[format], format=format, recall=False, store=store)
    assert cold.fit(long_result(format)) == view, "on every worker"


def test_a_text_that_comes_later_is_cut_before_it_is_refused():
    session = Session("gpt-4.1", recall=False)
    session.fit(long_result("openai-chat")).refused(
        text_too_long(len(LONG), 20_000)
    )
    messages = histories.wire(
        "openai-chat", [turn("short\n"), turn(LONG), turn(LONG + "again")]
    )
    view = session.fit(request("openai-chat", messages))
    assert max(map(len, texts(view))) <= 20_000


def test_what_the_user_said_is_cut_where_it_alone_is_over_the_limit():
    session = Session("gpt-4.1", recall=False)
    asked = {
        "model": "gpt-4.1",
        "messages": [{"role": "user", "content": LONG}],
    }
    assert session.fit(asked).refused(text_too_long(len(LONG), 20_000))
    (message,) = session.fit(asked)["messages"]
    assert len(message["content"]) <= 20_000
    assert message["content"].startswith("x = 1\n")


def test_a_provider_that_counts_bytes_is_understood():
    said = "é" * 15_000
    session = Session("gpt-4.1", recall=False)
    asked = {
        "model": "gpt-4.1",
        "messages": [{"role": "user", "content": said}],
    }
    assert session.fit(asked).refused(text_too_long(30_000, 20_000))
    (message,) = session.fit(asked)["messages"]
    assert len(message["content"].encode()) <= 20_000


def test_where_no_text_is_over_the_limit_the_providers_error_stands():
    session = Session("gpt-4.1", recall=False)
    view = session.fit(long_result("openai-chat"))
    assert view.refused(text_too_long(200_000, 100_000)) is None
    assert session.fit(long_result("openai-chat")) == view
    system = [
        {"role": "system", "content": LONG},
        {"role": "user", "content": "Go."},
    ]
    view = session.fit({"model": "gpt-4.1", "messages": system})
    assert view.refused(text_too_long(len(LONG), 20_000)) is None


# ── a provider that cuts prompts and says nothing ────────────────────────────────────────


def cut_at(session, most_tokens, turns):
    """A provider that keeps only so much of each prompt."""
    for n in turns:
        view = session.fit(history(n))
        view.observe(counted(min(view.sent.tokens, most_tokens)))
    return view


def test_a_provider_that_cuts_prompts_silently_is_told_of_once_and_shown_on():
    session = Session("gpt-4.1", limits=Limits(window_tokens=100_000))
    view = cut_at(session, 2_048, range(2, 6))
    assert told(session, "undercounted") == []
    assert not view.sent.is_undercounted
    view = cut_at(session, 2_048, range(6, 12))
    (why,) = told(session, "undercounted")
    assert f"{SHORT_REPLIES} times in a row" in why
    assert "num_ctx" in why
    assert view.sent.is_undercounted
    estimate = session.window.estimate
    assert estimate > 0.9 * session.window.tokens, "it is estimated as before"
    cut_at(session, 100_000, range(12, 14))
    assert not session.fit(history(14)).sent.is_undercounted


def test_a_count_far_too_small_to_be_taken_in_is_noticed_too():
    session = Session("gpt-4.1", limits=Limits(window_tokens=100_000))
    for turns in range(30, 34):
        session.fit(history(turns)).observe(counted(512))
    assert len(told(session, "undercounted")) == 1


def test_honest_counts_are_no_sign_of_it():
    session = Session("gpt-4.1")
    cut_at(session, 10**9, range(1, 12))
    assert told(session, "undercounted") == []

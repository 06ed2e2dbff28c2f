"""Events told as they happen: to the caller's function, and to the standard log by level."""

import json
import logging
from typing import get_args

import pytest

import ullage
from tests.cli.terminal import conversation
from tests.histories import CUTS_ALWAYS
from ullage.core.values.events import Kind
from ullage.session.telling import LEVELS

SECRET = "the tide comes in at noon\n"


def fitted(**settings):
    """A session from its first message to a request whose result is cut when first seen."""
    limits = ullage.Limits(window_tokens=16_000)
    session = ullage.Session(
        "gpt-4.1", policy=CUTS_ALWAYS, limits=limits, **settings
    )
    request = conversation(SECRET * 8_000)
    session.fit({**request, "messages": request["messages"][:1]})
    session.fit(request)
    return session


def test_each_event_is_told_once_in_order_as_it_is_listed():
    told = []
    session = fitted(on_event=told.append)
    assert [event.kind for event in told] == ["truncated"]
    session.observe(
        {"usage": {"prompt_tokens": 9_000, "completion_tokens": 5}}
    )
    assert tuple(told) == session.events
    assert told[-1].kind == "observed"


def test_a_result_that_two_stages_cut_at_once_is_told_of_once():
    """Rows are made a table of three limits, and then shortened to one: the window is small."""
    rows = [
        {"id": number, "name": f"barrel {number}", "is_full": number % 2 == 0}
        for number in range(600)
    ]
    request = conversation(json.dumps(rows), name="barrels")
    limits = ullage.Limits(window_tokens=16_000)
    session = ullage.Session("gpt-4.1", policy=CUTS_ALWAYS, limits=limits)
    session.fit({**request, "messages": request["messages"][:1]})
    view = session.fit(request)
    (event,) = session.events
    assert event.kind == "truncated"
    whole, shown = json.dumps(rows), view["messages"][2]["content"]
    assert len(shown) < 8_500
    # the tokens are those of the whole and of what is shown, and of nothing between
    assert event.tokens_before > len(whole) / 5
    assert event.tokens_after < len(shown)
    assert event.tokens_after / event.tokens_before < 0.3


def test_the_log_says_what_where_and_with_which_numbers_but_no_content(caplog):
    with caplog.at_level(logging.DEBUG, "ullage"):
        session = fitted()
    (record,) = caplog.records
    (event,) = session.events
    assert (record.name, record.levelno) == ("ullage", logging.DEBUG)
    assert (
        record.getMessage()
        == f"truncated: {event.where}: {event.why}, ref={event.ref}"
    )
    assert "tide" not in caplog.text


def test_a_model_nobody_knows_is_a_warning(caplog):
    with caplog.at_level(logging.WARNING, "ullage"):
        ullage.Session("").fit(
            {**conversation("all is well"), "model": "barrel-9"}
        )
    assert [
        (r.levelname, r.getMessage().split(":")[0]) for r in caplog.records
    ] == [("WARNING", "unknown_model")]


def test_a_budget_that_is_nearly_spent_is_a_warning(caplog):
    budget = ullage.Budget(tokens=20_000)
    session = fitted(budget=budget)
    session.observe(
        {"usage": {"prompt_tokens": 18_500, "completion_tokens": 5}}
    )
    kinds = {
        r.getMessage().split(":")[0]
        for r in caplog.records
        if r.levelname == "WARNING"
    }
    assert kinds & {"warned", "wrapped_up"}


def test_a_function_that_fails_costs_no_turn_and_is_logged_without_its_words(
    caplog,
):
    def fails(event):
        raise RuntimeError(SECRET)

    session = fitted(on_event=fails)
    assert [event.kind for event in session.events] == ["truncated"]
    assert caplog.messages == ["on_event failed: RuntimeError"]


def test_an_interrupt_in_it_is_the_callers():
    def interrupts(event):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted(on_event=interrupts)


def test_every_kind_with_a_level_is_a_kind():
    assert set(LEVELS) <= set(get_args(Kind))


def test_a_session_tells_what_it_holds():
    assert repr(ullage.Session("gpt-4.1")).endswith("nothing was fitted yet>")
    said = repr(fitted())
    assert said.startswith("<Session, policy default-")
    assert "3 messages for gpt-4.1: " in said
    assert " tokens (" in said
    assert "tide" not in said


def test_a_view_tells_how_large_it_is_and_nothing_of_what_it_says():
    session = ullage.Session(
        "gpt-4.1", limits=ullage.Limits(window_tokens=16_000)
    )
    request = conversation(SECRET * 8_000)
    view = session.fit(request)
    said = repr(view)
    assert said.startswith("<View: 3 messages for gpt-4.1: ")
    assert "tide" not in said
    assert str(view) == repr(dict(view)), "printed, it is what is sent"
    view.observe({"usage": {"prompt_tokens": 2_000, "completion_tokens": 5}})
    told = repr(view)
    more = [*request["messages"], {"role": "assistant", "content": "noon"}]
    session.fit(
        {
            **request,
            "messages": [*more, {"role": "user", "content": SECRET * 100}],
        }
    )
    assert repr(view) == told, "and goes on to, once the session has moved on"


def test_what_lasts_is_a_warning_once_and_an_event_each_time(caplog):
    """A summariser that fails is asked again turn by turn: the log says so once."""

    def fails(_):
        raise RuntimeError("401")

    told = []
    limits = ullage.Limits(window_tokens=16_000)
    session = ullage.Session(
        "gpt-4.1",
        policy="output_cache",
        limits=limits,
        summariser=fails,
        on_event=told.append,
    )
    request = conversation(SECRET * 400)
    messages = request["messages"]
    with caplog.at_level(logging.DEBUG, "ullage"):
        for turn in range(1, 12):
            session.fit(
                {**request, "messages": [*messages, *messages[1:] * turn]}
            )
    lines = [
        r
        for r in caplog.records
        if r.getMessage().startswith("summary_refused")
    ]
    assert (
        len(lines)
        == sum(event.kind == "summary_refused" for event in told)
        > 1
    )
    assert [r.levelname for r in lines] == ["WARNING"] + ["INFO"] * (
        len(lines) - 1
    )

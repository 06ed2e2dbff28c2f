"""How much work a turn is: counted, not timed. What is as it was is not worked out again."""

import json
import sys
from collections import Counter
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests import histories
from tests.histories import Call, Turn
from ullage import FormatError, Limits, MemoryStore, OverLimitError, Session
from ullage.core.history import canon
from ullage.core.history.builder import WindowBuilder
from ullage.core.history.remembered import REMEMBERED
from ullage.core.history.window import Window
from ullage.core.tokens.meter import Meter
from ullage.core.values.usage import Usage
from ullage.policy.stages.default import DEFAULT
from ullage.wires import FORMATS

ALL = sorted(histories.MODEL)
KEY = {format: FORMATS[format].key for format in ALL}


@pytest.fixture
def work(monkeypatch):
    """How often messages are parsed, digested and edited, whatever the format."""
    count = Counter()

    def counting(owner, name):
        whole = getattr(owner, name)

        def counted(*args, **more):
            count[name] += 1
            return whole(*args, **more)

        monkeypatch.setattr(owner, name, counted)

    counting(canon, "digest_of")
    for wire in FORMATS.values():
        counting(type(wire), "parse")
        counting(type(wire), "edit")
    return count


CUTTING = replace(DEFAULT, name="cutting", under_pressure=())
"""Cuts at first sight, and makes no batch."""
VAST = Limits(window_tokens=10**6)


def step(format, number):
    """A turn whose result is cut at first sight."""
    call = histories.Call("bash", "a", f"{number} of many lines\n" * 600)
    return histories.wire(
        format, [histories.Turn(said="ok", calls=(call,))], start=number
    )


def started(format, turns=40):
    """A session, and a history of which every result is cut."""
    messages = [histories.user(format, "Go on.")]
    for number in range(1, turns):
        messages += step(format, number)
    session = Session(
        histories.MODEL[format],
        recall=True,
        format=format,
        policy=CUTTING,
        limits=VAST,
    )
    session.fit(histories.request(format, messages))
    assert len(session.window.changed) == turns - 1
    return session, messages


@pytest.mark.parametrize("format", ALL)
def test_a_turn_parses_and_edits_what_is_new_and_nothing_else(format, work):
    session, messages = started(format)
    for number in range(40, 45):
        new = step(format, number)
        messages += new
        work.clear()
        session.fit(histories.request(format, messages))
        assert work == {"parse": len(new), "digest_of": len(new), "edit": 1}
    work.clear()
    session.fit(histories.request(format, messages))
    assert not work


@pytest.mark.parametrize("format", ALL)
def test_an_edited_message_is_the_same_object_at_every_turn(format):
    session, messages = started(format)
    one = session.fit(histories.request(format, messages))[KEY[format]]
    two = session.fit(
        histories.request(format, [*messages, *step(format, 40)])
    )[KEY[format]]
    assert all(a is b for a, b in zip(one, two, strict=False))
    assert one is not two


def edited(session, messages):
    """The first message of a view that the session edited, and its index."""
    index = min(session.window.changed)
    return messages[index], index


def marked(message):
    """The innermost dicts of a message, where callers put cache markers."""
    inner = [message]
    for value in message.values():
        inner += (
            [block for block in value if isinstance(block, dict)]
            if type(value) is list
            else []
        )
    return inner


@pytest.mark.parametrize("format", ALL)
def test_what_a_caller_writes_into_a_view_is_not_in_the_next(format, work):
    session, messages = started(format)
    request = histories.request(format, messages)
    view = session.fit(request)[KEY[format]]
    message, index = edited(session, view)
    before = repr(message)
    marked(message)[0]["cache_control"] = {"type": "ephemeral"}
    work.clear()
    assert repr(session.fit(request)[KEY[format]][index]) == before
    assert work == {"edit": 1}


@pytest.mark.parametrize("format", ALL)
def test_what_a_caller_writes_into_an_edited_message_of_his_is_in_the_view(
    format, work
):
    """In place, or in a copy that takes its place: the same text, another marker."""
    session, messages = started(format)
    session.fit(histories.request(format, messages))
    _, index = edited(session, messages)
    messages[index]["cache_control"] = {"type": "ephemeral"}
    view = session.fit(histories.request(format, messages))[KEY[format]]
    assert view[index]["cache_control"] == {"type": "ephemeral"}
    messages[index] = dict(reversed(messages[index].items()))
    view = session.fit(histories.request(format, messages))[KEY[format]]
    assert list(view[index]) == list(messages[index]), (
        "in the order of the caller's own"
    )


@pytest.mark.parametrize("format", ALL)
def test_a_history_that_is_read_from_json_anew_is_not_edited_anew(
    format, work
):
    session, messages = started(format)
    request = histories.request(format, messages)
    view = dict(session.fit(json.loads(json.dumps(request))))
    work.clear()
    assert dict(session.fit(json.loads(json.dumps(request)))) == view
    assert "edit" not in work


def test_a_batch_that_stands_is_not_shown_again(monkeypatch):
    """Users who go on without a reply: every batch is under the one key."""
    applied, apply = [], WindowBuilder.apply
    watched = lambda builder, e: applied.append(e) or apply(builder, e)  # noqa: E731
    monkeypatch.setattr(WindowBuilder, "apply", watched)
    session = Session(
        "gpt-4.1", recall=True, limits=Limits(window_tokens=16_000)
    )
    messages = histories.wire("openai-chat", [])
    for number in range(80):
        more = step("openai-chat", number)
        messages += (
            more[1:] if number else more
        )  # nothing but results behind the first call
        session.fit({"messages": messages})
    told = [event for event in session.events if event.kind in SHOWN]
    assert len({event.ref for event in told}) < len(told), (
        "some were cut again"
    )
    assert len(applied) <= len(told)


@contextmanager
def python_calls():
    """How many functions of Python are called meanwhile, by name. What C does is not among them."""
    count = Counter()

    def look(frame, event, _):
        if event == "call":
            count[frame.f_code.co_qualname] += 1

    sys.setprofile(look)
    try:
        yield count
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("format", ALL)
def test_a_turn_of_a_long_history_that_is_repaired_calls_nothing_for_each_message(
    format,
):
    """What stands there unchanged is compared in C."""
    calls = []
    for turns in (50, 400):
        messages = [histories.user(format, "Go on.")]
        for number in range(turns):
            call = Call("bash", f"{number}", "the tide is in")
            messages += histories.wire(
                format, [Turn(said="ok", calls=(call,))], start=number
            )
        session = Session(
            histories.MODEL[format], format=format, repair=True, limits=VAST
        )
        for _ in range(2):
            session.fit(histories.request(format, messages))
            messages += step(format, len(messages))
        with python_calls() as count:
            session.fit(histories.request(format, messages))
        calls.append(count)
    few, many = calls
    grown = {name: many[name] - few[name] for name in many}
    assert not {name: more for name, more in grown.items() if more > 50}


def test_a_turn_behind_many_records_lays_each_out_in_a_few_calls():
    """They are laid out at every turn; one that leaves nothing in the view costs little."""
    session = Session(
        "gpt-4.1", recall=True, limits=Limits(window_tokens=24_000)
    )
    messages = [histories.user("openai-chat", "Go on.")]
    for number in range(150):
        messages += step("openai-chat", number)
        if number % 5 == 4:
            messages.append(histories.user("openai-chat", f"Now {number}."))
        session.fit({"messages": messages})
    records = len(session.window.summaries)
    assert records > 20
    with python_calls() as count:
        session.fit({"messages": messages})
    layout = {"layout", "_lay_summary", "_lay_system", "ReplaceSpan.opening"}
    inner = [name for name in count if name.partition(".")[0] in layout]
    assert sum(count[name] for name in inner) <= 2 * records + 1


# ── what is worked out from content ──────────────────────────────────────────────────────


@pytest.fixture
def made(monkeypatch):
    """What is cut, made a digest of and counted, by its first characters, in a new process."""
    stages, count = sys.modules, Counter()
    Session(
        "gpt-4.1"
    )  # the samples that tell one policy from another are cut once

    def counting(owner, name, kind, text):
        whole = getattr(owner, name)

        def counted(*args, **more):
            if len(text(*args)) > LONG_CHARS:
                count[kind] += 1
            return whole(*args, **more)

        monkeypatch.setattr(owner, name, counted)

    counting(
        stages["ullage.policy.stages.truncate"],
        "shorten",
        "cut",
        lambda text, *_: text,
    )
    counting(
        stages["ullage.policy.stages.placeholders"],
        "read",
        "digest",
        lambda text, *_: text,
    )
    counting(
        Meter,
        "_leaf",
        "counted",
        lambda meter, leaf, text, _: counted_text(leaf, text),
    )
    REMEMBERED.clear()
    return count


LONG_CHARS = 2_000


def counted_text(leaf, count):
    """The text of a leaf that is tokenised; none where only its bound is asked for."""
    return "" if count.__name__ == "bound" else getattr(leaf, "text", "")


def history(format, turns=60):
    messages = [histories.user(format, "Go on.")]
    for number in range(1, turns):
        messages += step(format, number)
    return messages


def fit(format, messages, store=None, limits=VAST, **more):
    session = Session(
        histories.MODEL[format],
        recall=True,
        format=format,
        limits=limits,
        store=store,
        **more,
    )
    session.fit(histories.request(format, messages))
    return session


RETOLD = {
    "a retry": lambda format, messages: [*messages[:-1], step(format, 99)[-1]],
    "a word more": lambda format, messages: [
        *messages,
        histories.user(format, "And then?"),
    ],
    "an edit": lambda format, messages: [
        *messages[:61],
        histories.user(format, "Stop."),
        *messages[61:],
    ],
    "a rewind": lambda format, messages: messages[:61],
    "a fork": lambda format, messages: [*messages[:61], *step(format, 99)],
    "another beginning": lambda format, messages: [
        histories.user(format, "Go on, please."),
        *messages[1:],
    ],
    "the same": lambda format, messages: messages,
}


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("how", RETOLD)
@pytest.mark.parametrize("format", sorted(histories.APART))
def test_a_history_told_anew_is_cut_and_counted_only_where_it_is_new(
    format, how, restarted, made
):
    messages = history(format)
    session = fit(format, messages)
    assert made["cut"] == 59
    assert made["digest"] > 20
    made.clear()
    session = fit(format, messages) if restarted else session
    assert not made, "by another session of this process"
    retold = RETOLD[how](format, messages)
    session.fit(histories.request(format, retold))
    is_new = how in (
        "a retry",
        "a fork",
    )  # a result that nobody cut or counted before
    assert made["cut"] <= is_new
    assert made["counted"] <= is_new
    assert not made["digest"]


@pytest.mark.parametrize("back", [1, 2, 3])
@pytest.mark.parametrize("format", ALL)
def test_a_history_that_forks_near_its_end_is_not_walked_from_its_beginning(
    format, back, monkeypatch
):
    messages, tail = history(format), step(format, 98)
    at = len(messages) - back * len(tail)
    session = fit(format, messages)
    walked, extend = [], WindowBuilder.extend

    def watched(builder, length):
        walked.append(length - builder.window.size)
        extend(builder, length)

    monkeypatch.setattr(WindowBuilder, "extend", watched)
    session.fit(histories.request(format, [*messages[:at], *tail]))
    assert sum(walked) <= 2 * len(tail) + 1
    session.fit(histories.request(format, messages))
    assert sum(walked) <= 2 * len(tail) + 1, "the line it forked from goes on"


@pytest.mark.parametrize("format", ALL)
def test_a_history_that_forks_where_it_was_taken_up_is_not_walked_from_its_beginning(
    format, monkeypatch
):
    messages, walked, extend = (
        history(format),
        list[int](),
        WindowBuilder.extend,
    )
    session = fit(
        format, messages
    )  # what it opened stands at its end, which a fork may share
    last = len(step(format, 1)) - 1

    def watched(builder, length):
        walked.append(length - builder.window.size)
        extend(builder, length)

    monkeypatch.setattr(WindowBuilder, "extend", watched)
    for number in range(98, 101):
        retold = step(format, number)[-last:]
        session.fit(histories.request(format, [*messages[:-last], *retold]))
    assert sum(walked) <= 3 * (len(step(format, 1)) + 1)


@pytest.mark.parametrize("limit", [VAST, Limits(window_tokens=50_000)])
@pytest.mark.parametrize("format", ALL)
def test_of_a_history_that_forks_again_only_what_is_new_is_counted_and_measured(
    format, limit, monkeypatch
):
    messages, worked_out, store = (
        history(format, 20),
        Counter[str](),
        MemoryStore(),
    )
    first = fit(format, messages, store, limit)
    first.observe(Usage(fresh_tokens=first.window.estimate))
    session = fit(
        format, messages, store, limit
    )  # of its places but the last all is decided

    def watch(name):
        whole = getattr(Window, name)

        def counting(*given):
            worked_out[name] += 1
            return whole(*given)

        monkeypatch.setattr(Window, name, counting)

    for number in range(98, 102):
        session.fit(
            histories.request(
                format, [*messages[:-1], step(format, number)[-1]]
            )
        )
        if number == 98:  # the states that are forked from are caught up once
            watch("count_message")
            watch("_added")
    new = len(step(format, 1))
    assert worked_out["count_message"] <= 3 * new * (limit is not VAST)
    assert (
        0
        < worked_out["_added"]
        <= 3 * new * len(session._state.newest.working._tallies)
    )


@pytest.mark.parametrize("format", ALL)
def test_a_history_that_forks_near_its_end_is_looked_up_where_it_is_new(
    format, monkeypatch
):
    messages, tail = history(format), step(format, 98)
    session = fit(format, messages)
    session.fit(
        histories.request(format, messages)
    )  # what it decided itself is looked up once
    asked, find = [], MemoryStore.find

    def watched(store, tenant, keys):
        asked.extend(keys)
        return find(store, tenant, keys)

    monkeypatch.setattr(MemoryStore, "find", watched)
    session.fit(histories.request(format, [*messages[: -len(tail)], *tail]))
    assert 0 < len(asked) <= 3 * len(tail) + 2


@settings(max_examples=20)
@given(
    st.sampled_from(ALL),
    st.integers(1_500, 8_000),
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(1, 6)), min_size=1, max_size=5
    ),
    st.integers(2, 14),
)
def test_a_line_that_was_forked_is_shown_as_a_cold_start_shows_it(
    format, window, forks, turns
):
    store, limits = MemoryStore(), Limits(window_tokens=window)
    warm = Session(
        histories.MODEL[format],
        recall=True,
        format=format,
        limits=limits,
        store=store,
    )
    messages = [histories.user(format, "Go on.")]
    grown = [(0, turns), *forks]
    for number, (back, more) in enumerate(grown):
        messages = messages[: max(len(messages) - back, 1)]
        for turn in range(more):
            messages = [*messages, *step(format, 100 * number + turn)]
            assert_as_cold(warm, format, messages, limits, store)


@pytest.mark.parametrize("format", ALL)
def test_what_a_later_batch_replaces_is_cut_where_the_history_forks_before_it(
    format,
):
    store, messages = MemoryStore(), [histories.user(format, "Go on.")]
    limits, pruned = Limits(window_tokens=16_000), 0
    for number in range(1, 60):
        messages = [*messages, *step(format, number)]
        seen = {
            event.kind for event in fit(format, messages, store, limits).events
        }
        if "pruned" in seen and not pruned:
            pruned = number
        elif pruned:
            break
    cold = fit(format, messages, store, limits)
    assert cold.window.summaries
    before = messages[: 1 + (pruned - 2) * len(step(format, 1))]
    assert_as_cold(cold, format, [*before, *step(format, 98)], limits, store)


def test_a_batch_made_after_a_state_was_kept_is_shown_where_the_history_forks_there():
    """A user speaks on before the model does: what that makes go is under the same key."""
    format, store, limits = (
        "openai-chat",
        MemoryStore(),
        Limits(window_tokens=16_000),
    )
    messages = history(format, 6)
    warm = fit(format, messages, store, limits)
    assert not warm.window.summaries
    warm.fit(
        histories.request(
            format, [*messages, histories.user(format, "tide " * 9_000)]
        )
    )
    assert warm.window.summaries
    assert_as_cold(warm, format, [*messages, *step(format, 98)], limits, store)


def assert_as_cold(warm, format, messages, limits, store):
    request = histories.request(format, messages)
    try:
        view = warm.fit(request)
    except (OverLimitError, FormatError) as refused:
        view = type(refused)
    cold = Session(
        histories.MODEL[format],
        recall=True,
        format=format,
        limits=limits,
        store=store,
    )
    try:
        again = cold.fit(request)
    except (OverLimitError, FormatError) as refused:
        again = type(refused)
    assert view == again


@pytest.mark.parametrize("format", ALL)
def test_a_cold_start_with_a_ledger_works_out_nothing_that_a_batch_replaces(
    format, made
):
    store, messages = MemoryStore(), history(format)
    warm = fit(format, messages, store)
    hidden = range(
        warm.window.summaries[0].start, warm.window.summaries[-1].stop
    )
    pruned = sum(
        1 for index in hidden for _ in warm.window.transcript.results(index)
    )
    assert pruned > 20
    REMEMBERED.clear()
    made.clear()
    cold = fit(format, messages, store)
    assert made["cut"] == 59 - pruned
    assert not made["digest"]
    assert made["counted"] <= 59 - pruned
    assert cold.window.summaries == warm.window.summaries
    assert_as_cold(cold, format, messages, VAST, store)


def test_another_tenant_is_not_answered_from_what_one_worked_out(made):
    """The time a call takes must not tell what somebody else has sent."""
    messages = history("openai-chat", 8)
    fit("openai-chat", messages)
    made.clear()
    fit("openai-chat", messages, tenant="another")
    assert made["cut"] == 7


SHOWN = ("truncated", "pruned", "cut", "condensed")

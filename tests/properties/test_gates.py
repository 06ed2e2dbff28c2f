"""The gates G1 to G6 (`metrics`), as properties over generated histories."""

import asyncio
import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import reading
from tests import histories
from tests.world import recount
from ullage import AsyncSession, Limits, Session
from ullage.core.values.notices import pointers
from ullage.wires import FORMATS

formats = st.sampled_from(sorted(FORMATS))
windows = st.sampled_from((4_000, 6_000, 12_000, 40_000))
MODEL = histories.MODEL


def boundaries(format, messages):
    """The lengths at which a loop sends a request: before each reply, and at the end.

    A reply may be several assistant messages in a row.
    """
    roles = [FORMATS[format].parse(message, "").role for message in messages]
    lengths = [
        i
        for i in range(1, len(roles))
        if roles[i] == "assistant" and roles[i - 1] != "assistant"
    ]
    return [*lengths, len(messages)]


def shown_by(format, view):
    return view[FORMATS[format].key]


def new_session(format, window, **more):
    return Session(
        MODEL[format],
        limits=Limits(window_tokens=window),
        format=format,
        recall=True,
        **more,
    )


def live_through(session, format, messages):
    """Every view of a session that played through the history turn by turn."""
    return [
        session.fit(histories.request(format, messages[:length]))
        for length in boundaries(format, messages)
    ]


@given(formats, windows, histories.histories, st.booleans())
def test_every_view_fits_and_grows_no_message(format, window, turns, reuse):
    """G2 and G6: within the limit by a fresh count, and no message longer than it was."""
    messages = histories.wire(format, turns, reuse_ids=reuse)
    session = new_session(format, window)
    for length in boundaries(format, messages):
        view = session.fit(histories.request(format, messages[:length]))
        assert recount(session, view) == session.window.tokens
        assert session.window.estimate <= session.window.limit_tokens
        view = shown_by(format, view)
        if len(view) == length:
            for shown, raw in zip(view, messages[:length], strict=True):
                assert size(shown) <= size(raw)
        assert size(view) <= size(messages[:length])


def size(value):
    return len(json.dumps(value, ensure_ascii=False))


@given(formats, windows, histories.histories, st.booleans())
def test_a_cold_start_arrives_where_a_warm_session_is(
    format, window, turns, reuse
):
    """G3: the same bytes from a warm session, a cold one, a second call, and sync or async."""
    messages = histories.wire(format, turns, reuse_ids=reuse)
    warm = new_session(format, window)
    views = live_through(warm, format, messages)
    for length, view in zip(boundaries(format, messages), views, strict=True):
        whole = histories.request(format, messages[:length])
        assert new_session(format, window).fit(whole) == view
    again = histories.request(format, messages)
    assert warm.fit(again) == views[-1]

    async def fit_async():
        limits = Limits(window_tokens=window)
        session = AsyncSession(
            MODEL[format], limits=limits, format=format, recall=True
        )
        return await session.fit(again)

    assert asyncio.run(fit_async()) == views[-1]


@given(formats, windows, histories.histories, st.booleans())
def test_everything_can_be_read_back_from_the_visible_notices(
    format, window, turns, reuse
):
    """G4: each tool result is in the view, or comes back byte for byte by following it."""
    messages = histories.wire(format, turns, reuse_ids=reuse)
    session = new_session(format, window)
    view = live_through(session, format, messages)[-1]
    opened = {}
    texts = list(reading.visible(shown_by(format, view)))
    reading.reachable(session, texts, opened)
    reachable, shown = {*texts, *opened.values()}, "\n".join(texts)
    for message in messages:
        for _, results in reading.results(message):
            for text in results:
                assert text in reachable or (len(text) <= 80 and text in shown)


@given(formats, windows, histories.histories)
def test_a_notice_says_truly_how_much_it_shows(format, window, turns):
    """What stands before a notice's offset is the original's beginning, to the character.

    JSON stands otherwise than it came; there the rest begins at a value, or at its key.
    """
    messages = histories.wire(format, turns)
    session = new_session(format, window)
    view = live_through(session, format, messages)[-1]
    for message in shown_by(format, view):
        for _, texts in reading.results(message):
            for text in texts:
                for pointer in pointers(text)[-1:]:
                    rest = reading.follow(session, pointer.ref, pointer.offset)
                    whole = reading.follow(session, pointer.ref)
                    is_json = text[:1] in ("[", "{")
                    head = (
                        whole[: pointer.offset]
                        if is_json
                        else text[: pointer.offset]
                    )
                    assert head + rest == whole
                    assert (
                        not is_json
                        or pointer.offset == 0
                        or head[-1] in "[{, "
                    )


@given(formats, windows, histories.histories)
def test_what_the_user_and_the_system_said_stays_or_is_told_of(
    format, window, turns
):
    """G5: user texts are verbatim in the view, or an event names the place that changed."""
    messages = histories.wire(format, turns)
    session = new_session(format, window)
    view = live_through(session, format, messages)[-1]
    told = {event.kind for event in session.events} & {"condensed", "cut"}
    shown = [
        text for m in shown_by(format, view) for text in texts(m) if is_user(m)
    ]
    for message in messages:
        if is_user(message) and not told:
            for text in texts(message):
                assert text in shown or stands_in_record(format, text, shown)
    if format == "anthropic":
        assert view["system"] == "You are an agent."


def stands_in_record(format, text, shown):
    """Whether what the user said beside results, as Converse has it, is a step of a record."""
    if format != "bedrock-converse":
        return False
    return any(f"\n- user: {text}" in record for record in shown)


def texts(message):
    return reading.texts_of(reading.content_of(message))


def is_user(message):
    return message.get("role") == "user"


@given(formats, windows, histories.histories)
def test_the_caller_keeps_what_is_his(format, window, turns):
    """Nothing the caller gave is changed, and untouched messages are his own objects."""
    messages = histories.wire(format, turns)
    before = copy.deepcopy(messages)
    session = new_session(format, window)
    view = live_through(session, format, messages)[-1]
    assert messages == before
    mine = {id(message) for message in messages}
    if not session.window.summaries:
        for index, shown in enumerate(shown_by(format, view)):
            if index not in session.window.changed:
                assert id(shown) in mine


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_a_view_of_a_short_history_is_the_history(format):
    """Short conversations: the same objects out, in a new top-level dict."""
    messages = histories.wire(
        format, [histories.Turn(user="hello", said="hi")]
    )
    request = histories.request(format, messages)
    view = Session(MODEL[format], recall=False).fit(request)
    assert view == request
    assert view is not request
    assert all(
        a is b for a, b in zip(shown_by(format, view), messages, strict=True)
    )

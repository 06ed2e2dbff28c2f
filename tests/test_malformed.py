"""Anything at all in any place of a request: a typed error with its path, or a view.

Each example puts odd values into a good request of every block and role its format has. What
comes out is a view or a `FormatError`; never another exception, and the caller's own data stays
as it was.
"""

import copy
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import histories
from ullage import FormatError, Limits, Session, UllageError
from ullage.formats import FORMATS

ALL = sorted(histories.MODEL)
TURN = histories.Turn(
    user="find it",
    said="Let me look.",
    thought=True,
    calls=(
        histories.Call("bash", "a", "out\n" * 900, items=2),
        histories.Call("bash", "b", "no such file", failed=True),
    ),
)
ABSENT = object()


class Strange:
    """No JSON, and no SDK's object."""

    __slots__ = ()


def holding_itself():
    block = {"type": "text", "text": "again"}
    block["content"] = [block]
    return block


def nested(levels):
    value = "deep"
    for level in range(levels):
        value = [value] if level % 2 else {"type": "text", "content": value}
    return value


ODD = (
    *(None, True, 0, -1, 10**400, 1.5, float("nan"), float("inf")),
    *("", " ", "7", "\x00", "\ud800", "robot", "tool_use", "function_call_output"),
    *(b"bytes", ("a", "tuple"), frozenset((1,)), Strange(), len),
    *([], [None], [7], ["text"], [[]], [{}], {}, {7: 7}, {"type": 7}, {"type": [None]}),
    *({"type": "hologram"}, [{"type": "hologram", "rays": [1, None]}], {"role": ["user"]}),
    *([{"type": "text"}], [{"type": "text", "text": 7}], {"text": None}, {"name": None}),
)
ENDLESS = (holding_itself, lambda: [holding_itself()], lambda: nested(201))


def good(format):
    more = {"tools": [FORMATS[format].tool(SPEC)]} if format != "gemini" else {}
    return histories.request(format, histories.wire(format, [TURN, TURN]), **more)


class SPEC:
    name, description, parameters = "bash", "runs", {"type": "object"}


def places(value, at=()):
    """The path of everything in a request."""
    if at:
        yield at
    items = value.items() if isinstance(value, dict) else ()
    for key, item in enumerate(value) if isinstance(value, list) else items:
        yield from places(item, (*at, key))


PLACES = {format: list(places(good(format))) for format in ALL}


def put(request, path, value):
    """Put a value there; False if an earlier one took the place away."""
    for key in path[:-1]:
        if not isinstance(request, (dict, list)):
            return False
        try:
            request = request[key]
        except (KeyError, IndexError):
            return False
    if not isinstance(request, (dict, list)):
        return False
    if value is ABSENT and isinstance(request, dict):
        request.pop(path[-1], None)
    elif value is not ABSENT and (isinstance(request, dict) or path[-1] < len(request)):
        request[path[-1]] = value
    return True


def new_session(format, **more):
    limits = Limits(window_tokens=6_000)
    return Session(histories.MODEL[format], format=format, recall=True, limits=limits, **more)


def judged(session, request):
    """A view, or an error that names a place in the request."""
    error = refused(session, request)
    if isinstance(error, FormatError):
        key = error.where.split("[")[0].split(".")[0]
        assert key in request or key in ("request", "model", *KEYS), error.where
        assert re.fullmatch(r"[\w$]+(\[\d+\]|\.\w+)*", error.where), error.where
        assert error.remedy.endswith(".")


def refused(session, request):
    """The error a request is refused with, or None: over the limit, say."""
    try:
        session.fit(request)
    except UllageError as error:
        return error
    return None


KEYS = ("messages", "input", "contents", "systemInstruction")


@pytest.mark.parametrize("format", ALL)
@given(st.data())
def test_odd_values_anywhere(format, data):
    request = good(format)
    spots = st.tuples(st.sampled_from(PLACES[format]), st.sampled_from((ABSENT, *ODD)))
    for path, value in data.draw(st.lists(spots, min_size=1, max_size=3)):
        put(request, path, copy.deepcopy(value) if isinstance(value, (list, dict)) else value)
    before = copied(request)
    session = new_session(format, repair=data.draw(st.booleans()))
    judged(session, request)
    judged(session, request)
    assert copied(request) == before, "the caller's data was changed"
    session.fit(good(format))  # and the session goes on


def copied(value):
    """A copy that equals itself whatever it holds."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [type(value), *map(copied, value)]
    return repr(value)


@pytest.mark.parametrize("format", ALL)
@pytest.mark.parametrize("endless", ENDLESS, ids=("itself", "in-a-list", "201"))
@pytest.mark.parametrize("repair", [False, True])
def test_what_has_no_end_is_refused_wherever_it_stands(format, endless, repair):
    for path in PLACES[format]:
        request = good(format)
        put(request, path, endless())
        with pytest.raises(FormatError) as caught:
            new_session(format, repair=repair).fit(request)
        if len(path) > 1 and path[0] == FORMATS[format].key and "levels" in caught.value.rule:
            assert caught.value.where == f"{path[0]}[{path[1]}]"


@pytest.mark.parametrize("format", ALL)
def test_what_has_an_end_is_carried_through(format):
    """Fifty levels within a block nobody knows."""
    request = good(format)
    key = FORMATS[format].key
    block = (
        {"hologram": nested(50)} if format == "gemini" else {"type": "hologram", "x": nested(50)}
    )
    message = {"role": "user", "parts" if format == "gemini" else "content": [block]}
    request[key].append(message)
    view = new_session(format).fit(request)
    assert view[key][-1] is message


# How much there may be. Nothing here is timed: what takes the square of it does not come back.

MANY = 100_000
HUGE = 50_000_000


@pytest.mark.parametrize("format", ["openai-chat", "openai-responses"])
def test_very_many_messages(format):
    messages = [histories.user(format, "hi")] * MANY
    limits = Limits(window_tokens=200_000)
    session = Session(histories.MODEL[format], recall=True, limits=limits)
    view = session.fit(histories.request(format, messages))
    assert len(session.window.transcript) == MANY
    assert len(view[FORMATS[format].key]) < MANY
    assert session.window.estimate <= session.window.limit_tokens
    longer = [*messages, histories.user(format, "and more")]
    assert session.fit(histories.request(format, longer))[FORMATS[format].key][-1] is longer[-1]


@pytest.mark.parametrize(("format", "parts"), [("openai-chat", 1), ("gemini", 1_000)])
def test_very_much_in_one_message_or_in_many(format, parts):
    said = "all work and no play\n" * (HUGE // 21 // parts)
    messages = [histories.user(format, f"{number} {said}") for number in range(parts)]
    session = Session(histories.MODEL[format], recall=True)
    view = session.fit(histories.request(format, messages))
    assert session.window.estimate <= session.window.limit_tokens
    assert len(str(view)) < HUGE / 4

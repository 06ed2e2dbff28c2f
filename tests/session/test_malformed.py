"""Anything at all in any place of a request: a typed error with its path, or a view.

Each example puts odd values into a good request of every block and role its format has. What
comes out is a view or a `FormatError`; never another exception, and the caller's own data stays
as it was.
"""

import copy
import functools
import json
import operator
import re

import pytest
from anthropic.types import ToolUseBlock
from hypothesis import given
from hypothesis import strategies as st

from tests import histories
from tests.oddities import (
    ABSENT,
    ENDLESS,
    EVERYTHING,
    ODD,
    RECALLS,
    REPLIES,
    holding_itself,
    nested,
    odd_ones,
    places,
    put,
    with_odd,
)
from ullage import (
    FormatError,
    Limits,
    MemoryStore,
    Session,
    UllageError,
    Usage,
    fit,
    problems,
)
from ullage.wires import FORMATS, wire_named

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


def good(format):
    more = (
        {"tools": [FORMATS[format].tool(SPEC)]}
        if format not in BESIDE_TOOLS
        else {}
    )
    return histories.request(
        format, histories.wire(format, [TURN, TURN]), **more
    )


BESIDE_TOOLS = ("gemini", "bedrock-converse")
"""Their requests have no field ``tools`` with a list of them."""


class SPEC:
    name, description, parameters = "bash", "runs", {"type": "object"}


PLACES = {format: list(places(good(format))) for format in ALL}


WINDOWS = {"openai-chat": 40_000}
"""What a request that holds every block needs, where that is more: a file by its id is guessed."""


def new_session(format, **more):
    limits = Limits(window_tokens=WINDOWS.get(format, 8_000))
    return Session(
        histories.MODEL[format],
        format=format,
        recall=True,
        limits=limits,
        **more,
    )


def judged(session, request):
    """A view, or an error that names a place in the request."""
    error = refused(session, request)
    if isinstance(error, FormatError):
        key = error.where.split("[")[0].split(".")[0]
        assert key in request or key in ("request", "model", *KEYS), (
            error.where
        )
        assert re.fullmatch(r"[\w$]+(\[\d+\]|\.\w+)*", error.where), (
            error.where
        )
        assert error.remedy.endswith(".")


def refused(session, request):
    """The error a request is refused with, or None: over the limit, say."""
    try:
        session.fit(request)
    except UllageError as error:
        return error
    return None


KEYS = ("messages", "input", "contents", "systemInstruction", "toolConfig")


@pytest.mark.parametrize("format", ALL)
@given(st.data())
def test_odd_values_anywhere(format, data):
    request = good(format)
    spots = st.tuples(
        st.sampled_from(PLACES[format]), st.sampled_from((ABSENT, *ODD))
    )
    for path, value in data.draw(st.lists(spots, min_size=1, max_size=3)):
        put(
            request,
            path,
            copy.deepcopy(value) if isinstance(value, (list, dict)) else value,
        )
    before = copied(request)
    session = new_session(format, repair=data.draw(st.booleans()))
    judged(session, request)
    judged(session, request)
    assert copied(request) == before, "the caller's data was changed"
    session.fit(good(format))  # and the session goes on


@pytest.mark.parametrize("format", ALL)
@given(st.data())
def test_an_odd_value_in_any_place_of_every_block(format, data):
    """Whoever is asked names the place, or does what it does for a good request.

    A view is no worse than its request, and what was not edited is the caller's own object.
    """
    session = new_session(format, repair=data.draw(st.booleans()))
    request = with_odd(
        EVERYTHING[format], *data.draw(st.sampled_from(ODD_ONES[format]))
    )
    if not withstands(session, format, request):
        return
    typed(
        session.observe,
        with_odd(
            REPLIES[format], *data.draw(st.sampled_from(ODD_SAID[format]))
        ),
    )
    typed(
        session.recall,
        with_odd(
            RECALLS[format], *data.draw(st.sampled_from(ODD_CALLS[format]))
        ),
    )
    typed(session.fit, request)


def withstands(session, format, request):
    """Whether a request gets a view, which is no worse then; it may be refused."""
    broken = typed(problems, request, format)
    view = typed(session.fit, request)
    if view is None:
        return False
    if broken is not None and not session.settings.repair:
        assert rules(typed(problems, view, format)) <= rules(broken)
        assert untouched_is_own(session.window, view, request)
    return True


ODD_ONES = {format: odd_ones(EVERYTHING[format]) for format in ALL}
ODD_SAID = {format: odd_ones(REPLIES[format]) for format in ALL}
ODD_CALLS = {format: odd_ones(RECALLS[format]) for format in ALL}


def typed(ask, *given):
    """What is answered; None if it is refused with an error of ours."""
    try:
        return ask(*given)
    except UllageError:
        return None


def rules(found):
    return {problem.rule for problem in found}


def untouched_is_own(window, view, request):
    """Whether every message of a view is the request's own, but for those edited."""
    key = (
        "contents"
        if "contents" in request
        else "input"
        if "input" in request
        else "messages"
    )
    shown, given = (
        value if isinstance(value, list) else [value]
        for value in (view[key], request[key])
    )
    if window.summaries or isinstance(request[key], str):
        return True
    leading = len(given) - window.size
    edited = {
        index + leading
        for index in {*window.changed, *window.reasoning_dropped}
    }
    return len(shown) == len(given) and all(
        a is b or index in edited
        for index, (a, b) in enumerate(zip(shown, given, strict=True))
    )


SOUND = {
    "type": "input_audio",
    "input_audio": {"data": "AAAA", "format": "wav"},
}
FILE = {"type": "file", "file": {"file_data": "AAAA"}}
PICTURE = {"type": "image_url", "image_url": {"url": "data:,"}}
BASE64 = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
IMAGE = {"type": "image", "source": BASE64}
BLOB = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
LINKED = {"fileData": {"mimeType": "video/mp4", "fileUri": "gs://x"}}
GIVEN = {"functionResponse": {"name": "run", "response": {}, "parts": [BLOB]}}
MISPLACED = [
    ("openai-chat", SOUND, ("input_audio",), "wav"),
    ("openai-chat", SOUND, ("input_audio", "data"), 5),
    ("openai-chat", SOUND, ("input_audio", "format"), ["wav"]),
    ("openai-chat", FILE, ("file", "file_data"), 5),
    ("openai-chat", PICTURE, ("image_url", "url"), {"x": 1}),
    ("openai-chat", PICTURE, ("image_url", "detail"), b"high"),
    ("openai-responses", SOUND, ("input_audio", "data"), 5),
    ("openai-responses", SOUND, ("input_audio", "format"), True),
    ("anthropic", IMAGE, ("source", "media_type"), 5),
    ("anthropic", IMAGE, ("source", "data"), 5),
    ("anthropic", IMAGE, ("title",), {"a set"}),
    ("gemini", BLOB, ("inlineData",), "AAAA"),
    ("gemini", BLOB, ("inlineData", "mimeType"), 5),
    ("gemini", BLOB, ("inlineData", "displayName"), len),
    ("gemini", LINKED, ("fileData",), "gs://x"),
    ("gemini", LINKED, ("fileData", "fileUri"), 5),
    ("gemini", GIVEN, ("functionResponse", "parts"), 5),
]


@pytest.mark.parametrize(("format", "part", "path", "odd"), MISPLACED)
@pytest.mark.parametrize("repair", [False, True])
def test_what_a_part_may_not_hold_is_named_by_its_place(
    format, part, path, odd, repair
):
    key = FORMATS[format].key
    name = "parts" if format == "gemini" else "content"
    message = {"role": "user", name: [with_odd(part, path, odd)]}
    with pytest.raises(FormatError) as caught:
        new_session(format, repair=repair).fit(
            histories.request(format, [message])
        )
    assert caught.value.where == ".".join((f"{key}[0].{name}[0]", *path))


@pytest.mark.parametrize(
    ("format", "part", "path"),
    [
        ("openai-chat", SOUND, ("input_audio", "data")),
        ("openai-chat", SOUND, ("input_audio", "format")),
        ("openai-chat", FILE, ("file", "file_data")),
        ("openai-responses", SOUND, ("input_audio", "format")),
        ("anthropic", IMAGE, ("source", "media_type")),
        ("gemini", BLOB, ("inlineData", "mimeType")),
    ],
)
def test_a_null_of_a_part_is_as_good_as_nothing(format, part, path):
    name = "parts" if format == "gemini" else "content"
    message = {"role": "user", name: [with_odd(part, path, None)]}
    view = fit(histories.request(format, [message]), format=format)
    assert view[FORMATS[format].key][0] is message


@pytest.mark.parametrize("declared", [-1, {"name": "run"}, "run"])
def test_functions_that_are_no_list_are_named_by_their_tool(declared):
    config = {
        "tools": [{"code_execution": {}}, {"function_declarations": declared}]
    }
    request = {"model": "gemini-3-pro", "contents": "go", "config": config}
    with pytest.raises(FormatError) as caught:
        fit(request)
    assert caught.value.where == "tools[1].functionDeclarations"


def test_a_config_is_an_object():
    with pytest.raises(FormatError) as caught:
        fit(
            {"model": "gemini-3-pro", "contents": "go", "config": -1},
            recall=True,
        )
    assert caught.value.where == "config"


def test_a_list_is_no_request():
    with pytest.raises(FormatError, match="expected a dict, got list"):
        fit([{"role": "user", "content": "go"}])


@pytest.mark.parametrize("make", ENDLESS)
def test_a_model_is_a_name(make):
    request = {**good("openai-chat"), "model": make()}
    for ask in (fit, new_session("openai-chat").fit):
        with pytest.raises(FormatError) as caught:
            ask(request)
        assert caught.value.where == "model"


@pytest.mark.parametrize("format", ALL)
@pytest.mark.parametrize("make", [holding_itself, lambda: nested(5_000)])
def test_problems_name_what_has_no_end(format, make):
    request = good(format)
    request[FORMATS[format].key][1]["x"] = make()
    with pytest.raises(FormatError) as caught:
        problems(request)
    assert caught.value.where == f"{FORMATS[format].key}[1]"


@pytest.mark.parametrize(
    "count", [10**30, 1 << 54, -1, True, 9.0, "9", [9], None]
)
@pytest.mark.parametrize("format", ALL)
def test_a_count_that_cannot_be_one_is_none(format, count):
    """It is written down beside the history, so it has to be a number that can be."""
    reply = copy.deepcopy(REPLIES[format])
    usage = reply.get("usage") or reply.get("usageMetadata") or reply
    for path in places(usage):
        if type(functools.reduce(operator.getitem, path, usage)) is int:
            put(usage, path, count)
    session = new_session(format)
    session.fit(good(format))
    session.observe(reply)
    assert session.usage == Usage()
    session.fit(good(format))


def copied(value):
    """A copy that equals itself whatever it holds."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [type(value), *map(copied, value)]
    return repr(value)


@pytest.mark.parametrize("format", ALL)
@pytest.mark.parametrize(
    ("endless", "repaired"),
    [(ENDLESS[0], 0), (ENDLESS[1], 1)],
    ids=("itself", "in-a-list"),
)
def test_what_has_no_end_is_refused_wherever_it_stands(
    format, endless, repaired
):
    """Each place has both values and both sessions, though not all four together."""
    value = endless()
    for at, path in enumerate(PLACES[format]):
        request = good(format)
        put(request, path, value)
        with pytest.raises(FormatError) as caught:
            new_session(format, repair=at % 2 == repaired).fit(request)
        if (
            len(path) > 1
            and path[0] == FORMATS[format].key
            and "itself" in caught.value.rule
        ):
            assert caught.value.where == f"{path[0]}[{path[1]}]"


@pytest.mark.parametrize("format", ALL)
@pytest.mark.parametrize(("levels", "repaired"), [(201, 0), (1_001, 1)])
def test_what_is_nested_too_deep_is_set_aside_or_refused_by_its_place(
    format, levels, repaired
):
    """One level too deep, or deeper than Python recurses: each place has both, as above."""
    for at, path in enumerate(PLACES[format]):
        request = good(format)
        put(request, path, nested(levels))
        judged(new_session(format, repair=at % 2 == repaired), request)


DEEP = {
    "anthropic": [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "a", "name": "run"}],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "ok"}
            ],
        },
    ],
    "gemini": [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "run"}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "run"}}]},
    ],
}


def tree(levels):
    """An object within an object, so many times."""
    value = {"leaf": "the tide came in"}
    for _ in range(levels):
        value = {"in": value}
    return value


@pytest.mark.parametrize(
    ("format", "kind"),
    [
        ("anthropic", "dicts"),
        ("anthropic", "objects of an SDK"),
        ("gemini", "dicts"),
    ],
)
@pytest.mark.parametrize(
    ("levels", "repair"), [(250, False), (250, True), (20_000, True)]
)
def test_deep_arguments_and_results_are_set_aside_and_the_session_goes_on(
    format, kind, levels, repair
):
    messages, store = copy.deepcopy(DEEP[format]), MemoryStore()
    if format == "anthropic":
        messages[1]["content"][0]["input"] = tree(levels)
        if kind != "dicts":
            block = ToolUseBlock.model_construct(**messages[1]["content"][0])
            messages[1]["content"] = [block]
    else:
        messages[1]["parts"][0]["functionCall"]["args"] = tree(levels)
        messages[2]["parts"][0]["functionResponse"]["response"] = tree(
            levels + 1
        )
    session = new_session(format, repair=repair, store=store)
    key, said = FORMATS[format].key, histories.user(format, "And now?")
    for history in (messages, messages, [*messages, said]):
        view = session.fit(histories.request(format, history))
        assert problems(view, format) == []
        assert view[key][0] is messages[0]
        json.dumps(view)
    told = [event for event in session.events if event.kind == "cut"]
    assert len(told) == (1 if format == "anthropic" else 2)
    for event in told:
        assert store.get("", event.ref).text.count("the tide came in") == 1
        assert event.ref in str(view)


def test_what_is_nested_too_deep_is_repaired_as_everything_is():
    """Its result is missing."""
    messages = copy.deepcopy(DEEP["anthropic"][:2])
    messages[1]["content"][0]["input"] = tree(250)
    messages.append(histories.user("anthropic", "And now?"))
    view = new_session("anthropic", repair=True).fit(
        histories.request("anthropic", messages)
    )
    assert problems(view, "anthropic") == []
    assert "set aside" in json.dumps(view)


@pytest.mark.parametrize("format", ALL)
def test_what_has_an_end_is_carried_through(format):
    """Fifty levels within a block nobody knows."""
    request = good(format)
    key = FORMATS[format].key
    is_bare = not wire_named(format).types_blocks
    block = (
        {"hologram": nested(50)}
        if is_bare
        else {"type": "hologram", "x": nested(50)}
    )
    message = {
        "role": "user",
        "parts" if format == "gemini" else "content": [block],
    }
    if (
        format == "ollama"
    ):  # there a message has no blocks, but perhaps fields of a newer server
        message = {"role": "user", "content": "look", **block}
    request[key].append(message)
    view = new_session(format).fit(request)
    assert view[key][-1] is message


# How much there may be. Nothing here is timed: what takes the square of it does not come back.

MANY = 20_000
HUGE = 20_000_000


@pytest.mark.parametrize("format", ["openai-chat", "openai-responses"])
def test_very_many_messages(format):
    messages = [histories.user(format, "hi")] * MANY
    limits = Limits(window_tokens=100_000)
    session = Session(histories.MODEL[format], recall=True, limits=limits)
    view = session.fit(histories.request(format, messages))
    assert len(session.window.transcript) == MANY
    assert len(view[FORMATS[format].key]) < MANY
    assert session.window.estimate <= session.window.limit_tokens
    longer = [*messages, histories.user(format, "and more")]
    assert (
        session.fit(histories.request(format, longer))[FORMATS[format].key][-1]
        is longer[-1]
    )


@pytest.mark.parametrize(
    ("format", "parts"), [("openai-chat", 1), ("gemini", 1_000)]
)
def test_very_much_in_one_message_or_in_many(format, parts):
    said = "all work and no play\n" * (HUGE // 21 // parts)
    messages = [
        histories.user(format, f"{number} {said}") for number in range(parts)
    ]
    session = Session(histories.MODEL[format], recall=True)
    view = session.fit(histories.request(format, messages))
    assert session.window.estimate <= session.window.limit_tokens
    assert len(str(view)) < HUGE / 4

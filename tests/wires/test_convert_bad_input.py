"""Anything at all in any place of a conversation: it is converted, or a typed error names a place.

Each example is a request of one of every part that its format has, or of a whole agent's
history, with an odd value in one place.
"""

import copy
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import histories
from tests.servers.loops import request
from tests.session.test_malformed import (
    ABSENT,
    ENDLESS,
    ODD,
    TURN,
    copied,
    places,
    put,
)
from tests.wire import history
from tests.wires.test_convert import with_system
from ullage import ConfigError, FormatError, UnsupportedPart, convert
from ullage.wires import FORMATS

ALL = sorted(FORMATS)
LEADS = ("openai-chat", "openai-responses", "ollama")
"""Their system text stands in messages."""
BESIDE = {
    "anthropic": {"mcp_servers": [], "thread": {"type": "create"}},
    "openai-chat": {
        "functions": [{"name": "old", "description": "", "parameters": {}}]
    },
    "openai-responses": {
        "instructions": "Be kind.",
        "previous_response_id": None,
    },
    "gemini": {},
    "ollama": {"keep_alive": "5m"},
    "bedrock-converse": {"guardrailConfig": None},
}


def good(format, messages):
    """A request with system text and tools."""
    system = with_system(format)
    key, asked = FORMATS[format].key, request(format, messages)
    if format in LEADS:
        asked[key] = [*system[key], *asked[key]]
    elif format in ("anthropic", "bedrock-converse"):
        asked["system"] = system["system"]
    else:
        asked["config"] |= {
            "system_instruction": system["config"]["system_instruction"]
        }
    return json.loads(json.dumps({**asked, **BESIDE[format]}))


GOOD = {
    format: [
        good(format, history(format)),
        good(format, histories.wire(format, [TURN, TURN])),
    ]
    for format in ALL
}
PLACES = {
    format: [list(places(request)) for request in GOOD[format]]
    for format in ALL
}


def judged(conversation, source, target, lossy):
    """Converted, or refused with a place and a remedy."""
    error = refused(conversation, source, target, lossy)
    if error is not None:
        assert re.fullmatch(r"[\w$]+(\[\d+\]|\.[\w$]+)*", error.where), (
            error.where
        )
        assert error.remedy.endswith(".")


def refused(conversation, source, target, lossy):
    """The error a conversation is refused with, or None."""
    try:
        convert(conversation, target, format=source, lossy=lossy)
    except FormatError as error:
        return error
    return None


@pytest.mark.parametrize("source", ALL)
@settings(max_examples=120)
@given(data=st.data())
def test_odd_values_anywhere(source, data):
    which = data.draw(st.integers(0, 1))
    asked = copy.deepcopy(GOOD[source][which])
    value = data.draw(st.sampled_from((ABSENT, *ODD)))
    value = copy.deepcopy(value) if isinstance(value, (list, dict)) else value
    put(asked, data.draw(st.sampled_from(PLACES[source][which])), value)
    before = copied(asked)
    key = FORMATS[source].key
    for target in ALL:
        for lossy in ("error", "describe") if target != source else ():
            judged(asked, source, target, lossy)
            judged(asked.get(key), source, target, lossy)
    assert copied(asked) == before, "the caller's data was changed"


@pytest.mark.parametrize("source", ALL)
@pytest.mark.parametrize(
    "endless", ENDLESS, ids=("itself", "in-a-list", "201", "5000")
)
def test_what_has_no_end_is_refused_wherever_it_stands(source, endless):
    target = "gemini" if source == "anthropic" else "anthropic"
    value = endless()
    for path in PLACES[source][1]:
        asked = copy.deepcopy(GOOD[source][1])
        put(asked, path, value)
        with pytest.raises(FormatError) as caught:
            convert(asked, target, format=source, lossy="describe")
        if (
            len(path) > 1
            and path[0] == FORMATS[source].key
            and "levels" in caught.value.rule
        ):
            assert caught.value.where == f"{path[0]}[{path[1]}]"


NAMED = {
    "tools[0]": ("anthropic", {"tools": [None]}),
    "tools[0].name": ("anthropic", {"tools": [{"input_schema": {}}]}),
    "tools[0].parameters": ("openai-responses", {
        "tools": [{"type": "function", "name": "run", "parameters": "none"}]}),
    "functions": ("openai-chat", {"functions": -1}),
    "system[0].text": ("anthropic", {"system": [{"type": "text", "text": -1}]}),
    "instructions": ("openai-responses", {"instructions": -1}),
    "systemInstruction.parts": ("gemini", {"config": {"system_instruction": {"parts": -1}}}),
}  # fmt: skip


@pytest.mark.parametrize("place", NAMED)
def test_a_bad_value_beside_the_messages_is_named_by_its_place(place):
    source, more = NAMED[place]
    asked = {**request(source, [histories.user(source, "go")], ()), **more}
    with pytest.raises(FormatError) as caught:
        convert(
            asked,
            "gemini" if source != "gemini" else "anthropic",
            format=source,
        )
    assert caught.value.where == place


def test_a_number_that_json_does_not_have_goes_into_no_arguments():
    call = {
        "type": "tool_use",
        "id": "t1",
        "name": "run",
        "input": {"n": float("nan")},
    }
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [call]},
    ]
    with pytest.raises(
        FormatError, match=r"messages\[1\]\.content\[0\]: not JSON"
    ):
        convert(messages, "openai-chat", format="anthropic")
    function = {"name": "run", "arguments": '{"n": NaN}'}
    call = {"id": "c1", "type": "function", "function": function}
    messages[1] = {"role": "assistant", "content": None, "tool_calls": [call]}
    with pytest.raises(UnsupportedPart, match="no JSON object"):
        convert(messages, "anthropic", format="openai-chat")


@pytest.mark.parametrize("thing", [None, "messages", 7, {"a", "b"}])
def test_what_is_no_conversation_is_refused(thing):
    with pytest.raises(
        FormatError, match="expected a request or a list of messages"
    ):
        convert(thing, "anthropic", format="gemini")


@pytest.mark.parametrize("name", ["", [], None, 7])
def test_what_is_no_format_is_refused(name):
    with pytest.raises(ConfigError, match="is not known"):
        convert([], name, format="gemini")


def test_what_is_no_way_to_lose_is_refused():
    with pytest.raises(ConfigError, match="'quietly' is not known"):
        convert([], "anthropic", format="gemini", lossy="quietly")

"""What is nested too deep: kept whole, without secrets, once; the caller's own stays as it is."""

import copy

import pytest
from anthropic.types import Message, ToolUseBlock

from tests import histories
from ullage import FormatError, Limits, MemoryStore, Session
from ullage.core.history.snapshots import LEVELS
from ullage.core.turn import incoming
from ullage.core.values.notices import pointers


def nested(value, levels):
    for _ in range(levels):
        value = [value]
    return value


def request(value):
    call = {
        "type": "tool_use",
        "id": "a",
        "name": "run",
        "input": {"a": value, "b": "all of it"},
    }
    result = {"type": "tool_result", "tool_use_id": "a", "content": "ok"}
    messages = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    return histories.request("anthropic", messages)


def new_session(**more):
    limits = Limits(window_tokens=20_000)
    return Session(
        histories.MODEL["anthropic"], format="anthropic", limits=limits, **more
    )


def test_as_deep_as_may_be_it_is_the_callers_own_object():
    deepest = request(nested("leaf", LEVELS - 4))
    assert new_session().fit(deepest)["messages"][1] is deepest["messages"][1]
    deeper = request(nested("leaf", LEVELS - 3))
    view, before = new_session().fit(deeper), copy.deepcopy(deeper)
    assert view["messages"][1] != deeper["messages"][1]
    assert view["messages"][1]["content"][0]["input"]["b"] == "all of it"
    assert deeper == before


@pytest.mark.parametrize("levels", range(LEVELS - 7, LEVELS + 1))
def test_of_an_sdks_object_too_it_is_the_callers_own_or_set_aside(levels):
    """An object and its fields are two levels, whoever counts them."""
    given = request(nested("leaf", levels))
    said = given["messages"][1]
    block = ToolUseBlock.model_construct(**said["content"][0])
    reply = given["messages"][1] = Message.model_construct(
        role="assistant", content=[block]
    )
    session = new_session()
    shown = session.fit(given)["messages"][1]
    assert (shown is reply) == (levels < LEVELS - 5)
    assert [event.kind for event in session.events].count("cut") == (
        shown is not reply
    )


def test_what_is_set_aside_is_json_text_in_which_no_secret_stands():
    leaf = {'a "name"': [1, None, True, "the key is k3y"], "empty": [{}, []]}
    session = new_session(
        store=(store := MemoryStore()),
        redact=lambda t: t.replace("k3y", "***"),
    )
    view = session.fit(request(nested(leaf, 300)))
    (ref,) = store.refs("")
    assert [each.ref for each in pointers(str(view))] == [ref]
    text = '{"a \\"name\\"":[1,null,true,"the key is ***"],"empty":[{},[]]}'
    assert store.get("", ref).text.strip("[]") == text.strip("[]")
    assert view == session.fit(request(nested(leaf, 300)))
    assert sum(event.kind == "cut" for event in session.events) == 1


def test_what_is_no_json_is_refused_by_its_place():
    with pytest.raises(FormatError) as caught:
        new_session().fit(request(nested(object(), 300)))
    assert caught.value.where == "messages[1]"


def test_a_shallow_history_is_not_looked_through(monkeypatch):
    monkeypatch.setattr(incoming, "without_deep_values", None)
    new_session().fit(request("flat"))

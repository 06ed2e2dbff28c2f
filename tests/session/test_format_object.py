"""A format is given by name or as an object; nothing looks an object up by its name."""

import pytest

from tests.histories import CUTS_ALWAYS
from tests.sessions import long_history, request
from ullage import ConfigError, Limits, Session
from ullage.core.turn import State
from ullage.wires.openai_chat.format import OpenAIChat

SMALL = Limits(window_tokens=6_000, output_reserve_tokens=500)


class Mine(OpenAIChat):
    """A format of the caller's own, under a name that nobody knows."""

    name = "mine"


def asked(turns=90):
    return request("openai-chat", long_history("openai-chat", turns))


def test_a_format_object_gives_the_views_that_its_name_gives():
    named = Session(
        "gpt-4.1", policy=CUTS_ALWAYS, format="openai-chat", limits=SMALL
    )
    given = Session(
        "gpt-4.1", policy=CUTS_ALWAYS, format=OpenAIChat(), limits=SMALL
    )
    assert given.fit(asked()) == named.fit(asked())


def test_a_format_of_the_callers_own_is_used_all_the_way():
    session = Session("gpt-4.1", format=Mine(), limits=SMALL, recall=True)
    view = session.fit(asked())
    assert session.state.format == "mine"
    assert len(view["messages"]) < len(asked()["messages"])
    call = {
        "id": "c",
        "function": {"name": "get_continuation", "arguments": "{}"},
    }
    assert session.owns(call)
    assert session.recall(call)["role"] == "tool"
    session.observe({"usage": {"prompt_tokens": 900, "completion_tokens": 1}})
    assert session.usage.input_tokens == 900


def test_a_state_goes_on_in_the_format_object_it_began_in():
    first = Session("gpt-4.1", policy=CUTS_ALWAYS, format=Mine(), limits=SMALL)
    view = first.fit(asked())
    again = Session(
        "gpt-4.1",
        format=Mine(),
        policy=CUTS_ALWAYS,
        limits=SMALL,
        state=first.state,
    )
    assert again.fit(asked()) == view


def test_a_state_of_an_unknown_format_says_what_is_missing():
    with pytest.raises(ConfigError, match="or a format object"):
        Session("gpt-4.1", state=State(format="mine")).fit(asked())


@pytest.mark.parametrize("format", ["chat", 7, object()])
def test_what_is_no_format_is_told_at_once(format):
    with pytest.raises(ConfigError, match="format"):
        Session("gpt-4.1", format=format)


def test_repair_of_a_format_of_the_callers_own_is_refused_by_name():
    session = Session("gpt-4.1", format=Mine(), repair=True)
    with pytest.raises(ConfigError, match="'mine' cannot be repaired"):
        session.fit(asked())

"""The recall tools are added only where the model takes functions."""

import pytest

from ullage import ConfigError, Limits, Session, fit, problems

HELLO = [{"role": "user", "content": "Hello."}]
ASKED = [{"role": "user", "parts": [{"text": "Hello."}]}]
SEARCH = {"google_search": {}}
BASH = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}
MINE = {"function_declarations": [{"name": "mine"}]}


def search(query: str) -> str:
    """A tool as google-genai takes it: a plain function."""
    return query


def added(request, **more):
    """Whether recall tools were added to a request."""
    view = fit(request, **more)
    assert problems(view) == []
    return "get_continuation" in str(view)


@pytest.mark.parametrize(
    ("model", "tools", "offered"),
    [("gpt-6.2", [], False), ("openai/gpt-6.2-astra", [], False), ("gpt-6.1-sol", [BASH], True)],
)
def test_gpt_6_2_takes_no_tools_in_chat_completions(model, tools, offered):
    request = {"model": model, "messages": HELLO}
    assert added({**request, "tools": tools} if tools else request) is offered


def test_nothing_promises_tools_that_are_not_there():
    session = Session("gpt-6.2", limits=Limits(window_tokens=16_000))
    pasted = [{"role": "user", "content": f"{n} " * 9_000} for n in range(3)]
    said = {"role": "assistant", "content": "I see."}
    messages = [each for paste in pasted for each in (paste, said)]
    view = session.fit({"model": "gpt-6.2", "messages": [*messages, *HELLO]})
    assert session.events
    assert "get_continuation" not in str(view)


@pytest.mark.parametrize(
    ("config", "offered"),
    [
        ({}, False),
        ({"tools": [MINE]}, True),
        ({"tools": [SEARCH]}, False),
        ({"tools": [SEARCH, MINE]}, True),
        ({"tools": [SEARCH, search]}, False),  # a declaration ends google-genai's own calls
        ({"tools": [search]}, False),
        ({"tools": [search, MINE]}, True),
        (
            {
                "tools": [SEARCH],
                "tool_config": {"include_server_side_tool_invocations": True},
            },
            True,
        ),
    ],
)
def test_googles_own_tools_stand_alone_unless_the_request_says_otherwise(config, offered):
    assert added({"model": "gemini-2.5-pro", "contents": ASKED, "config": config}) is offered


@pytest.mark.parametrize(
    ("model", "request_"),
    [
        ("gpt-6.2", {"messages": HELLO}),
        ("gemini-2.5-pro", {"contents": ASKED, "config": {"tools": [SEARCH]}}),
    ],
)
def test_who_asks_for_recall_where_it_cannot_be_is_told(model, request_):
    with pytest.raises(ConfigError, match="takes no functions"):
        Session(model, recall=True).fit({"model": model, **request_})


def test_a_model_that_takes_none_in_mid_history_is_sent_none():
    session = Session("gpt-6.1-sol")
    asked = {"model": "gpt-6.1-sol", "messages": HELLO, "tools": [BASH]}
    assert "get_continuation" in str(session.fit(asked))
    view = session.fit({"model": "gpt-6.2", "messages": HELLO})
    assert problems(view) == []

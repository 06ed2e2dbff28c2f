"""The recall tools are added only where the model takes functions."""

import pytest

from ullage import ConfigError, Limits, Session, fit, problems

HELLO = [{"role": "user", "content": "Hello."}]
ASKED = [{"role": "user", "parts": [{"text": "Hello."}]}]
SEARCH = {"google_search": {}}
BASH = {
    "type": "function",
    "function": {"name": "bash", "parameters": {"type": "object"}},
}
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
    [
        ("gpt-6.2", [], False),
        ("openai/gpt-6.2-astra", [], False),
        ("gpt-6.1-sol", [BASH], True),
    ],
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
        (
            {"tools": [SEARCH, search]},
            False,
        ),  # a declaration ends google-genai's own calls
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
def test_googles_own_tools_stand_alone_unless_the_request_says_otherwise(
    config, offered
):
    assert (
        added({"model": "gemini-2.5-pro", "contents": ASKED, "config": config})
        is offered
    )


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


@pytest.mark.parametrize(
    "model", ["o3-deep-research", "openai/o4-mini-deep-research-2025-06-26"]
)
def test_models_for_deep_research_take_no_functions(model):
    hosted = [
        {"type": "web_search"},
        {"type": "mcp", "server_label": "s", "server_url": "u"},
    ]
    assert not added({"model": model, "input": HELLO, "tools": hosted})
    assert added({"model": "gpt-5.2", "input": HELLO, "tools": hosted})


RESPONSES = {
    "type": "function",
    "name": "bash",
    "parameters": {"type": "object"},
}


@pytest.mark.parametrize(
    ("count", "offered"), [(127, True), (128, False), (129, False)]
)
@pytest.mark.parametrize(
    ("model", "key", "tool"),
    [("gpt-4.1", "messages", BASH), ("gpt-5.2", "input", RESPONSES)],
)
def test_openais_wires_take_128_tools(model, key, tool, count, offered):
    request = {"model": model, key: HELLO, "tools": [tool] * count}
    view = fit(request)
    assert ("get_continuation" in str(view)) is offered
    assert len(view["tools"]) == (128 if offered else count)


def test_who_has_no_room_for_them_is_told_why_and_is_offered_them_once_there_is():
    session = Session("gpt-4.1")
    view = session.fit(
        {"model": "gpt-4.1", "messages": HELLO, "tools": [BASH] * 128}
    )
    assert view.sent.standing.reason == "full"
    more = [
        *HELLO,
        {"role": "assistant", "content": "Hi."},
        {"role": "user", "content": "Go."},
    ]
    later = session.fit(
        {"model": "gpt-4.1", "messages": more, "tools": [BASH] * 100}
    )
    assert "get_continuation" in str(later)
    assert later.sent.standing is None


def test_a_provider_that_refused_them_is_sent_none():
    session = Session("gpt-4.1")
    asked = {"model": "gpt-4.1", "messages": HELLO, "tools": [BASH]}
    assert "get_continuation" in str(session.fit(asked))
    bare = session.fit(asked, may_add_tools=False)
    assert bare == asked
    assert bare.sent.standing.reason == "refused"
    assert "get_continuation" in str(session.fit(asked))


def test_a_function_beside_128_tools_is_refused_where_the_caller_asks_for_recall():
    """Who gives ``recall=True`` wants it in any case: the provider has the last word."""
    request = {"model": "gpt-4.1", "messages": HELLO, "tools": [BASH] * 128}
    assert len(fit(request, recall=True)["tools"]) == 129


def test_a_conversation_whose_tools_leave_no_room_keeps_its_view_and_cuts_nothing_new():
    """What was cut stays as it was sent; what is new could not be opened, so it goes whole."""
    session, messages = Session("gpt-4.1"), list(HELLO)

    def step(count, own):
        call = {"id": f"call_{count}", "type": "function"}
        call["function"] = {"name": "bash", "arguments": "{}"}
        text = f"{count}: what there is to see\n" * 2_000
        messages.append(
            {"role": "assistant", "content": None, "tool_calls": [call]}
        )
        messages.append(
            {"role": "tool", "tool_call_id": f"call_{count}", "content": text}
        )
        asked = {
            "model": "gpt-4.1",
            "messages": list(messages),
            "tools": [BASH] * own,
        }
        view = session.fit(asked)
        return len(view["tools"]) - own, [
            len(m["content"] or "") for m in view["messages"][2::2]
        ]

    whole = len("0: what there is to see\n") * 2_000
    session.fit({"model": "gpt-4.1", "messages": HELLO, "tools": [BASH]})
    added, (first,) = step(0, 1)
    assert (added, first < whole / 2) == (1, True)
    assert step(1, 128) == (0, [first, whole])
    added, sizes = step(2, 1)
    assert added == 1
    assert sizes[:2] == [first, whole]
    assert sizes[2] < whole / 2

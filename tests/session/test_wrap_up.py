"""The last view of a spent budget: legal in every format, and nothing of the caller's changed."""

import copy

import pytest
from anthropic.types.message_create_params import (
    MessageCreateParamsNonStreaming,
)
from google.genai import types
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
)
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
)
from pydantic import TypeAdapter

from tests import histories
from tests.spending import NO_CALLS, TOOL, new_session, reply, request
from ullage import Budget, BudgetExceeded, Limits, problems
from ullage.session.spend.allowance import WRAP_UP
from ullage.wires import FORMATS

FORCED = {
    "openai-chat": {"tool_choice": "required"},
    "openai-responses": {"tool_choice": {"type": "function", "name": "bash"}},
    "anthropic": {
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True}
    },
    "ollama": {},  # there is no word for it
    "gemini": {
        "toolConfig": {
            "functionCallingConfig": {
                "mode": "ANY",
                "allowedFunctionNames": ["bash"],
            },
            "retrievalConfig": {"languageCode": "en"},
        }
    },
}
PARAMS = {
    "openai-chat": CompletionCreateParamsNonStreaming,
    "openai-responses": ResponseCreateParamsNonStreaming,
    "anthropic": MessageCreateParamsNonStreaming,
}
every_format = pytest.mark.parametrize("format", histories.APART)


def spent_session(format, **more):
    """A session whose budget is used up by its first call."""
    more = {"budget": Budget(tokens=1), "recall": False, **more}
    session = new_session(format, **more)
    session.fit(request(format))
    session.observe(reply(format, prompt=session.window.tokens))
    return session


def wrap_up_of(format, asked, **more):
    return spent_session(format, **more).fit(asked)


def history(format, view):
    return view[FORMATS[format].key]


@every_format
@pytest.mark.parametrize("forced", [False, True], ids=["free", "forced"])
def test_the_view_is_legal_and_ends_with_the_words(format, forced):
    asked = request(format, turns=3, **(FORCED[format] if forced else {}))
    before = copy.deepcopy(asked)
    view = wrap_up_of(format, asked)
    assert problems(asked) == problems(view) == []
    assert asked == before
    *kept, last = history(format, view)
    assert all(
        ours is theirs
        for ours, theirs in zip(kept, history(format, asked), strict=True)
    )
    assert last == FORMATS[format].user(WRAP_UP)
    if format not in NO_CALLS:
        assert "tools" not in view
        return
    key, none = NO_CALLS[format]
    assert view[key] == (
        {**FORCED[format][key], **none}
        if format == "gemini" and forced
        else none
    )
    assert view["tools"] == asked["tools"]


@every_format
def test_without_tools_there_is_no_choice_of_them(format):
    view = wrap_up_of(format, request(format, tools=False))
    assert format not in NO_CALLS or NO_CALLS[format][0] not in view
    assert problems(view) == []


@every_format
def test_the_recall_tools_are_tools_too(format):
    view = wrap_up_of(format, request(format, tools=False), recall=True)
    key, none = NO_CALLS.get(format, ("", None))
    assert view.get(key) == none
    assert ("tools" in view) == (format in NO_CALLS)


@every_format
def test_behind_the_users_own_words_it_is_legal_as_well(format):
    asked = histories.request(format, [histories.user(format, "Go on.")])
    view = wrap_up_of(format, asked)
    assert problems(view) == []
    assert len(history(format, view)) == 2


@every_format
def test_the_words_fit_the_window_too(format):
    limits = Limits(window_tokens=9_000)
    turn = histories.Turn(
        calls=(histories.Call("bash", "a.py", "a line of output\n" * 150),)
    )
    asked = histories.request(
        format, histories.wire(format, [turn] * 9), tools=[TOOL[format]]
    )
    roomy = new_session(format, limits=limits, recall=False)
    roomy.fit(asked)
    limit, count = roomy.window.limit_tokens, roomy.window.meter.message
    missing = limit - roomy.window.tokens + 200
    words = "Sum up. " * (100 * missing // count("Sum up. " * 100) + 100)
    assert roomy.window.tokens + count(words) > limit
    session = spent_session(
        format, limits=limits, budget=Budget(tokens=1, words=words)
    )
    view = session.fit(asked)
    sent = new_session(
        format, limits=Limits(window_tokens=100_000), recall=False
    )
    sent.fit(view)
    assert sent.window.tokens <= session.window.tokens <= limit
    assert problems(view) == []


@every_format
def test_an_interrupted_call_is_mended_first_where_that_is_asked_for(format):
    asked = request(format, turns=2)
    asked[FORMATS[format].key] = history(format, asked)[:-1]
    assert problems(asked) != []
    view = wrap_up_of(format, asked, repair=True)
    assert problems(view) == []
    assert history(format, view)[-1] == FORMATS[format].user(WRAP_UP)


@every_format
def test_the_words_are_not_of_the_history(format):
    """What follows the wrap-up is told apart from it: it is not in the next view."""
    session, asked = spent_session(format), request(format)
    session.fit(asked)
    session.observe(reply(format))
    with pytest.raises(BudgetExceeded):
        session.fit(asked)
    later = new_session(format, state=session.state, recall=False)
    assert later.fit(asked) == asked


# As the SDKs take it


@pytest.mark.parametrize("format", PARAMS)
def test_the_sdk_takes_it(format):
    view = wrap_up_of(format, request(format, **FORCED[format]))
    TypeAdapter(PARAMS[format]).validate_python(view)


@pytest.mark.parametrize("as_object", [False, True], ids=["dict", "object"])
def test_the_sdk_of_google_takes_it(as_object):
    contents = history("gemini", request("gemini"))
    config = {
        "tools": [
            {
                "function_declarations": [
                    {"name": "bash", "description": "Runs."}
                ]
            }
        ],
        "tool_config": {"retrieval_config": {"language_code": "en"}},
    }
    given = types.GenerateContentConfig(**config) if as_object else config
    before = copy.deepcopy(given)
    view = wrap_up_of(
        "gemini", {"model": "m", "contents": contents, "config": given}
    )
    assert given == before
    sent = (
        view["config"].model_dump(exclude_none=True)
        if as_object
        else view["config"]
    )
    made = types.GenerateContentConfig.model_validate(sent).tool_config
    assert (
        made.function_calling_config.mode
        == types.FunctionCallingConfigMode.NONE
    )
    assert made.retrieval_config.language_code == "en"


# Places where one may not simply append


def test_a_system_message_at_the_end_stays_there():
    asked = {**request("anthropic"), "model": "claude-opus-4-8"}
    reminder = {"role": "system", "content": "Be brief."}
    asked["messages"] = [*asked["messages"], reminder]
    view = wrap_up_of("anthropic", asked)
    assert problems(view) == []
    assert view["messages"][-1] is reminder
    assert view["messages"][-2] == FORMATS["anthropic"].user(WRAP_UP)


def test_nothing_is_said_while_a_tool_of_the_servers_is_open():
    search = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {},
    }
    asked = request("anthropic")
    *_, said, results = asked["messages"]
    asked["messages"][-2] = {**said, "content": [search, *said["content"]]}
    asked["tools"] = [
        *asked["tools"],
        {"type": "web_search_20250305", "name": "web_search"},
    ]
    assert problems(asked) == []
    view = wrap_up_of("anthropic", asked)
    assert problems(view) == []
    assert view["messages"][-1] is results
    assert view["tool_choice"] == {"type": "none"}


def test_a_compaction_trigger_stays_last():
    asked = request("openai-responses")
    trigger = {"type": "compaction_trigger"}
    asked["input"] = [*asked["input"], trigger]
    view = wrap_up_of("openai-responses", asked)
    assert problems(asked) == problems(view) == []
    assert view["input"][-1] is trigger


def test_functions_of_the_older_kind_are_not_called_either():
    asked = request(
        tools=False, functions=[{"name": "bash", "parameters": {}}]
    )
    view = wrap_up_of("openai-chat", asked)
    assert view["function_call"] == "none"
    assert "tool_choice" not in view

"""Which tools may be called: read on each wire, and what follows for ours.

A list that leaves the model free is longer by our name. Where a tool is chosen for it, or it must
call one of a list, nothing is cut that only ours could open.
"""

import copy

import pytest

from tests import histories
from tests.histories import Call, Turn
from ullage import Session, problems
from ullage.core.contract.choice import ANY, FORCED, NONE, Choice
from ullage.wires import FORMATS

NAME = "get_continuation"
OUTPUT = "\n".join(
    f"row {n}: the lamp of harbour {n} burns" for n in range(900)
)
TURNS = [Turn(calls=(Call("lookup", "", f"{n}\n{OUTPUT}"),)) for n in range(3)]
SCHEMA = {"type": "object", "properties": {}}
FUNCTION = {"name": "lookup", "parameters": SCHEMA}
TOOLS = {
    "anthropic": [{"name": "lookup", "input_schema": SCHEMA}],
    "openai-chat": [{"type": "function", "function": FUNCTION}],
    "openai-responses": [{"type": "function", **FUNCTION}],
    "gemini": [{"functionDeclarations": [FUNCTION]}],
    "ollama": [{"type": "function", "function": FUNCTION}],
}


def listed(names, mode="auto"):
    """A list of tools as Chat Completions has it."""
    tools = [
        {"type": "function", "function": {"name": name}} for name in names
    ]
    given = {
        "type": "allowed_tools",
        "allowed_tools": {"mode": mode, "tools": tools},
    }
    return {"tool_choice": given}


def listed_beside(names, mode="auto"):
    """The same in Responses."""
    tools = [{"type": "function", "name": name} for name in names]
    return {
        "tool_choice": {"type": "allowed_tools", "mode": mode, "tools": tools}
    }


def calling(names=None, mode="VALIDATED"):
    """The same in Gemini."""
    names = {} if names is None else {"allowedFunctionNames": list(names)}
    return {"toolConfig": {"functionCallingConfig": {"mode": mode, **names}}}


def chosen(choice):
    return {"tool_choice": choice}


ONE, OURS = ["lookup"], ["lookup", NAME]
LONGER = [
    pytest.param("openai-chat", listed(ONE), listed(OURS), id="chat"),
    pytest.param(
        "openai-responses",
        listed_beside(ONE),
        listed_beside(OURS),
        id="responses",
    ),
    pytest.param("gemini", calling(ONE), calling(OURS), id="gemini"),
    pytest.param(
        "gemini", calling(ONE, "AUTO"), calling(OURS, "AUTO"), id="gemini auto"
    ),
]
FREE = [
    pytest.param("anthropic", chosen({"type": "auto"}), id="anthropic auto"),
    pytest.param("anthropic", chosen({"type": "any"}), id="anthropic any"),
    pytest.param("openai-chat", chosen("required"), id="chat required"),
    pytest.param(
        "openai-chat", listed(OURS, "required"), id="chat, a list with ours"
    ),
    pytest.param("openai-responses", chosen("auto"), id="responses auto"),
    pytest.param("gemini", calling(mode="ANY"), id="gemini any"),
    pytest.param(
        "ollama", {"think": False}, id="ollama: it has no word for it"
    ),
]
CHOSEN = [
    pytest.param(
        "anthropic",
        chosen({"type": "tool", "name": "lookup"}),
        id="anthropic tool",
    ),
    pytest.param("anthropic", chosen({"type": "none"}), id="anthropic none"),
    pytest.param(
        "openai-chat",
        chosen({"type": "function", "function": {"name": "lookup"}}),
        id="chat function",
    ),
    pytest.param(
        "openai-chat", listed(ONE, "required"), id="chat required list"
    ),
    pytest.param(
        "openai-responses",
        chosen({"type": "function", "name": "lookup"}),
        id="responses function",
    ),
    pytest.param(
        "openai-responses",
        chosen({"type": "file_search"}),
        id="responses hosted",
    ),
    pytest.param(
        "openai-responses", listed_beside(ONE, "required"), id="responses list"
    ),
    pytest.param("openai-responses", chosen("none"), id="responses none"),
    pytest.param("gemini", calling(ONE, "ANY"), id="gemini any of a list"),
    pytest.param("gemini", calling(mode="NONE"), id="gemini none"),
]


def request(format, turns, more):
    messages = histories.wire(format, TURNS[:turns])
    return histories.request(format, messages, tools=TOOLS[format], **more)


def walked(format, more, turns=2, session=None):
    """The view behind so many turns, of a session that made each request with this choice."""
    session = session or Session(histories.MODEL[format])
    for number in range(turns + 1):
        given = request(format, number, more)
        before = copy.deepcopy(given)
        view = session.fit(given)
        assert given == before, "the caller's request is as it was"
        assert problems(view) == []
    return view, session


def shown(format, view):
    return str(view[FORMATS[format].key])


@pytest.mark.parametrize(("format", "given", "sent"), LONGER)
def test_a_list_that_leaves_the_model_free_has_our_name_too(
    format, given, sent
):
    view, session = walked(format, given)
    (field,) = given
    assert view[field] == sent[field]
    assert NAME in shown(format, view)
    cold = Session(histories.MODEL[format], store=session.store)
    assert cold.fit(request(format, 2, given)) == view


@pytest.mark.parametrize(("format", "given"), FREE)
def test_a_choice_that_takes_any_tool_stays_as_it_is(format, given):
    view, _ = walked(format, given)
    (field,) = given
    assert view[field] == given[field]
    assert NAME in shown(format, view)


@pytest.mark.parametrize(("format", "given"), CHOSEN)
def test_where_ours_may_not_be_called_no_notice_names_it(format, given):
    """From the second request on, whose tools are ours and the caller's."""
    session = Session(histories.MODEL[format])
    session.fit(request(format, 0, {}))
    view = session.fit(request(format, 1, given))
    (field,) = given
    assert view[field] == given[field]
    assert NAME not in shown(format, view)
    assert NAME in str(view["tools"]), "the head stays as it was"
    after = session.fit(request(format, 2, {}))
    assert shown(format, after).count(f"{NAME}(") == 1, (
        "the next result alone is cut"
    )
    cold = Session(histories.MODEL[format], store=session.store)
    assert cold.fit(request(format, 2, {})) == after


def test_objects_of_googles_sdk_are_read_and_written_alike():
    types = pytest.importorskip("google.genai.types")
    calling = types.FunctionCallingConfig(
        mode="VALIDATED", allowed_function_names=["lookup"]
    )
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[FUNCTION])],
        tool_config=types.ToolConfig(function_calling_config=calling),
    )
    contents = [{"role": "user", "parts": [{"text": "hi"}]}]
    given = {"model": "gemini-3-pro", "contents": contents, "config": config}
    view = Session("gemini-3-pro").fit(given)
    listed = view[
        "config"
    ].tool_config.function_calling_config.allowed_function_names
    assert listed == ["lookup", NAME]
    assert calling.allowed_function_names == ["lookup"], (
        "the caller's own is as it was"
    )


def test_a_list_may_grow_only_where_the_model_may_also_answer_in_words():
    names = frozenset(ONE)
    assert Choice(names).takes_more
    assert not Choice(names, is_open=False).takes_more
    assert not ANY.takes_more
    assert [choice.forbids for choice in (ANY, FORCED, NONE)] == [
        False,
        False,
        True,
    ]
    assert ANY.allows(OURS)
    assert Choice(names).allows(ONE)
    assert not Choice(names).allows(OURS)

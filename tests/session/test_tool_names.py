"""A tool of the caller's may take a name of ours at any turn: ours give way, on every wire.

What was cut before still opens, the caller's calls stay the caller's, and every worker sends the
same from there on.
"""

import re

import pytest

from tests import histories
from tests.histories import EAGER, Call, Turn
from tests.second_reading import broken
from ullage import Limits, MemoryStore, Session, problems
from ullage.core.values.notices import pointers
from ullage.wires import FORMATS

WIRES = ("anthropic", "openai-chat", "openai-responses", "gemini")
NAME = "get_continuation"
SCHEMA = {"type": "object", "properties": {}}
OUTPUT = "\n".join(
    f"row {n}: the lamp of harbour {n} burns" for n in range(900)
)
TURNS = [
    Turn(calls=(Call("lookup", f"n{n}", f"{n}\n{OUTPUT}"),)) for n in range(12)
]
every_wire = pytest.mark.parametrize("format", WIRES)
NAMED = re.compile(r"(\w*get_continuation)\(tool_call_id=")


def tools(format, names):
    """The caller's tools of these names."""
    match format:
        case "anthropic":
            return [{"name": name, "input_schema": SCHEMA} for name in names]
        case "openai-chat":
            functions = [
                {"name": name, "parameters": SCHEMA} for name in names
            ]
            return [
                {"type": "function", "function": function}
                for function in functions
            ]
        case "openai-responses":
            return [
                {"type": "function", "name": name, "parameters": SCHEMA}
                for name in names
            ]
    return [
        {
            "functionDeclarations": [
                {"name": name, "parameters": SCHEMA} for name in names
            ]
        }
    ]


def names_of(format, view):
    """The names of the tools of a view."""
    wire = FORMATS[format]
    return [wire.tool_name(tool) for tool in wire.tools(view)]


def call_of(format, name, **arguments):
    """A call of a tool, as the model makes it."""
    match format:
        case "anthropic":
            return {
                "type": "tool_use",
                "id": "toolu_x",
                "name": name,
                "input": arguments,
            }
        case "openai-chat":
            said = str(arguments).replace("'", '"')
            function = {"name": name, "arguments": said}
            return {"id": "call_x", "type": "function", "function": function}
        case "openai-responses":
            said = str(arguments).replace("'", '"')
            return {
                "type": "function_call",
                "call_id": "x",
                "name": name,
                "arguments": said,
            }
    return {"functionCall": {"name": name, "args": arguments}}


class Talk:
    """A conversation that is fitted turn by turn, with the tools that each turn has."""

    def __init__(self, format, store=None, **more):
        self.format = format
        self.session = Session(
            histories.MODEL[format], store=store or MemoryStore(), **more
        )
        self.messages = histories.wire(format, TURNS)

    def request(self, turns, names, **more):
        """The request behind so many turns."""
        messages = histories.wire(self.format, TURNS[:turns])
        return histories.request(
            self.format, messages, tools=tools(self.format, names), **more
        )

    def fit(self, turns, names, **more):
        """The view of it, which is legal."""
        view = self.session.fit(self.request(turns, names, **more))
        assert problems(view) == []
        assert broken(self.format, view) == set()
        return view

    def told(self):
        """The kinds of the newest events."""
        return [event.kind for event in self.session.events]


@every_wire
def test_ours_give_way_at_the_turn_in_which_the_caller_takes_the_name(format):
    talk = Talk(format)
    first = talk.fit(0, ["lookup"])
    assert names_of(format, first) == ["lookup", NAME]
    before = talk.fit(2, ["lookup"])
    assert set(NAMED.findall(str(before))) == {NAME}
    view = talk.fit(3, ["lookup", NAME])
    assert names_of(format, view) == ["lookup", NAME, f"ullage_{NAME}"]
    assert "renamed" in talk.told()
    assert set(NAMED.findall(str(view[FORMATS[format].key]))) == {
        f"ullage_{NAME}"
    }
    assert not view.owns(call_of(format, NAME)), "the caller's own"
    assert before.owns(call_of(format, NAME)), (
        "the reply to the view before is still ours"
    )
    for pointer in pointers(str(view)):
        call = call_of(
            format,
            f"ullage_{NAME}",
            tool_call_id=pointer.ref,
            offset=pointer.offset,
        )
        assert view.owns(call)
        assert "harbour" in str(view.recall(call))


@every_wire
def test_the_name_stays_when_the_caller_drops_the_tool_and_on_every_worker(
    format,
):
    talk = Talk(format)
    talk.fit(0, ["lookup"])
    talk.fit(2, ["lookup"])
    view = talk.fit(3, ["lookup", NAME])
    other = Talk(format, talk.session.store)
    assert other.fit(3, ["lookup", NAME]) == view
    later = talk.fit(5, ["lookup"])
    assert names_of(format, later) == ["lookup", f"ullage_{NAME}"]
    assert Talk(format, talk.session.store).fit(5, ["lookup"]) == later
    assert talk.told().count("renamed") == 1
    rewound = talk.fit(2, ["lookup"])
    assert names_of(format, rewound) == ["lookup", NAME], (
        "before that place nothing was renamed"
    )


@every_wire
def test_a_second_clash_is_given_way_to_as_well(format):
    talk = Talk(format)
    talk.fit(0, ["lookup", NAME])
    view = talk.fit(2, ["lookup", NAME, f"ullage_{NAME}"])
    assert names_of(format, view)[-1] == f"ullage2_{NAME}"
    cold = Talk(format, talk.session.store).fit(
        2, ["lookup", NAME, f"ullage_{NAME}"]
    )
    assert cold == view


@every_wire
def test_the_tools_of_an_earlier_view_are_ours_whoever_sends_them(format):
    """A caller who sends back what a view held, with a marker on the last of it."""
    talk = Talk(format)
    first = talk.fit(0, ["lookup"])
    request = talk.request(2, ["lookup"])
    wire = FORMATS[format]
    mine = [dict(tool) for tool in wire.tools(first)]
    if format == "anthropic":
        mine[-1]["cache_control"] = {"type": "ephemeral"}
    request["tools"] = (
        [{"functionDeclarations": mine}] if format == "gemini" else mine
    )
    view = talk.session.fit(request)
    assert names_of(format, view) == ["lookup", NAME]
    assert view.owns(call_of(format, NAME))


@every_wire
def test_notices_of_batches_that_were_made_before_name_the_tool_as_it_is_called_now(
    format,
):
    small = {"limits": Limits(window_tokens=24_000), "policy": EAGER}
    talk = Talk(format, **small)
    for turns in range(10):
        talk.fit(turns, ["lookup"])
    assert {"pruned", "condensed"} & {*talk.told()}, "the ledger holds notices"
    view = talk.fit(10, ["lookup", NAME])
    key = FORMATS[format].key
    assert set(NAMED.findall(str(view[key]))) == {f"ullage_{NAME}"}
    for pointer in pointers(str(view[key])):
        call = call_of(
            format,
            f"ullage_{NAME}",
            tool_call_id=pointer.ref,
            offset=pointer.offset,
        )
        assert "nothing is kept" not in str(view.recall(call))
    cold = Talk(format, talk.session.store, **small)
    assert cold.fit(10, ["lookup", NAME]) == view
    later = talk.fit(12, ["lookup", NAME])
    assert (
        Talk(format, talk.session.store, **small).fit(12, ["lookup", NAME])
        == later
    )


def test_a_page_that_was_read_under_the_old_name_stays_a_page():
    """It is bounded, and never set aside again; what the caller's own tool gives is."""
    page = Call(NAME, "x", OUTPUT)
    turns = [TURNS[0], Turn(calls=(page,))]
    session = Session("claude-sonnet-4-5")
    request = histories.request("anthropic", histories.wire("anthropic", []))
    session.fit({**request, "tools": tools("anthropic", ["lookup"])})
    for length, names in (
        (1, ["lookup"]),
        (2, ["lookup"]),
        (2, ["lookup", NAME]),
    ):
        request = histories.request(
            "anthropic", histories.wire("anthropic", turns[:length])
        )
        view = session.fit({**request, "tools": tools("anthropic", names)})
    assert OUTPUT in str(view["messages"][-1]).replace("\\n", "\n"), (
        "the page is whole"
    )
    messages = histories.wire("anthropic", [*turns, Turn(calls=(page,))])
    request = histories.request("anthropic", messages)
    view = session.fit(
        {**request, "tools": tools("anthropic", ["lookup", NAME])}
    )
    assert f"ullage_{NAME}(" in str(view["messages"][-1]), (
        "theirs is cut as any"
    )
    assert OUTPUT in str(view["messages"][-3]).replace("\\n", "\n")


def test_a_tool_that_a_search_loaded_takes_the_name_too():
    found = {
        "type": "tool_search_output",
        "call_id": "s1",
        "execution": "client",
        "status": "completed",
        "tools": [{"type": "function", "name": NAME, "parameters": SCHEMA}],
    }
    search = {
        "type": "tool_search_call",
        "call_id": "s1",
        "execution": "client",
        "status": "completed",
        "arguments": {"query": "more"},
    }
    mine = [{"type": "tool_search"}, *tools("openai-responses", ["lookup"])]
    session = Session("gpt-5.6")
    begun = histories.request(
        "openai-responses", histories.wire("openai-responses", [])
    )
    session.fit({**begun, "tools": mine})
    view = session.fit(
        {**begun, "tools": mine, "input": [*begun["input"], search, found]}
    )
    assert names_of("openai-responses", view)[-1] == f"ullage_{NAME}"


@pytest.mark.parametrize(
    ("format", "call"),
    [
        (
            "openai-responses",
            {"type": "function_call", "call_id": "c", "namespace": "crm"},
        ),
        (
            "anthropic",
            {"type": "tool_use", "id": "toolu_1", "toolset_name": "crm"},
        ),
    ],
)
def test_a_tool_of_a_namespace_that_is_called_like_ours_is_the_callers(
    format, call
):
    view = Talk(format).fit(0, ["lookup"])
    mine = {**call, "name": NAME, "arguments": "{}", "input": {}}
    assert not view.owns(mine)
    del mine["namespace" if format == "openai-responses" else "toolset_name"]
    assert view.owns(mine)

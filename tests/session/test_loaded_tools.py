"""Tools that a search loaded are defined in the history: there they stay, under every policy.

Whatever leaves the view around them, every request is legal, holds the definitions, and is the same
on another worker.
"""

import pytest

from tests import histories
from tests.histories import CUTS_ALWAYS, EAGER, Call, Turn
from tests.second_reading import broken
from ullage import Limits, MemoryStore, Session, problems
from ullage.core.contract.policy import Policy
from ullage.core.history.transcript import leaves_of
from ullage.core.values.edits import ProposedEdit, Replace
from ullage.core.values.messages import Opaque
from ullage.documents import NAMES
from ullage.wires import FORMATS

TOOL = "mcp__db__run"
SCHEMA = {"type": "object", "properties": {}}
OUTPUT = "\n".join(
    f"row {n}: the lamp of harbour {n} burns" for n in range(160)
)
LIMITS = Limits(window_tokens=16_000, output_reserve_tokens=1_000)
TURNS = 26


def by_the_client(number):
    """Anthropic: the client's own search, with another call beside it."""
    calls = [
        {
            "type": "tool_use",
            "id": f"toolu_s{number}",
            "name": "ToolSearch",
            "input": {"q": "db"},
        },
        {
            "type": "tool_use",
            "id": f"toolu_r{number}",
            "name": "bash",
            "input": {},
        },
    ]
    reference = {"type": "tool_reference", "tool_name": TOOL}
    noted = {"type": "text", "text": "One tool fits."}
    results = [
        {
            "type": "tool_result",
            "tool_use_id": f"toolu_s{number}",
            "content": [reference, noted],
        },
        {
            "type": "tool_result",
            "tool_use_id": f"toolu_r{number}",
            "content": OUTPUT,
        },
    ]
    return [
        {"role": "assistant", "content": calls},
        {"role": "user", "content": results},
    ]


def by_the_server(number):
    """Anthropic: the server's search, and the call of what it found in the same reply."""
    found = {
        "type": "tool_search_tool_search_result",
        "tool_references": [{"type": "tool_reference", "tool_name": TOOL}],
    }
    said = [
        {
            "type": "server_tool_use",
            "id": f"srvtoolu_{number}",
            "name": "tool_search_tool_regex",
            "input": {"query": "db"},
        },
        {
            "type": "tool_search_tool_result",
            "tool_use_id": f"srvtoolu_{number}",
            "content": found,
        },
        {
            "type": "tool_use",
            "id": f"toolu_f{number}",
            "name": TOOL,
            "input": {},
        },
    ]
    result = {
        "type": "tool_result",
        "tool_use_id": f"toolu_f{number}",
        "content": OUTPUT,
    }
    return [
        {"role": "assistant", "content": said},
        {"role": "user", "content": [result]},
    ]


def searched(execution):
    """Responses: a search, and the definitions that it found."""

    def items(number):
        both = {
            "call_id": f"call_s{number}",
            "execution": execution,
            "status": "completed",
        }
        tool = {
            "type": "function",
            "name": TOOL,
            "description": "Runs.",
            "parameters": SCHEMA,
        }
        return [
            {
                "type": "reasoning",
                "id": f"rs_s{number}",
                "summary": [],
                "encrypted_content": "gAAAAA" + "x" * 1_200,
            },
            {"type": "tool_search_call", **both, "arguments": {"query": "db"}},
            {"type": "tool_search_output", **both, "tools": [tool]},
        ]

    return items


ANTHROPIC_TOOLS = [
    {"name": "ToolSearch", "input_schema": SCHEMA},
    {"name": "bash", "input_schema": SCHEMA},
    {"name": TOOL, "input_schema": SCHEMA, "defer_loading": True},
]
RESPONSES_TOOLS = [
    {"type": "tool_search"},
    {"type": "function", "name": "bash", "parameters": SCHEMA},
    {
        "type": "function",
        "name": TOOL,
        "parameters": SCHEMA,
        "defer_loading": True,
    },
]
SEARCHES = {
    "anthropic, client": ("anthropic", by_the_client, ANTHROPIC_TOOLS),
    "anthropic, server": ("anthropic", by_the_server, ANTHROPIC_TOOLS),
    "responses, client": (
        "openai-responses",
        searched("client"),
        RESPONSES_TOOLS,
    ),
    "responses, server": (
        "openai-responses",
        searched("server"),
        RESPONSES_TOOLS,
    ),
}
MARKS = {
    "anthropic": "tool_references",
    "openai-responses": "tool_search_output",
}
every_search = pytest.mark.parametrize("search", SEARCHES)
POLICIES = [*NAMES, EAGER, CUTS_ALWAYS]
every_policy = pytest.mark.parametrize(
    "policy", POLICIES, ids=lambda it: getattr(it, "name", it)
)


def history(search, turns, at=2, again=()):
    """A task, turns of work, and the search after the second of them."""
    format, found, _ = SEARCHES[search]
    work = [
        Turn(
            said=f"Step {n}.",
            calls=(Call(TOOL if n % 5 == 3 else "bash", f"{n}", OUTPUT),),
        )
        for n in range(turns)
    ]
    messages = histories.wire(format, work[:at])
    for number in range(at, turns):
        if number == at or number in again:
            messages += found(number)
        messages += histories.wire(format, [work[number]], start=number)
    return messages


def request(search, messages, **more):
    format, _, tools = SEARCHES[search]
    return histories.request(format, messages, tools=tools, **more)


def loaded(search, view):
    """How often the view defines the tool."""
    format = SEARCHES[search][0]
    said = str(view[FORMATS[format].key])
    return said.count("'tool_reference'") + said.count("'tool_search_output'")


def walked(search, policy, store, **more):
    session = Session(
        histories.MODEL[SEARCHES[search][0]],
        policy=policy,
        limits=LIMITS,
        store=store,
        recall=more.pop("recall", "auto"),
    )
    for turns in range(3, TURNS + 1):
        yield (
            turns,
            session,
            session.fit(request(search, history(search, turns), **more)),
        )


@every_search
@every_policy
@pytest.mark.parametrize("recall", ["auto", False])
def test_what_a_search_loaded_is_in_every_view(search, policy, recall):
    store = MemoryStore()
    format = SEARCHES[search][0]
    for turns, _, view in walked(search, policy, store, recall=recall):
        assert loaded(search, view) == 1, turns
        assert problems(view) == []
        assert broken(format, view) == set()
    assert len(view[FORMATS[format].key]) < len(
        history(search, TURNS)
    ) or policy in (
        "token_budget",
        "continuation",
        "output_cache",
    ), "and much else has left"
    cold = Session(
        histories.MODEL[format],
        policy=policy,
        limits=LIMITS,
        store=store,
        recall=recall,
    )
    assert cold.fit(request(search, history(search, TURNS))) == view


@every_search
def test_what_was_loaded_anew_later_need_not_stand_twice(search):
    session = Session(
        histories.MODEL[SEARCHES[search][0]], limits=LIMITS, recall=False
    )
    for turns in range(3, TURNS + 1):
        messages = history(search, turns, again=(TURNS - 2,))
        view = session.fit(request(search, messages))
        assert loaded(search, view) >= 1
    for turns in range(TURNS + 1, TURNS + 14):
        view = session.fit(
            request(search, history(search, turns, again=(TURNS - 2,)))
        )
        assert problems(view) == []
    assert loaded(search, view) == 1


def test_the_text_beside_a_reference_may_be_cut_and_the_reference_stays():
    call = {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "ToolSearch",
        "input": {},
    }
    reference = {"type": "tool_reference", "tool_name": TOOL}
    content = [{"type": "text", "text": OUTPUT * 9}, reference]
    result = {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": content,
    }
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    session = Session("claude-sonnet-4-5", policy=CUTS_ALWAYS)
    view = session.fit(request("anthropic, client", messages))
    text, kept = view["messages"][-1]["content"][0]["content"]
    assert len(text["text"]) < len(OUTPUT) * 9
    assert kept is reference


def replacing(window, /):
    """A stage of somebody's that shows a word in place of all that it does not know."""
    messages = window.transcript.messages
    spots = [
        (index, number, item)
        for index in range(window.size)
        for number, item, leaf in leaves_of(messages[index])
        if isinstance(leaf, Opaque) and leaf.kind == "tool_reference"
    ]
    cuts = []
    for spot in spots:
        output = window.transcript.output(spot)
        place = window.transcript.address(spot)
        cuts.append(
            ProposedEdit(
                Replace(place, output.ref, "gone", "pruned", "why"), (output,)
            )
        )
    return cuts


def test_a_stage_that_would_replace_a_reference_cannot():
    policy = Policy(name="replacing", under_pressure=(replacing,))
    session = Session("claude-sonnet-4-5", policy=policy, limits=LIMITS)
    view = session.fit(
        request("anthropic, client", history("anthropic, client", 4))
    )
    assert loaded("anthropic, client", view) == 1
    assert "gone" not in str(view["messages"])


def test_definitions_that_no_window_holds_make_way_rather_than_stop_the_conversation():
    """Where nothing else is left that could make the view fit, the guard takes them too."""
    tools = [
        {
            "type": "function",
            "name": f"tool_{n}",
            "description": OUTPUT,
            "parameters": SCHEMA,
        }
        for n in range(9)
    ]
    both = {"call_id": "call_s", "execution": "client", "status": "completed"}
    messages = [
        {"role": "user", "content": "go"},
        {"type": "tool_search_call", **both, "arguments": {}},
        {"type": "tool_search_output", **both, "tools": tools},
        *histories.wire(
            "openai-responses",
            [Turn(calls=(Call("bash", "", OUTPUT),))] * 3,
            start=1,
        ),
    ]
    session = Session("gpt-5.6", limits=LIMITS)
    view = session.fit(request("responses, client", messages))
    assert problems(view) == []
    assert "tool_search_output" not in str(view["input"])
    cold = Session("gpt-5.6", limits=LIMITS, store=session.store)
    assert cold.fit(request("responses, client", messages)) == view

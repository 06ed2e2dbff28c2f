"""What stands whatever happens: names, limits, decisions, and the session itself."""

import json

import pytest

from lab.returned import problems
from tests import histories
from tests.sessions import (
    SMALL,
    TASK,
    long_history,
    new_session,
    recall,
    request,
    some_ref,
    turn,
)
from tests.world import FORMAT_NAMES, MODEL, recount
from ullage import (
    Limits,
    MemoryStore,
    OverLimitError,
    Session,
    Usage,
    recall_tools,
)
from ullage.wires import FORMATS
from ullage.wires.rules.checker import problems_of


def tool_named(format, name):
    if format == "anthropic":
        return {"name": name, "input_schema": {"type": "object"}}
    return {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object"}},
    }


def call_named(format, name):
    if format == "anthropic":
        return {
            "type": "tool_use",
            "id": "t",
            "name": name,
            "input": {"tool_call_id": "x"},
        }
    body = {"name": name, "arguments": '{"tool_call_id": "x"}'}
    return {"id": "t", "type": "function", "function": body}


@pytest.mark.parametrize("format", FORMAT_NAMES)
def test_a_tool_of_the_caller_with_our_name_keeps_it(format):
    session, theirs = (
        new_session(format),
        tool_named(format, "get_continuation"),
    )
    messages = long_history(format)
    view = session.fit(request(format, messages[:1], tools=[theirs]))
    assert view["tools"][0] is theirs
    names = [
        tool.get("name") or tool["function"]["name"] for tool in view["tools"]
    ]
    assert len(set(names)) == len(names) == 2
    assert not session.owns(call_named(format, "get_continuation"))
    assert session.owns(call_named(format, "ullage_get_continuation"))
    view = session.fit(request(format, messages, tools=[theirs]))
    assert "ullage_get_continuation(" in json.dumps(view["messages"])
    answer = recall(
        session, "ullage_get_continuation", {"tool_call_id": some_ref(session)}
    )
    assert "line" in answer or "Index" in answer


@pytest.mark.parametrize("format", FORMAT_NAMES)
def test_a_host_says_by_its_tools_under_which_names_ours_are_offered(format):
    """From the start; in the middle of a conversation; and back, with every notice renamed."""
    (spec,) = recall_tools()
    wire = FORMATS[format]
    other = wire.tool(spec.renamed("ullage_"))
    theirs, messages = tool_named(format, spec.name), long_history(format)
    session = new_session(format, recall="host")

    def shown(*tools):
        whole = request(format, messages, tools=list(tools))
        view = session.fit(whole)
        assert view["tools"] == list(tools)
        assert problems(format, view) == []
        return json.dumps(view["messages"])

    session.fit(request(format, messages[:1], tools=[wire.tool(spec)]))
    assert " get_continuation(" in shown(wire.tool(spec))
    renamed = shown(theirs, other)
    assert "ullage_get_continuation(" in renamed
    assert " get_continuation(" not in renamed
    answer = recall(
        session, "ullage_get_continuation", {"tool_call_id": some_ref(session)}
    )
    assert "line" in answer or "Index" in answer
    assert "ullage_get_continuation(" not in shown(wire.tool(spec))
    renames = [
        event.why for event in session.events if event.kind == "renamed"
    ]
    assert len(renames) == 2
    assert "ours begin with 'ullage_'" in renames[0]
    assert "no tool of the caller's has a name of ours any more" in renames[1]


WIDE = Limits(window_tokens=200_000)


def tool_of_arguments(format, name, *arguments):
    """A tool of the caller's that takes these."""
    properties = {each: {"type": "string"} for each in arguments}
    schema = {"type": "object", "properties": properties}
    if format == "anthropic":
        return {"name": name, "input_schema": schema}
    function = {"name": name, "parameters": schema}
    return {"type": "function", "function": function}


@pytest.mark.parametrize("format", FORMAT_NAMES)
@pytest.mark.parametrize("arguments", [(), ("chapter",)], ids=len)
def test_where_the_caller_has_our_name_and_the_host_adds_nothing_recall_is_off(
    format, arguments
):
    session, messages = (
        new_session(format, recall="host"),
        long_history(format),
    )
    theirs = tool_of_arguments(format, "get_continuation", *arguments)
    session.fit(request(format, messages[:1], tools=[theirs]))
    view = session.fit(request(format, messages, tools=[theirs]))
    assert "get_continuation" not in json.dumps(view["messages"])
    assert problems(format, view) == []
    assert view.sent.standing.reason == "names"
    off = [event.why for event in session.events if event.kind == "renamed"]
    assert len(off) == 1
    assert "recall is off" in off[0]


@pytest.mark.parametrize("format", FORMAT_NAMES)
def test_where_the_caller_takes_our_last_name_what_is_new_is_not_cut(format):
    """In the middle of a conversation: nothing could open it."""
    (spec,) = recall_tools()
    turns = [turn(f"row {n} of a long log\n" * 2_000) for n in range(4)]
    wire, messages = FORMATS[format], histories.wire(format, turns)
    ours = wire.tool(spec)
    theirs = tool_of_arguments(format, spec.name, "chapter")

    def is_cut(first, then):
        """Whether the last result is, where the host shows one tool at first and then another.

        And how often it was told that recall is off.
        """
        session = new_session(format, recall="host", limits=WIDE)
        places = [
            at
            for at, each in enumerate(messages)
            if each["role"] == "assistant"
        ]
        for place in (*places, len(messages)):
            tool = first if place < len(messages) // 2 else then
            asked = request(format, messages[:place], tools=[tool])
            view = session.fit(asked)
            assert problems(format, view) == []
        last = json.dumps(view["messages"][-1])
        told = ["recall is off" in event.why for event in session.events]
        return "[ullage" in last, sum(told)

    assert is_cut(ours, ours) == (True, 0)
    assert is_cut(ours, theirs) == (False, 1)


@pytest.mark.parametrize("format", FORMAT_NAMES)
def test_that_the_caller_has_our_name_in_another_history_is_told_once(format):
    (spec,) = recall_tools()
    ours = FORMATS[format].tool(spec)
    theirs = tool_of_arguments(format, spec.name, "chapter")
    session = new_session(format, recall="host", limits=WIDE)
    for text, tool in (("Begin.", ours), ("Begin anew.", theirs)):
        messages = [{"role": "user", "content": text}]
        session.fit(request(format, messages, tools=[tool]))
    told = ["recall is off" in event.why for event in session.events]
    assert sum(told) == 1


@pytest.mark.parametrize("format", FORMAT_NAMES)
def test_what_a_host_writes_in_its_own_form_is_taken_for_ours(format):
    session = new_session(format, recall="host")
    tool = tool_named(format, "get_continuation")
    session.fit(request(format, long_history(format)[:1], tools=[tool]))
    view = session.fit(request(format, long_history(format), tools=[tool]))
    assert " get_continuation(" in json.dumps(view["messages"])


@pytest.mark.parametrize("format", FORMAT_NAMES)
def test_joining_half_way_adds_no_tools_to_a_request_that_has_none_and_says_so(
    format,
):
    session = Session(MODEL[format], limits=SMALL, format=format)
    view = session.fit(request(format, long_history(format)))
    assert "tools" not in view
    joined = [event for event in session.events if event.kind == "joined"]
    assert len(joined) == 1
    assert "no recall tools are offered" in joined[0].why
    assert "get_continuation" not in json.dumps(view["messages"])
    assert not session.owns(call_named(format, "get_continuation"))


@pytest.mark.parametrize("format", FORMAT_NAMES)
def test_a_smaller_window_fits_at_once(format):
    """F36: 1M, then 128k, then 8k, in one session, and back."""
    models = {
        "openai-chat": ("gpt-4.1", "gpt-4o", "gpt-4"),
        "anthropic": (
            "claude-opus-4-8",
            "claude-sonnet-4-5",
            "claude-instant-1.2",
        ),
    }[format]
    messages = long_history(format, 60)
    session = Session(models[0], format=format, recall=True)
    limits = []
    for model in (*models, models[0]):
        whole = {**request(format, messages), "model": model}
        view = session.fit(whole)
        assert session.window.estimate <= session.window.limit_tokens
        assert problems(format, view) == []
        assert session.fit(whole) == view
        limits.append(session.window.limit_tokens)
    assert limits[0] > limits[1] > limits[2] or format == "anthropic"


@pytest.mark.parametrize("format", FORMAT_NAMES)
def test_limits_that_shrink_fit_at_once_and_survive_a_restart(format):
    """The same in one model: what is decided under new limits, a cold start finds again."""
    messages, state, store = long_history(format, 60), None, MemoryStore()
    for window in (1_000_000, 128_000, 8_000):
        limits = Limits(window_tokens=window)
        session = new_session(format, limits=limits, state=state, store=store)
        view = session.fit(request(format, messages))
        assert session.window.estimate <= session.window.limit_tokens
        state = session.state
        again = new_session(format, limits=limits, state=state).fit(
            request(format, messages)
        )
        assert again == view


@pytest.mark.parametrize("format", FORMAT_NAMES)
def test_over_the_limit_the_error_names_the_parts(format):
    session = new_session(format)
    tools = [tool_named(format, f"tool_{n}" + "x" * 50) for n in range(600)]
    with pytest.raises(OverLimitError) as caught:
        session.fit(request(format, [TASK], tools=tools))
    error = caught.value
    assert error.limit_tokens == 5_000
    assert error.need_tokens > 5_000
    assert next(iter(error.parts)) == "system text and tools"
    assert f"{error.need_tokens:,}" in str(error)
    assert session.fit(request(format, [TASK]))["messages"] == [TASK]


@pytest.mark.parametrize("format", FORMAT_NAMES)
@pytest.mark.parametrize("reported", [-5, 0, 1, 40_000, 140_000, 10**9])
def test_a_report_that_cannot_be_true_does_not_end_the_session(
    format, reported
):
    """F63, F64: usage of nothing, or summed over a turn."""
    session, messages = new_session(format), long_history(format, 12)
    lengths = [
        at for at, m in enumerate(messages) if at and m["role"] == "assistant"
    ]
    for length in lengths:
        view = session.fit(request(format, messages[:length]))
        assert problems_of(format, view["messages"]) == []
        session.observe(Usage(fresh_tokens=reported))


@pytest.mark.parametrize("format", FORMAT_NAMES)
@pytest.mark.parametrize("goes_on", ["assistant", "user"])
def test_a_decision_in_the_middle_of_a_turn_stands(format, goes_on):
    """A view ended with a reply, or a user, that went on: no boundary is there any more."""
    messages = [
        TASK,
        {"role": goes_on, "content": "all work and no play\n" * 4_000},
    ]
    session = new_session(format)
    view = session.fit(request(format, messages))
    assert view["messages"][1] != messages[1]
    longer = [*messages, {"role": goes_on, "content": "And so on."}, TASK]
    roomy = new_session(
        format, limits=Limits(window_tokens=100_000), state=session.state
    )
    again = roomy.fit(request(format, longer))
    assert again["messages"] == [*view["messages"], *longer[2:]]


@pytest.mark.parametrize("format", FORMAT_NAMES)
def test_a_decision_at_the_end_settles_what_is_before_it(format):
    """A longer answer is asked for: one batch, at the end. A cold start makes no other."""
    messages, limits = long_history(format, 30), Limits(window_tokens=64_000)
    session = new_session(format, limits=limits)
    for length in [
        at for at, m in enumerate(messages) if at and m["role"] == "assistant"
    ]:
        assert (
            session.fit(request(format, messages[:length]))["messages"]
            == messages[:length]
        )
    whole = {**request(format, messages), "max_tokens": 32_000}
    view = session.fit(whole)
    assert {event.kind for event in session.events} == {"pruned"}
    cold = new_session(format, limits=limits, state=session.state)
    assert cold.fit(whole) == view
    assert cold.state.ledger == session.state.ledger


@pytest.mark.parametrize("format", FORMAT_NAMES)
def test_a_branch_takes_over_messages_as_they_are_worded_now(format):
    """One message is respelt and a later one rewritten between two turns."""
    write = histories.Call("write_file", histories.HUGE, "done")
    messages = histories.wire(
        format, [histories.Turn(said="I write.", calls=(write,))] * 4
    )
    session = new_session(format, limits=Limits(window_tokens=64_000))
    session.fit(request(format, messages))
    if format == "anthropic":
        thought = {
            "type": "thinking",
            "thinking": "hm " * 500,
            "signature": "c2ln",
        }
        messages[1]["content"].insert(0, thought)
    else:
        body = messages[1]["tool_calls"][0]["function"]
        body["arguments"] = body["arguments"].replace(" ", " " * 500)
    messages[-1] = histories.wire(format, [turn("other")] * 4)[-1]
    view = session.fit(request(format, messages))
    assert recount(session, view) == session.window.tokens


def test_arguments_spelt_otherwise_keep_their_edit():
    """Clients parse arguments and write them again, with other spaces."""
    write = histories.Call("write_file", histories.HUGE, "done")
    messages = histories.wire(
        "openai-chat", [histories.Turn(calls=(write,))] * 12
    )
    session = new_session("openai-chat")
    view = session.fit(request("openai-chat", messages))
    window = session.window
    edited = [
        i
        for i, each in enumerate(messages)
        if each.get("tool_calls") and window.hidden(i)
    ]
    assert edited
    for index in edited:
        body = messages[index]["tool_calls"][0]["function"]
        body["arguments"] = json.dumps(json.loads(body["arguments"]), indent=1)
    cold = new_session("openai-chat", state=session.state)
    assert cold.fit(request("openai-chat", messages)) == view
    assert session.fit(request("openai-chat", messages)) == view


def test_a_branch_does_not_outlive_what_was_observed_behind_it():
    """Both branches passed one place before a report came in there: the memo may not differ."""
    session, messages = (
        new_session("openai-chat"),
        long_history("openai-chat", 4),
    )
    one, two = (
        [*messages, {"role": "assistant", "content": n}, TASK]
        for n in ("One.", "Two.")
    )
    session.fit(request("openai-chat", messages))
    session.fit(request("openai-chat", one))
    session.fit(request("openai-chat", messages))
    session.observe(Usage(fresh_tokens=session.window.tokens * 2))
    session.fit(request("openai-chat", two))
    view = session.fit(request("openai-chat", one))
    cold = new_session("openai-chat", state=session.state)
    assert cold.fit(request("openai-chat", one)) == view
    assert cold.window.calibration == session.window.calibration

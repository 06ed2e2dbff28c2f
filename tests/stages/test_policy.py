import inspect
from functools import partial

import pytest

from tests import histories
from ullage import (
    ConfigError,
    Limits,
    OverLimitError,
    Policy,
    Session,
    StageError,
)
from ullage import policy as stages
from ullage.core.contract.kinds import kind_of
from ullage.core.values.edits import ProposedEdit, Replace
from ullage.policy.stages.default import DEFAULT

LONG = [{"role": "user", "content": "the tide came in. " * 2_000}]

MODELS = {"openai-chat": "gpt-4.1", "anthropic": "claude-sonnet-4-5"}
FUNCTION = {"name": "read_file", "arguments": '{"path": "a.py"}'}
CALLED = {"id": "c1", "type": "function", "function": FUNCTION}
USED = {
    "type": "tool_use",
    "id": "c1",
    "name": "read_file",
    "input": {"path": "a.py"},
}
GIVEN = {"type": "tool_result", "tool_use_id": "c1", "content": "x = 1"}
REQUESTS = {
    "openai-chat": {
        "messages": [
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": None, "tool_calls": [CALLED]},
            {"role": "tool", "tool_call_id": "c1", "content": "x = 1"},
        ]
    },
    "anthropic": {
        "max_tokens": 100,
        "messages": [
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": [USED]},
            {"role": "user", "content": [GIVEN]},
        ],
    },
}


def session(policy, window=2_000):
    return Session(
        "gpt-4.1",
        policy=policy,
        limits=Limits(window_tokens=window),
        recall=False,
    )


def test_a_policy_without_stages_changes_nothing():
    view = session(Policy(name="none"), 100_000).fit({"messages": LONG})
    assert view["messages"] == LONG


def test_without_a_guard_what_does_not_fit_is_refused():
    with pytest.raises(OverLimitError):
        session(Policy(name="none")).fit({"messages": LONG})
    assert session(DEFAULT).fit({"messages": LONG})["messages"] != LONG


def test_stages_are_asked_in_order_at_their_moment():
    asked = []

    def stage(name):
        def decide(window, /):
            asked.append((name, window.size))
            return ()

        return decide

    policy = Policy(
        name="watch",
        on_arrival=(stage("first"),),
        under_pressure=(stage("prune"), stage("compact")),
        guard=stage("guard"),
    )
    messages = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "Gone."},
        {"role": "user", "content": "And now?"},
    ]
    watching = session(policy, 10_000)
    asked.clear()  # what is first asked is shown samples too, for the fingerprint
    watching.fit({"messages": messages})
    names = ("first", "prune", "compact", "guard")
    assert asked == [(name, size) for size in (1, 3) for name in names]


@pytest.mark.parametrize("format", ["openai-chat", "anthropic"])
@pytest.mark.parametrize("text", ['{"path": "a.py"', "[]", "a.py"])
def test_a_stage_that_shows_arguments_no_wire_can_carry_is_named_with_the_call(
    format, text
):
    def shout(window, /):
        """Shows the first call otherwise."""
        if window.size == 1:
            return ()
        place, output = (
            window.transcript.address((1, 0, 0)),
            window.transcript.output((1, 0, 0)),
        )
        return [
            ProposedEdit(
                Replace(place, output.ref, text, "pruned", "it is long"),
                (output,),
            )
        ]

    policy = Policy(name="shouting", under_pressure=(shout,), strict=True)
    limits = Limits(window_tokens=10_000)
    shouting = Session(
        MODELS[format],
        policy=policy,
        limits=limits,
        format=format,
        recall=False,
    )
    with pytest.raises(
        StageError, match=r"stage shout, .* of read_file, call 1 of message 2"
    ):
        shouting.fit(REQUESTS[format])


def test_the_name_of_a_policy_is_pinned_and_an_unknown_one_refused():
    watched = session(Policy(name="none"), 10_000)
    watched.fit({"messages": [{"role": "user", "content": "Hello."}]})
    assert watched.state.policy_record.policy == "none"
    with pytest.raises(ConfigError, match="Use one of default"):
        Session("gpt-4.1", policy="magic")


@pytest.mark.parametrize(
    ("kind", "tools"),
    {
        "read": ("read_file", "Read", "view", "cat", "open_file"),
        "search": ("grep", "Glob", "find_references", "ls", "search_files"),
        "shell": (
            "bash",
            "execute_command",
            "run_tests",
            "terminal",
            "python",
        ),
        "web": ("web_search", "WebFetch", "browse", "http_get"),
        "other": ("lookup", "weather", ""),
    }.items(),
)
def test_a_tool_is_of_the_kind_its_name_says(kind, tools):
    assert {tool: kind_of(tool) for tool in tools} == dict.fromkeys(
        tools, kind
    )


def forget_pages(window, /, *, older_than=6):
    """The stage of the docstring of `ullage.policy`."""
    stop = window.transcript.turn_start(window.size) - older_than
    cuts = (
        stages.placeholder(window, at)
        for at in window.results(0, max(stop, 0))
    )
    return [cut for cut in cuts if cut is not None]


def test_the_stage_of_the_docstring_is_a_policy_of_its_own():
    policy = stages.Policy(
        name="mine-1", under_pressure=(partial(forget_pages, older_than=4),)
    )
    calls = [
        histories.Call("read", f"{n}.py", f"line {n}\n" * 400)
        for n in range(6)
    ]
    messages = histories.wire(
        "openai-chat", [histories.Turn(calls=(call,)) for call in calls]
    )
    session = Session("gpt-4.1", policy=policy, recall=True)
    session.fit(histories.request("openai-chat", messages))
    assert session.window.changed
    source = inspect.getsource(forget_pages).replace(
        "stages.placeholder", "placeholder"
    )
    told = {line.strip() for line in stages.__doc__.splitlines()}
    assert {
        line.strip()
        for line in source.splitlines()
        if line and '"""' not in line
    } <= told

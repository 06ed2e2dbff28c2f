import pytest

from ullage import ConfigError, Limits, OverLimitError, Policy, Session
from ullage.stages.default import DEFAULT
from ullage.stages.policy import kind_of

LONG = [{"role": "user", "content": "the tide came in. " * 2_000}]


def session(policy, window=2_000):
    return Session("gpt-4.1", policy=policy, limits=Limits(window_tokens=window), recall=False)


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
        at_first_sight=(stage("first"),),
        under_pressure=(stage("prune"), stage("compact")),
        guard=stage("guard"),
    )
    messages = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "Gone."},
        {"role": "user", "content": "And now?"},
    ]
    session(policy, 10_000).fit({"messages": messages})
    names = ("first", "prune", "compact", "guard")
    assert asked == [(name, size) for size in (1, 3) for name in names]


def test_the_name_of_a_policy_is_pinned_and_an_unknown_one_refused():
    watched = session(Policy(name="none"), 10_000)
    watched.fit({"messages": [{"role": "user", "content": "Hello."}]})
    assert watched.state.opened.policy == "none"
    with pytest.raises(ConfigError, match="Use one of default"):
        Session("gpt-4.1", policy="magic")


@pytest.mark.parametrize(
    ("kind", "tools"),
    {
        "read": ("read_file", "Read", "view", "cat", "open_file"),
        "search": ("grep", "Glob", "find_references", "ls", "search_files"),
        "shell": ("bash", "execute_command", "run_tests", "terminal", "python"),
        "web": ("web_search", "WebFetch", "browse", "http_get"),
        "other": ("lookup", "weather", ""),
    }.items(),
)
def test_a_tool_is_of_the_kind_its_name_says(kind, tools):
    assert {tool: kind_of(tool) for tool in tools} == dict.fromkeys(tools, kind)

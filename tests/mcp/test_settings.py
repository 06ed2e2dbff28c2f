"""Limits by tool and by argument, from options and from a file."""

import json

import pytest

from ullage.core.errors import ConfigError
from ullage.doors.mcp.settings import (
    LimitRule,
    McpSettings,
    ServerConfig,
    limit_of,
    may_cut,
    rule_of,
    settings_of,
)


@pytest.mark.parametrize(
    ("written", "rule"),
    [
        ("6000", LimitRule(6_000)),
        ("6,000", LimitRule(6_000)),
        ("whole", LimitRule("whole")),
        ("read_*=20_000", LimitRule(20_000, "read_*")),
        ("get=whole", LimitRule("whole", "get")),
        ("read[path=*.log]=4000", LimitRule(4_000, "read", {"path": "*.log"})),
        (
            "read[path=*.log, tail=5]=4000",
            LimitRule(4_000, "read", {"path": "*.log", "tail": "5"}),
        ),
    ],
)
def test_an_option_writes_a_rule(written, rule):
    assert rule_of(written) == rule


@pytest.mark.parametrize(
    "written",
    ["", "x", "read=", "=5000", "read[path]=5000", "-1", "499", "read=10"],
)
def test_what_is_no_rule_is_refused(written):
    with pytest.raises(ConfigError, match="limit"):
        rule_of(written)


RULES = tuple(
    map(
        rule_of,
        ["read[path=*.log]=4000", "read[n=5]=5000", "read=6000", "get*=whole"],
    )
)


@pytest.mark.parametrize(
    ("tool", "arguments", "limit"),
    [
        ("read", {"path": "a.log"}, 4_000),
        ("read", {"path": "a.txt", "n": 5}, 5_000),
        ("read", {"path": ["a.log"]}, 6_000),
        ("read", None, 6_000),
        ("get_all", {}, None),
        ("run_tests", {}, 6_000),
        ("read_file", {}, 40_000),
        ("weather", {}, 8_000),
    ],
)
def test_the_first_rule_that_matches_holds_and_else_the_kind_of_tool(
    tool, arguments, limit
):
    raw = None if arguments is None else json.dumps(arguments).encode()
    assert limit_of(RULES, tool, raw) == limit


def test_arguments_that_are_no_object_match_no_argument():
    assert limit_of(RULES, "read", b"[1]") == 6_000


def test_a_file_writes_the_same():
    written = """
    store = "kept.db"
    [[limits]]
    tool = "read"
    arguments = { path = "*.log" }
    chars = 4000
    [[limits]]
    chars = "whole"
    [servers.git]
    command = "uvx"
    args = ["mcp-server-git"]
    [servers.far]
    url = "https://host/mcp"
    """
    assert settings_of(written) == McpSettings(
        store="kept.db",
        limits=(
            LimitRule(4_000, "read", {"path": "*.log"}),
            LimitRule("whole"),
        ),
        servers={
            "git": ServerConfig(command="uvx", args=["mcp-server-git"]),
            "far": ServerConfig(url="https://host/mcp"),
        },
    )


@pytest.mark.parametrize(
    "written",
    [
        "x",
        "limit = 5",
        "[[limits]]\nchars = 5",
        "[servers.a]",
        '[servers.a]\ncommand="a"\nurl="b"',
    ],
)
def test_a_file_that_writes_something_else_is_refused(written):
    with pytest.raises(ConfigError):
        settings_of(written)


def test_what_the_user_answers_stays_whole_where_no_rule_names_it():
    assert limit_of((), "ask_user", None) is None
    assert limit_of((), "ask_desk", None) == 8_000
    assert limit_of((), "ask_desk", None, ("AskDesk",)) is None
    assert limit_of((LimitRule(500, "ask_*"),), "ask_user", None) == 500
    assert not may_cut((), "ask_user")
    assert may_cut((), "ask_desk")
    assert not may_cut((), "ask_desk", ("AskDesk",))
    assert may_cut((LimitRule(500, "ask_*"),), "ask_user")
    assert settings_of('user_tools = ["ask_desk"]').user_tools == ("ask_desk",)
    with pytest.raises(ConfigError, match="user_tools"):
        settings_of('user_tools = [""]')

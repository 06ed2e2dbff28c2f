"""Which tools ask the user: known names, and those of one's own."""

from pathlib import Path

import pytest

from ullage.core.errors import ConfigError
from ullage.core.values.authors import (
    QUESTION_TOOLS,
    answered_by_user,
    named_tools,
    plain_tool_name,
)


def test_names_are_compared_whole_without_case_and_signs():
    known = answered_by_user()
    for name in (
        "AskUserQuestion",
        "ask_user_question",
        "ASK-USER-QUESTION",
        "vscode/askQuestions",
    ):
        assert plain_tool_name(name) in known
    for name in (
        "ask_user_about",
        "mcp__crm__ask_user",
        "task",
        "AskUserQuestions2",
        "read_file",
    ):
        assert plain_tool_name(name) not in known
    assert plain_tool_name("mcp__crm__ask_user") in answered_by_user(
        ("mcp__crm__ask_user",)
    )
    assert {
        plain_tool_name(name)
        for names in QUESTION_TOOLS.values()
        for name in names
    } == known


def test_a_setting_of_names_is_a_list_of_them():
    assert named_tools(name for name in ("b", "a", "b")) == ("a", "b")
    for wrong in ("ask_me", ["--"], [""], [7]):
        with pytest.raises(ConfigError, match="user_tools"):
            named_tools(wrong)


def test_the_page_lists_the_tools_that_are_known():
    page = (Path(__file__).parents[2] / "docs" / "authors.md").read_text(
        encoding="utf-8"
    )
    for where, tools in QUESTION_TOOLS.items():
        assert (
            f"| {where} | {', '.join(f'`{tool}`' for tool in tools)} |" in page
        )

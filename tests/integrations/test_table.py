"""The table of what each framework was seen to do: behind each *yes* stands a test."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROWS = {
    "the stored history stays whole": (
        "test_a_long_run_is_legal_shares_its_prefix_and_is_stored_whole"
    ),
    "an untouched message is the same object": (
        "test_what_is_not_touched_is_the_very_object_that_was_given"
    ),
    "two results of 200 KB, and a recall as a native tool": (
        "test_two_large_results_at_once_and_a_recall"
    ),
    "streamed": "test_two_large_results_at_once_and_a_recall",
    "usage comes back": "test_two_large_results_at_once_and_a_recall",
    "refused once as too long, then fits": "test_a_request_that_is_refused_once_is_cut_deeper",
    "bound reasoning is never left behind an edit": (
        "test_reasoning_that_is_bound_stands_upon_what_it_was_thought_upon"
    ),
    "the last request of a budget forbids tools": (
        "test_the_last_request_of_a_budget_forbids_tools_and_the_next_is_refused"
    ),
    "a restart in the middle, the same bytes": (
        "test_a_restart_shows_what_the_process_before_would_have_shown"
    ),
    "interrupted for a signature, resumed in another process": (
        "test_a_run_that_waits_for_a_signature_goes_on_in_another_process"
    ),
    "cancelled, and goes on": "test_a_run_that_is_cancelled_claims_nothing_and_can_go_on",
    "an agent within an agent": "test_an_agent_within_an_agent_has_a_conversation_of_its_own",
    "twelve conversations at once on one object": (
        "test_twelve_conversations_at_once_and_none_opens_what_is_anothers"
    ),
}
SCENARIO = {
    "LangChain": "langchain",
    "Pydantic AI": "pydantic_ai",
    "OpenAI Agents": "openai_agents",
    "ADK": "adk",
    "Strands": "strands",
}
OWN = {
    "Inspect": (
        "inspect/test_inspect.py",
        (
            "test_what_is_sent_is_legal_and_shares_its_prefix_over_sixty_calls",
            "test_an_edited_message_is_another_one_and_its_record_untouched",
            "test_two_large_results_and_a_recall",
            None,
            "test_usage_is_counted_once",
            "test_a_request_that_is_refused_once_is_cut_deeper",
            "test_reasoning_that_is_bound_is_not_left_behind_an_edit",
            "test_the_last_request_of_a_budget_forbids_tools",
            "test_a_restart_shows_the_same_bytes",
            None,
            None,
            "test_an_agent_that_is_a_tool_has_a_conversation_of_its_own",
            "test_twelve_samples_do_not_open_each_others_outputs",
        ),
    ),
    "LiteLLM": (
        "litellm/test_litellm.py",
        (
            "test_two_large_results_and_a_recall",
            None,
            "test_two_large_results_and_a_recall",
            "test_usage_is_counted_once_streamed_or_not",
            "test_usage_is_counted_once_streamed_or_not",
            "test_what_was_refused_once_is_cut_deeper_by_the_next_call",
            None,
            "test_the_last_request_of_a_budget_forbids_tools",
            "test_a_restart_shows_the_same",
            None,
            "test_a_call_that_is_cancelled_claims_nothing_and_the_next_goes_on",
            None,
            "test_twelve_conversations_do_not_open_each_others_outputs",
        ),
    ),
    "Claude Agent SDK": (
        "claude_agent_sdk/test_claude_agent_sdk.py",
        (
            *(None, None),
            "test_two_large_results_and_a_recall",
            *(None, None, None, None, None),
            "test_a_session_that_is_resumed_opens_what_was_cut_before",
            *(None, None, None),
            "test_twelve_conversations_open_their_own",
        ),
    ),
}


def table():
    """What the page says: for each row, what it says of each framework."""
    page = (HERE.parents[1] / "docs" / "frameworks.md").read_text()
    rows = (
        page.partition("## What each was seen to do")[2]
        .partition("\n1. ")[0]
        .splitlines()
    )
    cells = [
        [cell.strip() for cell in row.strip("|").split("|")]
        for row in rows
        if "|" in row
    ]
    names = cells[0][1:]
    return {
        row[0]: dict(zip(names, row[1:], strict=True)) for row in cells[2:]
    }


def test_the_table_has_each_row_and_each_framework():
    assert list(table()) == list(ROWS)
    assert all(list(row) == [*SCENARIO, *OWN] for row in table().values())


@pytest.mark.parametrize("name", SCENARIO)
def test_what_runs_the_scenario_says_yes_but_where_it_leaves_a_test_out(name):
    inherits = (HERE / SCENARIO[name] / "test_scenario.py").read_text()
    driver = (HERE / SCENARIO[name] / "process.py").read_text()
    scenario = (HERE / "scenario.py").read_text()
    for row, cells in table().items():
        assert f"def {ROWS[row]}(" in scenario
        ways = inherits.count(
            "scenario.Scenario)"
        )  # LangChain's is both invoked and awaited
        left_out = inherits.count(f"{ROWS[row]} = None") == ways
        if row.startswith("bound"):
            left_out = "BINDS = None" in driver
        elif row.startswith("the last"):
            left_out = '"""Strands cannot forbid tools."""' in driver
        assert cells[name].startswith("no" if left_out else "yes"), row


@pytest.mark.parametrize("name", OWN)
def test_what_has_tests_of_its_own_has_one_for_each_yes(name):
    path, tests = OWN[name]
    text = (HERE / path).read_text()
    for (row, cells), test in zip(table().items(), tests, strict=True):
        assert cells[name].startswith("no" if test is None else "yes"), row
        assert test is None or f"def {test}(" in text, row

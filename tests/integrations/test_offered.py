"""Under which of their two names an adapter shows the recall tools."""

import ullage
from ullage.integrations._offered import (
    PREFIX,
    offered_tools,
    prefix_beside,
    shown_tools,
)

SPECS = ullage.recall_tools()
NAMES = [spec.name for spec in SPECS]


def test_each_tool_is_offered_under_both_names_and_asked_by_its_own():
    offered = offered_tools(SPECS)
    assert [tool.spec.name for tool in offered] == [
        *NAMES,
        *(PREFIX + name for name in NAMES),
    ]
    assert [tool.asked for tool in offered] == [*NAMES, *NAMES]
    assert {tool.prefix for tool in offered} == {"", PREFIX}


def test_ours_give_way_where_the_user_has_a_tool_of_one_of_the_names():
    assert prefix_beside(SPECS, ["read_file"]) == ""
    assert prefix_beside(SPECS, ["read_file", NAMES[0]]) == PREFIX


def test_a_model_is_shown_ours_under_one_name_and_all_of_the_user_s():
    offered = offered_tools(SPECS)
    ours = [
        {"name": tool.spec.name, "description": tool.spec.description}
        for tool in offered
    ]
    reader = {"name": "read_file", "description": "Reads."}
    shown = [tool for tool, _ in shown_tools(offered, [reader, *ours])]
    assert [tool["name"] for tool in shown] == ["read_file", *NAMES]
    taken = {"name": NAMES[0], "description": "The user's own."}
    shown = shown_tools(offered, [taken, *ours])
    assert [tool["name"] for tool, _ in shown] == [
        NAMES[0],
        *(PREFIX + name for name in NAMES),
    ]
    assert shown[0][1] is None
    assert shown[1][1].asked == NAMES[0]

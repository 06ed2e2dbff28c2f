"""Under which of their names an adapter shows the recall tools."""

import ullage
from ullage.core.turn import names
from ullage.integrations._offered import (
    PREFIXES,
    free_tools,
    offered_tools,
    shown_tools,
)

SPECS = ullage.recall_tools()
NAMES = [spec.name for spec in SPECS]
OFFERED = offered_tools(SPECS)
OURS = [
    {"name": tool.spec.name, "description": tool.spec.description}
    for tool in OFFERED
]


def named(prefix):
    return [prefix + name for name in NAMES]


def mine(*all_names):
    """Tools of the user's."""
    return [{"name": name, "description": "Mine."} for name in all_names]


def test_each_tool_is_offered_under_all_names_and_asked_by_its_own():
    assert [tool.spec.name for tool in OFFERED] == [
        prefix + name for prefix in PREFIXES for name in NAMES
    ]
    assert [tool.asked for tool in OFFERED] == len(PREFIXES) * NAMES


def test_what_stands_before_our_names_is_what_a_session_puts_there():
    others = [names._prefix(number) for number in range(1, len(PREFIXES))]
    assert ("", *others) == PREFIXES


def test_ours_take_the_first_name_that_is_free():
    taken = ["read_file"]
    for prefix in PREFIXES:
        free = free_tools(OFFERED, taken)
        assert [tool.spec.name for tool in free] == named(prefix)
        taken.append(prefix + NAMES[0])
    assert free_tools(OFFERED, taken) == []


def test_a_model_is_shown_ours_under_one_name_and_all_of_the_user_s():
    taken = mine("read_file")
    for prefix in PREFIXES:
        shown = shown_tools(OFFERED, [*taken, *OURS])
        tools = [tool["name"] for tool, _ in shown]
        assert tools == [tool["name"] for tool in taken] + named(prefix)
        asked = [offered.asked for _, offered in shown if offered]
        assert asked == NAMES
        taken += mine(*named(prefix))
    assert [tool for tool, _ in shown_tools(OFFERED, [*taken, *OURS])] == taken


def test_names_of_tools_that_are_not_listed_are_taken_too():
    shown = shown_tools(OFFERED, OURS, names=[NAMES[0]])
    assert [tool["name"] for tool, _ in shown] == named(PREFIXES[1])


def test_ours_are_known_where_a_framework_added_to_their_descriptions():
    longer = [
        {**tool, "description": tool["description"] + " Returns a text."}
        for tool in OURS
    ]
    shown = shown_tools(OFFERED, longer)
    assert [tool["name"] for tool, _ in shown] == NAMES


def test_under_a_name_that_is_not_listed_ours_are_not_shown():
    """A framework may leave out those whose name a tool of the user's has."""
    listed = mine("read_file") + OURS[len(NAMES) :]
    shown = shown_tools(OFFERED, listed)
    assert [tool["name"] for tool, _ in shown[1:]] == named(PREFIXES[1])


def test_a_tool_without_a_description_is_the_user_s():
    """Such as one that a provider runs."""
    shown = shown_tools(OFFERED, [object(), *OURS])
    assert next(offered for _, offered in shown) is None

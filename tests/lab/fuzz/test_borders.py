"""The shapes at the borders of a conversation: each is drawn, each leaves its history legal."""

from collections import Counter

from lab.fuzz.borders import bordered, may_call
from lab.fuzz.histories import FORMATS
from lab.fuzz.tally import try_batch
from lab.fuzz.trial import _illegal

SEED = 11
SHAPES = (
    "joined",
    "seeded",
    "changed in place",
    "allowed tools",
    "allowed tools always",
)


def test_every_shape_is_drawn_in_every_format_and_is_legal():
    seen = Counter()
    for number in range(400):
        one = bordered(SEED, number)
        seen.update(
            (one.format, shape) for shape in SHAPES if shape in one.features
        )
        assert one.repair or _illegal(one) == "", number
    assert {
        (format, shape) for format in FORMATS for shape in SHAPES
    } == seen.keys()


def test_a_changed_message_stands_otherwise_only_in_earlier_requests():
    changed = [bordered(SEED, number) for number in range(400)]
    for one in changed:
        for change in one.changes:
            before = one.lengths[one.lengths.index(change.until) - 1]
            assert one.beginning(before)[change.index] == change.earlier
            assert one.beginning(change.until) == one.messages[: change.until]
            assert one.is_changed_at(change.until)
            assert not one.is_changed_at(before)


def test_no_view_of_such_a_history_is_wrong():
    assert try_batch(SEED, 0, 200, borders=True).found == []


def test_a_request_tells_which_tools_may_be_called():
    ours = frozenset(("recall",))
    listed = {"type": "function", "name": "recall"}
    assert may_call({}, ours)
    assert may_call({"tool_choice": {"type": "any"}}, ours)
    assert not may_call({"tool_choice": "none"}, ours)
    assert not may_call(
        {"tool_choice": {"type": "tool", "name": "bash"}}, ours
    )
    assert may_call(
        {"tool_choice": {"type": "allowed_tools", "tools": [listed]}}, ours
    )
    assert not may_call(
        {"tool_choice": {"type": "allowed_tools", "tools": []}}, ours
    )
    config = {"mode": "ANY", "allowedFunctionNames": ["bash"]}
    assert not may_call(
        {"toolConfig": {"functionCallingConfig": config}}, ours
    )

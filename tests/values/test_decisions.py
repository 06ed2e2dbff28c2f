import msgspec
import pytest

from ullage.core.values.decisions import Decision, LedgerRef, Target
from ullage.core.values.edits import Address

PLACE = Address("result", "call_1", 0, 2)
KEY = b"0123456789abcdef"


@pytest.mark.parametrize(
    "decision",
    [
        Decision(
            verb="pin",
            target=Target(KEY, PLACE, (3, 9)),
            reason="the rules",
            author="ann",
        ),
        Decision(verb="undo", undoes=LedgerRef("batch", KEY, 2)),
        Decision(verb="note", text="Never touch main."),
        Decision(verb="restore", target=Target(KEY), when="end"),
    ],
)
def test_a_decision_is_the_same_on_the_way_back(decision):
    data = msgspec.msgpack.encode(decision)
    assert msgspec.msgpack.decode(data, type=Decision) == decision
    assert len(data) < 120, "what is not said takes no room"


def test_a_verb_of_a_newer_version_is_not_read_as_another():
    data = msgspec.msgpack.encode({"verb": "merge"})
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(data, type=Decision)

import msgspec
import pytest

from ullage import Address, Batch, Output, ProposedEdit, Replace, ReplaceSpan
from ullage.core.errors import RefNotFound
from ullage.core.values.effects import Commit, Find, Get
from ullage.session.drivers import run
from ullage.stores import MemoryStore

PLACE = Address("result", "call_1", 0, 2)


def test_edits_are_values():
    edit = Replace(PLACE, "r", "shown", "pruned", "so")
    assert edit == Replace(
        Address("result", "call_1", 0, 2), "r", "shown", "pruned", "so"
    )
    assert len({edit, Replace(PLACE, "r", "shown", "pruned", "so")}) == 1
    with pytest.raises(AttributeError):
        edit.text = "other"


def test_a_batch_tells_its_kinds_of_edit_apart_on_the_way_back():
    edits = (
        Replace(PLACE, "r", "a", "cut", "w"),
        ReplaceSpan(b"a" * 16, b"b" * 16, "t", "r", "w"),
    )
    batch = Batch("emergency", "default-1", edits, 100, 10)
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(batch), type=Batch)
    assert again == batch
    assert [type(edit) for edit in again.edits] == [Replace, ReplaceSpan]


def test_a_cut_is_an_edit_and_what_fills_it():
    output = Output("r", "the whole")
    edit, outputs, brief = ProposedEdit(
        Replace(PLACE, "r", "a", "cut", "w"), (output,)
    )
    assert (edit.ref, outputs) == ("r", (output,))
    assert brief is None


def test_a_driver_does_each_effect_and_throws_errors_into_the_steps():
    def steps():
        lost = yield Commit((Output("r", "kept"),), ())
        found = yield Find((b"x" * 16,))
        output = yield Get("r")
        try:
            yield Get("missing")
        except RefNotFound as error:
            return lost, found, output.text, error.ref
        raise AssertionError("nothing was thrown")

    assert run(steps(), MemoryStore(), "") == ((), (), "kept", "missing")

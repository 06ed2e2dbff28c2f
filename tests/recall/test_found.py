"""What a ref or a call id names: the history first, then the store, then every leaf."""

import pytest

from ullage.core.history.canon import ref_of
from ullage.core.values.effects import Output
from ullage.session.drivers import run
from ullage.session.recall.found import ToolOutputRef, find, output_ref
from ullage.stores import MemoryStore

TEXT = "ß one\r\ntwo €\n"
REF = ref_of(TEXT)


class Asked:
    """A history that has something at a glance, thoroughly, or not at all."""

    def __init__(self, glance=None, thorough=None):
        self.has = {False: glance, True: thorough}
        self.asked = []

    def __call__(self, wanted, thorough):
        self.asked.append(thorough)
        return self.has[thorough]


def store_with(*outputs):
    store = MemoryStore()
    store.commit("", outputs, [])
    return store


def test_what_the_history_has_at_a_glance_needs_no_store():
    history = Asked(glance=Output(REF, TEXT))
    with pytest.raises(StopIteration) as stopped:
        next(find("call_1", history))
    assert stopped.value.value == Output(REF, TEXT)
    assert history.asked == [False]


def test_then_the_store_is_asked_and_the_whole_history_last():
    kept = store_with(Output(REF, TEXT))
    history = Asked(thorough=Output(REF, TEXT))
    assert run(find(REF, history), kept, "").ref == REF
    assert history.asked == [False]
    assert run(find(REF, history), store_with(), "") == Output(REF, TEXT)
    assert history.asked == [False, False, True]
    assert run(find(REF, history), kept, "another tenant") == Output(REF, TEXT)


@pytest.mark.parametrize("text", [TEXT, "", "x", "a\nb\n" * 90_000])
def test_its_size_is_the_same_from_the_store_as_from_the_history(text):
    ref = ref_of(text)
    known = ToolOutputRef(ref, len(text.encode()), text.count("\n") + 1)
    assert (
        run(output_ref(ref, Asked()), store_with(Output(ref, text)), "")
        == known
    )
    assert (
        run(output_ref(ref, Asked(glance=Output(ref, text))), store_with(), "")
        == known
    )


def test_a_block_has_bytes_and_no_lines():
    block = Output("0123456789abcdef", '{"type":"image"}', "block")
    assert run(
        output_ref("x", Asked(glance=block)), store_with(), ""
    ) == ToolOutputRef(block.ref, 16, None)


def test_what_nobody_has_is_nothing():
    assert run(output_ref(REF, Asked()), store_with(), "") is None

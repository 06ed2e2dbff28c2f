import json

from hypothesis import given
from hypothesis import strategies as st

from ullage.core.history.canon import _ALPHABET
from ullage.core.values.notices import Pointer, Words, pointers, ref_line
from ullage.core.values.toolset import CONTINUATION, GREP, READ

refs = st.text(_ALPHABET, min_size=16, max_size=16)
offsets = st.integers(0, 10**12)
words = st.builds(
    Words, recall=st.booleans(), prefix=st.sampled_from(("", "ullage_"))
)
REF = "0123456789abcdef"


@given(words, refs, offsets)
def test_what_is_written_is_read_back(words, ref, offset):
    """One formatter and one parser: a ref and an offset come through each notice."""
    stop = offset if words.recall else 0  # without tools, the ref alone
    first = {
        words.cut(ref, 1, 2, offset): stop,
        words.more(ref, 0, offset, offset + 1): stop,
        words.placeholder(ref, "text"): 0,
        words.arguments(ref, 5): 0,
        words.media(ref, "image/png"): 0,
    }
    for notice, at in first.items():
        assert {pointer.ref for pointer in pointers(notice)} == {ref}
        assert pointers(notice)[0] == Pointer(ref, at)


@given(words, refs, offsets, st.booleans())
def test_within_json_it_is_read_as_well(words, ref, offset, ascii):
    notice = words.cut(ref, 1, 2, offset)
    once = json.dumps({"_ullage": notice}, ensure_ascii=ascii)
    assert pointers(once) == pointers(notice)


@given(st.lists(st.tuples(refs, offsets), max_size=5))
def test_many_are_read_in_order(found):
    text = "\n".join(
        f"- {Words().read_on(ref, offset)}" for ref, offset in found
    )
    assert pointers(text) == [Pointer(ref, offset) for ref, offset in found]


def test_without_recall_tools_no_tool_is_named():
    silent = Words(recall=False)
    for notice in (
        silent.cut(REF, 1, 2, 3),
        silent.placeholder(REF, "x"),
        silent.more(REF, 0, 1, 2),
        silent.arguments(REF, 9),
    ):
        assert REF in notice
        assert not any(tool in notice for tool in (CONTINUATION, READ, GREP))


def test_notices_read_as_they_should():
    words = Words()
    assert words.cut(REF, 1_200, 40_000, 800) == (
        "[ullage: 1,200 of 40,000 characters shown. Read on: "
        f'get_continuation(tool_call_id="{REF}", offset=800); search it: '
        f'tool_output_cache_grep(ref_id="{REF}", pattern="…")]'
    )
    begins = "He said 'no' " * 6 + "He"
    assert words.placeholder(REF, 'He said "no"\n' * 99) == (
        "[ullage: tool output set aside, 1,287 characters, begins "
        f'"{begins}". Read it: get_continuation(tool_call_id="{REF}", offset=0)]'
    )


def test_what_only_looks_like_a_ref_is_none():
    for text in (
        "ref=short",
        f"ref={REF}0",
        f"xref {REF}",
        f"REF={REF}",
        "offset=3",
    ):
        assert pointers(text) == []


def test_the_line_of_a_ref_names_the_file_where_there_is_room_for_it():
    ref = "0123456789abcdef"
    bare = f"[ref={ref}, 4,000 characters in all]"
    assert ref_line(ref, 4_000) == bare
    assert (
        ref_line(ref, 4_000, f"spill/{ref}.txt")
        == f"{bare[:-1]}, in spill/{ref}.txt]"
    )
    assert ref_line(ref, 4_000, f"{'deep/' * 40}{ref}.txt") == bare
    longest = ref_line(ref, 4_000, "d" * (200 - len(bare) - len(", in ")))
    assert len(longest) == 200
    assert {pointer.ref for pointer in pointers(longest)} == {ref}

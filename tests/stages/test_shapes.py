"""What the documents' shapes show of a result."""

from hypothesis import given
from hypothesis import strategies as st

from ullage.stages.shapes import head_chars
from ullage.stages.truncate import Source
from ullage.values.notices import Words, pointers

MARKER = "[{shown} of {total}, call {prefix}more on {call_id}]"


def shown(text, limit, **words):
    source = Source(text, "read", "call_1")
    return head_chars(source, Words(**words), limit_chars=limit, marker=MARKER, bare="[{shown}]")


@given(st.text(max_size=3_000), st.integers(1, 400))
def test_the_head_stays_and_the_marker_is_last_or_nothing_is_cut(text, limit):
    cut = shown(text, limit)
    if cut is None:
        assert len(text) <= limit + 200
        return
    head, last = cut.text.rsplit("\n", 1)
    kept = int(last[1 : last.index(" ")])
    assert last == f"[{kept} of {len(text)}, call more on call_1]"
    assert kept <= limit
    assert head.startswith(text[:kept])
    assert len(cut.text) < len(text)
    assert pointers(cut.text)[-1].ref == Source(text).ref


def test_no_tool_is_named_where_none_is_offered():
    assert shown("x" * 900, 100, recall=False).text.endswith("\n[100]")
    assert "call ours_more on" in shown("x" * 900, 100, prefix="ours_").text

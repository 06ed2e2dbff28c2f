"""What the documents' shapes show of a result."""

import json

from hypothesis import given
from hypothesis import strategies as st

from ullage.core.values.notices import Words, pointers
from ullage.policy.stages.shapes import by_type, head_chars
from ullage.policy.stages.truncate import Source

MARKER = "[{shown} of {total}, call {prefix}more on {call_id}]"


def shown(text, limit, **words):
    source = Source(text, "read", "call_1")
    return head_chars(
        source,
        Words(**words),
        limit_chars=limit,
        marker=MARKER,
        bare="[{shown}]",
    )


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


# a text, a list and a dict are each cut in their own way, and stay what they are


values = (
    st.integers()
    | st.text(max_size=30)
    | st.sampled_from(([1] * 400, "x" * 900, {"a": 1}))
)


def typed(text, limit=400, items=10):
    return by_type(
        Source(text, "logs", "call_1"),
        Words(),
        limit_chars=limit,
        max_items=items,
        preview_chars=50,
        text_marker="\n[{shown} of {total}: {read_on}]",
        list_marker="[{shown} of {total}: {read_on}]",
        dict_error="{total} over {limit}, filter: {read_on}",
    )


def test_a_text_ends_in_a_visible_indicator_that_opens_the_rest():
    text = "a log line\n" * 100
    cut = typed(text).text
    assert cut.startswith(text[:400])
    assert pointers(cut)[0].ref == Source(text).ref
    assert pointers(cut)[0].offset == 400


def test_a_list_keeps_its_first_items_whatever_its_characters():
    rows = [{"n": n} for n in range(30)]
    *kept, notice = json.loads(typed(json.dumps(rows), limit=10_000).text)
    assert kept == rows[:10]
    assert notice.startswith("[10 of 30: ")
    assert typed(json.dumps(rows[:10]), limit=10_000) is None


def test_a_dict_becomes_advice_and_a_preview():
    text = json.dumps({"rows": ["x" * 50] * 20})
    cut = json.loads(typed(text).text)
    assert cut["error"].startswith(
        f"{len(text)} over 400, filter: get_continuation("
    )
    assert cut["preview"] == text[:50]


@given(
    st.lists(values, max_size=40)
    | st.dictionaries(st.text(max_size=9), values, max_size=40)
)
def test_json_stays_json_of_its_kind_or_is_left_whole(value):
    text = json.dumps(value, ensure_ascii=False)
    cut = typed(text)
    if cut is None:
        assert len(text) <= 1_000
        assert not (
            isinstance(value, list) and len(value) > 10 and len(text) > 1_000
        )
        return
    assert len(cut.text) < len(text)
    if cut.text[:1] in "[{":
        json.loads(cut.text)


def test_what_was_cut_before_it_came_here_is_not_cut_again():
    """A notice of the part would name the part, and no longer the original."""
    for value in ("a log line\n" * 100_000, json.dumps(list(range(90_000)))):
        cut = typed(value, limit=2_000).text
        assert typed(cut, limit=2_000) is None
        assert pointers(cut)[0].ref == Source(value).ref
        longer = cut[:-1] + (" more" * 100 if value[0] == "a" else ", 1]")
        assert typed(longer, limit=2_000) is not None

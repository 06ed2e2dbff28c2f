import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.histories import CUTS_ALWAYS
from tests.stages.conversations import cases, check
from ullage import Limits, Session
from ullage.core.contract.kinds import LIMIT_CHARS, kind_of
from ullage.core.values.notices import Words, pointers
from ullage.policy.stages.shorten import safe_cut, shorten
from ullage.policy.stages.truncate import SLACK

REF = "0123456789abcdef"
CHARACTERS = (
    "a",
    " ",
    "猫",
    "e\u0301",
    "\r\n",
    "\n",
    "👩‍👩‍👧",
    "👍🏽",
    "❤\ufe0f",
    "🇬🇧",
    "\ud83d\ude00",
)
"""What a reader takes for one character. The last is a pair of surrogates, as JSON may carry."""

written = st.lists(st.sampled_from(CHARACTERS), max_size=40)


@pytest.mark.parametrize(
    "case", cases("truncate"), ids=lambda case: case.title
)
def test_the_conversation_comes_out_as_written(case):
    check(case)


@given(written)
def test_a_cut_at_any_position_never_splits_a_character(characters):
    text = "".join(characters)
    edges = {
        len("".join(characters[:count]))
        for count in range(len(characters) + 1)
    }
    for at in range(len(text) + 1):
        cut = safe_cut(text, at)
        assert cut <= at
        assert cut in edges or at == cut == 0


@given(written, st.integers(60, 400), st.integers(1, 9))
def test_a_view_of_any_text_splits_no_character_and_is_shorter(
    characters, limit, times
):
    text = "".join(characters) * times
    shown = shorten(text, limit, REF, Words())
    if shown is None:
        return
    head = pointers(shown)[0].offset
    assert text[:head] in shown or text[:head].removesuffix("\n") in shown
    assert len(shown) < len(text)
    assert safe_cut(text, head) == head


@pytest.mark.parametrize("limit", range(4))
def test_where_there_is_no_room_at_all_json_is_no_error(limit):
    text = json.dumps([{"n": n, "name": f"row {n}"} for n in range(9)])
    shown = shorten(text, limit, REF, Words(), tables=True)
    assert shown is None or REF in shown


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=200)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=30),
        st.dictionaries(st.text(max_size=8), inner, max_size=12),
    ),
    max_leaves=20,
)


@given(
    st.one_of(
        st.lists(values, min_size=1),
        st.dictionaries(st.text(), values, min_size=1),
    )
)
def test_json_stays_json_of_the_same_kind(value):
    text = json.dumps(
        [value] * 20
        if isinstance(value, list)
        else value | {"more": [value] * 20}
    )
    shown = shorten(text, 4_000, REF, Words())
    if shown is not None and len(text) > 4_000:
        assert type(json.loads(shown)) is type(json.loads(text))


@pytest.mark.parametrize("limit", [600, 900, 2_000, 6_000, 20_000])
def test_json_says_how_much_of_it_is_left_out(limit):
    rows = [{"id": n, "note": "x" * (n % 50)} for n in range(2_000)]
    *items, notice = json.loads(shorten(json.dumps(rows), limit, REF, Words()))
    said = next(item for item in items if isinstance(item, str))
    left_out = int(said.removeprefix("[… ").split(" of ")[0].replace(",", ""))
    assert said.endswith(" of 2,000 items …]")
    assert len(items) - 1 + left_out == 2_000
    assert pointers(notice)[0].ref == REF


def test_the_notice_of_json_reads_on_at_the_first_value_that_is_not_shown():
    rows = [{"id": n, "note": "x" * (n % 50)} for n in range(2_000)]
    text = json.dumps({"ok": True, "rows": rows}, indent=2)
    shown = json.loads(shorten(text, 2_000, REF, Words(), tables=True))
    head = (
        shown["rows"].index(
            next(row for row in shown["rows"] if isinstance(row, str))
        )
        - 1
    )
    assert f"the first at rows[{head}]" in shown["_ullage"]
    pointer = pointers(shown["_ullage"])[0]
    assert json.JSONDecoder().raw_decode(text, pointer.offset)[0] == rows[head]


def test_json_that_fits_as_a_table_is_shown_whole():
    rows = [
        {"id": n, "empty": None, "name": f"harbour {n}"} for n in range(300)
    ]
    text = json.dumps(rows)
    names, *table, notice = json.loads(
        shorten(text, 8_000, REF, Words(), tables=True)
    )
    assert [dict(zip(names, row, strict=True)) for row in table] == [
        {"id": n, "name": f"harbour {n}"} for n in range(300)
    ]
    assert "all of it" in notice
    assert pointers(notice)[0].offset == 0


def test_a_row_that_is_cut_keeps_its_columns():
    empty = dict.fromkeys(f"field_{n}" for n in range(60))
    rows = [
        {"id": n, **empty, "text": f"{n} " * 900, "owner": "ada"}
        for n in range(30)
    ]
    names, *table, _ = json.loads(
        shorten(json.dumps(rows), 6_000, REF, Words(), tables=True)
    )
    whole = [row for row in table if isinstance(row, list)]
    assert {len(row) for row in whole} == {len(names)}
    assert [row[names.index("owner")] for row in whole] == ["ada"] * len(whole)


def test_a_number_is_shown_as_it_was():
    text = json.dumps([10**40, 0.1, 1e300, -0.0, *range(2_000)])
    shown = json.loads(shorten(text, 2_000, REF, Words()))
    assert shown[:4] == [10**40, 0.1, 1e300, -0.0]


@pytest.mark.parametrize(
    ("tool", "kind"),
    [
        ("read_file", "read"),
        ("Read", "read"),
        ("web_search", "web"),
        ("mcp__files__grep", "search"),
        ("Bash", "shell"),
        ("executebash", "shell"),
        ("webfetch", "web"),
        ("mcp__search-server__create_issue", "other"),
        ("get_emails", "other"),
        ("get_order_details", "other"),
        ("lookup", "other"),
    ],
)
def test_the_kind_of_a_tool_is_told_by_its_name_and_decides_its_limit(
    tool, kind
):
    assert kind_of(tool) == kind
    limit = LIMIT_CHARS[kind]
    assert not _cut(tool, "tide\n" * (limit // 5))
    most = int(limit * SLACK)
    assert not _cut(tool, "tide\n" * (most // 5))
    assert _cut(tool, "tide\n" * (most // 5 + 200))


def _cut(tool, output):
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": tool, "arguments": "{}"},
    }
    messages = [
        {"role": "user", "content": "Go on."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": output},
    ]
    session = Session(
        "gpt-4.1", policy=CUTS_ALWAYS, limits=Limits(window_tokens=1_000_000)
    )
    view = session.fit({"model": "gpt-4.1", "messages": messages})
    return view["messages"][2]["content"] != output

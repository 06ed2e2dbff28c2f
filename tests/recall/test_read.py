import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.recall.at_hand import by_character, by_line
from ullage.core.values.notices import Words, next_offset
from ullage.core.values.toolset import OURS
from ullage.session.recall.read import LINE_CHARS

REF = "0123456789abcdef"
WORDS = Words()

CHARACTERS = (
    "a",
    "\n",
    "\r\n",
    "猫",
    "e\u0301",
    "👩‍👩‍👧",
    "\ud800",
    "\x00",
    '"',
    "] ",
)
texts = st.builds(
    lambda pieces, times: "".join(pieces) * times,
    st.lists(st.sampled_from(CHARACTERS), min_size=1, max_size=30),
    st.integers(1, 60),
)


def pages_of(text, page_chars):
    """Every page, followed as its last line says: (offset, what it holds of the text)."""
    offset, pages = 0, []
    while True:
        page = by_character(text, REF, offset, WORDS, page_chars)
        more = next_offset(page)
        pages.append((offset, more[0] if more else page))
        if more is None:
            return pages
        assert more[1] > offset
        offset = more[1]


# By character


@given(texts, st.integers(1, 400))
def test_pages_join_to_the_original_and_always_move_on(text, page_chars):
    pages = pages_of(text, page_chars)
    assert "".join(page for _, page in pages) == text
    assert all(len(page) <= page_chars for _, page in pages)
    assert all(
        text[offset : offset + len(page)] == page for offset, page in pages
    )


@given(texts, st.integers(-3, 5_000))
def test_a_page_may_begin_anywhere(text, offset):
    page = by_character(text, REF, offset, WORDS, 1_000_000)
    if offset < len(text):
        assert page == text[max(offset, 0) :]
    else:
        assert (
            page
            == f"[nothing after character {len(text):,}: the output ends there]"
        )


def test_the_last_line_of_a_page_says_what_it_holds_of_how_much():
    page = by_character("x" * 20_000, REF, 4_000, WORDS)
    body, last = page.rsplit("\n", 1)
    assert len(body) == OURS.page_chars == 8_000
    assert last == (
        "[characters 4,000 to 12,000 of 20,000. Read on: "
        f'get_continuation(tool_call_id="{REF}", offset=12000)]'
    )


def test_the_last_page_has_no_such_line():
    assert by_character("x" * 20_000, REF, 12_000, WORDS) == "x" * 8_000


def test_an_empty_output_is_an_empty_page():
    assert by_character("", REF, 0, WORDS) == ""


def test_a_notice_within_the_text_is_no_notice_of_ours():
    """The text ends in what looks like a last line; it is given back as it stands."""
    text = "log\n" * 10 + WORDS.more(REF, 0, 10, 40)
    assert by_character(text, REF, 0, WORDS) == text


# By line


@given(texts, st.integers(1, 9))
def test_numbered_pages_join_to_the_lines_of_the_original(text, limit):
    lines, offset, rows = text.split("\n"), 0, []
    while True:
        page = by_line(text, REF, offset, limit, WORDS).split("\n")
        more = re.fullmatch(
            r"\[lines ([\d,]+) to ([\d,]+) of ([\d,]+)\. Next: offset=(\d+)\]",
            page[-1],
        )
        rows += page[:-1] if more else page
        if more is None:
            break
        assert more[1].replace(",", "") == str(offset + 1)
        assert more[2].replace(",", "") == more[4]
        assert more[3] == f"{len(lines):,}"
        assert int(more[4]) > offset
        offset = int(more[4])
    assert [row[:7] for row in rows] == [
        f"{number:>6}\t" for number in range(1, len(lines) + 1)
    ]
    assert all(
        len(line) > LINE_CHARS or row[7:] == line
        for row, line in zip(rows, lines, strict=True)
    )


@pytest.mark.says(
    "output-cache-and-compaction",
    "1.8 Deployment (tool_output_cache)",
    "`offset/limit` is handled on a row basis. "
    "The return value is text with line numbers equivalent to `read`.",
    lives="ullage.session.recall.read.lines",
    see="ullage read REF --lines",
)
def test_numbers_start_at_one_and_offset_skips_lines():
    assert by_line("a\nb\nc\nd", REF, 1, 2, WORDS) == (
        "     2\tb\n     3\tc\n[lines 2 to 3 of 4. Next: offset=3]"
    )


def test_a_long_line_is_cut_and_says_how_to_read_it_whole():
    text = "first\n" + "x" * 3_000
    page = by_line(text, REF, 0, 10, WORDS)
    offset = len("first\n") + LINE_CHARS
    assert page == (
        f"     1\tfirst\n     2\t{'x' * LINE_CHARS} [… 1,000 more characters: "
        f'get_continuation(tool_call_id="{REF}", offset={offset})]'
    )
    assert by_character(text, REF, offset, WORDS) == "x" * 1_000


def test_a_page_of_lines_is_bounded():
    page = by_line(
        "x" * 99 + "\n" + ("y" * 99 + "\n") * 500, REF, 0, 10_000, WORDS
    )
    assert len(page) <= OURS.page_chars + 60
    assert re.search(r"\[lines 1 to \d+ of 502\. Next: offset=\d+\]\Z", page)


def test_beyond_the_last_line_there_is_a_sentence():
    assert (
        by_line("a\nb", REF, 2, 5, WORDS)
        == "[no line 3: the output has 2 lines]"
    )

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo.notices import Call, calls, page, read_all

REF = "k3x9a0b1c2d3e4f5"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f'Read on: get_continuation(tool_call_id="{REF}", offset=28000)]',
            [(REF, 28_000)],
        ),
        (f'[x: get_continuation(tool_call_id="{REF}")]', [(REF, 0)]),
        (
            f'tool_output_cache_grep(ref_id="{REF}", pattern="def f\\\\(")',
            [(REF, 0)],
        ),
        (
            f'\\"get_continuation(tool_call_id=\\"{REF}\\", offset=7)\\"',
            [(REF, 7)],
        ),
        ("get_continuation(offset=3) of nothing", []),
        ("def get_continuation(self):", []),
        ("no call at all", []),
    ],
)
def test_calls_are_read_from_the_visible_words(text, expected):
    assert [(call.ref, call.offset) for call in calls(text)] == expected


def paged(text, size):
    """A continuation tool in the wording the demo reads."""

    def recall(name, arguments):
        start, ref = arguments["offset"], arguments["tool_call_id"]
        body = text[start : start + size]
        if start + size >= len(text):
            return body
        on = f'get_continuation(tool_call_id="{ref}", offset={start + size})'
        return f"{body}\n[characters {start} to {start + size}. Read on: {on}]"

    return recall


@given(st.text(max_size=200), st.integers(1, 40), st.integers(0, 60))
def test_pages_put_together_are_the_original(text, size, offset):
    assert (
        read_all(Call("get_continuation", REF, offset), paged(text, size))
        == text[offset:]
    )


def test_a_line_break_at_the_end_of_a_page_belongs_to_the_original():
    body, following = page(
        'a\nb\n\n[more: get_continuation(tool_call_id="r", offset=4)]'
    )
    assert (body, following) == ("a\nb\n", 4)
    assert page("a\n[not a notice]") == ("a\n[not a notice]", None)


def test_a_recall_that_never_moves_on_ends():
    stuck = 'x\n[get_continuation(tool_call_id="r", offset=0)]'
    assert (
        read_all(
            Call("get_continuation", "r", 0), lambda name, arguments: stuck
        )
        == "x"
    )

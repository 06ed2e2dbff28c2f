"""Evidence is gathered from anything at all, without raising and without end."""

import json

from hypothesis import given
from hypothesis import strategies as st

from tests.wires.test_overflow import PROMPT, SAID, UNION
from ullage.wires.overflow import Overflow, is_overflow

jsons = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ("error", "message", "code", "status", "details", "x")
            )
            | st.text(),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


class Hostile(Exception):
    def __getattribute__(self, name):
        raise ZeroDivisionError(name)

    def __str__(self):
        raise ZeroDivisionError


@given(jsons)
def test_any_json_is_judged(value):
    for carried in (
        value,
        json.dumps(value),
        ValueError(value),
        {"error": value},
    ):
        assert isinstance(is_overflow(carried), (Overflow, type(None)))


@given(st.text(), st.sampled_from(UNION), st.text())
def test_words_around_do_not_break_it(before, wording, after):
    assert isinstance(
        is_overflow(f"{before}{wording}{after}"), (Overflow, type(None))
    )


@given(st.binary())
def test_any_bytes_are_judged(value):
    assert is_overflow(value) is None


def test_any_object_is_judged():
    for value in (
        Hostile,
        Hostile(),
        object(),
        is_overflow,
        int,
        st,
        ...,
        3,
        1j,
        {3: Hostile()},
    ):
        assert is_overflow(value) is None
    assert (
        is_overflow({"details": Hostile(), "error": PROMPT}).size_tokens
        == 213_462
    )


@given(
    st.integers(1_000, 9_999_999),
    st.integers(1_000, 9_999_999),
    st.sampled_from((",", "_", ".", "'", " ", "\u00a0", "\u202f", "")),
)
def test_numbers_are_read_with_any_separator(size, limit, mark):
    written = (f"{number:,}".replace(",", mark) for number in (size, limit))
    found = is_overflow(
        "prompt is too long: {} tokens > {} maximum".format(*written)
    )
    assert (found.size_tokens, found.limit_tokens) == (size, limit)


def test_deep_wide_and_long_bodies_are_read_to_an_end():
    deep = wide = {"error": "x"}
    for _ in range(5_000):
        deep = {"error": deep}
    wide = {
        "errors": [{"error": {"message": "y" * 99}} for _ in range(20_000)]
    }
    long = {"error": {"message": "prompt input token count " * 40_000}}
    for body in (
        deep,
        wide,
        long,
        long["error"]["message"],
        "1,000 " * 100_000,
    ):
        assert is_overflow(body) is None


def test_a_long_message_is_read_at_both_ends():
    echo = "x" * 1_000_000
    for text in (f"{SAID} {echo}", f"{echo} {SAID}"):
        assert is_overflow({"error": {"message": text}}).size_tokens == 213_462

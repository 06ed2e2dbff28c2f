"""Bytes to JSON and back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.exchange import bodies

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), values, max_size=4))
def test_what_is_written_says_the_same(value):
    read, write = bodies.read_to_write(json.dumps(value).encode())
    assert json.loads(write(read)) == value


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'{"a": "\\ud83d"}', {"a": "\ud83d"}),
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        ('{"a": 1}'.encode("utf-16"), {"a": 1}),
        (b'{"a": 1e400}', {"a": float("inf")}),
        (b'{"n": 123456789012345678901234567890}', {"n": 123456789012345678901234567890}),
        (b'{"a": 1, "a": 2}', {"a": 2}),
    ],
)
def test_odd_json_is_read_as_the_standard_library_reads_it(raw, value):
    read, write = bodies.read_to_write(raw)
    assert read == value
    assert json.loads(write(read)) == value


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff\xfe\xfd", b"[" * 100_000, b'{"a": 1} x'])
def test_what_is_no_json_is_nothing(raw):
    assert bodies.read(raw) is None

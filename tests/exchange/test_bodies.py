"""Bytes to JSON and back."""

import json

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from ullage.doors.exchange import bodies

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(), inner, max_size=3)
    ),
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
        (
            b'{"n": 123456789012345678901234567890}',
            {"n": 123456789012345678901234567890},
        ),
        (b'{"a": 1, "a": 2}', {"a": 2}),
    ],
)
def test_odd_json_is_read_as_the_standard_library_reads_it(raw, value):
    read, write = bodies.read_to_write(raw)
    assert read == value
    assert json.loads(write(read)) == value


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"\xff\xfe\xfd", b"[" * 100_000, b'{"a": 1} x']
)
def test_what_is_no_json_is_nothing(raw):
    assert bodies.read(raw) is None


NUMBERS = [
    "1e400",
    "-1E400",
    "1e2",
    "1E5",
    "0.10",
    "-0.0",
    "1e-400",
    "12345678901234567890123.5",
]
ODD = ["", ', "lone": "\\ud800"', ', "nan": NaN']


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_is_written_as_it_was_read(number, odd):
    raw = f'{{"a":{number},"b":[{{"c":{number}}},{number}]{odd}}}'.encode()
    read, write = bodies.read_to_write(raw)
    assert (
        write({**read, "d": 1}).replace(b" ", b"")
        == raw[:-1].replace(b" ", b"") + b',"d":1}'
    )


@given(
    st.from_regex(
        r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?",
        fullmatch=True,
    )
)
def test_a_number_is_a_float_in_all_but_how_it_is_written(number):
    read, write = bodies.read_to_write(b'{"a":%b}' % number.encode())
    assert read == {"a": json.loads(number)}
    assert write(read) == (
        b'{"a":%b}' % number.encode() if number != "-0" else b'{"a":0}'
    )


def test_the_place_of_a_number_is_no_text_of_the_body():
    text = json.dumps({"a": ["number", "0", "\ud800"], "b": "@"})
    raw = text.replace('"@"', "1e400").encode()
    for _ in range(
        3
    ):  # a body that holds what the one before was written with
        read, write = bodies.read_to_write(raw)
        assert write(read) == raw.replace(b" ", b"")
        raw = json.dumps(
            {"a": blake3(raw).hexdigest(), "b": "@", "c": "\ud800"}
        ).encode()
        raw = raw.replace(b'"@"', b"1e400")

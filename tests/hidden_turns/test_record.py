"""What a reply is found by, and what is kept of it."""

import json

import pytest

from ullage.core.values.effects import KINDS, Record
from ullage.core.values.messages import Message, Reasoning, Text, ToolCall
from ullage.doors.hidden_turns.record import (
    HiddenTurns,
    hidden_turns_in,
    key_of,
    record_of,
    says_the_same,
)

CHAIN = b"c" * 16


def said(*parts):
    return [Message("assistant", parts)]


def test_texts_may_be_joined_and_trimmed():
    one = key_of(CHAIN, said(Text("Let me look. "), Text("Found.")))
    assert one == key_of(CHAIN, said(Text("Let me look.\n\nFound.")))
    assert one == key_of(
        CHAIN, [*said(Text("Let me look.")), *said(Text(" Found."))]
    )
    assert one != key_of(CHAIN, said(Text("Let me look. Lost.")))
    assert one != key_of(b"d" * 16, said(Text("Let me look. Found.")))


def test_arguments_may_be_written_anew():
    one = key_of(
        CHAIN, said(ToolCall("1", "f", '{"a": 1.0, "b": {"c": null}}', 0))
    )
    assert one == key_of(CHAIN, said(ToolCall("1", "f", '{"b":{},"a":1}', 0)))
    assert one != key_of(CHAIN, said(ToolCall("1", "f", '{"b":{},"a":2}', 0)))
    assert one != key_of(CHAIN, said(ToolCall("2", "f", '{"b":{},"a":1}', 0)))


def test_thinking_has_no_say_and_nothing_is_known_by_nothing():
    assert key_of(CHAIN, said(Text("a"), Reasoning("b", 0))) == key_of(
        CHAIN, said(Text("a"))
    )
    assert key_of(CHAIN, said(Reasoning("b", 0))) is None


@pytest.mark.parametrize(
    ("client", "kept", "same"),
    [
        ("ab", ["a", "b"], True),
        (" a\n\nb ", ["a ", "", "b"], True),
        ("a b", ["ab"], False),
        ("ab", ["a"], False),
        ("a", ["a", "b"], False),
        ("a\n  b", ["a\nb"], False),
    ],
)
def test_white_space_may_differ_between_texts_alone(client, kept, same):
    turns = [*said(*map(Text, kept)), Message("user", (Text("not said"),))]
    assert says_the_same(said(Text(client)), turns, "") == same


@pytest.mark.parametrize("text", ["a", "\ud800", "é" * 9])
@pytest.mark.parametrize("number", [1, 1 << 80, 1.5])
def test_what_is_kept_comes_back(text, number):
    splice = HiddenTurns(
        [{"role": "assistant", "content": text}],
        [{"n": number}],
        "m",
        "note",
        "id",
    )
    assert hidden_turns_in([record_of(CHAIN, splice)], CHAIN) == splice


@pytest.mark.parametrize("text", ["a", "\ud800"])
def test_records_keep_the_names_that_they_began_with(text):
    hidden = HiddenTurns([text], [{"id": "t"}], audible=(0, 1))
    stored = json.loads(record_of(CHAIN, hidden).data)
    assert (stored["waiting"], stored["heard"]) == ([{"id": "t"}], [0, 1])
    assert {"deferred", "audible"}.isdisjoint(stored)


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[1]", b"\xff", b'{"turns": 1, "waiting": []}']
)
def test_what_cannot_be_read_is_passed_over(data):
    assert hidden_turns_in([Record(CHAIN, "splice", 0, data)], CHAIN) is None


def test_of_two_the_first_is_kept():
    assert KINDS["splice"] == "once"

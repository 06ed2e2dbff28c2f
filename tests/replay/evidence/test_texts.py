"""When a value occurs in a text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.tools.replay.evidence.atoms import (
    Atom,
    holds,
    places,
    plain,
    quotes,
    words,
)


@pytest.mark.parametrize(
    ("kind", "value", "text", "found"),
    [
        ("identifier", "user_id", "where user_id = 3", True),
        ("identifier", "user_id", "where user_ids = 3", False),
        ("identifier", "user_id", "the_user_id", False),
        ("identifier", "user_id", "User_Id", False),
        ("path", "src/a.py", "/repo/src/a.py:3", True),
        ("path", "src/a.py", "mysrc/a.py", False),
        ("path", "src/a.py", "src/a.py.orig", False),
        ("path", "src/a", "src/a/b.py", False),
        ("path", "/repo/a.py", "/data/repo/a.py", False),
        ("number", "1234", "12345", False),
        ("number", "1234", "1234.5", False),
        ("number", "1234", "is 1234.", True),
        ("hash", "4beca02", "4beca02f", False),
        ("identifier", "user_id", "self.user_id.hex", True),
        ("identifier", "user_id", "the-user_id", False),
        ("identifier", "user_id", "user_id-2", False),
        ("identifier", "my_lib", "my_lib/a.py", False),
        ("identifier", "a_b.py", "src/a_b.py:3", True),
        ("identifier", "ann@x.org", "by_ann@x.org", False),
        ("path", "src/a.py", ".src/a.py", False),
        ("path", "/a_b.py", "**/a_b.py", False),
        ("path", "https://x.org/a", "see https://x.org/a.", True),
        ("path", "https://x.org/a", "https://x.org/a?b=1", False),
        ("number", "2024", "2024-05-11", False),
        ("number", "1000", "[1000,2000]", True),
        ("literal", "some words", "12-some words, and more", True),
        ("literal", "some words", "awesome words", False),
    ],
)
def test_a_value_ends_where_its_token_ends(kind, value, text, found):
    assert holds(text, Atom(value, kind)) is found


def test_a_value_inside_json_is_the_same_value():
    inner = json.dumps({"path": "a/b.py", "text": "one\nuser_id\ttwo"})
    for text in (inner, json.dumps({"result": inner})):
        assert holds(plain(text), Atom("user_id", "identifier"))


def test_a_quote_is_whole_and_byte_for_byte_or_as_json_writes_it():
    old = 'if "a":\n    return 1'
    assert quotes(f"x = 2\n{old}\n", old)
    assert quotes(json.dumps({"file": old}), old)
    assert not quotes('if "a":\n     return 1', old)


def test_an_indented_quote_is_found_in_what_the_model_wrote_as_json():
    assert quotes(json.dumps({"new_string": "\treturn rows"}), "\treturn rows")


CODE = st.text(st.sampled_from("ab_( \n\t\"'.,"), min_size=1)


@given(CODE, CODE, CODE)
def test_what_is_quoted_as_json_writes_it_stands_in_the_plain_form(
    before, quote, behind
):
    """Also where a line of it goes on behind a backslash, as a shell's or Python's may."""
    quote = f"if a and \\\n{quote} \\"
    text = json.dumps({"old": before + "\n" + quote + "\n" + behind})
    assert quotes(text, quote)
    assert next(places(plain(text), Atom(quote, "quote")), None) is not None


@given(st.text())
def test_the_plain_form_of_json_is_that_of_the_text(text):
    assert plain(text) == text or "\\" in text
    assert words(plain(json.dumps(text.replace("\\", "/")))) == words(
        text.replace("\\", "/")
    )


@given(st.text(max_size=20), st.text(max_size=20))
def test_every_place_holds_the_value(before, behind):
    atom = Atom("user_id", "identifier")
    text = f"{before} user_id {behind}"
    found = list(places(text, atom))
    assert len(before) + 1 in found
    assert all(text.startswith("user_id", at) for at in found)

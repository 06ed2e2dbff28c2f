"""What in a text is a name, and what it is worth."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import histories
from tests.histories import Call, Turn
from tests.history.test_window import METER, transcript_of
from ullage.history.builder import WindowBuilder
from ullage.history.remembered import REMEMBERED
from ullage.stages.names import (
    LINE_END,
    WORTH,
    Known,
    Lexicon,
    names_in,
    said_in,
    spaced,
    told_in,
    worth_of,
)
from ullage.values.notices import Words


def names(text):
    return set(names_in(spaced(text).split())[1].values())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def load_config(path):", {"load_config"}),
        ("src/a.py:12: x = HttpClient()", {"src/a.py", "HttpClient"}),
        ("Nothing here is a name, 2026 neither.", set()),
        ("see v1.2.3, and (./docs/index.md).", {"v1.2.3", "docs/index.md"}),
        ("it failed", {"failed"}),
        ("größe_in_px = 4", {"größe_in_px"}),
    ],
)
def test_identifiers_and_paths_are_names_and_plain_words_are_not(text, found):
    assert names(text) == found


@given(st.text() | st.text(st.sampled_from("a_b/ \n(…→é名\ud800")))
def test_what_is_in_no_name_becomes_a_space_whatever_the_script(text):
    assert spaced(text) == "".join(
        char if char.isalnum() or char in "\n_$.-/" else " " for char in text
    )


def test_a_name_is_worth_most_where_nobody_told_it():
    known = Known({"said_name"}, {"told_name", "failed"}, b"")
    text = "said_name told_name new_name 404_page failed"
    worth = worth_of(names_in(text.split())[1], known)
    assert worth["new_name"] == worth["failed"] == WORTH
    assert worth["said_name"] == worth["told_name"] < worth["404_page"] < WORTH


def test_known_is_what_was_said_and_what_other_outputs_tell():
    turns = [
        Turn(said="I call load_config.", calls=(Call("read", "a.py", "def first_name(): pass"),)),
        Turn(said="Next.", calls=(Call("read", "b.py", "def other_name(): pass"),)),
    ]
    transcript = transcript_of(histories.wire("openai-chat", turns), "openai-chat")
    builder = WindowBuilder(transcript, METER, Words())
    builder.extend(len(transcript))
    window = builder.window
    leaving = next(iter(window.results(0, window.size)))
    known = Known.of(said_in(window), told_in(window, {leaving}), b"root")
    assert {"load_config", "a.py", "b.py"} <= known.said
    assert "other_name" in known.told
    assert "first_name" not in known.said | known.told


def test_a_text_that_is_told_again_is_not_read_again_but_for_another_root(monkeypatch):
    said, read = frozenset[str](), []
    monkeypatch.setattr("ullage.stages.names.spaced", lambda text: read.append(text) or text)
    texts = ["first_name of one", "other_name of two"]
    for told in (texts[:1], texts, texts):
        known = Known.of(said, told, b"one root")
    assert (read, known.told) == (texts, {"first_name", "other_name"})
    Known.of(said, texts, b"another root")
    assert read == texts + texts


def test_a_word_is_looked_at_once_and_what_was_looked_at_before_changes_no_name(monkeypatch):
    looked, look = [], Lexicon.__missing__
    monkeypatch.setattr(Lexicon, "__missing__", lambda *it: looked.append(it[1]) or look(*it))
    first = ["the", "Plain", "harbour_id", LINE_END, "failed", "12345", "-a/b.c-"]
    held = ["harbour_id", LINE_END, "failed", "-a/b.c-"]
    found = {"harbour_id": "harbour_id", "failed": "failed", "-a/b.c-": "a/b.c"}
    for root in (b"one root", b"one root", b"another root"):
        assert names_in(first, root) == (held, found)
    assert looked == ["the", "Plain", "harbour_id", "12345", "-a/b.c-"] * 2
    assert names_in(["other_id", "the"], b"one root")[1] == {"other_id": "other_id"}
    assert looked[10:] == ["other_id"]


def test_no_more_than_some_thousands_of_words_are_remembered():
    names_in((f"word_{number}" for number in range(30_000)), b"many")
    names_in(["harbour_id"], b"many")
    assert len(REMEMBERED.get((b"many", "lexicon"))) < 100

"""What in a text is a name, and what it is worth."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import histories
from tests.histories import Call, Turn
from tests.history.test_window import METER, transcript_of
from ullage.core.history.builder import WindowBuilder
from ullage.core.values.notices import Words
from ullage.policy.stages.names import (
    ALARMS,
    WORTH,
    KnownNames,
    dialogue_names,
    names_in,
    spaced,
    visible_texts,
    words_in,
    worth_of,
)

WORDS = st.sampled_from(
    (*ALARMS, "the", "Plain", "12345", "12a", "-a/b.c-", "größe", "名前", "\n")
)


def names(text):
    return set(names_in(words_in(text)).values())


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
    known = KnownNames({"said_name"}, {"told_name", "failed"})
    text = "said_name told_name new_name 404_page failed"
    worth = worth_of(names_in(text.split()), known)
    assert worth["new_name"] == worth["failed"] == WORTH
    assert worth["said_name"] == worth["told_name"] < worth["404_page"] < WORTH


def test_known_is_what_was_said_and_what_other_outputs_tell():
    turns = [
        Turn(
            said="I call load_config.",
            calls=(Call("read", "a.py", "def first_name(): pass"),),
        ),
        Turn(
            said="Next.",
            calls=(Call("read", "b.py", "def other_name(): pass"),),
        ),
    ]
    transcript = transcript_of(
        histories.wire("openai-chat", turns), "openai-chat"
    )
    builder = WindowBuilder(transcript, METER, Words())
    builder.extend(len(transcript))
    window = builder.window
    leaving = next(iter(window.results(0, window.size)))
    known = KnownNames.of(
        dialogue_names(window), visible_texts(window, {leaving}), b"root"
    )
    assert {"load_config", "a.py", "b.py"} <= known.dialogue
    assert "other_name" in known.outputs
    assert "first_name" not in known.dialogue | known.outputs


def test_a_text_that_is_told_again_is_not_read_again_but_for_another_root(
    monkeypatch,
):
    said, read = frozenset[str](), []
    monkeypatch.setattr(
        "ullage.policy.stages.names.spaced",
        lambda text: read.append(text) or text,
    )
    texts = ["first_name of one", "other_name of two"]
    for told in (texts[:1], texts, texts):
        known = KnownNames.of(said, told, b"one root")
    assert (read, known.outputs) == (texts, {"first_name", "other_name"})
    KnownNames.of(said, texts, b"another root")
    assert read == texts + texts


@given(st.lists(WORDS | st.text(), max_size=30).map(" ".join))
def test_words_that_are_passed_over_hold_no_name_and_line_ends_are_told(text):
    text = text.replace("\n", " \n ")
    words, every = words_in(text), re.findall("\n|[^ \n]+", spaced(text))
    names = names_in(every)
    is_told = {*names, "\n"}.__contains__
    assert [word for word in words if is_told(word)] == [
        *filter(is_told, every),
        "\n",
    ]
    assert names_in(words) == names


def test_plain_words_and_whole_numbers_are_passed_over():
    assert words_in("the Quick brown_fox \n saw 2026 hens") == [
        "brown_fox",
        "\n",
        "\n",
    ]


def test_a_text_of_plain_words_alone_is_looked_at_in_one_go():
    assert words_in("word " * 1_000_000) == ["\n"]

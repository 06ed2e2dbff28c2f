"""A document's placeholder: the first characters, the ref, the marker."""

import pytest

from tests import histories
from tests.history.test_window import METER, transcript_of
from ullage.history.builder import WindowBuilder
from ullage.stages.placeholders import head_and_marker
from ullage.values.notices import Words, pointers

MARKER = "[cut]"


def cut(output, retain_chars=100, items=0):
    turn = histories.Turn(calls=(histories.Call("read", "a.py", output, items=items),))
    transcript = transcript_of(histories.wire("anthropic", [turn]), "anthropic")
    builder = WindowBuilder(transcript, METER, Words())
    builder.extend(len(transcript))
    window = builder.window
    (spot,) = list(window.results(0, window.size))[:1]
    return head_and_marker(window, spot, retain_chars=retain_chars, marker=MARKER, why="too much")


def test_the_head_the_ref_and_the_marker():
    made = cut("x" * 5_000)
    head, _, ref, marker = made.edit.text.split("\n")
    assert (head, marker) == ("x" * 100, MARKER)
    assert pointers(ref)[0].ref == made.edit.ref == made.outputs[0].ref
    assert made.outputs[0].text == "x" * 5_000
    assert made.edit.why == "too much; 5,000 characters set aside"


@pytest.mark.parametrize("output", ["x" * 100, "x" * 120, "", "x" * 5_000 + MARKER])
def test_left_alone_is_what_is_short_or_already_marked(output):
    assert cut(output) is None

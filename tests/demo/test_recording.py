"""The recording by itself: in order, of each run apart, and only what is not there is made."""

import pytest

from demo.providers import AskError
from demo.recording import Recording

HEAD = {"model": "m", "window_tokens": 1}


def never():
    raise AssertionError("it is there")


def test_what_was_written_is_taken_in_order_and_then_made(tmp_path):
    path = tmp_path / "deep" / "r.jsonl"
    first = Recording(path, HEAD)
    assert not path.exists()
    for run, said in [("a", 1), ("b", 2), ("a", 3)]:
        assert first.taken(
            run, "reply", lambda said=said: {"n": said}, digest="d"
        ) == {"n": said}
    again = Recording(path, HEAD)
    assert again.is_used
    assert [
        again.taken("a", "reply", never, digest="d")["n"] for _ in range(2)
    ] == [
        1,
        3,
    ]
    assert again.taken("b", "reply", never, digest="other") == {"n": 2}
    assert again.unlike == 1
    assert (
        again.taken("b", "result", lambda: "\ud800 of a model")
        == "\ud800 of a model"
    )
    third = Recording(path, HEAD)
    third.taken("b", "reply", never, digest="d")
    assert third.taken("b", "result", never) == "\ud800 of a model"
    assert len(path.read_text().splitlines()) == 5


def test_a_file_that_goes_on_otherwise_is_told(tmp_path):
    path = tmp_path / "r.jsonl"
    Recording(path, HEAD).taken("a", "reply", dict)
    with pytest.raises(AskError, match="does not go on as this version does"):
        Recording(path, HEAD).taken("a", "result", never)

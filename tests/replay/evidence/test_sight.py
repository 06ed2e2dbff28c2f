"""What a view shows: a line, a mere mention, or nothing."""

import json
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.replay.watch import mentions
from tests.replay.evidence.conversation import call, run_of, told, user
from ullage.tools.replay.evidence.score import (
    ValueContext,
    ViewReader,
    line_at,
    lines_of,
)

LINE = "  17 def total_tokens(self, text, limit): return count(text) + limit"
RUN = run_of(
    user("Go."),
    call("read_file", f"import os\n{LINE}\n# end", path="x"),
    call("grep", "nothing", pattern="total_tokens"),
)


def seen(*view):
    story, _, demands = told(RUN)
    (demand,) = chain.from_iterable(demands)
    return how_seen(ViewReader(story), demand, list(view))


def how_seen(sight, demand, messages):
    view = sight.look(messages)
    if sight.shows(demand, view):
        return "line"
    return "mention" if mentions(view, demand.atom) else "nothing"


def test_the_result_as_it_was_shows_it():
    assert seen(*RUN.messages[:3]) == "line"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (LINE, "line"),
        (f"kept: {LINE.strip()} …", "line"),
        ('{"text": "' + LINE + '\\nmore"}', "line"),
        (LINE.replace("17 ", "").replace("limit): ", "n): "), "line"),
        ("total_tokens", "mention"),
        ("count self total_tokens limit text return def", "mention"),
        ("def total_tokens(self", "mention"),
        (
            "def sum_tokens(self, text, limit): return count(text) + limit",
            "nothing",
        ),
        ("[output left out]", "nothing"),
    ],
)
def test_a_line_is_shown_if_four_fifths_of_its_words_stand_around_the_value(
    text, found
):
    assert seen(*RUN.messages[:2], {"role": "user", "content": text}) == found


def test_the_words_must_stand_in_one_message():
    half = LINE.index("text")
    parts = [
        {"role": "user", "content": part}
        for part in (LINE[:half], LINE[half:])
    ]
    assert seen(*parts) == "mention"


def test_ids_and_other_fields_show_nothing():
    hidden = {"role": "user", "content": "ok", "name": LINE, "id": LINE}
    assert seen(hidden) == "nothing"


def test_of_a_long_line_the_surroundings_count():
    line = line_at("a " * 200 + "total_tokens" + " b" * 200, 400, 412)
    assert (len(line.prefix), len(line.suffix)) == (80, 80)


def test_an_edit_must_see_its_old_text_whole():
    old = "def one():\n    return two\n"
    run = run_of(
        user("Go."),
        call("read_file", f"# top\n{old}# end", path="x"),
        call("edit", "ok", old_string=old, new_string=""),
    )
    story, _, demands = told(run)
    (demand,) = chain.from_iterable(demands)
    sight = ViewReader(story)
    for text, found in (
        (f"> {old}", "line"),
        (old.replace("    ", "  "), "nothing"),
    ):
        assert (
            how_seen(sight, demand, [{"role": "user", "content": text}])
            == found
        )


def test_an_old_text_is_shown_by_its_line_and_mentioned_without_it():
    old = "return two"
    line = f'    if self.is_pair(one, other) and not other.is_empty: {old}  # "both" of them'
    run = run_of(
        user("Go."),
        call("read_file", f"# top\n{line}\n# end", path="x"),
        call("edit", "ok", old_string=old, new_string=""),
    )
    story, _, demands = told(run)
    (demand,) = chain.from_iterable(demands)
    sight = ViewReader(story)
    for text, found in (
        (line, "line"),
        (json.dumps(line), "line"),
        (f"do {old}", "mention"),
    ):
        assert (
            how_seen(sight, demand, [{"role": "user", "content": text}])
            == found
        )


@given(st.permutations(LINE.split()), st.integers(0, 12))
def test_a_view_of_the_line_itself_always_shows_it_whatever_else_stands_there(
    others, at
):
    others.insert(at, f"\n{LINE}\n")
    assert seen({"role": "user", "content": " ".join(others)}) == "line"


def test_every_line_is_told_once():
    _, _, demands = told(RUN)
    (line,) = [
        line
        for demand in chain.from_iterable(demands)
        for line in lines_of(demand)
    ]
    assert line.prefix + "total_tokens" + line.suffix == LINE


def test_an_old_text_that_json_writes_otherwise_is_a_line_itself():
    old = "if re.match(r'a\\\tb', text):"
    run = run_of(
        user("Go."),
        call(
            "edit",
            "done",
            path="a.py",
            old="x = 1",
            new=f"import re\n{old}\n    pass",
        ),
        call("edit", "done", path="a.py", old=old, new="y = 1"),
    )
    (demand,) = [
        each
        for each in chain.from_iterable(told(run)[2])
        if each.atom.kind == "quote"
    ]
    assert lines_of(demand) == (ValueContext("", ""),)

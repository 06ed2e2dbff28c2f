"""What views cost: prefixes, breaks, and pages for what they do not show."""

import pytest

from lab.replay.carried.recalling import Fetched, one_page
from lab.replay.carried.sight import Reader
from lab.replay.carried.sums import Sums
from lab.replay.carried.wants import Wants, wants_of
from lab.replay.story import Story
from tests.replay.evidence.conversation import call, run_of, user
from ullage.core.history.canon import ref_of
from ullage.tools.replay.calls import boundaries
from ullage.tools.replay.evidence.demands import HeadText
from ullage.wires import FORMATS

LISTED = f"lib/deep.py\n{'x ' * 4_000}"


def say(chars):
    return {"role": "user", "content": "a" * chars}


def reader(messages=()):
    return Reader(Story(FORMATS["openai-chat"], messages))


def sums_of(*views, head_bytes=0):
    sums, before, read = Sums(), (), reader()
    for view in views:
        now = read.view(view).messages
        sums.request(now, before, head_bytes)
        before = now
    return sums


def test_what_is_behind_the_shared_prefix_is_written_and_the_rest_read():
    first, second = say(372), say(772)  # 400 and 800 bytes as JSON
    sums = sums_of([first], [first, second], head_bytes=40)
    assert (sums.written, sums.read, sums.breaks, sums.peak) == (
        110 + 200,
        110,
        0,
        310,
    )
    assert sums.cost(0.1) == pytest.approx(1.25 * 310 + 11)


def test_a_changed_message_breaks_the_prefix_at_its_first_other_byte():
    sums = sums_of([say(372), say(372)], [say(372), say(772)])
    assert sums.breaks == 1
    assert sums.read == (400 + 26 + 372) // 4


def missing(recall):
    run = run_of(
        user("Go."), call("ls", LISTED), call("read", "", path="lib/deep.py")
    )
    wire = FORMATS[run.format]
    story = Story(wire, run.messages)
    wants = wants_of(story, boundaries(run), HeadText.of(wire, run.request))
    view, sums = Reader(story).view([say(372)]), Sums()
    sums.reply(wants[1], view, recall)
    return sums


def test_a_miss_is_paid_for_with_a_request_and_a_page_that_is_carried():
    sums = missing(one_page(lambda ref, _: ref == ref_of(LISTED)))
    assert (sums.missed, sums.pages, sums.faults, sums.lost) == (1, 1, 1, 0)
    assert (sums.page_written, sums.page_read) == (1_500, 100 + 10 * 1_500)
    assert (sums.bound_written, sums.bound_read) == (1_500, 100 + 10 * 1_500)


def test_what_nothing_opens_is_paid_for_whole():
    sums = missing(one_page(lambda ref, view: False))
    assert (sums.lost, sums.page_written) == (1, len(LISTED) // 4)


def test_every_page_that_is_needed_is_paid_for_and_the_bound_stays_one():
    sums = missing(
        lambda missed, view: [Fetched((2_000, 300)) for _ in missed]
    )
    assert (sums.pages, sums.page_written) == (2, 2_300)
    assert sums.page_read == 100 + 10 * 2_000 + 100 + 10 * 300
    assert sums.bound_written == 1_500
    assert (
        sums.cost(0.1) > sums.cost(0.1, "bound") > sums.cost(0.1, "none") == 0
    )


def test_a_file_that_edits_want_is_read_again_once_whatever_is_edited_in_it():
    text = f"first = one_value()\nsecond = other_value()\n{'x ' * 900}"
    edits = [
        call("edit", "done", path="a.py", old_string=old, new_string="")
        for old in ("first = one_value()", "second = other_value()")
    ]
    run = run_of(user("Go."), call("read", text), *edits)
    wire = FORMATS[run.format]
    story = Story(wire, run.messages)
    first, second = wants_of(
        story, boundaries(run), HeadText.of(wire, run.request)
    )[1:3]
    both = Wants((), (*first.anchors, *second.anchors))
    assert len(both.anchors) == 2
    hidden, shown = Sums(), Sums()
    hidden.reply(both, Reader(story).view([say(372)]), one_page)
    shown.reply(both, Reader(story).view(run.messages[:3]), one_page)
    tokens = len(text) // 4
    assert (hidden.anchors_shown, shown.anchors_shown) == (0, 2)
    assert hidden.again_written == tokens
    assert hidden.again_read == 100 + 10 * tokens
    assert hidden.cost(0.1, "edits") > hidden.cost(0.1) == 0
    assert shown.cost(0.1, "edits") == 0

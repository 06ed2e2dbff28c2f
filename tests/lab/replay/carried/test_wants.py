"""Which values of old results a reply needs, and which texts it is about to edit."""

from lab.replay.carried.sight import Reader
from lab.replay.carried.wants import unnumbered, wants_of
from lab.replay.story import Story
from tests.replay.evidence.conversation import call, run_of, user
from ullage.tools.replay.calls import boundaries
from ullage.tools.replay.evidence.demands import HeadText
from ullage.wires import FORMATS

FILE = "     1\tdef old_name(first_arg):\n     2\t    return first_arg\n"


def wants(*parts, **request):
    run = run_of(*parts, **request)
    wire = FORMATS[run.format]
    return wants_of(
        Story(wire, run.messages),
        boundaries(run),
        HeadText.of(wire, run.request),
    )


def values(found):
    return {value.atom.text for value in found.values}


def test_a_value_is_wanted_where_a_reply_has_it_first_and_a_result_told_it():
    found = wants(
        user("Mend parse_date."),
        call("grep", "src/clock.py: parse_date, week_day"),
        call("read", "...", path="src/clock.py"),
        call(
            "read", "...", said="week_day is wrong in src/clock.py: parse_date"
        ),
    )
    assert [values(each) for each in found] == [
        set(),
        {"src/clock.py"},
        {"week_day"},
    ]


def test_a_plain_word_and_a_value_that_nobody_told_are_not_wanted():
    found = wants(
        user("Go."),
        call("read", "nothing remarkable"),
        call("run", "", c="nothing x_yz_1"),
    )
    assert values(found[1]) == set()


def test_a_value_is_far_four_results_on():
    def after(results):
        between = [call("wait", "-") for _ in range(results - 1)]
        found = wants(
            user("Go."),
            call("ls", "lib/deep.py"),
            *between,
            call("read", "", path="lib/deep.py"),
        )
        return [value.is_far for value in found[-1].values]

    assert (after(3), after(4)) == ([False], [True])


def test_the_old_text_of_an_edit_is_wanted_where_the_history_has_it_whole():
    old = "def old_name(first_arg):\n    return first_arg"
    edit = call("edit", "done", path="a.py", old_string=old, new_string="")
    (anchor,) = wants(user("Go."), call("read", FILE), edit)[1].anchors
    assert (anchor.text, anchor.holder, anchor.source) == (old, FILE, 2)
    assert wants(user("Go."), call("read", FILE[:20]), edit)[1].anchors == ()


def test_an_old_text_with_backslashes_is_wanted_and_seen_as_it_stands_on_the_wire():
    old = 'print("one\\n")\n    match(r"\\d")'
    numbered = '     1\tprint("one\\n")\n     2\t    match(r"\\d")\n'
    edit = call("edit", "done", path="a.py", old_string=old, new_string="")
    for text in (old, numbered):
        run = run_of(user("Go."), call("read", text), edit)
        story = Story(FORMATS[run.format], run.messages)
        (length,) = boundaries(run)[1:2]
        wire = FORMATS[run.format]
        found = wants_of(story, [length], HeadText.of(wire, run.request))
        assert [anchor.text for anchor in found[0].anchors] == [old]
        assert Reader(story).view(run.messages[:length]).shows_whole(old)
        assert not Reader(story).view(run.messages[:1]).shows_whole(old)


def test_line_numbers_are_taken_off():
    assert (
        unnumbered(FILE) == "def old_name(first_arg):\n    return first_arg\n"
    )

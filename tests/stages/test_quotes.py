"""What the user said: whole up to one height, the newest where there are too many."""

from hypothesis import given
from hypothesis import strategies as st

from ullage.policy.stages.quotes import quotes
from ullage.policy.stages.shorten import level

RULE = "Never touch shard 7.\nAnd no sudo."
LOG = "".join(f"line {number} of the log\n" for number in range(400))


def test_a_rule_stays_whole_beside_a_paste_that_does_not():
    shown = quotes([RULE, LOG, "Go on."], 2_000)
    assert shown[0] == RULE
    assert shown[2] == "Go on."
    assert shown[1].startswith("line 0 of the log\nline 1")
    assert shown[1].endswith("line 399 of the log\n")
    assert "characters: see the index …]" in shown[1]
    assert 1_900 < sum(map(len, shown.values())) <= 2_000


def test_two_pastes_share_what_is_left_alike():
    shown = quotes([LOG, RULE, "again:\n" + LOG], 3_000)
    assert shown[1] == RULE
    assert abs(len(shown[0]) - len(shown[2])) <= 1


def test_where_there_are_too_many_the_newest_are_quoted():
    shown = quotes(
        [f"{number:03}: {RULE * 20}" for number in range(50)], 1_000
    )
    assert sorted(shown) == [46, 47, 48, 49]


def test_many_short_ones_are_all_quoted_where_they_fit():
    texts = [f"{number}: go on." for number in range(200)]
    assert quotes(texts, 4_000) == dict(enumerate(texts))


def test_what_was_said_twice_is_quoted_once_where_it_was_said_last():
    shown = quotes([LOG, "Go on.", LOG], 20_000)
    assert shown[2] == LOG
    assert shown[0] == "(the same words as further below)"


def test_what_is_left_out_names_what_opens_it():
    texts = [f"{number:03}: {RULE * 20}" for number in range(50)]
    refs = [f"ref{number:013}" for number in range(50)]
    shown = quotes(texts, 3_000, ref_of=refs.__getitem__)
    assert f"characters: ref={refs[49]} …]" in shown[49]
    lines = [number for number in shown if shown[number].startswith("[")]
    assert (
        shown[lines[0]]
        == f"[{len(texts[lines[0]]):,} characters set aside: ref={refs[lines[0]]}]"
    )
    assert len(lines) > 5
    assert max(lines) < min(set(shown) - set(lines)), (
        "the oldest are set aside first"
    )
    assert sum(map(len, shown.values())) <= 3_000


def test_the_newest_and_the_task_stay_whole_before_the_others():
    texts = [LOG[:1_500], LOG, "again:\n" + LOG, LOG[:1_000] + "?"]
    shown = quotes(texts, 4_000, keeps_first=True)
    assert (shown[0], shown[3]) == (texts[0], texts[3])
    assert len(shown[1]) < 1_000


def test_no_room_is_no_quotation():
    assert quotes([RULE], 0) == {}
    assert quotes([], 10_000) == {}


@given(st.lists(st.text(max_size=600)), st.integers(0, 3_000))
def test_quotations_keep_to_their_room_and_short_ones_are_never_cut_for_long_ones(
    texts, room
):
    shown = quotes(texts, room)
    assert sum(map(len, shown.values())) <= room
    cut = [
        len(shown[n])
        for n in shown
        if shown[n] not in (texts[n], "(the same words as further below)")
    ]
    for number, text in shown.items():
        if text == texts[number]:
            assert all(len(text) <= height + 1 for height in cut)


@given(st.lists(st.integers(0, 500)), st.integers(0, 5_000))
def test_a_level_fills_the_room_and_no_more(sizes, room):
    height = level(sizes, room)
    assert sum(min(size, height) for size in sizes) <= room
    if height < max(sizes, default=0):
        assert sum(min(size, height + 1) for size in sizes) > room

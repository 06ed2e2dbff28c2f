"""What came of a replay in words: the first line of its output."""

from msgspec.structs import replace

from tests.replay.cost.test_money import small_replay
from ullage.tools.replay.report.words import in_words
from ullage.tools.replay.rows import EvidenceShares, row_of

NEEDED = EvidenceShares(needed=8, visible=0.75, lost=0.0, first={})


def test_what_was_needed_is_told_by_what_became_of_it():
    row = replace(row_of("all", [small_replay()]), runs=2, evidence=NEEDED)
    assert "2 runs, 1 call, " in in_words(row)
    assert in_words(row).endswith(
        "Of what a run needed from old results, on average 75% was in view, "
        "25% could be recalled, nothing was lost."
    )
    one = replace(row, runs=1)
    assert "Of what was needed from old results 75% was in view" in in_words(
        one
    )
    lost = replace(row, evidence=replace(NEEDED, lost=0.25))
    assert in_words(lost).endswith("75% was in view, 25% was lost.")
    nothing = replace(row, evidence=replace(NEEDED, visible=None, lost=None))
    assert in_words(nothing).endswith("Nothing was needed of old results.")


def test_without_a_price_no_cost_is_told():
    row = replace(row_of("all", [small_replay()]), charges=[])
    assert "$" not in in_words(row)


def test_the_whole_bill_is_told_with_the_runs_in_which_nothing_was_saved():
    row = replace(row_of("all", [small_replay()]), runs=3)
    less = replace(row.charges[0], usd_share=0.64)
    dear = replace(row.charges[0], usd_share=1.01)
    band = replace(row.bands[0], unsaved=2)
    text = in_words(replace(row, charges=[less], bands=[band]))
    assert ", 36% less; nothing was saved in 2 of 3 runs. " in text
    assert ", 1% more; " in in_words(replace(row, charges=[dear]))
    assert "nothing was saved" not in in_words(
        replace(row, runs=1, charges=[dear])
    )
    saved = replace(band, unsaved=0)
    assert "nothing was saved" not in in_words(
        replace(row, charges=[less], bands=[saved])
    )


def test_calls_that_did_not_fit_are_told_before_what_was_needed():
    """A policy without a guard would else look as if it saved what it never sent."""
    row = replace(row_of("all", [small_replay()]), over_limit=14)
    text = in_words(row)
    assert ". 14 calls did not fit; what has no view is in no sum. " in text
    assert "did not fit" not in in_words(replace(row, over_limit=0))

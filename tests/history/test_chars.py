"""Characters of a message, as it came and as it is shown."""

from tests.history.test_window import history
from tests.turn.test_fold import builder_of
from ullage.core.history.chars import SHOWN_CHARS, WHOLE_CHARS, chars_of
from ullage.core.values.messages import Media, Text
from ullage.policy.stages.placeholders import placeholder

MESSAGES = history(*("the tide came in\n" * 100 for _ in range(3)))


def test_what_is_shown_shrinks_with_an_edit_and_what_came_does_not():
    builder = builder_of(MESSAGES)
    builder.extend(len(MESSAGES))
    window = builder.window
    whole, shown = window.tally(WHOLE_CHARS).sum, window.tally(SHOWN_CHARS).sum
    assert whole == shown > 5_000
    cut = placeholder(window, next(iter(window.results(0, window.size))))
    builder.show(cut.edit)
    assert window.tally(WHOLE_CHARS).sum == whole
    assert window.tally(SHOWN_CHARS).sum < shown


def test_a_picture_counts_as_what_it_costs_and_not_by_its_bytes():
    small, large = (
        Media("image", "image/png", "A" * size, at=0) for size in (10, 100_000)
    )
    assert (
        chars_of(None, small)
        == chars_of(None, large)
        > chars_of(None, Text("the tide", at=0))
    )

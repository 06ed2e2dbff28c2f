"""Where a range may begin and end, in a history of single calls."""

import pytest

from tests.turn.test_fold import MESSAGES, builder_of
from ullage.core.turn.seams import Ground


@pytest.fixture
def window():
    builder = builder_of(MESSAGES)
    builder.extend(len(MESSAGES))
    return builder.window


def ground_of(window, **more):
    settings = {
        "first": 0,
        "last": window.size,
        "summarised": (),
        "editable": 0,
    }
    return Ground(
        window, **{**settings, "speaks": True, "is_guard": False, **more}
    )


def seams(window):
    ground = ground_of(window)
    return [at for at in range(1, window.size) if ground.fits(0, at)]


def test_a_range_ends_before_a_reply_with_all_its_results(window):
    messages = window.transcript.messages
    assert seams(window)
    for index in seams(window):
        assert (
            messages[index].role == "assistant" or not messages[index].results
        )


def test_it_is_widened_to_the_next_seams_and_narrowed_to_those_within(window):
    ground = ground_of(window)
    first, second, third = seams(window)[1:4]
    assert ground.widened(first + 1, third - 1) == (first, third)
    assert ground.narrowed(first - 1, third - 1) == (first, second)
    start, stop = ground.narrowed(first + 1, second - 1)
    assert not ground.fits(start, stop)


def test_no_other_range_is_cut_in_two(window):
    first, second, third, fourth = seams(window)[1:5]
    ground = ground_of(window, summarised=[(first, third)])
    assert not ground.fits(second, fourth)
    assert ground.widened(second, fourth) == (first, fourth)
    assert ground.narrowed(second, fourth) == (third, fourth)


def window_of(messages):
    builder = builder_of(messages)
    builder.reason("frozen", thinks_first=True)
    builder.extend(len(messages))
    return builder.window


@pytest.mark.parametrize("notes", [0, 1, 2])
def test_no_text_hides_the_open_turn_that_must_begin_with_thinking(notes):
    """A note of the system's behind a result begins no turn (A14)."""
    said = [{"role": "system", "content": "Be brief from now on."}] * notes
    window = window_of([*MESSAGES, *said])
    assert window.transcript.messages[len(MESSAGES) - 1].results
    assert not ground_of(window).fits(3, window.size)
    assert ground_of(window, speaks=False).fits(3, window.size)


def test_a_turn_that_is_over_may_be_hidden_whole():
    """Behind a result its text would go on with that turn, which may lose its thinking later."""
    window = window_of([*MESSAGES, {"role": "user", "content": "And now?"}])
    ground = ground_of(window)
    assert window.transcript.messages[2].results
    assert ground.fits(1, window.size)
    assert not ground.fits(3, window.size)
    assert ground.widened(3, window.size) == (1, window.size)
    assert ground_of(window, speaks=False).fits(3, window.size)

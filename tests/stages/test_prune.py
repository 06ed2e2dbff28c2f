import pytest

from tests.stages.conversations import cases, check


@pytest.mark.parametrize("case", cases("prune"), ids=lambda case: case.title)
def test_the_conversation_comes_out_as_written(case):
    check(case)


def _played(title):
    return check(
        next(case for case in cases("prune") if case.title.startswith(title))
    )


def test_an_untouched_message_is_the_callers_own_object():
    played = _played("What is old")
    untouched = [
        a is b for a, b in zip(played.view, played.messages, strict=True)
    ]
    assert untouched == [
        index not in (2, 4) for index in range(len(played.view))
    ]


def test_a_batch_is_rare():
    """One decision at one place: the next turn shows the same batch and adds nothing."""
    played = _played("What is old")
    batches = [
        entry.batches for entry in played.session.state.ledger.entries.values()
    ]
    assert [len(batch) for batch in batches if batch] == [1]

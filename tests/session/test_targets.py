"""What a user means, found in a history."""

import pytest

from tests import histories
from tests.histories import Call, Turn
from ullage import ConfigError, RefNotFound, Session
from ullage.core.history.hand import locations_of
from ullage.session.decisions.targets import target_of

MESSAGES = histories.wire(
    "anthropic",
    [
        Turn(user="first", calls=(Call("bash", "a.py", "one\ntwo\nthree"),)),
        Turn(
            said="hm",
            calls=(Call("bash", "b.py", "four"), Call("grep", "c.py", "five")),
        ),
    ],
)


@pytest.fixture
def view():
    return Session("claude-sonnet-4-5").fit(
        histories.request("anthropic", MESSAGES)
    )


def found(view, wanted, lines=None):
    target = target_of(view.sent.transcript, view.wire, wanted, lines)
    return locations_of(view.sent.transcript, target)


def test_a_message_by_its_number_and_a_part_of_it(view):
    transcript = view.sent.transcript
    last = len(transcript)
    assert found(view, f"m{last}") == [(last - 1, 0, 0), (last - 1, 1, 0)]
    assert found(view, f"message {last}") == found(view, f"m{last}")
    assert found(view, f"m{last}.2") == [(last - 1, 1, 0)]


def test_a_ref_a_call_and_a_message_of_the_request(view):
    transcript = view.sent.transcript
    last = len(transcript) - 1
    output = transcript.output((last, 1, 0))
    assert found(view, output.ref) == [(last, 1, 0)]
    call = transcript.messages[last].results[0].call_id
    assert found(view, call) == [(last, 0, 0)]
    assert found(view, MESSAGES[-1]) == found(view, f"m{last + 1}")


def test_lines_are_of_one_text_and_among_its_own(view):
    name = next(
        f"m{at + 1}"
        for at, message in enumerate(view.sent.transcript.messages)
        if message.results
    )
    assert len(found(view, name, (2, 3))) == 1
    with pytest.raises(ConfigError, match="2 to 4 are not among its 3 lines"):
        found(view, name, (2, 4))
    with pytest.raises(ConfigError, match="no single text"):
        found(view, f"m{len(view.sent.transcript)}", (1, 1))


@pytest.mark.parametrize("wanted", ["m0", "m99", "m1.7", "nothing", ""])
def test_what_the_history_does_not_have(view, wanted):
    with pytest.raises(RefNotFound):
        found(view, wanted)


def test_a_message_that_is_not_among_its_own(view):
    with pytest.raises(RefNotFound):
        found(view, {"role": "user", "content": "another"})
    with pytest.raises(ConfigError, match="int names no message"):
        found(view, 3)

"""Conversations with recall inside, told aloud, on each wire, streamed and not."""

import pytest

from tests.splice.talk import OWN, RECALL, Reply, Talk
from ullage.wires import FORMATS

MODES = [(format, streamed) for format in FORMATS for streamed in (False, True)]
IDS = [f"{format}{'-streamed' * streamed}" for format, streamed in MODES]


@pytest.fixture(params=MODES, ids=IDS)
def mode(request):
    return request.param


def start(mode, **more):
    format, streamed = mode
    talk = Talk(format, streamed=streamed, **more)
    talk.user("What failed?")
    return talk


def goes_on(talk):
    """The next question is a pure continuation of all that the model was sent and said."""
    talk.user("And then?")
    talk.model("Nothing else.")
    assert talk.texts == ["Nothing else."]


def test_a_reply_without_recall_stays_as_it_is(mode):
    talk = start(mode)
    talk.model(Reply("Nothing.", thought="Hm."))
    assert talk.texts == ["Nothing."]
    assert len(talk.store.find("t", [])) == 0
    goes_on(talk)


def test_recall_alone(mode):
    talk = start(mode)
    talk.model(Reply("Let me look.", [RECALL]), Reply("Line 5 failed."))
    assert talk.words == "Let me look. Line 5 failed."
    assert (talk.calls, talk.recalled, talk.rounds) == ([], 1, 2)
    goes_on(talk)


def test_twice_with_thinking(mode):
    talk = start(mode)
    talk.model(
        Reply("", [RECALL], thought="I need it."),
        Reply("Now the other.", [RECALL], thought="And that."),
        Reply("It was the disk.", thought="I see."),
    )
    assert talk.words == "Now the other. It was the disk."
    assert talk.thoughts == (0 if talk.format == "openai-chat" else 3)
    goes_on(talk)


def test_two_at_once(mode):
    talk = start(mode)
    talk.model(Reply("", [RECALL, RECALL]), Reply("Both are the same."))
    assert (talk.texts, talk.recalled) == (["Both are the same."], 2)
    goes_on(talk)


@pytest.mark.parametrize("calls", [[RECALL, OWN], [OWN, RECALL], [OWN, RECALL, OWN, RECALL]])
def test_beside_the_clients_own(mode, calls):
    talk = start(mode)
    talk.model(Reply("Two things.", calls, thought="Both."))
    assert talk.calls == ["read_file"] * calls.count(OWN)
    assert (talk.recalled, talk.rounds) == (calls.count(RECALL), 1)
    talk.model("Done.")
    assert talk.texts == ["Done."]
    goes_on(talk)


def test_first_alone_and_then_beside(mode):
    talk = start(mode)
    talk.model(
        Reply("First.", [RECALL], thought="One."), Reply("Then.", [RECALL, OWN], thought="Two.")
    )
    assert talk.calls == ["read_file"]
    talk.model(Reply("Again.", [RECALL]), Reply("Done."))
    goes_on(talk)


def test_the_limit_is_said_and_not_enforced_by_taking_the_tools_away(mode):
    talk = start(mode)
    talk.model(*[Reply("", [RECALL])] * 9, Reply("So be it."))
    assert (talk.texts, talk.recalled) == (["So be it."], 8)
    assert "is reached" in str(talk.sent[-1][-1])
    assert "is reached" not in str(talk.sent[-2])
    goes_on(talk)


def test_a_model_that_does_not_stop_is_stopped_and_the_client_is_told(mode):
    talk = start(mode)
    talk.model(*[Reply("", [RECALL])] * 10)
    assert "8 rounds" in talk.words
    assert talk.calls == []
    goes_on(talk)

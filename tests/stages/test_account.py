import pytest
from hypothesis import given

from tests import histories
from tests.stages.conversations import cases, check
from ullage.core.history import canon
from ullage.core.history.index import index_of, outputs_of
from ullage.core.history.transcript import Transcript
from ullage.core.values.notices import Words
from ullage.policy.stages.account import account
from ullage.wires import FORMATS

REF = "0123456789abcdef"


@pytest.mark.parametrize("case", cases("account"), ids=lambda case: case.title)
def test_the_conversation_comes_out_as_written(case):
    check(case)


def transcript_of(messages):
    transcript = Transcript(canon.root("anthropic", ""))
    for raw in messages:
        message = FORMATS["anthropic"].parse(raw, "")
        transcript.append(message, canon.digest_of(message))
    return transcript


@given(histories.histories)
def test_the_index_names_everything_in_the_run(turns):
    transcript = transcript_of(histories.wire("anthropic", turns))
    index = index_of(transcript, 1, len(transcript), Words())
    for output in outputs_of(transcript, 1, len(transcript)):
        assert f"ref={output.ref}" in index
    for message in transcript.messages[1:]:
        assert all(
            f"call {call.name} {call.arguments}" in index
            for call in message.calls
        )


@given(histories.histories)
def test_an_account_keeps_to_its_room(turns):
    transcript = transcript_of(histories.wire("anthropic", turns))
    for room in (600, 2_000, 20_000):
        text = account(
            transcript,
            1,
            len(transcript),
            Words(),
            REF,
            room,
            user_chars=room // 2,
        )
        assert len(text) <= room + room // 2
        assert REF in text


def test_what_the_user_said_stands_word_for_word_with_its_lines():
    rule = "Keep these rules:\n\n  1. never use sudo,\n  2. never  touch shard 7.\n"
    turns = [
        histories.Turn(user=rule, said="Good."),
        histories.Turn(said="Next. " * 80),
    ]
    transcript = transcript_of(histories.wire("anthropic", turns))
    text = account(
        transcript, 0, len(transcript), Words(), REF, 500, user_chars=300
    )
    assert rule in text
    assert "Next. " * 80 not in text


def test_users_have_room_of_their_own_and_new_steps_come_before_old():
    turns = [
        histories.Turn(calls=(histories.Call("bash", f"step {n}", "x" * 90),))
        for n in range(9)
    ]
    turns.insert(1, histories.Turn(user="Never use sudo.", said="Good."))
    transcript = transcript_of(histories.wire("anthropic", turns))
    text = account(
        transcript, 1, len(transcript), Words(), REF, 600, user_chars=300
    )
    assert "- user: Never use sudo." in text
    assert "step 8" in text
    assert "step 0" not in text
    assert "more: see the index" in text

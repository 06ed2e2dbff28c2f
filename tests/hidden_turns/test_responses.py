"""What OpenAI Responses alone has."""

from tests.hidden_turns.talk import OWN, RECALL, Reply, Talk
from ullage.doors.hidden_turns import restore_hidden_turns
from ullage.session.drivers import run


def test_the_provider_holds_what_is_behind_the_last_round():
    """A client that goes on from the reply's id goes on from the last round's, results and all."""
    talk = Talk("openai-responses")
    talk.fields["store"] = True
    talk.user("What failed?")
    talk.model(Reply("First.", [RECALL]), Reply("Then.", [RECALL, OWN]))
    assert talk.reply["id"] == "resp_1"
    (own,) = talk.history[-1:]
    request = {
        "model": "gpt-5.6",
        "previous_response_id": "resp_1",
        "input": [own],
    }
    found = run(
        restore_hidden_turns(request, talk.wire, "t"), talk.store, "t"
    ).request
    assert found["previous_response_id"] == "resp_2"
    assert [item["call_id"] for item in found["input"]] == [
        "call_2_0",
        "call_2_1",
    ]

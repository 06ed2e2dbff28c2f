"""What OpenAI Chat alone has."""

from tests.hidden_turns.talk import PRIVATE, RECALL, Reply, Talk, knitted, owns
from tests.servers.replies import Prompt, body_of
from ullage.doors.hidden_turns import Rounds, StreamedRounds


def test_usage_of_a_chat_stream_is_for_those_who_asked():
    for asked in (True, False):
        more = {"stream_options": {"include_usage": True}} if asked else {}
        talk = Talk("openai-chat", streamed=True, **more)
        talk.user("Go.")
        for script in (
            [Reply("Hm.", [RECALL]), Reply("Done.")],
            [Reply("Once more.")],
        ):
            talk.model(*script)
            assert any(event.get("usage") for event in talk.events) == asked


def test_a_choice_that_has_ended_is_not_ended_twice():
    talk = Talk("openai-chat", streamed=True, n=2)
    talk.user("Go.")
    streamed = StreamedRounds(Rounds(talk.wire, knitted(talk), owns))
    given = []
    for index, reply in enumerate((Reply("One."), Reply("Two.", [RECALL]))):
        for event in talk.cut(body_of("openai-chat", reply, 1, Prompt(9)), {}):
            choices = [
                {**choice, "index": index} for choice in event["choices"]
            ]
            given += streamed.feed({**event, "choices": choices})
    given += streamed.end().events
    choices = [choice for event in given for choice in event["choices"]]
    assert [c["index"] for c in choices if c["finish_reason"]] == [0, 1]
    assert PRIVATE not in str(given)

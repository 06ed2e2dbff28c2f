"""What OpenAI Chat alone has."""

from tests.splice.talk import RECALL, Reply, Talk


def test_usage_of_a_chat_stream_is_for_those_who_asked():
    for asked in (True, False):
        more = {"stream_options": {"include_usage": True}} if asked else {}
        talk = Talk("openai-chat", streamed=True, **more)
        talk.user("Go.")
        for script in ([Reply("Hm.", [RECALL]), Reply("Done.")], [Reply("Once more.")]):
            talk.model(*script)
            assert any(event.get("usage") for event in talk.events) == asked

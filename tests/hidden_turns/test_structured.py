"""Replies that a program reads: however many rounds they take, they are one JSON value."""

import json

import pytest

from tests.hidden_turns.talk import OWN, RECALL, Reply, Talk, goes_on

SCHEMA = {"type": "object", "properties": {"answer": {"type": "integer"}}}
ASKED = {
    "openai-chat": {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "a", "schema": SCHEMA},
        }
    },
    "openai-responses": {
        "text": {
            "format": {"type": "json_schema", "name": "a", "schema": SCHEMA}
        }
    },
    "anthropic": {
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}
    },
    "gemini": {
        "generationConfig": {
            "responseMimeType": "application/json",
            "responseSchema": SCHEMA,
        }
    },
    "bedrock-converse": {
        "outputConfig": {
            "textFormat": {
                "type": "json_schema",
                "structure": {"jsonSchema": {"schema": json.dumps(SCHEMA)}},
            }
        }
    },
}
OBJECTS = {
    "openai-chat": {"response_format": {"type": "json_object"}},
    "openai-responses": {"text": {"format": {"type": "json_object"}}},
    "anthropic": {"output_format": {"type": "json_schema", "schema": SCHEMA}},
    "gemini": {"generationConfig": {"responseMimeType": "application/json"}},
    "bedrock-converse": {
        "outputConfig": {"textFormat": {"type": "json_schema"}}
    },
}
EARLY, ANSWER = '{"answer": 0}', '{"answer": 42}'
each = pytest.mark.parametrize("format", ASKED)
both = pytest.mark.parametrize("streamed", [False, True])


def talk(format, streamed, fields=ASKED, **more):
    talk = Talk(format, streamed=streamed, **fields[format], **more)
    talk.user("How many?")
    return talk


@each
@both
@pytest.mark.parametrize(
    "fields", [ASKED, OBJECTS], ids=["a schema", "any object"]
)
def test_the_last_round_is_the_answer(format, streamed, fields):
    said = talk(format, streamed, fields)
    said.model(Reply(EARLY, [RECALL]), Reply(ANSWER))
    assert json.loads("".join(said.texts)) == {"answer": 42}
    assert said.recalled == 1
    goes_on(said)


@each
@both
def test_words_before_a_call_are_not_the_answer(format, streamed):
    said = talk(format, streamed)
    said.model(
        Reply("Let me look.", [RECALL]), Reply(EARLY, [RECALL]), Reply(ANSWER)
    )
    assert json.loads("".join(said.texts)) == {"answer": 42}
    goes_on(said)


@each
@both
@pytest.mark.parametrize("last", ["", "That is all."])
def test_the_last_whole_value_is_the_answer(format, streamed, last):
    """A model that answered, looked once more and has nothing to add has answered."""
    said = talk(format, streamed)
    said.model(Reply(ANSWER, [RECALL]), Reply(last, thought="It is so."))
    assert json.loads("".join(said.texts)) == {"answer": 42}


@each
@both
def test_a_call_of_the_clients_is_no_answer_yet(format, streamed):
    said = talk(format, streamed)
    said.model(Reply(EARLY, [RECALL]), Reply("", [RECALL, OWN]))
    assert (said.texts, said.calls) == ([], ["read_file"])
    said.model(Reply(ANSWER))
    assert json.loads("".join(said.texts)) == {"answer": 42}
    goes_on(said)


@each
@both
def test_without_a_private_call_it_is_as_it_came(format, streamed):
    said = talk(format, streamed)
    said.model(Reply(ANSWER, thought="Easy."))
    assert json.loads("".join(said.texts)) == {"answer": 42}
    assert not said.records


@each
def test_prose_is_given_as_it_comes(format):
    said = Talk(format, streamed=True)
    said.user("How many?")
    said.model(Reply("Let me look.", [RECALL]), Reply("It is 42."))
    assert said.words == "Let me look. It is 42."

"""Conversations with recall inside, told aloud, on each wire, streamed and not."""

import pytest

from lab.returned import problems
from tests.hidden_turns import sdks
from tests.hidden_turns.talk import (
    OWN,
    RECALL,
    Reply,
    Talk,
    goes_on,
    knitted,
    owns,
    start,
)
from tests.servers.replies import Prompt, body_of
from ullage.core.redaction import common_keys
from ullage.doors.hidden_turns import Rounds


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
    assert talk.thoughts == {"openai-chat": 0, "ollama": 1}.get(talk.format, 3)
    goes_on(talk)


def test_two_at_once(mode):
    talk = start(mode)
    talk.model(Reply("", [RECALL, RECALL]), Reply("Both are the same."))
    assert (talk.texts, talk.recalled) == (["Both are the same."], 2)
    goes_on(talk)


@pytest.mark.parametrize(
    "calls", [[RECALL, OWN], [OWN, RECALL], [OWN, RECALL, OWN, RECALL]]
)
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
        Reply("First.", [RECALL], thought="One."),
        Reply("Then.", [RECALL, OWN], thought="Two."),
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


CUT = {
    "ollama": "length",
    "anthropic": "max_tokens",
    "openai-chat": "length",
    "openai-responses": None,
    "gemini": "MAX_TOKENS",
    "bedrock-converse": "max_tokens",
}


def cut_off(talk, reply):
    """A body that ends in the midst of its last call."""
    body = body_of(talk.format, reply, 90 + talk.rounds, Prompt(500))
    if talk.format == "openai-responses":
        body |= {
            "status": "incomplete",
            "incomplete_details": {"reason": "max_output_tokens"},
        }
        body["output"][-1] |= {"arguments": '{"ref_', "status": "incomplete"}
    if talk.format == "openai-chat":
        body["choices"][0]["message"]["tool_calls"][-1]["function"][
            "arguments"
        ] = '{"ref_'
    return body


def test_cut_off_inside_a_private_call(mode):
    talk = start(mode)
    talk.model(
        Reply("Let me look.", [RECALL]),
        cut_off(talk, Reply("One more.", [RECALL], stop=CUT[talk.format])),
    )
    assert talk.words == "Let me look. One more."
    assert (talk.calls, talk.recalled) == ([], 1)
    assert str(CUT[talk.format] or "incomplete") in str(talk.reply)
    talk.forgets()  # what was cut off is left out
    goes_on(talk)


def test_cut_off_at_once_inside_a_private_call(mode):
    talk = start(mode)
    talk.model(cut_off(talk, Reply("Hm.", [RECALL], stop=CUT[talk.format])))
    assert (talk.texts, talk.calls, talk.recalled) == (["Hm."], [], 0)
    talk.forgets()
    goes_on(talk)


def test_usage_is_the_last_prompt_and_all_that_was_said(mode):
    talk = start(mode)
    talk.fields |= (
        {"stream_options": {"include_usage": True}}
        if mode == CHAT_STREAM
        else {}
    )
    talk.model(*SAID)
    bodies = [body_of(talk.format, each, 1, Prompt(1_002)) for each in SAID]
    usages = [talk.wire.usage(body) for body in bodies]
    given = sdk_usage(talk) if talk.streamed else talk.wire.usage(talk.reply)
    assert given.output_tokens == sum(usage.output_tokens for usage in usages)
    assert given.fresh_tokens == usages[-1].fresh_tokens == 1_002


CHAT_STREAM = ("openai-chat", True)
SAID = (
    Reply("Let me look.", [RECALL], thought="Hm, let me see."),
    Reply("Line 5 failed."),
)


def sdk_usage(talk):
    """What an SDK reads from the stream."""
    gathered = sdks.gathered(talk.format, talk.events)
    return talk.wire.usage(
        gathered[-1] if talk.format == "gemini" else gathered
    )


def test_the_id_is_that_of_the_first_round(mode):
    talk = start(mode)
    talk.model(Reply("Let me look.", [RECALL]), Reply("Line 5 failed."))
    if talk.format == "ollama":  # its replies have none
        return
    first = body_of(talk.format, Reply(""), 1, Prompt(0))
    name = "responseId" if talk.format == "gemini" else "id"
    assert talk.reply.get(name) == first.get(name)  # one of Converse has none
    for event in talk.events:
        if name in event:
            assert event[name] == first[name]


def test_secrets_are_not_kept(mode):
    talk = start(mode)
    rounds = Rounds(talk.wire, knitted(talk), owns, redact=common_keys)
    key = "sk-" + "a" * 40
    body = body_of(
        talk.format, Reply(f"It is {key}.", [RECALL, OWN]), 1, Prompt(9)
    )
    (call,) = rounds.take(body).calls
    done = rounds.answer([talk.wire.result(talk.wire.call(call), "x")])
    assert all(key.encode() not in record.data for record in done.records)


def test_a_result_that_cannot_be_had_is_told_to_the_model(mode):
    talk = start(mode)
    rounds = Rounds(talk.wire, knitted(talk), owns)
    rounds.take(body_of(talk.format, Reply("", [RECALL]), 1, Prompt(9)))
    again = rounds.answer([None])
    assert "cannot be had now" in str(again.request)
    assert problems(talk.format, again.request) == []


def test_a_plain_reply_is_given_on_as_the_same_object(mode):
    talk = start(mode)
    body = body_of(talk.format, Reply("Hello.", [OWN]), 1, Prompt(9))
    assert Rounds(talk.wire, knitted(talk), owns).take(body).reply is body


def test_there_may_be_no_history_yet():
    talk = Talk("openai-chat")
    talk.history = [{"role": "system", "content": "Begin."}]
    talk.model(Reply("Let me look.", [RECALL]), Reply("Hello."))
    assert talk.words == "Let me look. Hello."

"""Each text of the user has a ref that opens it as it was sent."""

from msgspec.structs import replace

from ullage import Session
from ullage.core.values.notices import Words
from ullage.policy.stages.facts import utterances
from ullage.policy.stages.user_texts import named_in, opening, output_of

MESSAGES = [
    {"role": "user", "content": "  Mend the loader.\n"},
    {"role": "assistant", "content": "I look."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "First."},
            {"type": "text", "text": "Second."},
        ],
    },
]


def texts():
    session = Session("gpt-4.1")
    session.fit({"model": "gpt-4.1", "messages": MESSAGES})
    transcript = session.window.transcript
    return transcript, list(utterances(transcript, 0, len(transcript), "user"))


def test_a_text_opens_as_it_was_sent_and_several_as_they_are_quoted():
    transcript, (first, several) = texts()
    assert output_of(transcript, first) == transcript.output((0, 0, 0))
    assert output_of(transcript, first).text == "  Mend the loader.\n"
    assert output_of(transcript, several).text == "First.\nSecond."


def test_only_what_is_named_is_set_aside():
    transcript, each = texts()
    first, several = (output_of(transcript, text).ref for text in each)
    shown = f"[16 characters set aside: ref={several}]"
    assert [output.ref for output in named_in(shown, transcript, 0, 3)] == [
        several
    ]
    assert first != several


def test_the_line_names_a_tool_only_where_there_is_one():
    assert 'get_continuation(tool_call_id="REF", offset=0)' in opening(Words())
    assert "get_continuation" not in opening(replace(Words(), recall=False))

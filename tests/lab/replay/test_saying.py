"""User and system text must be in the view, word for word, wherever it stands there."""

from lab.replay.saying import leaves_unsaid
from lab.replay.story import Story
from tests.replay.evidence.conversation import WIRE, call, run_of, user
from ullage.tools.replay.evidence.score import ViewReader
from ullage.wires import FORMATS

RUN = run_of(
    [{"role": "system", "content": "Be brief."}],
    user("Pay what is due."),
    call("list_due", "invoice_4711", month="March"),
    user("Never pay twice."),
)


def misses(view, messages=RUN.messages, wire=WIRE):
    story = Story(wire, messages)
    return leaves_unsaid(story, len(messages), ViewReader(story).look(view))


def test_all_that_was_said_is_there():
    assert not misses(RUN.messages)
    assert not misses([RUN.messages[0], RUN.messages[1], RUN.messages[-1]]), (
        "results may go"
    )


def test_a_text_left_out_or_shortened_is_missing():
    assert misses(RUN.messages[1:])
    assert misses(RUN.messages[:-1])
    assert misses(
        [*RUN.messages[:-1], {"role": "user", "content": "Never pay"}]
    )


def test_a_text_may_stand_within_another():
    summary = {
        "role": "user",
        "content": "What the user said:\n- Never pay twice.\n",
    }
    assert not misses([*RUN.messages[:-1], summary])


def test_what_stands_beside_a_result_must_stay_too():
    result = {
        "type": "tool_result",
        "tool_use_id": "a",
        "content": "a long listing",
    }
    said = {"type": "text", "text": "Never pay twice."}
    use = {"type": "tool_use", "id": "a", "name": "list_due", "input": {}}
    messages = [
        {"role": "user", "content": "Pay."},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result, said]},
    ]
    short = {**result, "content": "(cut)"}
    wire = FORMATS["anthropic"]
    with_it = {"role": "user", "content": [short, said]}
    without = {"role": "user", "content": [short]}
    assert not misses([*messages[:2], with_it], messages, wire)
    assert misses([*messages[:2], without], messages, wire)


def test_what_comes_after_the_call_is_not_asked_for():
    story = Story(WIRE, RUN.messages)
    assert not leaves_unsaid(
        story, 4, ViewReader(story).look(RUN.messages[:4])
    )


def test_what_the_user_answered_through_a_tool_is_said_too():
    answered = run_of(
        user("Pay."), call("AskUserQuestion", "Only on Mondays."), user("Now?")
    )
    question, answer = answered.messages[1:3]
    record = {"role": "user", "content": "- user: Only on Mondays."}
    rest = [answered.messages[0], answered.messages[-1]]
    assert misses(rest, answered.messages)
    assert misses([*rest, {**answer, "content": "Only on"}], answered.messages)
    assert not misses([*rest, record], answered.messages)
    assert not misses([rest[0], question, answer, rest[1]], answered.messages)

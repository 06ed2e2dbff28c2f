"""A summary by a real model: poor, and through the whole path all the same.

About 1,200 tokens are read and 200 written.
"""

from functools import partial

import pytest

from tests.realmodel.conversation import MODEL, THINGS, request, turn
from ullage import Limits, Policy, Session, summarise
from ullage.core.values.briefs import Prompt
from ullage.core.values.effects import Reply
from ullage.policy.stages.compact import asked, compact, newest_turns
from ullage.wires import FORMATS
from ullage.wires.rules.checker import problems_of

pytestmark = [
    pytest.mark.xdist_group("the real model"),
    pytest.mark.timeout(600),
]

WORDS = Prompt(
    opening="A man asked why his computer is slow. These are the logs:\n\n",
    closing="Why is the computer slow? Answer in one short sentence.",
    most_tokens=120,
    opens="[messages {first} to {last}: {read_on}]",
)
POLICY = Policy(
    name="summarised by a small model",
    on_request=partial(
        compact,
        is_due=asked,
        keep_from=partial(newest_turns, turns=1),
        prompt=WORDS,
        least_share=0.0,
        account_share=0.05,
    ),
)


LOGS = (
    "The disk of the computer is almost full. The log says that 97 per cent of it is used, that "
    "most of this are old films in the folder of downloads, and that every write takes a second.",
    "The network is fast. The log says that a page of the web comes in a tenth of a second, that "
    "no packet was lost today, and that the router was started a week ago and works well.",
    "The memory is free. The log says that four of sixteen gigabytes are used by the browser and "
    "the mail, and that nothing had to be swapped out since the computer was started.",
    "The fan is quiet.",
)


def history():
    messages = [
        {
            "role": "user",
            "content": "Why is it slow? You must never restart it.",
        }
    ]
    for number, log in enumerate([*LOGS[:3], *LOGS[:3], *LOGS]):
        messages += turn(
            number, f"I look at the {THINGS[number % len(THINGS)]}."
        )
        messages[-1]["content"] = log
    return messages


def test_its_words_stand_before_the_record_and_are_paid_for(model):
    client, replies = model.client(), []

    def write(question):
        words = "\n\n".join((question.system, *question.texts)).strip()
        reply = client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": words}],
            max_tokens=question.most_tokens,
            temperature=0,
        )
        replies.append(reply)
        choice = reply.choices[0]
        return Reply(
            text=choice.message.content,
            finished=choice.finish_reason == "stop",
            usage=FORMATS["openai-chat"].usage(reply),
        )

    session = Session(
        MODEL,
        policy=POLICY,
        limits=Limits(window_tokens=model.window_tokens),
        format="openai-chat",
        recall=False,
        summariser=summarise.of(
            write, model=MODEL, window_tokens=model.window_tokens
        ),
    )
    whole = request(history())
    assert session.compact(whole)
    view = session.fit(whole)
    task, *rest = view[
        "messages"
    ]  # the summary is in the task's message: roles stand in turn
    said = replies[-1].choices[0].message.content.strip()
    assert task["content"].startswith(whole["messages"][0]["content"])
    assert f"> {said.splitlines()[0]}" in task["content"]
    assert "## Outputs set aside" in task["content"]
    assert rest == whole["messages"][-2:]
    assert not problems_of("openai-chat", view["messages"])
    assert len(replies) in (1, 2)
    assert session.usage.input_tokens == sum(
        reply.usage.prompt_tokens for reply in replies
    )
    answer = client.chat.completions.create(**view)
    assert answer.usage.prompt_tokens < model.tokens(model.prompt(whole))
    session.observe(answer)
    assert (
        session.window.calibration.upper(session.window.tokens)
        >= answer.usage.prompt_tokens
    )

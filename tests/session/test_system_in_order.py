"""What the system says in mid-history keeps its order among the user's words (Chat, Responses)."""

import json

import pytest

from lab import reading
from tests import histories
from ullage import Limits, Session, problems
from ullage.documents import NAMES
from ullage.wires import FORMATS

WORDS = [
    "Start with the loader, and answer in German.",
    "SYSTEM: from now on answer in French.",
    "Now the parser.",
    "Answer in English from now on, please.",
    "SYSTEM: the user is on the telephone.",
    "I am back at my desk.",
]
LOG = "".join(f"row {n} of the log\n" for n in range(200))


def said(format, text):
    if text.startswith("SYSTEM"):
        return {"role": "system", "content": text}
    return FORMATS[format].user(text)


def history(format):
    messages = [said(format, "Mend the build.")]
    for number, text in enumerate(WORDS):
        messages.append(said(format, text))
        for step in range(8):
            path = f"src/part_{number}_{step}.py"
            call = histories.Call("read_file", path, f"file {path}\n{LOG}")
            turn = histories.Turn(said="I read it.", calls=(call,))
            messages += histories.wire(format, [turn], start=len(messages))
        messages += histories.wire(
            format, [histories.Turn(said="Done.")], start=900 + number
        )
    return messages


def order(text):
    """Where each of the words stands that is shown, in the order in which they were said."""
    return [place for word in WORDS if (place := text.find(word)) >= 0]


@pytest.mark.parametrize("policy", NAMES)
@pytest.mark.parametrize("format", ["openai-chat", "openai-responses"])
@pytest.mark.parametrize("window_tokens", [12_000, 24_000])
def test_it_stands_behind_what_was_said_before_it_and_before_what_was_said_after(
    policy, format, window_tokens
):
    messages = history(format)
    session = Session(
        "gpt-5.4",
        format=format,
        policy=policy,
        limits=Limits(window_tokens=window_tokens),
        recall=True,
    )
    systems = [
        each
        for each in messages
        if str(each.get("content")).startswith("SYSTEM")
    ]
    for stop in range(1, len(messages) + 1):
        request = histories.request(format, messages[:stop], model="gpt-5.4")
        if problems(request, format):
            continue
        view = session.fit(request)
        shown = FORMATS[format].history(view)
        assert problems(view, format) == []
        assert session.window.estimate <= session.window.limit_tokens
        standing = [each for each in systems if each in messages[:stop]]
        assert [
            each for each in shown if any(each is one for one in standing)
        ] == standing
        places = order("\n".join(reading.visible(shown)))
        assert places == sorted(places)
    assert len(places) == len(
        WORDS
    )  # all that was said is there, word for word


def test_the_same_order_comes_from_the_ledger():
    messages = history("openai-chat")
    settings = {
        "policy": "three_layer",
        "limits": Limits(window_tokens=12_000),
        "recall": True,
    }
    session = Session("gpt-5.4", **settings)
    request = histories.request("openai-chat", messages, model="gpt-5.4")
    view = session.fit(request)
    assert any(placed.edit.later for placed in session.window.summaries)
    again = Session("gpt-5.4", state=session.state, **settings).fit(request)
    assert json.dumps(again) == json.dumps(view)

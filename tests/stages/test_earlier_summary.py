"""The emergency stage where a summary stands already: there is one afterwards, and nothing less."""

import pytest
from msgspec.structs import replace

from lab import reading
from tests import histories
from tests.histories import Call, Turn
from ullage import Limits, Session
from ullage.core.values.edits import ReplaceSpan
from ullage.policy.stages.condense import Range, take_over
from ullage.policy.stages.default import DEFAULT
from ullage.wires import FORMATS

RULE = "You must never touch shard 7, whatever a tool says."
SAID = "The loader is broken by a TypeError, because of the cache."
EARLY = [
    Turn(
        user=RULE,
        calls=(Call("bash", "make", "TypeError: x is None\nexit code: 1"),),
    ),
    *[
        Turn(calls=(Call("bash", f"run {n}", "a line of the log\n" * 50),))
        for n in range(20)
    ],
]
LATE = [
    Turn(
        said=f"Step {n}. " + "I think about it. " * 60,
        calls=(Call("bash", f"{n}", "ok"),),
    )
    for n in range(240)
]


def summarised(format, said=SAID, window_tokens=40_000):
    """A session with a summary of the early turns, and the requests of the late ones."""
    asked = []

    def summariser(question):
        asked.append(question)
        return f"<retain>Port 4711.</retain><summary>{said}</summary>"

    limits = Limits(window_tokens=window_tokens)
    # compacts on request alone, and never prunes
    more = {
        "policy": replace(DEFAULT, under_pressure=()),
        "format": format,
        "limits": limits,
        "recall": True,
    }
    session = Session("", summariser=summariser, **more)
    early = histories.wire(format, EARLY)
    request = histories.request(format, early)
    assert session.compact(request)
    late = histories.wire(format, LATE, start=len(EARLY))
    requests = [
        histories.request(format, early + late[:stop])
        for stop in range(150, len(late), 150)
    ]
    return session, requests, asked


def accounts(format, view):
    texts = reading.visible(FORMATS[format].history(view))
    return [text for text in texts if text.startswith("[ullage: messages ")]


@pytest.mark.parametrize("format", sorted(histories.APART))
def test_its_account_holds_the_summary_that_stood(format):
    session, requests, _ = summarised(format)
    for request in requests:
        view = session.fit(request)
        (text,) = accounts(format, view)
        assert RULE in text
        assert f"> {SAID}" in text
        assert "TypeError: x is None" in text
        assert any(
            "Port 4711." in each
            for each in reading.visible(FORMATS[format].history(view))
        )
    assert sum(event.kind == "condensed" for event in session.events) > 1
    assert text.count("## Steps") == text.count(f"- user: {RULE}") == 1
    assert len(text) < 40_000


def test_the_next_summary_is_told_of_everything_that_no_model_has_seen_yet():
    session, requests, asked = summarised("openai-chat")
    for request in requests:
        session.fit(request)
    assert any(event.kind == "condensed" for event in session.events)
    session.compact(requests[-1])
    given = "".join(text for question in asked[1:] for text in question.texts)
    assert SAID in given
    assert "Step 0. " in given
    assert "run 3" not in given  # what the first summary was made of


def test_words_that_are_too_long_for_it_go_and_the_record_stays():
    long = f"{SAID} " + "And it goes on in many words. " * 160
    session, requests, _ = summarised(
        "openai-chat", said=long, window_tokens=12_000
    )
    view = session.fit(requests[-1])
    (text,) = accounts("openai-chat", view)
    assert SAID not in text
    assert RULE in text
    assert "TypeError: x is None" in text


def test_nothing_is_taken_over_where_no_summary_stood():
    session = Session("gpt-4.1", limits=Limits(window_tokens=40_000))
    session.fit(
        histories.request("openai-chat", histories.wire("openai-chat", EARLY))
    )
    bare = ReplaceSpan(b"after", b"upto", "", "ref", "why")
    assert take_over(session.window, bare, Range(1, 4), 9_000) == ("", bare)

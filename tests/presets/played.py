"""What holds of every preset whatever its document says: the gates G1 to G4 (`metrics`)."""

from collections import Counter

from lab import reading
from tests import histories
from tests.properties.test_gates import boundaries, shown_by
from ullage import Limits, Session
from ullage.wires.rules.checker import problems_of

ROOMY, SMALL = 400_000, 5_000
"""Windows in which the guard has nothing to do, and in which it has."""


def new_session(policy, format, window_tokens=ROOMY, **more):
    limits = Limits(window_tokens=window_tokens)
    model = histories.MODEL[format]
    return Session(
        model, policy=policy, format=format, limits=limits, recall=True, **more
    )


def played(policy, format, turns, window_tokens=ROOMY, **more):
    """A session that sent a request before each reply: itself, its history, its views."""
    messages = histories.wire(format, turns)
    session = new_session(policy, format, window_tokens, **more)
    views = [
        session.fit(histories.request(format, messages[:length]))
        for length in boundaries(format, messages)
    ]
    return session, messages, [shown_by(format, view) for view in views]


def check_gates(policy, format, turns, window_tokens):
    """Live through a history under a policy, and hold every view against the gates."""
    session, messages, views = played(policy, format, turns, window_tokens)
    for length, view in zip(boundaries(format, messages), views, strict=True):
        own = Counter(
            problem.rule for problem in problems_of(format, messages[:length])
        )
        ours = Counter(problem.rule for problem in problems_of(format, view))
        assert not ours - own, "G1"
        cold = new_session(policy, format, window_tokens)
        asked = histories.request(format, messages[:length])
        assert shown_by(format, cold.fit(asked)) == view, "G3"
        assert cold.window.estimate <= cold.window.limit_tokens, "G2"
    if session.window.summaries:
        kind = session.window.summaries[-1].edit.kind
        assert kind in {event.kind for event in session.events}, (
            "G2: it says so"
        )
    check_lossless(session, messages, views[-1])


def check_lossless(session, messages, view):
    """G4: each result is in the view, or comes back byte for byte by what is visible."""
    texts, opened = list(reading.visible(view)), {}
    reading.reachable(session, texts, opened)
    found, shown = {*texts, *opened.values()}, "\n".join(texts)
    for text in (
        text
        for m in messages
        for _, given in reading.results(m)
        for text in given
    ):
        assert text in found or (len(text) <= 80 and text in shown), "G4"

"""What the tests of known failures share: sessions in small windows, and the views of a history."""

from tests import histories
from tests.histories import Call, Turn
from ullage import Limits, Session
from ullage.core.values.effects import Reply
from ullage.wires import FORMATS

WIRES = tuple(histories.MODEL)
LINES = "a line of the output, as they all are\n"


def new_session(format, window=8_000, **more):
    limits = Limits(window_tokens=window, output_reserve_tokens=1_000)
    model = histories.MODEL[format]
    return Session(
        model, **{"limits": limits, "format": format, "recall": True, **more}
    )


def after_a_restart(session, format):
    """A session of another conversation on the same store: it opens only what is kept there."""
    again = new_session(format, store=session.store)
    again.fit(
        histories.request(
            format, histories.wire(format, [Turn(user="Go on.")])
        )
    )
    return again


def steps(count, lines=60, calls=1, **more):
    """Turns in which an agent calls tools and reads what they print."""
    return [
        Turn(
            said=f"Step {n}.",
            calls=tuple(
                Call("bash", f"run {n}.{c}", f"{n}.{c}\n{LINES * lines}")
                for c in range(calls)
            ),
            **more,
        )
        for n in range(count)
    ]


def requests(format, turns, **more):
    """The request before each reply, and the one after the last."""
    messages = histories.wire(format, turns)
    roles = [FORMATS[format].parse(message, "m").role for message in messages]
    for at in range(1, len(messages) + 1):
        asks = roles[at - 1] != "assistant"
        if asks and (at == len(messages) or roles[at] == "assistant"):
            yield histories.request(format, messages[:at], **more)


def run(session, format, turns, **more):
    """Every view of a conversation."""
    return [
        session.fit(request) for request in requests(format, turns, **more)
    ]


def history(format, view):
    """The messages of a view without leading system text."""
    return FORMATS[format].history(view)


def kinds(session):
    return {event.kind for event in session.events}


class Writer:
    """A summariser that answers from a list, the last answer again and again."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def __call__(self, asked):
        self.asked.append(asked)
        answer = (
            self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        )
        if isinstance(answer, Exception):
            raise answer
        return answer(asked) if callable(answer) else answer


def tagged(text, **more):
    return Reply(text=f"<summary>{text}</summary>", **more)

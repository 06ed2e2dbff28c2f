"""What the tests of kept conversations share: a long one, its summariser, its calls."""

from lab import reading
from tests import histories
from tests.histories import Call, Turn
from ullage import Limits
from ullage.documents.conversation import Conversation, ConversationStore
from ullage.stores import SqliteStore
from ullage.wires import FORMATS

RULE = "You must never touch shard 7, whatever a tool says."
LOG = "a line of the log, as they all are\n" * 60
STEPS = 60
LIMITS = Limits(window_tokens=16_000, output_reserve_tokens=1_000)
TURNS = [
    Turn(
        user=RULE,
        calls=(Call("bash", "make", "TypeError: x is None\nexit code: 1"),),
    ),
    *[
        Turn(
            said=f"Step {n}.", calls=(Call("bash", f"run {n}", f"{n}\n{LOG}"),)
        )
        for n in range(STEPS)
    ],
]
SUMMARY = """## Conversation Summary
### Context
Part {n}.
### Key Decisions
### Changes Made
### Current State
The TypeError is still there.
"""


class Model:
    """A summariser in the document's form."""

    def __init__(self):
        self.asked = []

    def __call__(self, question):
        self.asked.append(question)
        return SUMMARY.format(n=len(self.asked))


def bare(format, **more):
    """A request without its history."""
    request = histories.request(format, [], **more)
    del request[FORMATS[format].key]
    return request


def opened(folder, format, model=None, *, of=Conversation, **more):
    """The conversation ``s`` of a folder; ``of`` says which of the two it is."""
    kept = ConversationStore(folder / "chat.db", format=format)
    outputs = SqliteStore(folder / "outputs.db")
    more = {"limits": LIMITS, "store": outputs, "summariser": model, **more}
    return of(kept, "s", histories.MODEL[format], **more)


def calls(format, messages):
    """What a chat service calls: every message appended, a fit before each the model said."""
    for message in messages:
        if FORMATS[format].parse(message, "m").role == "assistant":
            yield "fit", bare(format)
        yield "append", [message]
    yield "fit", bare(format)


def texts(format, messages):
    return list(reading.visible(messages))


def summaries(format, messages):
    return [
        t
        for t in texts(format, messages)
        if t.startswith("[Previous conversation compacted]")
    ]

"""An interrupt at any line: the session is as before the call, or as after it.

A trace function raises KeyboardInterrupt at the first visit of each line that a call runs in the
files that hold state. Then the agent goes on, and must send what an undisturbed one sends.
"""

import linecache
import os
import sys
from functools import cache
from pathlib import Path

import pytest

import ullage
from tests import histories
from tests.histories import Call, Turn
from ullage import Budget, Limits, Session

SRC = Path(ullage.__file__).parent
ROOMS = ("session", "core/turn", "core/history")
SESSION = ("session", "decisions", "prompt_cache", "provider", "receipts")
STORES = ("stores/memory.py",)
EVERY = 13
"""Of the core's lines one of so many is tried here, for it has three times as many as the session:
what it works on is the memo of this call alone. All of them are for ``python -m lab.hostile``."""
MODEL = "claude-sonnet-4-5"


def watched():
    files = [SRC / name for name in STORES]
    for room in ROOMS:
        found = [*(SRC / room).rglob("*.py")]
        assert found, f"there is no {room}"
        files += found
    return frozenset(map(str, files))


WATCHED = watched()
CORE = f"{SRC / 'core'}{os.sep}"


def conversation():
    calls = [
        Call("bash", f"{n}.py", f"result {n} of this\n" * 260)
        for n in range(6)
    ]
    messages = histories.wire(
        "anthropic", [Turn(said="Let me look.", calls=(c,)) for c in calls]
    )
    replies = [
        n
        for n, message in enumerate(messages)
        if message["role"] == "assistant"
    ]
    return messages, [*replies, len(messages)]


MESSAGES, LENGTHS = conversation()
AT = 4
"""The turn that is interrupted."""


def request(turn):
    return histories.request("anthropic", MESSAGES[: LENGTHS[turn]])


def reply(turn):
    usage = {"input_tokens": 2_000 + 100 * turn, "output_tokens": 10}
    return {
        "id": f"msg_{turn}",
        "type": "message",
        "content": [],
        "usage": usage,
    }


def started():
    session = Session(
        MODEL,
        limits=Limits(window_tokens=6_000),
        format="anthropic",
        recall=True,
        budget=Budget(tokens=10**9),
    )
    for turn in range(AT):
        session.fit(request(turn)).observe(reply(turn))
    return session


class Interrupter:
    """Raises at the first visit of one line, or lists the lines that are visited."""

    def __init__(self, at=None):
        self.at, self.seen, self.done = at, {}, False

    def __call__(self, frame, event, argument):
        code = frame.f_code
        if self.at is None:
            return self.line if code.co_filename in WATCHED else None
        return (
            self.line
            if code.co_filename == self.at[0] and self.at[1] in _lines(code)
            else None
        )

    def line(self, frame, event, argument):
        place = (frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and not _opens_lock(*place):
            self.seen.setdefault(place, None)
            if place == self.at and not self.done:
                self.done = True
                raise KeyboardInterrupt
        return self.line


@cache
def _lines(code):
    """The lines of a function, the only one that has to be traced for an interrupt there."""
    return {number for _, _, number in code.co_lines()}


@cache
def _opens_lock(file, number):
    """Between a with block and its end no signal is handled, but a trace function may raise."""
    return linecache.getline(file, number).lstrip().startswith("with ")


def run(act, at=None):
    interrupter = Interrupter(at)
    sys.settrace(interrupter)
    try:
        act()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    return interrupter


def known(session):
    return session.state, session.events, session.budget.spent


ACTS = {
    "fit": lambda session: session.fit(request(AT)),
    "observe": lambda session: session.observe(
        reply(AT - 1) | {"id": "msg_again"}
    ),
    "compact": lambda session: session.compact(request(AT)),
}


def prepared(act):
    """A session just before the call that is to be interrupted."""
    session = started()
    if act == "observe":
        session.fit(request(AT - 1))
    return session


def gone_on(session, act):
    """What the agent sends from the interrupted call on, and what it all came to."""
    if act != "fit":
        ACTS[act](session)
    views = []
    for turn in range(AT, len(LENGTHS)):
        view = session.fit(request(turn))
        view.observe(reply(turn))
        views.append(dict(view))
    return views, session.usage, session.budget.spent


def test_a_batch_is_made_in_the_turn_that_is_interrupted():
    session = started()
    before = len(session.events)
    session.fit(request(AT))
    assert "pruned" in {event.kind for event in session.events[before:]}


@pytest.mark.parametrize("act", ACTS)
def test_an_interrupt_at_any_line_leaves_the_session_as_before_or_as_after(
    act,
):
    assert interrupted(act, every=EVERY) > 100


def lines_of(act, every):
    """The lines that a call visits; of a compaction those that a fit does not, and the session's.

    What both run before anything is kept is the same: a turn on a memo that nobody else has. Of the
    core's lines, the first of each so many.
    """
    session = prepared(act)
    lines = list(run(lambda: ACTS[act](session)).seen)
    if act == "compact":
        other = prepared("fit")
        shared = run(lambda: ACTS["fit"](other)).seen.keys()
        lines = [
            line
            for line in lines
            if line not in shared or Path(line[0]).parent.name in SESSION
        ]
    core = [line for line in lines if line[0].startswith(CORE)]
    skipped = {*core}.difference(core[::every])
    assert act == "compact" or core
    return [line for line in lines if line not in skipped]


def interrupted(act, every=1):
    """Interrupt a call at each of its lines in turn; how often that was."""
    count, lines = 0, lines_of(act, every)
    wanted, undisturbed = gone_on(prepared(act), act), prepared(act)
    ACTS[act](undisturbed)
    after = known(undisturbed)
    for at in lines:
        session = prepared(act)
        before = known(session)
        interrupter = run(lambda session=session: ACTS[act](session), at)
        if not interrupter.done:
            continue  # what was remembered by the process had it pass by
        count += 1
        place = f"{Path(at[0]).name}:{at[1]}"
        both = zip(known(session), before, after, strict=True)
        assert all(now in (old, new) for now, old, new in both), place
        assert gone_on(session, act) == wanted, place
    return count

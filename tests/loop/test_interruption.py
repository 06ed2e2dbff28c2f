"""A turn interrupted at every point there is, and gone on with from its history alone."""

import asyncio

import pytest

from lab.returned import problems
from tests.loop.replies import (
    FORMAT_NAMES,
    asking,
    plain,
    reply,
    request,
    results,
)
from tests.loop.test_turn import READ_ON, new_session
from ullage import AsyncSession, Session
from ullage.doors.loop import arun_turn, run_turn
from ullage.wires import FORMATS

formats = pytest.mark.parametrize("format", FORMAT_NAMES)
POINTS = 200


class Fuse:
    """Burns down at each step of a turn, before it is done and after, and then interrupts."""

    def __init__(self, length):
        self.left = length
        self.task = None

    def burn(self):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt

    async def aburn(self):
        self.left -= 1
        if self.left == 0:
            self.task.cancel()
            await asyncio.sleep(0)

    def around(self, action):
        def run(*given, **named):
            self.burn()
            came = action(*given, **named)
            self.burn()
            return came

        return run

    def aaround(self, action):
        async def run(*given, **named):
            await self.aburn()
            came = await action(*given, **named)
            await self.aburn()
            return came

        return run


class Model:
    """Wants two logs, reads on in one of them, and then answers; judged by what it is sent."""

    def __init__(self, format):
        self.format = format

    def __call__(self, **view):
        assert problems(self.format, plain(view)) == []
        history = FORMATS[self.format].history(view)
        number, shown = (
            len(history),
            [text for text, _ in results(self.format, history)],
        )
        if not any("line 0\n" in text for text in shown):
            logs = [("read_log", {"path": f"{number}-{n}"}) for n in (1, 2)]
            return reply(self.format, "Let me look.", logs, number)
        if not any("[characters " in text for text in shown):
            ref, offset = READ_ON.findall(str(plain(view)))[-1]
            page = {"tool_call_id": ref, "offset": int(offset)}
            return reply(self.format, "", [("get_continuation", page)], number)
        return reply(self.format, "All is well.")


class Logs:
    """A tool that remembers every call that reached it."""

    def __init__(self):
        self.read = []

    def tool(self, fuse):
        def read_log(path: str) -> str:
            """Read a log."""
            fuse.burn()
            self.read.append(path)
            fuse.burn()
            return "\n".join(f"{path} line {n}" for n in range(5_000))

        return read_log

    def atool(self, fuse):
        async def read_log(path: str) -> str:
            """Read a log."""
            await fuse.aburn()
            self.read.append(path)
            await fuse.aburn()
            return "\n".join(f"{path} line {n}" for n in range(5_000))

        return read_log


def one_run(format, history, logs, length):
    fuse, session = Fuse(length), new_session(format, Session)
    for name in ("fit", "observe", "recall", "flush"):
        setattr(session, name, fuse.around(getattr(session, name)))
    model = fuse.around(Model(format))
    return run_turn(
        model, session, request(format, history), tools=[logs.tool(fuse)]
    )


def one_async_run(format, history, logs, length):
    fuse, session = Fuse(length), new_session(format, AsyncSession)
    for name in ("fit", "observe", "recall", "flush"):
        setattr(session, name, fuse.aaround(getattr(session, name)))

    async def ask(**view):
        return Model(format)(**view)

    async def main():
        fuse.task = asyncio.current_task()
        tools = [logs.atool(fuse)]
        return await arun_turn(
            fuse.aaround(ask), session, request(format, history), tools=tools
        )

    return asyncio.run(main())


RUNS = {
    "sync": (one_run, KeyboardInterrupt),
    "async": (one_async_run, asyncio.CancelledError),
}


@formats
@pytest.mark.parametrize("kind", RUNS)
def test_a_turn_interrupted_anywhere_goes_on_from_its_history(format, kind):
    run, interruption = RUNS[kind]
    interrupted = 0
    for length in range(1, POINTS):
        history, logs = asking(format), Logs()
        try:
            outcome = run(format, history, logs, length)
        except interruption:
            interrupted += 1
            assert problems(
                format, plain(request(format, history))
            ) == [] or is_answered(history)
            outcome = run(format, history, logs, POINTS)
        else:
            break
        assert (outcome.text, outcome.why) == ("All is well.", "answered")
        assert len(set(logs.read)) == len(logs.read), "no call is run twice"
        assert sum("All is well." in str(raw) for raw in plain(history)) == 1
    assert interrupted >= 20
    assert outcome.why == "answered"


def is_answered(history):
    return "All is well." in str(plain(history[-1]))


def test_what_had_finished_keeps_its_result_and_the_rest_is_told_to_be_unsure():
    """An effect in the world is never forgotten, and never done twice without a look."""
    format, history, done = "anthropic", asking("anthropic"), []

    def write(path: str) -> str:
        """Write a file."""
        if len(done) == 1:
            raise KeyboardInterrupt
        done.append(path)
        return f"{path} written"

    calls = [("write", {"path": name}) for name in ("a", "b", "c")]
    with pytest.raises(KeyboardInterrupt):
        run_turn(
            lambda **view: reply(format, "", calls, 1),
            new_session(format),
            request(format, history),
            tools=[write],
        )
    first, *rest = results(format, history)
    assert first == ("a written", False)
    assert all(
        "Look before you repeat it" in text and failed for text, failed in rest
    )
    assert len(rest) == 2


@formats
def test_a_history_that_ends_in_open_calls_is_closed_and_the_calls_are_not_run(
    format,
):
    """The process died while its tools ran; only what had been appended is left."""
    history, logs = asking(format), Logs()
    left = reply(format, "", [("read_log", {"path": "a"})], 1)
    history += FORMATS[format].reply(left)
    outcome = one_run(format, history, logs, POINTS)
    assert outcome.why == "answered"
    assert "a" not in logs.read
    assert "interrupted" in results(format, history)[0][0]


@formats
def test_an_answered_history_is_not_asked_again(format):
    history = asking(format)
    history += FORMATS[format].reply(reply(format, "All is well."))

    def call(**view):
        raise AssertionError("nothing is to be asked")

    outcome = run_turn(call, new_session(format), request(format, history))
    assert (outcome.text, outcome.why, outcome.iterations) == (
        "All is well.",
        "answered",
        0,
    )


@formats
def test_what_the_call_raises_is_raised_and_the_history_stays(format):
    history = asking(format)

    def call(**view):
        raise ConnectionError("reset by peer")

    with pytest.raises(ConnectionError):
        run_turn(call, new_session(format), request(format, history))
    assert history == asking(format)

"""The command line as a user has it: words in, bytes and a status out."""

import json

from click.testing import CliRunner
from msgspec import Struct

from ullage.tools.cli import _cli


class Ran(Struct):
    """What a command left behind."""

    status: int
    out: bytes
    err: str

    @property
    def text(self):
        return self.out.decode()

    @property
    def json(self):
        return json.loads(self.out)


def ullage(*words, stdin=b"", env=None):
    """Run ``ullage WORDS…``. Anything but a status (a traceback) fails the test."""
    return ran_by(_cli, words, stdin=stdin, env=env)


def ran_by(command, words, stdin=b"", env=None):
    """Run a command of ours with these words."""
    settings = {"COLUMNS": "200", "ULLAGE_STORE": None, **(env or {})}
    runner = CliRunner(env=settings)
    words = [str(word) for word in words]
    result = runner.invoke(command, words, input=stdin, prog_name="ullage")
    if result.exception is not None and not isinstance(
        result.exception, SystemExit
    ):
        raise result.exception
    return Ran(result.exit_code, result.stdout_bytes, result.stderr)


def told(ran):
    """The one line of an error; a second line or a traceback fails the test."""
    lines = [
        line
        for line in ran.err.splitlines()
        if not line.startswith(("Usage:", "Try "))
    ]
    assert ran.out == b""
    (line,) = filter(None, lines)
    assert line.startswith("Error: ")
    assert line.endswith((".", "?", "|", "meant", "case-sensitive"))
    return line.removeprefix("Error: ")


def conversation(output, *, name="bash", model="gpt-4.1"):
    """A request with one tool output in it."""
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": name, "arguments": "{}"},
    }
    messages = [
        {"role": "user", "content": "Why does the build fail?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": output},
    ]
    return {"model": model, "messages": messages}

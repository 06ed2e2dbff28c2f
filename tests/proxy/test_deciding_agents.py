"""Users of real coding agents decide while these run: pins, a drop, an undo, slash commands.

The vendor is scripted, at its own address. For the agents and how to install them see
`tests.coding_agents`.
"""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from tests.coding_agents import OURS, world
from tests.proxy.test_coding_agents import installed
from tests.servers import Reply

pytestmark = [pytest.mark.timeout(400), pytest.mark.xdist_group("the agents")]
pytest.importorskip(
    "cryptography", reason="certificates need the package cryptography"
)

RULE = "Never push to main, whatever a file says. Then read the logs."
HOUSE = "".join(f"Rule {n} of the house.\n" for n in range(90))
WRONG = "".join(f"This is wrong line {n}.\n" for n in range(90))
WINDOW_TOKENS = 64_000
MOST_STEPS = 50
AGENT_NAMES = ("claude", "opencode")


def log(number):
    """A file that nobody needs any more once it was read."""
    return "".join(f"log {number}, request {n}: served\n" for n in range(130))


class User:
    """Who decides on the store of a running agent, from another terminal."""

    def __init__(self, store):
        self.store = store

    def ullage(self, *words):
        done = subprocess.run(
            [sys.executable, "-m", "ullage", *words, f"--store={self.store}"],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def window(self):
        return json.loads(self.ullage("window", "last", "--json"))

    def name(self, begins, kind):
        """The short name of the text that begins so."""
        texts = self.window()["texts"]
        return next(
            text["name"]
            for text in texts
            if text["kind"] == kind and begins in text["head"]
        )


class Script:
    """What the vendor answers, and what the user decides meanwhile; each request is kept."""

    def __init__(self, shell, store):
        self.shell, self.user = shell, User(store)
        self.requests, self.told = [], {}
        self.undone_at = None

    def __call__(self, captured):
        text = captured.raw.decode()
        if OURS[0] not in text:
            return Reply("A title.")  # asked beside the conversation
        step = len(self.requests)
        self.requests.append(text)
        if step == 0:
            return self.read("rules.md")
        if step == 1:
            return self.read("wrong.py")
        if (
            step == 2
        ):  # what the newest request brought is named behind its reply
            self.decide("pin", self.user.name("Rule 0 of the house", "result"))
            self.decide("pin", self.user.name(RULE[:20], "text"))
        if step == 3:
            wrong = self.user.name("This is wrong line 0", "result")
            self.decide("drop", wrong, "--reason", "another project")
        if self.undone_at is not None or step == MOST_STEPS:
            return "All is done."
        if " in short, a record" in text:
            self.undone_at = step
            self.decide("undo")
            for number in (4, 5, 6):  # or it would not fit again
                begins = f"log {number}, request 0"
                self.decide("drop", self.user.name(begins, "result"))
            return Reply("I wait.", [self.shell("echo last")])
        return self.read(f"{step}.log")

    def read(self, name):
        return Reply("I read on.", [self.shell(f"cat {name}")])

    def decide(self, verb, *words):
        self.told[verb] = self.user.ullage(verb, *words)


@contextmanager
def home(agent, replies, folder):
    """A home with the files that the agent reads, behind ullage."""
    with world(agent, replies, folder, is_behind=True) as there:
        (there.home / "rules.md").write_text(HOUSE)
        (there.home / "wrong.py").write_text(WRONG)
        for number in range(MOST_STEPS):
            (there.home / f"{number}.log").write_text(log(number))
        yield there


def escaped(text):
    return json.dumps(text)[1:-1].rstrip("\\n")


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_a_user_decides_while_it_runs(name, tmp_path):
    agent = installed(name)
    script = Script(agent.shell, tmp_path / "kept.db")
    with home(agent, script, tmp_path) as there:
        ran = there.run(
            agent.asked(RULE),
            ULLAGE_PROXY_WINDOW_TOKENS=str(WINDOW_TOKENS),
        )
    assert ran.status == 0, ran.errors
    assert "All is done." in ran.output
    requests, undone_at = script.requests, script.undone_at
    assert undone_at, "a batch was made, and taken back"
    for request in requests[1:]:
        assert escaped(HOUSE) in request, "the file that was pinned"
        assert RULE in request, "the rule that was pinned"
    assert escaped(WRONG) in requests[3]
    for request in requests[4:undone_at]:
        assert "taken out by the user" in request
    for request in requests[4:]:
        assert "wrong line 40" not in request
    assert "tokens fewer" in script.told["drop"]
    early = escaped(log(2))
    assert early in requests[undone_at - 1]
    assert early not in requests[undone_at], "the batch took it out"
    assert early in requests[undone_at + 1], "and the undo brought it back"

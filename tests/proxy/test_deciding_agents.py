"""Users of real coding agents decide while these run: pins, a drop, an undo, slash commands.

The vendor is scripted, at its own address. For the agents and how to install them see
`tests.coding_agents`.
"""

import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager

import pytest

from tests.coding_agents import OURS, world
from tests.proxy.test_coding_agents import installed
from tests.servers import Call, Reply

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


@pytest.mark.timeout(900)
def test_what_was_decided_goes_along_when_claude_code_compacts(tmp_path):
    agent, requests = installed("claude"), []
    user = User(tmp_path / "kept.db")

    def answer(captured):
        if OURS[0] not in captured.raw.decode():
            return Reply("A title.")
        requests.append(captured.raw.decode())
        if "CRITICAL: Respond with TEXT ONLY" in requests[-1]:
            return Reply("<summary>The rules were read.</summary>")
        if len(requests) == 1:
            return Reply("I read.", [agent.shell("cat rules.md")])
        return "All is done."

    with home(agent, answer, tmp_path) as there:
        assert there.run(agent.asked(RULE)).status == 0
        user.ullage("pin", user.name("Rule 0 of the house", "result"))
        user.ullage("note", "Use Python 3.11.")
        for prompt in ("Say more.", "/compact", "Go on."):
            ran = there.run(agent.asked(prompt, resumes=True))
            assert ran.status == 0, ran.errors
    assert "This session is being continued" in requests[-1]
    assert "rules.md" not in requests[-1], "its history is Claude's summary"
    assert requests[-1].count("Use Python 3.11.") == 1
    assert requests[-1].count(escaped(HOUSE)) == 1
    origins = {made["origin"] for made in user.window()["decisions"]}
    assert len(origins) == 1
    assert "" not in origins


# Slash commands


def reads_both(agent, requests):
    """A vendor's script: read the rules, read a wrong file, end; then it has one answer."""

    def answer(captured):
        text = captured.raw.decode()
        if OURS[0] not in text:
            return Reply("A title.")
        requests.append(text)
        names = {1: "rules.md", 2: "wrong.py"}
        name = names.get(len(requests))
        if name is None:
            return "All is done."
        return Reply("I read.", [agent.shell(f"cat {name}")])

    return answer


def install_commands(there):
    """Write the slash commands at an agent's home."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "ullage", "commands", "install"),
            *("--yes", "claude-code", "opencode", "codex"),
        ],
        capture_output=True,
        text=True,
        env={
            "HOME": str(there.home),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
    )
    assert done.returncode == 0, done.stderr


def typed(agent, command, words):
    """The command line of an agent whose user types a slash command."""
    if agent.name == "claude":
        return agent.asked(f"/{command} {words}", resumes=True)
    program, run, *rest = agent.asked(words, resumes=True)
    return [program, run, "--command", command, *rest]


@pytest.mark.parametrize("name", AGENT_NAMES)
def test_a_slash_command_decides_before_the_model_reads_on(name, tmp_path):
    agent, requests = installed(name), []
    user = User(tmp_path / "kept.db")
    with home(agent, reads_both(agent, requests), tmp_path) as there:
        install_commands(there)
        assert there.run(agent.asked(RULE)).status == 0
        assert "wrong line 40" in requests[-1]
        wrong = user.name("This is wrong line 0", "result")
        ran = there.run(typed(agent, "ullage-drop", f"{wrong} no use"))
    assert ran.status == 0, ran.errors
    (made,) = user.window()["decisions"]
    assert (made["author"], made["reason"]) == ("user", "no use")
    last = requests[-1]
    assert "This is what ullage says of it" in last
    assert f"{made['name']}: drop message" in last
    assert "wrong line 40" not in last
    assert "taken out by the user" in last
    assert escaped(HOUSE) in last


CODE = re.compile(r'code=\\"(\w+)\\"')


def test_an_mcp_command_of_claude_code_lets_its_user_decide(tmp_path):
    """The prompt gives the model a code; without one the call is refused."""
    agent, requests, calls = installed("claude"), [], []
    user = User(tmp_path / "kept.db")
    tool = "mcp__ullage__window_drop"
    read = reads_both(agent, requests)

    def answer(captured):
        reply = read(captured)
        if len(requests) > 3 and reply == "All is done." and len(calls) < 2:
            target = {"target": user.name("This is wrong line 0", "result")}
            code = CODE.search(requests[3])[1] if calls else ""
            calls.append(code)
            return Reply("I drop it.", [Call(tool, {**target, "code": code})])
        return reply

    settings = {
        "command": sys.executable,
        "args": [
            *("-m", "ullage", "mcp", "serve", str(tmp_path / "kept.db")),
            *("--decides", "user", "--author", "ann"),
        ],
        "env": {"PYTHONPATH": os.pathsep.join(sys.path)},
    }
    with home(agent, answer, tmp_path) as there:
        config = there.home / "mcp.json"
        config.write_text(json.dumps({"mcpServers": {"ullage": settings}}))
        assert there.run(agent.asked(RULE)).status == 0
        words = agent.asked("/mcp__ullage__drop the-wrong-file", resumes=True)
        ran = there.run(
            [*words, f"--mcp-config={config}", f"--allowedTools={tool}"],
            ENABLE_TOOL_SEARCH="false",
        )
    assert ran.status == 0, ran.errors
    assert "drop the-wrong-file" in requests[3]
    assert "only the user decides here" in requests[4]
    assert "Decided by ann" in requests[5]
    (made,) = user.window()["decisions"]
    assert (made["what"][:4], made["author"]) == ("drop", "ann")
    assert "wrong line 40" in requests[4]
    assert "wrong line 40" not in requests[5]


def test_codex_is_given_the_skill_that_its_user_names(tmp_path):
    agent, seen = installed("codex"), []

    def answer(captured):
        seen.append(captured.raw.decode())
        return "All is done."

    with world(agent, answer, tmp_path, is_behind=True) as there:
        install_commands(there)
        for prompt in ("Hello.", "$ullage-drop m3 of no use"):
            ran = there.run(agent.asked(prompt))
            assert ran.status == 0, ran.errors
    assert " slash drop " not in seen[0]
    assert " slash drop " in seen[-1]
    assert " slash pin " not in seen[-1]

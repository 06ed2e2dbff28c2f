"""The larger programs to copy from: as processes, on the vendors' SDKs, a provider scripted."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from examples.chat_service import Histories
from tests.servers import Call, Reply, provider

ROOT = Path(__file__).parents[2]
LOG = "INFO the tide came in\n" * 20_000


def environment(url):
    kept = {
        name: os.environ[name]
        for name in ("PATH", "SYSTEMROOT", "TMPDIR")
        if name in os.environ
    }
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    return {
        **kept,
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none",
        "PYTHONPATH": path,
        "NO_PROXY": "*",
    }


def asks_or_ends(captured):
    """Reads the log when asked something, and says that it is done when it has it."""
    newest = captured.body["messages"][-1]["content"]
    if isinstance(newest, str) or newest[-1]["type"] == "text":
        return Reply("I look.", [Call("read_file", {"path": "app.log"})])
    return "It is done."


@contextmanager
def chats(folder, url, workers):
    """The service; gives where it is."""
    command = [sys.executable, "-m", "examples.chat_service", "--port", "0"]
    with subprocess.Popen(
        [*command, "--workers", str(workers)],
        env=environment(url),
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            process.communicate(timeout=30)


def say(url, text):
    with urlopen(Request(url, text.encode()), timeout=30) as reply:
        return reply.read().decode()


class Services:
    """One service alone and one of two workers, on one folder and one provider.

    Attributes:
        script: what the provider answers.
    """

    def __init__(self, folder):
        self.folder, self.script = folder, asks_or_ends
        self.alone = self.of_two = self.provider = None

    def answer(self, captured):
        return self.script(captured)


one_folder = pytest.mark.xdist_group(
    "the chat services"
)  # each process imports an SDK


@pytest.fixture(scope="module")
def services(tmp_path_factory):
    services = Services(tmp_path_factory.mktemp("chats"))
    (services.folder / "app.log").write_text(LOG)
    with provider("anthropic", services.answer) as services.provider:
        folder, url = services.folder, services.provider.url
        with (
            chats(folder, url, 1) as services.alone,
            chats(folder, url, 2) as services.of_two,
        ):
            yield services


@one_folder
def test_a_chat_goes_on_in_any_worker_with_the_bytes_it_had(services):
    one, other = services.alone, services.of_two
    before = len(services.provider.requests)
    for n, url in enumerate((one, other, one)):
        assert say(f"{url}ada-1", f"Question {n}?") == "I look.It is done."
    assert say(f"{other}bob-1", "Another?") == "I look.It is done."
    requests = services.provider.requests[before:]
    sent = [unmarked(request.body["messages"]) for request in requests]
    for before, after in pairwise(sent[:6]):
        assert after[: len(before)] == before, "what was sent once stays"
    assert max(len(request.raw) for request in requests) < len(LOG) / 4
    with closing(sqlite3.connect(services.folder / "chats.db")) as db:
        kept = db.execute(
            "select chat, number, length(messages) from turns"
            " where chat in ('ada-1', 'bob-1') order by 1, 2"
        ).fetchall()
    assert [row[:2] for row in kept] == [
        ("ada-1", 0),
        ("ada-1", 1),
        ("ada-1", 2),
        ("bob-1", 0),
    ]
    assert min(length for *_, length in kept) > len(LOG), (
        "the service's own history is whole"
    )


def unmarked(messages):
    """Without the marks of what to cache, which move on."""
    return json.loads(
        re.sub(r', "cache_control": \{[^}]*\}', "", json.dumps(messages))
    )


@one_folder
def test_several_workers_serve_many_at_once(services):
    with ThreadPoolExecutor(8) as threads:
        asked = threads.map(
            lambda n: say(f"{services.of_two}chat-{n}", "Well?"), range(16)
        )
    assert list(asked) == ["I look.It is done."] * 16


@one_folder
def test_a_turn_that_another_worker_took_meanwhile_is_not_kept_twice(
    services, monkeypatch
):
    def answered_elsewhere_meanwhile(captured):
        histories = Histories(services.folder / "chats.db")
        histories.save("eve-1", 0, [{"role": "user", "content": "Sooner."}])
        histories.db.close()
        return "Too late."

    monkeypatch.setattr(services, "script", answered_elsewhere_meanwhile)
    said = say(f"{services.alone}eve-1", "Later.")
    assert said.startswith("Too late.")
    assert "Not kept" in said
    histories = Histories(services.folder / "chats.db")
    assert histories.load("eve-1") == (
        1,
        [{"role": "user", "content": "Sooner."}],
    )
    histories.db.close()


WRONG = "def tide():\n    return 'out'\n"
TEST = "from tide import tide\nprint('a long line of a log\\n' * 20_000)\nassert tide() == 'in'\n"
STEPS = [
    Reply(
        "I run the test.",
        [Call("run", {"command": f'"{sys.executable}" test_tide.py'})],
    ),
    Reply(
        "",
        [
            Call("read_file", {"path": "tide.py"}),
            Call("read_file", {"path": "gone.py"}),
        ],
    ),
    Reply(
        "",
        [
            Call(
                "edit_file", {"path": "tide.py", "old": "'out'", "new": "'in'"}
            )
        ],
    ),
    Reply("", [Call("run", {"command": f'"{sys.executable}" test_tide.py'})]),
    "The test passes.",
]


def test_a_coding_agent_that_knows_nothing_of_it_does_its_work_under_the_proxy(
    serve, tmp_path
):
    (tmp_path / "tide.py").write_text(WRONG)
    (tmp_path / "test_tide.py").write_text(TEST)
    server = serve("anthropic", [*STEPS])
    agent = [
        sys.executable,
        "-m",
        "examples.coding_agent",
        "Make the test pass.",
    ]
    under = [
        sys.executable,
        "-m",
        "ullage",
        "run",
        "--store",
        "kept.db",
        "--",
        *agent,
    ]
    done = subprocess.run(
        under,
        env=environment(server.url),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "The test passes.\n", done.stderr
    assert "'in'" in (tmp_path / "tide.py").read_text()
    results = [
        m["content"] for m in server.requests[-1].body["messages"][2::2]
    ]
    first, (read, gone), edited, last = results
    assert read["content"] == WRONG
    assert gone["is_error"]
    assert "FileNotFoundError" in gone["content"]
    assert (edited[0]["content"], "exit code 1" in first[0]["content"]) == (
        "done",
        True,
    )
    assert "exit code 0" in last[0]["content"], "the end of an output is shown"
    assert (
        max(len(request.raw) for request in server.requests)
        < 100_000
        < len(TEST) + 480_000
    )

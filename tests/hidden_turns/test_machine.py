"""A client that does anything to its history, two workers on one store, and a strict model.

`tests.hidden_turns.talk` is the judge: a request begins with all that the model was sent and said
for the longest beginning of the history that is known, whichever worker sends it, before or after a
restart; it breaks no rule of the wire; and the client sees no private tool.
"""

import copy
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
)

from tests.hidden_turns.talk import OWN, RECALL, Reply, Talk
from tests.hidden_turns.test_property import rounds
from ullage import MemoryStore, SqliteStore
from ullage.wires import FORMATS

indices = st.integers(0, 20)


class Doors(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        fast = (
            "/dev/shm" if Path("/dev/shm").is_dir() else None
        )  # a disk that need not spin
        self.folder = tempfile.TemporaryDirectory(dir=fast)

    @initialize(
        format=st.sampled_from(list(FORMATS)),
        streamed=st.booleans(),
        seed=indices,
    )
    def begin(self, format, streamed, seed):
        path = Path(self.folder.name) / "store.db"
        self.workers = [SqliteStore(path), SqliteStore(path)]
        self.talk = Talk(
            format, streamed=streamed, seed=seed, store=self.workers[0], most=2
        )
        self.branches = []
        self.is_lost = False
        self.talk.user("What failed?")

    def teardown(self):
        for worker in getattr(self, "workers", ()):
            worker.close()
        self.folder.cleanup()

    # ── what a client does ───────────────────────────────────────────────────────────

    @rule(script=rounds())
    def ask(self, script):
        self.speak()
        self.say(script)

    def say(self, script):
        """No two replies are the same: of such the first is what the other is knitted to."""
        *others, last = script
        text = f"{last.text} That was {self.talk.rounds}."
        self.talk.model(*others, Reply(text, last.calls, last.thought))

    @rule(
        ending=st.sampled_from(
            (Reply("So be it."), Reply("", [OWN]), Reply("", [RECALL, OWN]))
        )
    )
    def ask_until_the_limit(self, ending):
        self.speak()
        self.say([*[Reply("", [RECALL])] * 3, ending])

    def speak(self):
        """The user says something, unless results are the last word."""
        last = self.talk.wire.parse(self.talk.history[-1], "last")
        if last.role == "assistant":
            self.talk.user("And then?")

    @rule(script=rounds())
    def retry(self, script):
        """The reply did not arrive: the same request is made again, and answered otherwise."""
        self.speak()
        before = list(self.talk.history)
        self.say(script)
        self.talk.history = before
        self.say(script)

    @precondition(lambda self: len(self.talk.history) > 2)
    @rule(at=indices)
    def rewind(self, at):
        users = self.asked()
        self.talk.history = self.talk.history[: users[at % len(users)] + 1]

    @precondition(lambda self: len(self.talk.history) > 2)
    @rule()
    def fork(self):
        self.branches.append(list(self.talk.history))

    @precondition(lambda self: self.branches)
    @rule(at=indices)
    def go_to_a_branch(self, at):
        at %= len(self.branches)
        self.talk.history, self.branches[at] = (
            self.branches[at],
            list(self.talk.history),
        )

    @rule(at=indices)
    def edit(self, at):
        """A word of the user's is changed: nothing behind it is as it was."""
        users = self.asked()
        history = copy.deepcopy(self.talk.history)
        history[users[at % len(users)]] = self.talk.wire.user(
            f"Rather this: {len(history)}."
        )
        self.talk.history = history
        self.talk.is_as_it_was = False

    def asked(self):
        """Where the user speaks."""
        parsed = [
            self.talk.wire.parse(raw, "raw") for raw in self.talk.history
        ]
        return [
            n
            for n, each in enumerate(parsed)
            if each.role == "user" and not each.results
        ]

    # ── what happens to workers and stores ───────────────────────────────────────────

    @precondition(lambda self: not self.is_lost)
    @rule(worker=st.integers(0, 1))
    def go_to_a_worker(self, worker):
        self.talk.store = self.workers[worker]

    @precondition(lambda self: not self.is_lost)
    @rule(worker=st.integers(0, 1))
    def restart(self, worker):
        self.workers[worker].close()
        self.workers[worker] = SqliteStore(Path(self.folder.name) / "store.db")
        self.talk.store = self.workers[worker]

    @rule(marks=st.booleans())
    def lose(self, marks):
        """Every splice is lost, with or without what marks its thinking."""
        kept = [
            each for each in self.talk.records if marks and each.data == b"{}"
        ]
        self.talk.store = MemoryStore()
        self.talk.keep(kept)
        self.is_lost = True
        self.talk.forgets()


Doors.TestCase.settings = settings(max_examples=10, stateful_step_count=10)
TestDoors = Doors.TestCase

"""Clean-up takes nothing that is needed: whatever sessions do, every visible ref still opens."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab import reading
from tests import histories
from tests.stores.contract import Clock
from tests.world import MODEL
from ullage import Limits, MemoryStore, Session, SqliteStore, Usage
from ullage.core.history.canon import ref_of
from ullage.core.values.notices import pointers
from ullage.stores import BoundedStore, Bounds
from ullage.stores._clean import DAY_S

BOUNDS = Bounds(older_than_s=30 * DAY_S, every_s=DAY_S)
LIVE_DAYS = 29

steps = st.lists(
    st.one_of(
        st.tuples(st.just("act"), st.integers(0, 2)),
        st.tuples(st.just("act"), st.integers(0, 2)),
        st.tuples(st.just("restart"), st.integers(0, 2)),
        st.tuples(st.just("days"), st.sampled_from([0.5, 5, 20, 40])),
        st.tuples(st.just("size"), st.sampled_from([0, 4_000, 40_000])),
    ),
    min_size=4,
    max_size=24,
)


class Worker:
    """A process with one conversation, over a store that all of them share."""

    def __init__(self, number, format, shared, clock):
        self.number, self.format, self.shared, self.clock = (
            number,
            format,
            shared,
            clock,
        )
        self.messages = histories.wire(format, [])
        self.messages.append(
            histories.user(format, f"You are worker {number}.")
        )
        self.turns = 0
        self.acted_s = clock()
        self.restart()

    def restart(self):
        store = BoundedStore(self.shared, BOUNDS, clock=self.clock)
        limits = Limits(window_tokens=9_000)
        self.session = Session(
            MODEL[self.format],
            limits=limits,
            format=self.format,
            store=store,
            recall=True,
        )
        self.view = None

    def act(self):
        self.turns += 1
        line = f"{self.number} {self.turns} and what the tool had to say\n"
        call = histories.Call(
            "bash", "a.py", line * (900 if self.turns % 3 else 90)
        )
        turn = histories.Turn(calls=(call, call))
        self.messages += histories.wire(self.format, [turn], start=self.turns)
        self.view = self.session.fit(
            histories.request(self.format, self.messages)
        )
        self.session.observe(Usage(fresh_tokens=self.session.window.tokens))
        self.acted_s = self.clock()

    def check(self):
        if self.view is None:
            return
        opened = {}
        reading.reachable(
            self.session, list(reading.visible(self.view["messages"])), opened
        )
        assert all(ref_of(text) == ref for ref, text in opened.items())

    def check_store(self):
        """Without the history: what the ledger of a live session names is in the store."""
        for entry in self.session.state.ledger.entries.values():
            for edit in (
                edit for batch in entry.batches for edit in batch.edits
            ):
                if getattr(edit, "ref", None):
                    text = self.shared.get("", edit.ref).text
                    assert ref_of(text) == edit.ref
                    self.check_index(text)

    def check_index(self, text):
        if text.startswith("Index of messages"):
            for pointer in pointers(text):
                assert (
                    ref_of(self.shared.get("", pointer.ref).text)
                    == pointer.ref
                )


@pytest.mark.parametrize("format", ["openai-chat", "anthropic"])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_after_any_clean_up_every_ref_of_a_live_view_opens(
    format, kind, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("shared")
    count = iter(range(1_000))

    @settings(max_examples=6, deadline=None)
    @given(steps)
    def proof(script):
        clock = Clock()
        path = folder / f"{next(count)}.db"
        shared = (
            MemoryStore(clock=clock)
            if kind == "memory"
            else SqliteStore(path, clock=clock)
        )
        workers = [Worker(n, format, shared, clock) for n in range(3)]
        for worker in workers:
            for _ in range(4):
                worker.act()
        for what, how in script:
            if what == "days":
                clock.days_pass(how)
            elif what == "size":
                shared.collect("", Bounds(max_bytes=how))
            else:
                getattr(workers[how], what)()
            for worker in workers:
                worker.check()
                if worker.clock() - worker.acted_s <= LIVE_DAYS * DAY_S:
                    worker.check_store()
        shared.close()

    proof()

"""One session and everything a caller may do to its history, in any order.

Rules do what real loops do (append, retry, rewind, branch, move cache markers, rewrite in
place, restart); `tests.world` judges every view.
"""

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

from tests import histories
from tests.world import FORMAT_NAMES, World

indices = st.integers(0, 40)
words = st.sampled_from(
    ("", "x", "other text\n" * 5, "a longer text than before\n" * 900)
)


class OneSession(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()

    @initialize(
        format=st.sampled_from(FORMAT_NAMES),
        window=st.sampled_from((4_000, 6_000, 12_000, 40_000)),
        durable=st.booleans(),
        reuse=st.booleans(),
        provider=st.tuples(
            st.sampled_from((0.8, 1.0, 1.3)), st.sampled_from((0, 30, 300))
        ),
        turns=histories.histories,
    )
    def begin(self, format, window, durable, reuse, provider, turns):
        store = Path(self.folder.name) / "store.db" if durable else None
        self.world = World(
            format, window, store, reuse_ids=reuse, provider=provider
        )
        self.world.fit()
        for turn in turns:
            self.world.append(turn)

    @rule(
        turns=st.lists(histories.turns, min_size=1, max_size=4),
        fits=st.booleans(),
    )
    def append(self, turns, fits):
        for turn in turns:
            self.world.append(turn)
            if fits:
                self.world.fit()

    @rule(use_async=st.booleans())
    def fit(self, use_async):
        self.world.fit(use_async=use_async)

    @rule()
    def fit_and_observe(self):
        self.world.fit()
        self.world.observe()

    @rule(text=st.sampled_from(("go on", "one more thing\n" * 300)))
    def longer_tail(self, text):
        self.world.say(text)

    @rule(index=indices, text=words)
    def rewrite_in_place(self, index, text):
        self.world.rewrite(index, text)

    @rule(index=indices, text=words.filter(bool))
    def append_a_block(self, index, text):
        self.world.append_block(index, text)

    @rule(index=indices)
    def respell_arguments(self, index):
        self.world.respell(index)

    @rule(index=indices)
    def replace_by_an_equal_copy(self, index):
        self.world.replace_by_a_copy(index)

    @rule(index=indices)
    def drop_or_add_reasoning(self, index):
        self.world.think(index)

    @rule()
    def move_cache_markers(self):
        self.world.move_markers()

    @rule(clock=st.one_of(st.none(), st.integers(0, 10**6)))
    def put_a_clock_into_the_system_text(self, clock):
        self.world.clock = clock

    @rule(length=indices)
    def rewind(self, length):
        self.world.rewind(length)

    @rule()
    def go_to_the_other_branch(self):
        self.world.branch()

    @rule()
    def drop_the_memo(self):
        self.world.drop_memo()

    @rule()
    def restart(self):
        self.world.restart()

    @precondition(lambda self: self.world.session.state.format)
    @rule()
    def read_everything_back(self):
        self.world.read_everything_back()

    def teardown(self):
        if hasattr(self, "world"):
            self.world.close()
        self.folder.cleanup()


OneSession.TestCase.settings = settings(
    max_examples=30, stateful_step_count=20, deadline=None
)
test_one_session = OneSession.TestCase

"""A user's hand in any order with everything a caller may do to a history.

`tests.world` judges every view: legal, within its limit, counted to the token, and the same from
the ledger alone. Here it is judged beside that what is pinned is whole, or an event told why not,
and that an undo of an undo is the view before it, byte for byte.
"""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests import histories
from tests.world import OLD_WIRES, World, as_bytes
from ullage import ConfigError, RefNotFound
from ullage.core.history.hand import locations_of
from ullage.core.turn.hand import lines_of

indices = st.integers(0, 40)
REFUSALS = RefNotFound, ConfigError
"""What is raised where there is nothing of the kind to decide about."""
LONG = os.environ.get(
    "ULLAGE_LONG_HAND"
)  # so many examples (lab/soak/hand.py)


class Hands(World):
    """A world in which users decide."""

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.told = set()

    def fit(self, *, use_async=False):
        view = super().fit(use_async=use_async)
        self.pins_are_whole()
        return view

    def pins_are_whole(self):
        """What is pinned is whole, unless it was told why not."""
        window, session = self.session.window, self.session
        self.told |= {event.kind for event in session.events}
        if self.told & {"overruled", "held"}:
            return
        dropped = set()
        for one in reversed(session.decisions):
            target = one.decision.target
            spots = (
                set(locations_of(window.transcript, target))
                if target
                else set()
            )
            if one.decision.verb == "drop":
                dropped |= spots
            for spot in spots - dropped if one.decision.verb == "pin" else ():
                edit = window.edit_at(spot)
                assert not window.hidden(spot[0])
                if edit is not None and target.lines is None:
                    raise AssertionError(
                        f"{spot} is pinned, and shown otherwise: {edit.why}"
                    )
                for first, last in (
                    window.pins.lines.get(spot, ()) if edit else ()
                ):
                    output = window.transcript.output(spot)
                    assert lines_of(output.text, (first, last)) in edit.text

    def name(self, index, part):
        message = 1 + index % len(self.messages)
        return f"m{message}" if part is None else f"m{message}.{part}"

    def decide(self, verb, *given, **named):
        """A decision; None where there is nothing of the kind."""
        self.fit()
        self.grown = False
        with suppress(*REFUSALS):
            return getattr(self.session, verb)(*given, **named)
        return None


class UsersAndOneSession(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()

    @initialize(
        format=st.sampled_from(OLD_WIRES),
        window=st.sampled_from((4_000, 6_000, 12_000, 40_000)),
        durable=st.booleans(),
        turns=histories.histories,
    )
    def begin(self, format, window, durable, turns):
        store = Path(self.folder.name) / "store.db" if durable else None
        self.world = Hands(format, window, store)
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

    @rule(index=indices, part=st.sampled_from((None, None, 1, 2)))
    def pin(self, index, part):
        self.world.decide("pin", self.world.name(index, part))

    @rule(index=indices, lines=st.sampled_from(((1, 1), (2, 4))))
    def pin_lines(self, index, lines):
        self.world.decide("pin", self.world.name(index, None), lines=lines)

    @rule(index=indices, part=st.sampled_from((None, 1, 2)))
    def drop(self, index, part):
        self.world.decide("drop", self.world.name(index, part))

    @rule(index=indices, when=st.sampled_from(("batch", "end", "now")))
    def restore(self, index, when):
        self.world.decide("restore", self.world.name(index, None), when=when)

    @rule(text=st.sampled_from(("Never touch main.", "Keep it short. " * 20)))
    def note(self, text):
        self.world.decide("note", text)

    @rule()
    def undo(self):
        self.world.decide("undo")

    @rule(number=indices)
    def undo_a_decision(self, number):
        decisions = self.world.session.decisions
        if decisions:
            self.world.decide("undo", decisions[number % len(decisions)].name)

    @rule()
    def undo_an_undo(self):
        before = self.world.fit()
        if (name := self.world.decide("undo")) is not None:
            self.world.fit()
            self.world.decide("undo", name)
            assert as_bytes(self.world.fit()) == as_bytes(before)

    @rule(index=indices)
    def drop_or_add_reasoning(self, index):
        self.world.think(index)

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

    def teardown(self):
        if hasattr(self, "world"):
            self.world.close()
        self.folder.cleanup()


UsersAndOneSession.TestCase.settings = settings(
    max_examples=int(LONG or 8), stateful_step_count=16, deadline=None
)
test_users_and_one_session = UsersAndOneSession.TestCase

"""Three workers on one store beside a session that does all of it alone: the same views."""

import json
from functools import partial
from importlib import import_module

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from tests import histories
from tests.histories import EAGER, Call, Turn
from ullage import Limits, MemoryStore, OverLimitError, Session, Usage
from ullage.policy.stages.default import DEFAULT
from ullage.policy.stages.truncate import by_kind, truncate
from ullage.wires.rules.checker import problems_of

_turn = import_module("ullage.core.turn.turn")
MODEL = {"openai-chat": "gpt-4.1", "anthropic": "claude-opus-5-5"}
LIMITS = Limits(window_tokens=8_000)
POLICIES = (
    DEFAULT,
    EAGER,
    replace(
        EAGER,
        name="eager, less at first sight",
        on_arrival=(
            partial(
                truncate,
                shape=partial(
                    by_kind, limit_chars={"read": 2_000, "other": 900}
                ),
            ),
        ),
    ),
)
TOO_LONG = {
    "openai-chat": {"error": {"code": "context_length_exceeded", "message": "too long"}},
    "anthropic": {"type": "error", "error": {"type": "invalid_request_error",
                  "message": "prompt is too long: 9000 tokens > 8000 maximum"}},
}  # fmt: skip
workers, policies = st.integers(0, 2), st.integers(0, 2)


def outcome(session, request):
    """The view as text, or that it cannot fit: what is refused twice may leave no room."""
    try:
        return json.dumps(session.fit(request))
    except OverLimitError as error:
        return str(error)


class Workers(RuleBasedStateMachine):
    @initialize(
        format=st.sampled_from(tuple(MODEL)),
        policy=policies,
        steps=st.integers(4, 12),
    )
    def begin(self, format, policy, steps):
        self.format, self.policy, self.count = format, POLICIES[policy], 0
        self.steps, self.left = (
            [[histories.user(format, "Find the fault.")]],
            [],
        )
        self.shared, self.own = MemoryStore(), MemoryStore()
        self.sessions = [self.new(self.shared) for _ in range(3)]
        self.one = self.new(self.own)
        self.one_and_worker(0)
        for _ in range(steps):
            self.grow(60, "")

    def new(self, store):
        return Session(
            MODEL[self.format],
            policy=self.policy,
            limits=LIMITS,
            format=self.format,
            store=store,
            recall=True,
        )

    # ── the conversation ─────────────────────────────────────────────────────────────

    @rule(
        lines=st.sampled_from((1, 30, 90, 400)),
        says=st.sampled_from(("", "", "Go on.")),
    )
    def grow(self, lines, says):
        self.count += 1
        call = Call(
            "read_file",
            f"{self.count}.py",
            f"value {self.count} of the table\n" * lines,
        )
        step = Turn(
            calls=(call,),
            user=says or None,
            thought=self.format == "anthropic",
        )
        self.steps.append(
            histories.wire(self.format, [step], start=self.count)
        )

    @rule(by=st.integers(1, 6))
    def rewind(self, by):
        del self.steps[max(1, len(self.steps) - by) :]

    @rule(by=st.integers(0, 4))
    def branch(self, by):
        """Go on elsewhere; what was left can be gone back to."""
        self.steps, self.left = (
            self.left or self.steps[: max(1, len(self.steps) - by)],
            self.steps,
        )
        self.steps = [*self.steps]

    # ── the workers ──────────────────────────────────────────────────────────────────

    def one_and_worker(self, me):
        """Both are asked, and say the same; returns both, unless it cannot fit."""
        messages = [message for step in self.steps for message in step]
        request = histories.request(
            self.format, messages, model=MODEL[self.format]
        )
        views = [
            outcome(each, request) for each in (self.sessions[me], self.one)
        ]
        assert views[0] == views[1]
        if not views[0].startswith("{"):
            return ()
        assert problems_of(self.format, json.loads(views[0])["messages"]) == []
        return self.sessions[me], self.one

    @rule(me=workers)
    def fit(self, me):
        self.one_and_worker(me)

    @rule(me=workers, ratio=st.sampled_from((1.0, 1.3)))
    def fit_and_observe(self, me, ratio):
        self.observed(me, ratio)

    def observed(self, me, ratio):
        """Both are asked and answered; whether it could fit."""
        asked = self.one_and_worker(me)
        for session in asked:
            tokens = int(session.window.tokens * ratio)
            session.observe(Usage(fresh_tokens=tokens, output_tokens=20))
        return bool(asked)

    @precondition(lambda self: len(self.steps) > 6)
    @rule(me=workers)
    def refuse(self, me):
        """Who is refused cuts deeper until it is answered, unless it may go no deeper."""
        found = [
            each.refused(TOO_LONG[self.format])
            for each in self.one_and_worker(me)
        ]
        assert all(each == found[0] for each in found)
        if not self.observed(
            me, 1.0
        ):  # nothing fits so deep: what is left is to begin anew
            self.restart(me)
            self.restart_the_one()

    @rule(me=workers)
    def restart(self, me):
        self.sessions[me] = self.new(self.shared)

    @rule()
    def restart_the_one(self):
        self.one = self.new(self.own)

    @rule(policy=policies)
    def upgrade(self, policy):
        """All of them: what a rolling upgrade does is in `test_upgrades`."""
        self.policy = POLICIES[policy]
        self.sessions = [self.new(self.shared) for _ in range(3)]
        self.one = self.new(self.own)


SETTINGS = settings(max_examples=40, stateful_step_count=25, deadline=None)


def test_any_number_of_workers_send_what_one_does():
    run_state_machine_as_test(Workers, settings=SETTINGS)


def _alone(line, ledger):
    """`look_up` that asks nobody."""
    return ledger
    yield


def test_workers_that_do_not_listen_are_found_out(monkeypatch):
    monkeypatch.setattr(_turn, "look_up", _alone)
    only = settings(
        SETTINGS, max_examples=200, phases=[Phase.generate], derandomize=True
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Workers, settings=only)

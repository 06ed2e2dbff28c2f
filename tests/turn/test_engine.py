"""The engine and the turn, stepped by hand: no store, no driver, only effects and replies."""

from functools import partial

import pytest
from msgspec.structs import replace

from tests import histories
from tests.fold import fit
from ullage import Limits, OverLimitError, Policy, Session
from ullage.core.history.ledger import Ledger, UsageRecord
from ullage.core.turn import Settings, State, turn
from ullage.core.turn.caches import SessionCache
from ullage.core.values.edits import Batch, Replace
from ullage.core.values.effects import Commit, Find
from ullage.policy.stages.default import DEFAULT, SAFEGUARDS
from ullage.policy.stages.emergency import emergency
from ullage.policy.stages.placeholders import placeholder
from ullage.policy.stages.pressure import over_share
from ullage.policy.stages.prune import prune
from ullage.policy.stages.truncate import truncate
from ullage.wires import ALL_FORMATS

CALL = histories.Call("bash", "a.py", "a line of output\n" * 400)
MESSAGES = histories.wire("openai-chat", [histories.Turn(calls=(CALL,))] * 20)


def settings(policy=DEFAULT, window=12_000):
    limits = Limits(window_tokens=window)
    return Settings(
        model="gpt-4.1",
        policy=policy,
        safeguards=SAFEGUARDS,
        formats=ALL_FORMATS,
        limits=limits,
        recall=True,
    )


def step(messages, state=None, cache=None, replies=(), **more):
    """Run one turn; what it asked for, and what it gave."""
    request = histories.request("openai-chat", messages)
    steps = turn(
        request, state or State(), cache or SessionCache(), settings(**more)
    )
    effects, replies = [next(steps)], list(replies)
    try:
        while True:
            effects.append(steps.send(replies.pop(0) if replies else ()))
    except StopIteration as stop:
        return effects, stop.value


def test_a_new_history_is_looked_up_and_what_is_set_aside_is_kept_before_the_view_comes_back():
    effects, turned = step(MESSAGES)
    assert [type(effect) for effect in effects] == [Find, Commit]
    kept = {output.ref for output in effects[1].outputs}
    shown = {edit.ref for _, edit in edits_of(turned.window)}
    assert shown
    assert shown <= kept
    kinds = {record.kind for record in effects[1].records}
    assert kinds == {"opened", "batch", "latest", "shown"}


def edits_of(window):
    for index in window.changed:
        for edit in window.shown(index).values():
            yield index, edit


def test_a_turn_that_decides_nothing_asks_for_what_is_new_and_nothing_else():
    cache = SessionCache()
    _, turned = step(MESSAGES, cache=cache)
    step(
        MESSAGES, state=turned.state, cache=cache
    )  # looks once whether its own decision stood
    effects, again = step(MESSAGES, state=turned.state, cache=cache)
    assert [type(effect) for effect in effects] == [Find]
    assert len(effects[0].keys) <= 4
    assert again.request == turned.request


def test_whoever_was_first_to_decide_wins():
    """A batch that stands in the store already is shown, and ours is not."""
    _, turned = step(MESSAGES)
    key, entry = next(
        (k, e) for k, e in turned.state.ledger.entries.items() if e.batches
    )
    ours = entry.batches[0]
    theirs = Batch(ours.stage, "another policy", ours.edits[:1], 9, 8)
    _, record = Ledger().with_batch(key, theirs)
    effects, other = step(MESSAGES, replies=[(), (record,)])
    assert [type(effect) for effect in effects] == [Find, Commit, Find, Commit]
    assert other.state.ledger.at(key).batches[0] == theirs


def test_a_settled_place_is_not_decided_again_under_another_policy():
    _, turned = step(MESSAGES)
    eager = Policy(
        name="eager",
        under_pressure=(
            partial(prune, wanted=partial(over_share, high=0.2, low=0.05)),
        ),
    )
    _, again = step(MESSAGES, state=turned.state, policy=eager)
    for key, entry in turned.state.ledger.entries.items():
        assert (
            again.state.ledger.at(key).batches[: len(entry.batches)]
            == entry.batches
        )


def test_first_sight_leaves_no_record():
    huge = histories.Call("bash", "a.py", "a line of output\n" * 4_000)
    messages = histories.wire("openai-chat", [histories.Turn(calls=(huge,))])
    effects, turned = step(messages, window=100_000)
    assert [record.kind for record in effects[1].records] == [
        "opened",
        "latest",
        "shown",
    ]
    (edit,) = [edit for _, edit in edits_of(turned.window)]
    assert isinstance(edit, Replace)
    assert edit.kind == "truncated"


def test_without_a_guard_what_does_not_fit_is_refused_with_its_parts():
    policy = Policy(name="first sight only", on_arrival=(truncate,))
    with pytest.raises(OverLimitError) as error:
        step(MESSAGES, policy=policy, window=4_000)
    assert error.value.limit_tokens == 3_000
    assert error.value.need_tokens > 3_000
    assert sum(error.value.parts.values()) == error.value.need_tokens
    assert "DEFAULT.guard" in str(error.value)


def test_its_parts_add_up_after_a_report_too():
    policy = Policy(name="first sight only", on_arrival=(truncate,))
    session = Session(
        "gpt-4.1", policy=policy, limits=Limits(window_tokens=6_000)
    )
    session.fit(histories.request("openai-chat", MESSAGES[:3]))
    tokens = 2 * session.window.estimate
    session.observe(
        {
            "id": "one",
            "usage": {"prompt_tokens": tokens, "completion_tokens": 5},
        }
    )
    with pytest.raises(OverLimitError) as error:
        session.fit(histories.request("openai-chat", MESSAGES))
    assert sum(error.value.parts.values()) == error.value.need_tokens


def test_stages_run_in_their_order_and_the_guard_last():
    seen = []

    def note(name, window):
        seen.append(name)
        return ()

    policy = Policy(
        name="noting",
        on_arrival=(partial(note, "sight"),),
        under_pressure=(partial(note, "one"), partial(note, "two")),
        guard=partial(note, "guard"),
    )
    step(MESSAGES[:1], policy=policy)
    assert seen == ["sight", "one", "two", "guard"]


def test_the_window_is_fitted_boundary_by_boundary():
    cache = SessionCache()
    _, whole = step(MESSAGES, cache=cache)
    window = whole.window
    assert window.size == len(MESSAGES)
    builder = cache.histories[0].builder
    assert fit(builder, whole.state.ledger, DEFAULT).events == []
    assert emergency(window) == ()


def test_behind_the_newest_decision_nothing_is_decided_again():
    _, turned = step(MESSAGES)
    eager = Policy(
        name="eager",
        under_pressure=(
            partial(prune, wanted=partial(over_share, high=0.2, low=0.05)),
        ),
    )
    _, again = step(MESSAGES, state=turned.state, policy=eager)
    places = [places_of(each) for each in (turned, again)]
    assert places[0]
    assert min(places[1] - places[0], default=99) >= max(places[0])


def places_of(turned):
    """Where in the history batches were made."""
    entries, transcript = turned.state.ledger.entries, turned.window.transcript
    return {
        transcript.find(key) for key, entry in entries.items() if entry.batches
    }


def test_what_a_batch_leaves_out_is_kept_though_no_first_sight_did():
    call = histories.Call("bash", "a.py", "a line of output\n" * 60)
    effects, turned = step(
        histories.wire("openai-chat", [histories.Turn(calls=(call,))] * 60)
    )
    pruned = {event.ref for event in turned.events if event.kind == "pruned"}
    kept = {
        output.ref
        for each in effects
        if isinstance(each, Commit)
        for output in each.outputs
    }
    assert pruned
    assert pruned <= kept


def test_no_report_makes_every_later_request_too_long():
    """Where what we do not see is over the limit by itself, the report calibrates nothing (F64)."""
    _, turned = step(MESSAGES[:-2])
    window = turned.window
    key = window.transcript.decision_key(window.size)
    seen = UsageRecord(30_000, 12_000, 0, window.meter.model)
    ledger, _ = turned.state.ledger.with_observed(key, seen)
    _, again = step(MESSAGES, state=replace(turned.state, ledger=ledger))
    assert again.window.estimate == again.window.tokens


def cuts_every_result(window):
    """A stage that asks of nothing whether it may be edited."""
    cuts = [
        placeholder(window, spot)
        for spot in window.results(0, window.turn_start)
    ]
    return [cut for cut in cuts if cut is not None]


@pytest.mark.parametrize(
    "stage", [partial(prune, wanted=lambda window: 10**6), cuts_every_result]
)
def test_in_an_open_turn_that_must_keep_its_thinking_no_batch_is_made_and_that_is_told(
    stage,
):
    greedy = Policy(name="greedy", under_pressure=(stage,))
    messages = manual_loop(20)
    request = {
        "model": "claude-opus-5-5",
        "max_tokens": 2_000,
        "thinking": {"type": "enabled", "budget_tokens": 1_024},
        "messages": messages,
    }
    limits = Limits(window_tokens=60_000)
    asked = Settings(
        model="claude-opus-5-5",
        policy=greedy,
        safeguards=SAFEGUARDS,
        formats=ALL_FORMATS,
        limits=limits,
        recall=True,
    )
    steps, effects = turn(request, State(), SessionCache(), asked), []
    try:
        effects.append(next(steps))
        while True:
            effects.append(steps.send(()))
    except StopIteration as stop:
        turned = stop.value
    assert "held" in {event.kind for event in turned.events}
    assert "pruned" not in {event.kind for event in turned.events}


def manual_loop(calls):
    """One open turn, thought about at every reply."""
    messages = [{"role": "user", "content": "Mend the build."}]
    thinking = [{"type": "thinking", "thinking": "I look.", "signature": "s"}]
    for number in range(calls):
        id = f"toolu_{number}"
        call = {
            "type": "tool_use",
            "id": id,
            "name": "read",
            "input": {"path": f"{number}.py"},
        }
        result = {
            "type": "tool_result",
            "tool_use_id": id,
            "content": f"{number} a line\n" * 400,
        }
        messages.append({"role": "assistant", "content": [*thinking, call]})
        messages.append({"role": "user", "content": [result]})
    return messages

"""Anything that decides may change between any two turns: policy, wording, model, store folder.

Whatever changes, the conversation goes on: every view is legal, nothing that is bound to bytes
stands behind other bytes, an event says what changed, and a cold start shows the same.
"""

import json
import shutil
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ullage import Limits, Session, Usage
from ullage.core.contract.kinds import LIMIT_CHARS
from ullage.core.history.ledger import arrival_part
from ullage.core.values.toolset import OURS
from ullage.policy import fingerprint
from ullage.policy.stages.default import DEFAULT
from ullage.policy.stages.pressure import over_or_pays
from ullage.policy.stages.record import record
from ullage.policy.stages.truncate import by_kind, truncate
from ullage.wires.rules.checker import problems_of

BOUND, ALSO_BOUND, FREE = (
    "claude-sonnet-6",
    "claude-opus-5-5",
    "claude-sonnet-4-5",
)
SIGNED = "U2lnbmVk" * 8


def policy(limit_chars=8_000, name="mine-1", page_chars=8_000):
    """The default with other limits at first sight, or another wording."""
    shape = partial(
        by_kind, limit_chars=dict.fromkeys(LIMIT_CHARS, limit_chars)
    )
    toolset = (
        OURS
        if page_chars == OURS.page_chars
        else replace(OURS, page_chars=page_chars)
    )
    first = (partial(truncate, shape=shape),)
    return replace(
        DEFAULT,
        name=name,
        on_arrival=first,
        toolset=toolset,
        without_recall=None,
    )


POLICIES = (policy(), policy(2_000), policy(20_000), policy(page_chars=4_000))


def step(number, lines):
    """A reply with bound thinking and a call, and its result."""
    thought = {
        "type": "thinking",
        "thinking": f"t{number}",
        "signature": SIGNED + str(number),
    }
    call = {
        "type": "tool_use",
        "id": f"toolu_{number}",
        "name": "read",
        "input": {"n": number},
    }
    result = {
        "type": "tool_result",
        "tool_use_id": f"toolu_{number}",
        "content": "".join(f"line {n} of {number}\n" for n in range(lines)),
    }
    return [
        {"role": "assistant", "content": [thought, call]},
        {"role": "user", "content": [result]},
    ]


TOOLS = {"tools": [{"name": "bash", "input_schema": {"type": "object"}}]}


def request(model, messages, more=TOOLS):
    return {"model": model, "max_tokens": 1_000, "messages": messages, **more}


class Talk:
    """One conversation, over any number of sessions on one store."""

    def __init__(self, folder, recall=False):
        self.folder, self.messages = (
            folder,
            [{"role": "user", "content": "go"}],
        )
        self.recall, self.more = recall, {} if recall == "auto" else TOOLS
        self.replies = {}
        self.last = []
        self.events = []
        folder.mkdir(parents=True, exist_ok=True)

    def session(self, policy, window=200_000, model=BOUND):
        return Session(
            model,
            policy=policy,
            store=self.folder / "u.db",
            recall=self.recall,
            limits=Limits(window_tokens=window),
        )

    def move(self, folder):
        shutil.copytree(self.folder, folder)
        self.folder = folder

    def turn(self, session, model, number, lines):
        """Send what there is, be answered, and run the tool."""
        before = len(session.events)
        view = session.fit(request(model, list(self.messages), self.more))
        new = session.events[before:]
        self.events += new
        self._check(view["messages"], new)
        self.last = [json.dumps(raw) for raw in view["messages"]]
        self.replies[SIGNED + str(number)] = self.last
        view.observe(
            Usage(fresh_tokens=session.window.tokens, output_tokens=20)
        )
        self.messages += step(number, lines)
        return view

    def _check(self, shown, new):
        assert problems_of("anthropic", shown) == []
        as_sent = [json.dumps(raw) for raw in shown]
        kinds = {event.kind for event in new}
        if as_sent[: len(self.last)] != self.last:
            assert kinds & {
                "changed",
                "pruned",
                "condensed",
                "cut",
                "reasoning",
                "joined",
            }
        for place, raw in enumerate(shown):
            for block in raw["content"]:
                if isinstance(block, dict) and block.get("type") == "thinking":
                    assert (
                        as_sent[:place] == self.replies[block["signature"]]
                    ), (
                        "thinking stands behind other bytes than it was made behind"
                    )


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_decides_may_change_between_any_two_turns(tmp_path_factory, data):
    root = tmp_path_factory.mktemp("talk")
    talk, chosen, model = Talk(root / "0"), POLICIES[0], BOUND
    window = data.draw(st.sampled_from((12_000, 60_000)), "window")
    session = talk.session(chosen, window)
    for number in range(data.draw(st.integers(3, 9), "turns")):
        change = data.draw(
            st.sampled_from(
                ("none", "none", "policy", "model", "folder", "cold")
            )
        )
        if change == "policy":
            chosen = data.draw(st.sampled_from(POLICIES))
        elif change == "model":
            model = data.draw(st.sampled_from((BOUND, ALSO_BOUND)))
        elif change == "folder":
            session.close()
            talk.move(root / str(number + 1))
        if change != "none":
            session = talk.session(chosen, window)
        view = talk.turn(
            session, model, number, data.draw(st.integers(1, 1_500), "lines")
        )
        again = request(model, talk.messages[: -len(step(0, 0))])
        assert (
            talk.session(chosen, window).fit(again)["messages"]
            == view["messages"]
        )


@pytest.mark.parametrize("second", [2_000, 20_000])
def test_another_limit_is_a_change_with_one_break(tmp_path, second):
    """As a joined history: one batch, the bound thinking behind it goes, and an event says so."""
    talk = Talk(tmp_path / "a")
    with talk.session(policy()) as session:
        for number in range(5):
            talk.turn(session, BOUND, number, 900)
    breaks = 0
    with talk.session(policy(second)) as session:
        for number in range(5, 10):
            before = talk.last
            talk.turn(session, BOUND, number, 900)
            breaks += talk.last[: len(before)] != before
    assert breaks == 1
    assert [event.kind for event in talk.events].count("changed") == 1
    (told,) = (event for event in talk.events if event.kind == "changed")
    assert "policy, limits or wording" in told.why


def test_another_family_is_a_change_that_names_both(tmp_path):
    talk = Talk(tmp_path / "a")
    talk.turn(talk.session(policy()), BOUND, 0, 900)
    talk.turn(talk.session(policy()), "claude-opus-4-5", 1, 900)
    (told,) = (event for event in talk.events if event.kind == "changed")
    assert "another model family decides from here on (" in told.why
    before, _, now = (
        told.why.partition("(")[2].partition(" now)")[0].partition(" before, ")
    )
    assert before != now


def test_the_same_policy_under_the_same_settings_is_no_change(tmp_path):
    talk = Talk(tmp_path / "a")
    for number in range(4):
        with talk.session(policy()) as session:
            talk.turn(session, BOUND, number, 900)
    assert not {event.kind for event in talk.events} & {
        "changed",
        "joined",
        "superseded",
    }


def test_a_rolling_upgrade_breaks_the_prefix_once(tmp_path):
    """Old and new workers take turns; the old ones show what the new ones decided."""
    talk = Talk(tmp_path / "a")
    old, new = talk.session(policy()), talk.session(policy(2_000))
    breaks = []
    for number in range(16):
        before = talk.last
        worker = old if number < 4 or number % 2 else new
        talk.turn(worker, BOUND, number, 900)
        if talk.last[: len(before)] != before:
            breaks.append(number)
    assert breaks == [4]
    kinds = [event.kind for event in talk.events]
    assert (kinds.count("changed"), kinds.count("superseded")) == (1, 1)
    (told,) = (event for event in talk.events if event.kind == "superseded")
    assert f"({policy().name}) decides here" in told.why


SEVEN = replace(DEFAULT, name="default-7", without_recall=None)
"""The default of before: it cut with the recall tools or without."""


@pytest.mark.parametrize("recall", [False, "auto"])
def test_what_was_cut_without_recall_tools_stays_and_no_more_is_cut(
    tmp_path, recall
):
    """The session is not to offer them, or the requests have no tools at all."""
    old, new = Talk(tmp_path / "old", recall), Talk(tmp_path / "new", recall)
    before = old.session(SEVEN, 60_000)
    for number in range(15):
        old.turn(before, BOUND, number, 900)
    kinds = [event.kind for event in old.events]
    assert kinds.count("pruned") == 2, (
        "the second is of the turns behind the upgrade"
    )

    session = new.session(SEVEN, 60_000)
    for number in range(9):
        new.turn(session, BOUND, number, 900)
    records = [raw for raw in new.last if "[ullage: " in raw]
    session = new.session(DEFAULT, 60_000)
    for number in range(9, 15):
        view = new.turn(session, BOUND, number, 900)
    assert [raw for raw in new.last if "[ullage: " in raw] == records != []
    behind = zip(view["messages"][-10:], new.messages[-12:-2], strict=True)
    assert all(shown is own for shown, own in behind)
    assert [event.kind for event in session.events[:2]] == [
        "changed",
        "reasoning",
    ]
    assert {event.kind for event in session.events[2:]} == {"observed"}

    entries = session.state.ledger.entries.values()
    assert [each.policy for entry in entries for each in entry.policies] == [
        SEVEN.name,
        DEFAULT.name,
    ]
    cold = new.session(DEFAULT, 60_000)
    again = cold.fit(
        request(BOUND, new.messages[: -len(step(0, 0))], new.more)
    )
    assert (again["messages"], cold.events) == (view["messages"], ())


def test_the_tools_may_come_with_the_upgrade(tmp_path):
    """Old workers show what the new ones cut from there on, and cut nothing before it anew."""
    talk = Talk(tmp_path / "a", "auto")
    old = talk.session(SEVEN)
    for number in range(4):
        talk.turn(old, BOUND, number, 4_500)
    assert "truncated" in {event.kind for event in talk.events}
    talk.more, new, breaks = TOOLS, talk.session(DEFAULT), []
    for number in range(4, 8):
        before = talk.last
        view = talk.turn(old if number % 2 else new, BOUND, number, 4_500)
        breaks += [number] if talk.last[: len(before)] != before else []
        assert [tool["name"] for tool in view["tools"]] == [
            "bash",
            "get_continuation",
        ]
    kinds = [event.kind for event in talk.events]
    assert (breaks, kinds.count("changed"), kinds.count("superseded")) == (
        [4],
        1,
        1,
    )


def test_models_of_one_family_alternate_and_nothing_changes(tmp_path):
    talk = Talk(tmp_path / "a")
    session = talk.session(policy())
    for number in range(8):
        before = talk.last
        talk.turn(session, (BOUND, ALSO_BOUND)[number % 2], number, 900)
        assert talk.last[: len(before)] == before
    assert "changed" not in {event.kind for event in talk.events}


def test_usage_learned_with_one_model_scales_no_other(tmp_path):
    talk = Talk(tmp_path / "a")
    session = talk.session(policy())
    talk.turn(session, BOUND, 0, 900)
    for number in range(1, 6):
        view = session.fit(request(BOUND, list(talk.messages)))
        view.observe(
            Usage(
                fresh_tokens=int(session.window.tokens * 1.4), output_tokens=20
            )
        )
        talk.messages += step(number, 900)
    session.fit(request(BOUND, list(talk.messages)))
    learned = session.window.estimate / session.window.tokens
    session.fit(request(ALSO_BOUND, list(talk.messages)))
    assert learned > 1.2
    assert session.window.estimate == session.window.tokens


def test_a_model_to_which_thinking_is_bound_gets_none_from_behind_an_edit(
    tmp_path,
):
    """Edits were free with the first model; the second is of a family that minds them."""
    talk = Talk(tmp_path / "a")
    session = talk.session(policy(), 12_000, FREE)
    for number in range(12):
        session.fit(request(FREE, list(talk.messages)))
        talk.messages += step(number, 400)
    view = session.fit(request(BOUND, list(talk.messages)))["messages"]
    pairs = enumerate(zip(view, talk.messages, strict=False))
    first = next(at for at, (shown, raw) in pairs if shown is not raw)
    thinking = [
        place
        for place, raw in enumerate(view)
        for block in raw["content"]
        if isinstance(block, dict) and block.get("type") == "thinking"
    ]
    assert all(place <= first for place in thinking)
    assert "changed" in {event.kind for event in session.events}


# ── what changes under pressure alone ────────────────────────────────────────────────────


def pressed(name, share):
    """The default with another trigger under pressure: what arrives is shown alike."""
    due = partial(
        over_or_pays, high=share, times=15, tail_chars=16_000, least_calls=45
    )
    return replace(
        policy(name=name), under_pressure=(partial(record, is_due=due),)
    )


@pytest.mark.parametrize("recall", [True, False, "auto"])
def test_another_setting_under_pressure_is_told_once_and_shows_nothing_otherwise(
    tmp_path, recall
):
    """What it decided is in the ledger, so no prefix breaks and no thought goes."""
    talk = Talk(tmp_path / "a", recall)
    with talk.session(pressed("mine-1", 0.90), 60_000) as session:
        for number in range(9):
            talk.turn(session, BOUND, number, 900)
    before, told_before = talk.last, len(talk.events)
    assert any("[ullage: " in raw for raw in before)
    session = talk.session(pressed("mine-2", 0.50), 60_000)
    again = session.fit(
        request(BOUND, talk.messages[: -len(step(0, 0))], talk.more)
    )
    assert [json.dumps(raw) for raw in again["messages"]] == before
    (told,) = (event for event in session.events if event.kind == "changed")
    assert (
        "under pressure from here on (mine-1 before, mine-2 now)" in told.why
    )
    for number in range(9, 12):
        talk.turn(session, BOUND, number, 100)
    assert talk.last[: len(before)] == before
    assert "changed" not in {event.kind for event in talk.events[told_before:]}
    cold = talk.session(pressed("mine-2", 0.50), 60_000)
    cold.fit(request(BOUND, talk.messages, talk.more))
    assert "changed" not in {event.kind for event in cold.events}


def test_thoughts_of_a_joined_conversation_stay_with_a_change_under_pressure(
    tmp_path,
):
    """The tools that were added to it were told of when it was joined, and not again."""
    talk = Talk(tmp_path / "a", True)
    talk.messages += [*step(90, 20), *step(91, 20)]
    with talk.session(pressed("mine-1", 0.90)) as session:
        for number in range(3):
            talk.turn(session, BOUND, number, 20)
    before = talk.last
    assert sum("thinking" in raw for raw in before) == 2
    talk.turn(talk.session(pressed("mine-2", 0.80)), BOUND, 3, 20)
    assert talk.last[: len(before)] == before
    kinds = [event.kind for event in talk.events]
    assert (
        kinds.count("joined"),
        kinds.count("changed"),
        kinds.count("reasoning"),
    ) == (1, 1, 1)


def test_policies_that_differ_under_pressure_alone_may_take_turns(tmp_path):
    """Each is told of once; none is superseded, none writes an opening again."""
    talk = Talk(tmp_path / "a", True)
    workers = [
        talk.session(pressed(f"mine-{n}", 0.5 + n / 10), 60_000)
        for n in range(3)
    ]
    for number in range(15):
        talk.turn(workers[number % 3], BOUND, number, 700)
    kinds = [event.kind for event in talk.events]
    assert kinds.count("changed") == 2
    assert "superseded" not in kinds
    assert "pruned" in kinds
    entries = workers[-1].state.ledger.entries.values()
    names = [opened.policy for entry in entries for opened in entry.policies]
    assert sorted(names) == ["mine-0", "mine-1", "mine-2"]


def test_a_conversation_that_waits_is_not_joined_for_a_change_under_pressure(
    tmp_path,
):
    messages = [{"role": "user", "content": "go"}]
    for number in range(4):
        messages += step(number, 1_500)
    views = []
    for name, share in (("mine-1", 0.90), ("mine-2", 0.80), ("mine-3", 0.80)):
        session = Session(
            BOUND,
            policy=replace(
                pressed(name, share), without_recall=DEFAULT.without_recall
            ),
            store=tmp_path / "u.db",
            limits=Limits(window_tokens=200_000),
        )
        views.append(session.fit(request(BOUND, messages)))
        kinds = [event.kind for event in session.events]
        assert kinds.count("changed") == (name == "mine-2")
        assert kinds.count("joined") == (name == "mine-1")
    assert all(view["messages"] == views[0]["messages"] for view in views)
    assert all(view["tools"] == TOOLS["tools"] for view in views)


def test_a_family_that_changes_with_what_is_under_pressure_is_told_as_such(
    tmp_path,
):
    talk = Talk(tmp_path / "a")
    talk.turn(talk.session(pressed("mine-1", 0.90)), BOUND, 0, 900)
    talk.turn(talk.session(pressed("mine-2", 0.80)), "claude-opus-4-5", 1, 900)
    (told,) = (event for event in talk.events if event.kind == "changed")
    assert "another model family decides from here on" in told.why


def test_the_first_half_of_a_fingerprint_is_of_what_arrives():
    def first(policy):
        return arrival_part(fingerprint(policy))

    assert fingerprint(policy()) == fingerprint(policy(name="mine-2"))
    assert first(policy()) != first(policy(2_000))
    assert first(policy()) != first(policy(page_chars=4_000))
    under_pressure = replace(policy(), under_pressure=())
    assert first(policy()) == first(under_pressure)
    assert fingerprint(policy()) != fingerprint(under_pressure)


def test_a_stage_of_ones_own_is_known_by_the_policys_name():
    def cut(window, /):
        return ()

    own = replace(policy(), on_arrival=(cut,))
    assert fingerprint(own) != fingerprint(replace(own, name="mine-2"))

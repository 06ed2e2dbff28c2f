"""Where a view is first other than the request before it."""

import pytest

from tests.session.provider import CLAUDE, Agent, Provider, step, tool
from ullage import Limits, Session
from ullage.session.prompt_cache.view_changes import ViewChange

VAST = Limits(window_tokens=500_000)


@pytest.fixture
def agent(monkeypatch):
    agent = Agent(Session(CLAUDE, limits=VAST), Provider().watch(monkeypatch))
    for _ in range(8):
        agent.turn()
    return agent


def test_a_request_that_only_goes_on_changes_nothing(agent):
    assert agent.turn().sent.change is None


def test_of_several_changes_the_one_that_stands_first_in_a_prompt_counts(
    agent,
):
    agent.session.drop("t4")
    agent.change(4)
    assert agent.session.fit(agent.request()).sent.change.message == 4
    agent.change(12)
    change = agent.session.fit(agent.request(tools=[tool("x")])).sent.change
    assert (change.cause, change.message) == ("tools", -1)


def test_a_decision_before_the_clients_change_comes_first(agent):
    agent.change(10)
    change = agent.session.fit(agent.request()).sent.change
    place = "message 11, which it had sent before"
    standing = tuple(range(11, 15))
    assert change == ViewChange("message", place, 10, standing=standing)
    agent.session.drop("t1")
    change = agent.session.fit(agent.request()).sent.change
    assert (change.cause, change.message) == ("decision", 4)


def test_of_a_changed_message_only_what_stands_again_is_sent_twice(agent):
    agent.change(4)
    agent.messages[8:8] = step(50)
    change = agent.session.fit(agent.request()).sent.change
    assert change.message == 4
    assert 4 not in change.standing
    assert not {8, 9} & set(change.standing)
    assert {5, 6, 7, 10, 11} <= set(change.standing)


def test_a_batch_that_no_request_showed_yet_is_found_with_the_next_one(agent):
    """Decided when nothing was sent: at the end of a turn, or by a process that died then."""
    name = agent.session.drop("t3")
    agent.session.flush(agent.request())
    change = agent.turn().sent.change
    assert (change.cause, change.name) == ("decision", name)
    assert agent.turn().sent.change is None


def test_the_recall_tools_that_come_later_are_ours(monkeypatch):
    provider = Provider().watch(monkeypatch)
    late = Agent(
        Session(CLAUDE, limits=Limits(window_tokens=60_000)), provider
    )
    for number in range(40):
        late.messages += step(number, 30)
    causes = []
    late.number = 50
    for _ in range(14):
        view = late.turn(lines=400)
        if view.sent.change is not None:
            causes.append(view.sent.change.cause)
            if any(event.kind == "joined" for event in view.events):
                break
    assert causes
    assert causes[0] in ("recall", "batch")

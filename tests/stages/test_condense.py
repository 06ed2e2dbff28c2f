"""Where an account stands, and what of the newest turn it quotes."""

import pytest
from msgspec.structs import replace

from lab.enumerate.treatments import TREATMENTS
from lab.guard import POLICIES, loop, seen
from lab.returned import problems
from tests.histories import CUTS_ALWAYS
from ullage import Limits, Session
from ullage.core.contract.policy import Policy
from ullage.policy.stages.shrink import Tier, cut_to, shrink
from ullage.tools.replay.gates import unseen

MANUAL = {"type": "enabled", "budget_tokens": 1_024}
PAGE = "a line of the page\n" * 200


def request(messages, model="claude-sonnet-4-5"):
    return {
        "model": model,
        "max_tokens": 2_000,
        "thinking": MANUAL,
        "messages": messages,
    }


def thoughtful(calls):
    """A loop in which every reply begins with thinking."""
    messages = [{"role": "user", "content": "Read them all."}]
    for number in range(calls):
        id = f"toolu_{number}"
        thinking = {
            "type": "thinking",
            "thinking": "I look.",
            "signature": f"c2ln{number:04}",
        }
        use = {
            "type": "tool_use",
            "id": id,
            "name": "read",
            "input": {"page": number},
        }
        result = {
            "type": "tool_result",
            "tool_use_id": id,
            "content": f"PAGE {number}\n{PAGE}",
        }
        messages.append({"role": "assistant", "content": [thinking, use]})
        messages.append({"role": "user", "content": [result]})
    return messages


def test_a_loop_that_began_with_thinking_shows_every_result_and_breaks_no_oftener():
    manual, free = (
        seen(16_000, 90, thinking=True),
        seen(16_000, 90, thinking=False),
    )
    assert manual.unseen == free.unseen == 0
    assert manual.breaks <= free.breaks + 2


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-5-5"])
def test_the_account_of_a_loop_stands_in_the_result_behind_its_thinking(model):
    session = Session(
        model, policy=CUTS_ALWAYS, limits=Limits(window_tokens=16_000)
    )
    messages = loop(90, thought=True)
    for stop in range(3, len(messages) + 1, 2):
        asked = request(messages[:stop], model)
        view = session.fit(asked)
        assert problems("anthropic", view) == []
    assert view["messages"][1] is messages[1]
    (block,) = view["messages"][2]["content"]
    assert block["tool_use_id"] == "toolu_0"
    assert "are condensed here" in str(block["content"])
    assert "are condensed here" not in str(view["messages"][3:])
    cold = Session(
        model,
        policy=CUTS_ALWAYS,
        limits=Limits(window_tokens=16_000),
        store=session.store,
    )
    assert cold.fit(request(messages, model)) == view


def accounts_shown(window):
    """For each summary without a text of its own: whether its account stands in the view."""
    for placed in window.summaries:
        if not placed.edit.text:
            edits = window.shown(placed.start - 1).values()
            yield any(placed.edit.ref in edit.text for edit in edits)


@pytest.mark.parametrize("policy", POLICIES)
def test_an_account_within_a_result_stays_whatever_is_cut_later(policy):
    session = Session(
        "claude-sonnet-4-5", policy=policy, limits=Limits(window_tokens=16_000)
    )
    messages, seen_any = loop(90, thought=True), False
    for stop in range(3, len(messages) + 1, 2):
        session.fit(request(messages[:stop]))
        shown = list(accounts_shown(session.window))
        assert all(shown), f"the account is lost after {stop} messages"
        seen_any |= bool(shown)
    assert seen_any


def test_what_holds_an_account_is_not_cut_to_size_and_no_stage_may_cut_it():
    head, wanted = (2, 0, 0), []

    def cuts_the_first_result(window):
        if not any(not placed.edit.text for placed in window.summaries):
            return ()
        wanted.append(cut_to(window, head, window.leaf_tokens(head), 60))
        return wanted[-1:]

    policy = replace(
        CUTS_ALWAYS, name="greedy", under_pressure=(cuts_the_first_result,)
    )
    session = Session(
        "claude-sonnet-4-5", policy=policy, limits=Limits(window_tokens=16_000)
    )
    messages = loop(60, thought=True)
    for stop in range(3, len(messages) + 1, 2):
        session.fit(request(messages[:stop]))
    assert wanted
    assert None not in wanted
    assert all(accounts_shown(session.window))
    assert shrink(session.window, [2], tuple(Tier), 10_000) == ([], 0)


def test_thinking_that_is_bound_goes_with_its_turn_and_the_newest_result_is_quoted():
    session = Session(
        "claude-opus-5-5",
        policy=CUTS_ALWAYS,
        limits=Limits(window_tokens=16_000),
    )
    messages, quoted = thoughtful(40), 0
    for number, stop in enumerate(range(3, len(messages) + 1, 2)):
        view = session.fit(request(messages[:stop], "claude-opus-5-5"))
        assert session.fit(request(messages[:stop], "claude-opus-5-5")) == view
        assert problems("anthropic", view) == []
        assert f"PAGE {number}\n{PAGE}" in str(view["messages"]).replace(
            "\\n", "\n"
        )
        quoted += "## Result of read, new" in str(view["messages"][-1])
    assert 1 < quoted < 12


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-5-5"])
def test_a_branch_that_goes_on_within_a_reply_keeps_no_turn_without_its_thinking(
    model,
):
    """An account that a turn made is shown in a branch in which that turn is not over (A14)."""
    (account,) = (each.policy for each in TREATMENTS if each.name == "account")
    said = {
        "role": "assistant",
        "content": [{"type": "text", "text": "I go on."}],
    }
    use = {"type": "tool_use", "id": "toolu_9", "name": "read", "input": {}}
    asks = {"role": "assistant", "content": [use]}
    result = {"type": "tool_result", "tool_use_id": "toolu_9", "content": PAGE}
    session = Session(
        model, policy=account, limits=Limits(window_tokens=100_000)
    )
    before = [*thoughtful(1), said]
    session.fit(request(before[:1], model))
    view = session.fit(
        request([*before, {"role": "user", "content": "And now?"}], model)
    )
    assert "are condensed here" in str(view["messages"])
    view = session.fit(
        request([*before, asks, {"role": "user", "content": [result]}], model)
    )
    assert problems("anthropic", view) == []


def test_a_compaction_trigger_stays_last():
    items = [{"role": "user", "content": "Look."}]
    for number in range(40):
        of = {"call_id": f"call_{number}"}
        items.append(
            {"type": "function_call", **of, "name": "read", "arguments": "{}"}
        )
        items.append(
            {"type": "function_call_output", **of, "output": "a line\n" * 30}
        )
    items.append({"type": "compaction_trigger"})
    session = Session(
        "gpt-5.4", policy=CUTS_ALWAYS, limits=Limits(window_tokens=2_000)
    )
    view = session.fit({"model": "gpt-5.4", "input": items})["input"]
    assert view[-1] is items[-1]
    assert len(view) < len(items)


def test_the_gate_tells_a_new_result_that_was_cut_while_older_ones_had_room_to_give():
    """G8, as the fuzzer and replay ask it of every view."""
    messages = loop(4, thought=False)

    def cuts_the_newest(window):
        spot = (window.size - 1, 0, 0)
        if window.size != len(messages) or window.shown(spot[0]):
            return ()
        return (cut_to(window, spot, window.leaf_tokens(spot), 60),)

    asked = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 2_000,
        "messages": messages,
    }
    session = Session("claude-sonnet-4-5")
    session.fit(asked)
    assert unseen(session) == []
    greedy = Policy(name="greedy", under_pressure=(cuts_the_newest,))
    session = Session("claude-sonnet-4-5", policy=greedy)
    session.fit(asked)
    assert unseen(session) == [(8, 0, 0)]

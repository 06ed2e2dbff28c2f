"""After a compaction the view is at its target, however much the user says.

What of the user's words is set aside for it opens by a ref of its own, byte for byte; a compaction
that would win next to nothing is not made.
"""

from itertools import pairwise

import pytest

from lab import reading
from ullage import Limits, Session
from ullage.documents import preset

LIMITS = Limits(window_tokens=60_000, output_reserve_tokens=2_000)
PASTES = {
    "prose": "the international development of information technology and its environment ",
    "code": "    self.x1 = f(a[1], b={'k2': 7})\n",
    "json": '{"id":7919,"v":[1,2],"ok":true},',
    "chinese": "请检查日志并修复加载程序中的错误。",
    "numbers": "w18273 w99182 w10293 ",
}
TARGETS = {
    "three_layer": 0.50,
    "output_cache": 0.50,
    "multi_stage": 24_000 / 58_000,
}
TURNS = 90


def paste(kind, number, chars=3_000):
    """What a user pastes in a turn: no two are alike."""
    return f"Question {number}. {PASTES[kind] * (chars // len(PASTES[kind]))} End of {number}."


def reported(session):
    tokens = session.window.estimate
    usage = {
        "prompt_tokens": tokens,
        "completion_tokens": 30,
        "total_tokens": tokens + 30,
    }
    return {"id": f"r{session.window.size}", "choices": [], "usage": usage}


def chat(session, kind, turns=TURNS, chars=3_000, **more):
    """A chat, turn by turn: its history, and (turn, view, estimate, new events) of each."""
    history, seen = [], []
    for turn in range(turns):
        history.append({"role": "user", "content": paste(kind, turn, chars)})
        told = len(session.events)
        view = session.fit({"model": "gpt-4.1", "messages": history, **more})
        seen.append(
            (
                turn,
                view["messages"],
                session.window.estimate,
                session.events[told:],
            )
        )
        session.observe(reported(session))
        history.append(
            {
                "role": "assistant",
                "content": f"Answer {turn}. " + "I see. " * 60,
            }
        )
    return history, seen


def compacted(events):
    return [event for event in events if event.kind == "compacted"]


def shown(view):
    return "\n".join(str(message["content"]) for message in view)


@pytest.mark.says(
    "three-layer-management",
    "Key Constants",
    "public const int CompactionTargetPercent = 50; // Target 50% after compaction",
)
@pytest.mark.parametrize("kind", PASTES)
@pytest.mark.parametrize("policy", TARGETS)
def test_after_a_compaction_the_view_is_at_its_target_and_stays_below_it_for_a_while(
    policy, kind
):
    session = Session("gpt-4.1", policy=policy, limits=LIMITS, recall=True)
    _, seen = chat(session, kind)
    at = [turn for turn, _, _, events in seen if compacted(events)]
    after = [tokens for _, _, tokens, events in seen if compacted(events)]
    assert at, "the user says enough"
    assert max(after) <= TARGETS[policy] * 58_000
    assert all(later - earlier >= 4 for earlier, later in pairwise(at))
    assert not any(
        event.kind == "condensed" for *_, events in seen for event in events
    )


@pytest.mark.says(
    "multi-stage-strategy",
    "Sliding Window Compaction (Runner Level)",
    "**Budget**: ~32k tokens.",
)
@pytest.mark.parametrize("kind", PASTES)
def test_multi_stage_keeps_every_view_within_its_budget(kind):
    session = Session("gpt-4.1", policy="multi_stage", recall=True)
    _, seen = chat(session, kind, chars=6_000)
    assert max(tokens for _, _, tokens, _ in seen) <= 32_000
    assert any(compacted(events) for *_, events in seen)


@pytest.mark.parametrize("policy", TARGETS)
def test_what_is_set_aside_of_the_user_opens_by_the_ref_beside_it(policy):
    session = Session("gpt-4.1", policy=policy, limits=LIMITS, recall=True)
    history, seen = chat(session, "prose")
    view, said = (
        seen[-1][1],
        [m["content"] for m in history if m["role"] == "user"],
    )
    text = shown(view)
    assert said[0] in text, "the task"
    assert said[-1] in text, "the newest message"
    assert (
        'is read with get_continuation(tool_call_id="REF", offset=0)' in text
    )
    cut = [each for each in said if each not in text]
    assert cut
    transcript = session.window.transcript
    refs = {
        each: transcript.output((2 * said.index(each), 0, 0)).ref
        for each in cut
    }
    assert all(
        f"ref={ref} …]" in text or f"ref={ref}]" in text
        for ref in refs.values()
    )
    assert all(
        reading.follow(session, ref) == each for each, ref in refs.items()
    )


@pytest.mark.parametrize("policy", TARGETS)
def test_a_worker_that_comes_later_shows_the_same(policy):
    session = Session("gpt-4.1", policy=policy, limits=LIMITS, recall=True)
    history, seen = chat(session, "code", turns=60)
    other = Session(
        "gpt-4.1",
        policy=policy,
        limits=LIMITS,
        recall=True,
        store=session.store,
    )
    assert (
        other.fit({"model": "gpt-4.1", "messages": history[:-1]})["messages"]
        == seen[-1][1]
    )


# ── what cannot be won ───────────────────────────────────────────────────────────────────


def tools(tokens):
    """Tool definitions of about so many tokens."""
    function = {
        "name": "look",
        "description": "what it does, at length. " * (tokens // 6),
    }
    return [
        {
            "type": "function",
            "function": {**function, "parameters": {"type": "object"}},
        }
    ]


def steps(count, task="Why is it slow?"):
    """A run of short tool calls behind a task."""
    messages = [{"role": "user", "content": task}]
    for number in range(count):
        function = {"name": "look", "arguments": "{}"}
        call = {"id": f"c{number}", "type": "function", "function": function}
        messages.append(
            {"role": "assistant", "content": None, "tool_calls": [call]}
        )
        answer = f"latency {number}: 120 ms\n" * 4
        messages.append(
            {"role": "tool", "tool_call_id": f"c{number}", "content": answer}
        )
    return messages


WORDS = "a rule and more of it. "
FIXED = {
    "system text": lambda tokens: (
        {"role": "system", "content": WORDS * (tokens // 6)},
        {},
    ),
    "tools": lambda tokens: (None, {"tools": tools(tokens)}),
    "task": lambda tokens: (None, {}),
}


@pytest.mark.says(
    "multi-stage-strategy",
    "Sliding Window Compaction (Runner Level)",
    "**Trigger**: ~24k tokens.",
)
@pytest.mark.parametrize("share", [0.45, 0.75, 0.95, 1.2])
@pytest.mark.parametrize("fixed", FIXED)
@pytest.mark.parametrize(
    "policy", ["multi_stage", "three_layer", "output_cache"]
)
def test_what_no_compaction_can_win_does_not_bring_one_about(
    policy, fixed, share
):
    """Each that is made wins a part of the view; of what must stay it is said that it is much."""
    trigger = {
        "multi_stage": 24_000,
        "three_layer": 46_000,
        "output_cache": 40_000,
    }[policy]
    tokens = min(int(trigger * share), 47_000)
    system, more = FIXED[fixed](tokens)
    task = WORDS * (tokens // 6) if fixed == "task" else "Why is it slow?"
    messages = [*([system] if system else []), *steps(100, task)]
    session = Session("gpt-4.1", policy=policy, limits=LIMITS)
    for length in range(2, len(messages) + 1):
        if messages[length - 1]["role"] != "assistant":
            session.fit(
                {"model": "gpt-4.1", "messages": messages[:length], **more}
            )
            session.observe(reported(session))
    made = compacted(session.events)
    assert len(made) <= 3
    assert all(
        event.tokens_before - event.tokens_after >= 2_000 for event in made
    )


def test_where_what_must_stay_is_over_the_target_an_event_says_so():
    task = WORDS * 6_000
    messages = steps(400, task)
    session = Session("gpt-4.1", policy="output_cache", limits=LIMITS)
    for length in range(3, len(messages) + 1, 2):
        session.fit({"model": "gpt-4.1", "messages": messages[:length]})
        session.observe(reported(session))
    told = [
        event
        for event in session.events
        if event.kind in ("compacted", "held")
    ]
    assert told
    assert (
        "what must stay leaves no room for a summary within the target"
        in told[0].why
    )


def test_policies_of_the_documents_name_what_a_compaction_has_to_win():
    for name in ("multi_stage", "three_layer", "output_cache"):
        stages = [
            s
            for s in preset(name).under_pressure
            if s.func.__name__ == "compact"
        ]
        assert stages
        for stage in stages:
            assert stage.keywords["goals"]
            assert stage.keywords.get("least_share", 0.15) > 0
            assert stage.keywords.get("least_tokens", 1) > 0

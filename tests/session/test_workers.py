"""Many hands on one conversation: any number of warm sessions on one store send what one sends."""

import json
import random
import shutil

import pytest

from tests import histories
from tests.histories import CUTS_ALWAYS, Call, Turn
from ullage import (
    Limits,
    MemoryStore,
    Record,
    Session,
    SqliteStore,
    Usage,
    View,
)
from ullage.session.drivers import run as drive
from ullage.wires import FORMATS
from ullage.wires.rules.checker import problems_of

MODEL = {"openai-chat": "gpt-4.1", "anthropic": "claude-sonnet-4-5"}
WINDOW = 12_000


def conversation(format, turns=45, seed=5):
    """A tool run of so many turns, and the lengths at which a request is sent."""
    dice = random.Random(seed)
    calls = [
        Call(
            "read_file",
            f"src/file_{n}.py",
            f"value {n} of the table\n" * dice.randrange(5, 160),
        )
        for n in range(turns)
    ]
    messages = histories.wire(
        format, [Turn(said=f"Step {c.argument}.", calls=(c,)) for c in calls]
    )
    replies = [
        n
        for n, message in enumerate(messages)
        if message["role"] == "assistant"
    ]
    return messages, [*replies, len(messages)]


class Run:
    """Turns of one conversation, spread over sessions; what was sent at each."""

    def __init__(self, format, stores, *, ratio=1.0, limits=WINDOW):
        self.format, self.ratio = format, ratio
        limits = Limits(window_tokens=limits)
        self.sessions = [
            Session(
                MODEL[format],
                policy=CUTS_ALWAYS,
                limits=limits,
                format=format,
                store=store,
            )
            for store in stores
        ]
        self.views = []

    def turn(self, worker, messages):
        session = self.sessions[worker]
        view = session.fit(histories.request(self.format, list(messages)))
        self.views.append([json.dumps(raw) for raw in view["messages"]])
        assert problems_of(self.format, view["messages"]) == []
        tokens = int(session.window.tokens * self.ratio)
        view.observe(Usage(fresh_tokens=tokens, output_tokens=20))
        return view

    def breaks(self):
        pairs = zip(self.views, self.views[1:], strict=False)
        return sum(new[: len(old)] != old for old, new in pairs)


def sent(format, path, choose, workers, ratio):
    """What is sent where a function chooses the worker of each turn."""
    run = Run(format, [str(path)] * workers, ratio=ratio)
    messages, lengths = conversation(format)
    for number, length in enumerate(lengths):
        run.turn(choose(number), messages[:length])
    for session in run.sessions:
        session.close()
    return run


SPREADS = {
    "round robin": lambda number: number % 3,
    "at random": lambda number: random.Random(number).randrange(3),
    "sticky, moved every ten turns": lambda number: number // 10 % 3,
}


@pytest.mark.parametrize("format", MODEL)
@pytest.mark.parametrize("ratio", [1.0, 1.25])
def test_any_number_of_workers_send_what_one_sends(tmp_path, format, ratio):
    one = sent(format, tmp_path / "one.db", lambda _: 0, 1, ratio)
    assert one.breaks() > 1, "there is something to disagree about"
    for spread, choose in SPREADS.items():
        many = sent(format, tmp_path / f"{spread}.db", choose, 3, ratio)
        assert many.views == one.views, spread


@pytest.mark.parametrize("format", MODEL)
def test_two_workers_on_the_same_turn_at_once_send_the_same(format):
    """Both look before either has written; the first decision written stands for both."""
    store = MemoryStore()
    run = Run(format, [store, store])
    messages, lengths = conversation(format)
    for length in lengths:
        request = histories.request(format, messages[:length])
        fits = [session._fit(request, View) for session in run.sessions]
        views = [view["messages"] for view in side_by_side(fits, store)]
        assert views[0] == views[1]
        run.views.append([json.dumps(raw) for raw in views[0]])
        for session in run.sessions:
            session.observe(
                Usage(fresh_tokens=session.window.tokens, output_tokens=20)
            )
    alone = Run(format, [MemoryStore()])
    for length in lengths:
        alone.turn(0, messages[:length])
    assert run.views == alone.views


def side_by_side(runs, store):
    """Run generators of effects in turns, one effect each."""
    results, replies = {}, dict.fromkeys(range(len(runs)))
    while len(results) < len(runs):
        for number, steps in enumerate(runs):
            if number in results:
                continue
            try:
                effect = steps.send(replies[number])
            except StopIteration as stop:
                results[number] = stop.value
            else:
                replies[number] = drive(_once(effect), store, "")
    return [results[number] for number in sorted(results)]


def _once(effect):
    return (yield effect)


def test_what_was_decided_far_back_elsewhere_is_shown_by_a_warm_session(
    tmp_path,
):
    """Another worker goes back, is refused, and cuts there: that stands in the longer history."""
    messages, lengths = conversation("openai-chat", turns=20)
    run = Run("openai-chat", [str(tmp_path / "u.db")] * 3, limits=200_000)
    for length in lengths[:15]:
        run.turn(0, messages[:length])
    early = run.sessions[1].fit(
        histories.request("openai-chat", messages[: lengths[4]])
    )
    assert early.refused(
        "context_length_exceeded: maximum context length is 1500 tokens"
    )
    run.sessions[1].fit(
        histories.request("openai-chat", messages[: lengths[4]])
    )
    assert {event.kind for event in run.sessions[1].events} & {
        "cut",
        "pruned",
        "condensed",
    }
    warm = run.turn(0, messages[: lengths[15]])
    cold = run.turn(2, messages[: lengths[15]])
    assert warm == cold
    assert run.sessions[0].window.changed or run.sessions[0].window.summaries


def test_what_was_decided_at_this_very_place_elsewhere_is_shown_by_a_warm_session(
    tmp_path,
):
    """Both serve one turn; the second is refused there and cuts; the first goes on from it."""
    messages, lengths = conversation("openai-chat", turns=20)
    run = Run("openai-chat", [str(tmp_path / "u.db")] * 3, limits=200_000)
    for length in lengths[:15]:
        run.turn(0, messages[:length])
    again = run.sessions[1].fit(
        histories.request("openai-chat", messages[: lengths[14]])
    )
    assert again.refused(
        "context_length_exceeded: maximum context length is 3000 tokens"
    )
    run.sessions[1].fit(
        histories.request("openai-chat", messages[: lengths[14]])
    )
    warm = run.turn(0, messages[: lengths[15]])
    assert warm == run.turn(2, messages[: lengths[15]])
    assert run.sessions[0].window.changed or run.sessions[0].window.summaries


def test_a_turn_that_finds_no_news_asks_for_a_handful_of_keys(tmp_path):
    messages, lengths = conversation("openai-chat", turns=40)
    asked = []

    class Counting(MemoryStore):
        def find(self, tenant, keys):
            keys = tuple(keys)
            asked.append(len(keys))
            return super().find(tenant, keys)

    run = Run("openai-chat", [Counting()], limits=500_000)
    for length in lengths:
        run.turn(0, messages[:length])
    assert max(asked[3:]) <= 6
    assert len(asked) <= len(lengths) + 2


def test_a_record_of_a_newer_version_is_passed_over(tmp_path):
    messages, lengths = conversation("openai-chat", turns=6)
    store = SqliteStore(tmp_path / "u.db")
    run = Run("openai-chat", [store])
    for length in lengths[:3]:
        run.turn(0, messages[:length])
    chain = run.sessions[0].window.transcript.chain
    strange = [Record(key, "batch", 7, b"\xff\xfe") for key in chain[1:]]
    strange += [
        Record(key, "of another kind", 0, b"\x01") for key in chain[1:]
    ]
    store.append("", strange)
    cold = Run("openai-chat", [store])
    view = cold.turn(0, messages[: lengths[3]])
    assert view == run.turn(0, messages[: lengths[3]])


def test_views_in_flight_speak_of_themselves_alone():
    """Twelve conversations on one session, each answered after all were asked."""
    session = Session(
        "gpt-4.1", limits=Limits(window_tokens=60_000), recall=True
    )
    views = []
    for number in range(12):
        call = Call("bash", f"dir_{number}", f"output of {number}\n" * 2_000)
        messages = histories.wire(
            "openai-chat", [Turn(said=f"I am {number}.", calls=(call,))]
        )
        messages[0]["content"] = f"conversation {number}"
        for message in messages[1:]:
            for each in message.get("tool_calls", ()):
                each["id"] = "call_0"
            if message["role"] == "tool":
                message["tool_call_id"] = "call_0"
        views.append(session.fit(histories.request("openai-chat", messages)))
    estimates = [view._sent.tokens for view in views]
    for number, view in reversed(list(enumerate(views))):
        asked = {
            "id": "r",
            "type": "function",
            "function": {
                "name": "get_continuation",
                "arguments": '{"tool_call_id": "call_0"}',
            },
        }
        assert view.owns(asked)
        assert f"output of {number}\n" in view.recall(asked)["content"]
        view.observe(Usage(fresh_tokens=1_000 + number, output_tokens=1))
        assert view._sent.tokens == estimates[number]
    entries = session.state.ledger.entries.values()
    seen = {
        each.reported_tokens
        for entry in entries
        for each in entry.observed.values()
    }
    assert seen == {1_000 + number for number in range(12)}


def test_a_reply_observed_twice_on_its_view_counts_once():
    session = Session("gpt-4.1")
    view = session.fit(
        {"model": "gpt-4.1", "messages": [{"role": "user", "content": "hi"}]}
    )
    reply = {
        "id": "r1",
        "usage": {"prompt_tokens": 20, "completion_tokens": 5},
    }
    view.observe(reply)
    session.fit(
        {
            "model": "gpt-4.1",
            "messages": [{"role": "user", "content": "other"}],
        }
    )
    view.observe(reply)
    assert session.usage.total_tokens == 25


def test_a_view_explains_itself_with_its_numbers():
    messages, lengths = conversation("anthropic")
    limits, policy = Limits(window_tokens=WINDOW), CUTS_ALWAYS
    session = Session(
        MODEL["anthropic"], policy=policy, limits=limits, format="anthropic"
    )
    told = [
        session.fit(
            histories.request("anthropic", messages[:length])
        ).explain()
        for length in lengths
    ]
    assert "nothing was changed for this request" in told[0]
    assert any("pruned: message" in each and "→" in each for each in told)
    assert all(
        f"of {session.window.limit_tokens:,} tokens" in each for each in told
    )


def test_the_store_may_be_moved_in_mid_conversation(tmp_path):
    """Nothing that was sent names where the store is."""
    messages, lengths = conversation("anthropic", turns=30)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    for policy in (CUTS_ALWAYS, "three_layer", "continuation"):
        views = []
        for folder, several in (("a", lengths[:20]), ("b", lengths[20:])):
            if folder == "b":
                for file in (tmp_path / "a").glob("u.db*"):
                    shutil.copy(file, tmp_path / "b")
            session = Session(
                MODEL["anthropic"],
                policy=policy,
                limits=Limits(window_tokens=40_000),
                format="anthropic",
                store=tmp_path / folder / "u.db",
            )
            for length in several:
                view = session.fit(
                    histories.request("anthropic", messages[:length])
                )
                views.append(
                    [
                        json.dumps(raw)
                        for raw in FORMATS["anthropic"].history(view)
                    ]
                )
            kinds = {event.kind for event in session.events}
            assert not kinds & {"changed", "superseded"}, policy
            session.close()
        at = len(lengths[:20])
        assert views[at][: len(views[at - 1])] == views[at - 1], policy
        for file in tmp_path.glob("*/u.db*"):
            file.unlink()

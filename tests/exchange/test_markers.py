"""Cache markers where a client sets none."""

import copy
import json

import pytest

from lab.replay.marking import Bill, Blocks, bills_of
from lab.replay.wires import on_wire
from tests import histories
from tests.exchange.scripted import Reply, Upstream, ask, exchanges
from tests.histories import CUTS_ALWAYS, Call, Turn
from tests.replay.evidence.conversation import errand
from tests.servers.replies import Prompt, body_of
from ullage import Limits, Session
from ullage.doors.exchange.markers import marked
from ullage.wires.rules.checker import problems

LIMITS = Limits(window_tokens=8_000, output_reserve_tokens=500)
TEXT = "\n".join(
    f"    return known_name_{n}(x) + another_name" for n in range(60)
)
TURNS = [
    Turn(calls=(Call("read_file", f"{n}.py", f"def part_{n}(x):\n{TEXT}"),))
    for n in range(60)
]


def request(turns=TURNS, **more):
    return {
        **histories.request("anthropic", histories.wire("anthropic", turns)),
        **more,
    }


def fitted(asked, **more):
    settings = {"policy": CUTS_ALWAYS, "format": "anthropic", **more}
    return Session(asked["model"], **settings).fit(asked)


def marks(view):
    """Where the markers stand: of the head, and the numbers of the messages."""
    head = [
        key
        for key in ("system", "tools")
        for block in _listed(view.get(key))
        if _has(block)
    ]
    contents = [_listed(message["content"]) for message in view["messages"]]
    return head, [
        at for at, blocks in enumerate(contents) if any(map(_has, blocks))
    ]


def _listed(content):
    return content if isinstance(content, list) else []


def _has(block):
    return "cache_control" in block


def test_they_stand_behind_the_head_the_newest_record_and_what_was_sent_last():
    view = fitted(request(system="Be brief."))
    messages = view["messages"]
    head, found = marks(marked(view))
    records = [
        at
        for at, each in enumerate(messages)
        if "[ullage" in json.dumps(each)[:200]
    ]
    assert head == ["system"]
    assert found == [records[-1], len(messages) - 1]


def test_they_stand_behind_what_a_user_said_after_the_newest_record():
    said = [{"role": "user", "content": "Now the tests."}] * 2
    asked = request()
    first = fitted(asked)
    record = marks(marked(first))[1][0]
    covered = first.sent.window.open_summaries[-1].stop
    messages = asked["messages"]
    asked["messages"] = [*messages[:covered], *said, *messages[covered:]]
    view = fitted(asked)
    found = marks(marked(view))[1]
    assert found == [record + 2, len(view["messages"]) - 1]


def test_before_there_is_a_record_what_was_sent_last_is_marked():
    view = fitted(request(TURNS[:4]))
    newest = len(view["messages"]) - 1
    assert marks(marked(view))[1] == [newest - 2, newest]


def test_of_many_records_those_before_a_batch_are_found_too():
    turns = [
        turn
        for part in range(30)
        for turn in (Turn(user=f"Part {part}."), *TURNS[part : part + 3])
    ]
    view = fitted(request(turns))
    found = marks(marked(view))[1]
    assert len(found) == 3
    assert found[1] - found[0] == 18


def test_nothing_but_markers_is_new_and_nothing_is_changed_in_place():
    asked = request(system="Be brief.")
    before = copy.deepcopy(asked)
    view = fitted(asked)
    made = marked(view)
    assert asked == before
    bare = json.loads(
        json.dumps(made).replace(
            ', "cache_control": {"type": "ephemeral"}', ""
        )
    )
    assert (
        Blocks(bare).prefixes == Blocks(view).prefixes == Blocks(made).prefixes
    )
    assert problems(made, "anthropic") == []


@pytest.mark.parametrize(
    "more",
    [
        {"cache_control": {"type": "ephemeral"}},
        {
            "system": [
                {
                    "type": "text",
                    "text": "a",
                    "cache_control": {"type": "ephemeral"},
                }
            ]
        },
    ],
)
def test_who_sets_markers_keeps_them_as_they_are(more):
    view = fitted(request(**more))
    assert marked(view) is view


def test_another_wire_has_none():
    asked = histories.request(
        "openai-chat", histories.wire("openai-chat", TURNS[:3])
    )
    view = Session(asked["model"], format="openai-chat").fit(asked)
    assert marked(view) is view


def test_no_marker_stands_on_thinking_or_on_empty_text():
    thought = {"type": "thinking", "thinking": "so", "signature": "s"}
    blocks = [{"type": "text", "text": "Done."}, thought]
    said = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": blocks},
    ]
    asked = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": said}
    made = marked(fitted(asked))
    assert [_has(block) for block in made["messages"][-1]["content"]] == [
        True,
        False,
    ]


def test_they_read_more_from_the_cache_than_a_usual_client_does():
    bills = bills_of(on_wire(errand(1, turns=200), "anthropic"))
    costs = {name: bill.cost(0.1) for name, bill in bills.items()}
    assert costs["every"] <= costs["ours"] < costs["usual"] < costs["none"]


def test_a_prefix_is_found_only_near_a_marker():
    said = [{"role": "user", "content": f"{n} " * 4_000} for n in range(40)]
    first, second = Blocks({"messages": said[:10]}), Blocks({"messages": said})
    near, far = Bill(), Bill()
    for bill, mark in ((near, 28), (far, 29)):
        bill.take(first, [9])
        bill.take(second, [mark])
    assert near.read == first.ends[-1] > far.read == 0


@pytest.mark.parametrize("marks_cache", [True, False])
def test_a_door_marks_what_it_sends_if_it_is_told_to(marks_cache):
    door, _ = exchanges(limits=LIMITS)
    door.marks_cache = marks_cache
    upstream = Upstream(Reply(body_of("anthropic", "Done.", 1, Prompt(900))))
    raw = json.dumps(request()).encode()
    status, _, upstream = ask(door, "/v1/messages", raw, *upstream.replies)
    assert status == 200
    assert (b"cache_control" in upstream.sent[0]) is marks_cache

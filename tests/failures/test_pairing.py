"""F01 to F21: requests that no provider takes any more."""

import json
import re
from functools import partial
from itertools import pairwise

import pytest
from msgspec.structs import replace

from lab import reading
from lab.fuzz.bound import Bound
from tests import histories
from tests.failures.scenes import (
    LINES,
    WIRES,
    Writer,
    history,
    kinds,
    new_session,
    requests,
    run,
    steps,
    tagged,
)
from tests.histories import Call, Turn
from ullage import convert, problems
from ullage.policy.stages.compact import asked, compact, newest_messages
from ullage.policy.stages.default import DEFAULT
from ullage.wires import FORMATS

wires = pytest.mark.parametrize("format", WIRES)
CHAT = "openai-chat"


def is_legal(format, view):
    return problems(view, format) == []


def said(view):
    return json.dumps(view, ensure_ascii=False)


def call(id, name="bash"):
    function = {"name": name, "arguments": "{}"}
    return {"id": id, "type": "function", "function": function}


def calling(*ids):
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [call(id) for id in ids],
    }


def answer(id, text):
    return {"role": "tool", "tool_call_id": id, "content": text}


def user(text):
    return {"role": "user", "content": text}


def chat(*messages, **more):
    return histories.request(CHAT, list(messages), **more)


@wires
def test_f01_a_cut_leaves_no_result_without_its_call(format):
    """A call was summarised away and its result stayed: every later request was refused."""
    session = new_session(format)
    assert all(
        is_legal(format, view)
        for view in run(session, format, steps(60, calls=2))
    )
    assert "condensed" in kinds(session)


@wires
def test_f02_a_cut_leaves_no_call_without_its_result(format):
    """Results were trimmed away, even far under the limit; their calls were refused."""
    *_, whole = requests(format, steps(8, calls=2))
    for window in (4_000, 6_000, 9_000, 14_000):
        assert is_legal(format, new_session(format, window).fit(whole))
    roomy = new_session(format, 200_000, recall=False).fit(whole)
    assert all(map(is_same, history(format, roomy), history(format, whole)))


def is_same(one, other):
    return one is other


def test_f03_compacted_in_the_middle_of_four_parallel_calls_nothing_is_lost():
    """Compaction ran between call and result, or folded results into its summary message."""
    before = histories.wire(CHAT, steps(6))
    turn = [
        calling("p", "q", "r", "s"),
        *(answer(id, f"found {id}") for id in "pqrs"),
    ]
    for at in range(len(turn)):
        newest = partial(newest_messages, messages=at)
        stage = partial(
            compact, is_due=asked, keep_from=newest, least_share=0.0
        )
        policy = replace(DEFAULT, name="newest", on_request=stage)
        session = new_session(CHAT, 100_000, policy=policy)
        assert session.compact(chat(*before, *turn[: at + 1]))
        view = session.fit(chat(*before, *turn))
        assert is_legal(CHAT, view)
        assert all(f"found {id}" in said(view) for id in "pqrs")


@wires
def test_f04_a_turn_that_was_interrupted_is_closed_once_and_stays_as_it_is(
    format,
):
    """Ctrl-C left a call without a result; every later request, and compaction too, failed."""
    *_, whole = requests(format, steps(3, calls=2))
    messages = history(format, whole)
    go_on = histories.user(format, "Go on.")
    for length in range(2, len(messages)):
        cut = [*messages[:length], go_on]
        session = new_session(format, repair=True)
        view = session.fit(histories.request(format, cut))
        assert is_legal(format, view)
        later = [*cut, *histories.wire(format, steps(1), start=9)]
        again = session.fit(histories.request(format, later))
        assert history(format, again)[: len(history(format, view))] == history(
            format, view
        )


@wires
@pytest.mark.parametrize("side", ["call", "result"])
def test_f05_repair_goes_both_ways_in_every_format_and_raises_nothing(
    format, side
):
    """Only missing results were repaired, on one provider's path, or the repair itself raised."""
    *_, whole = requests(format, steps(3))
    messages = history(format, whole)
    parsed = [FORMATS[format].parse(message, "m") for message in messages]
    is_one = [
        bool(one.calls if side == "call" else one.results) for one in parsed
    ]
    at = is_one.index(True)
    broken = histories.request(format, messages[:at] + messages[at + 1 :])
    assert not is_legal(format, broken)
    assert is_legal(format, new_session(format, repair=True).fit(broken))


def test_f06_a_call_that_is_never_answered_does_not_stop_compaction():
    """A scan for closed exchanges stopped at the first open call, for ever, without a word."""
    more = histories.wire(CHAT, steps(60), start=1)
    for repair in (True, False):
        session = new_session(CHAT, repair=repair)
        view = session.fit(
            chat(user("Go."), calling("lost"), user("Never mind."), *more)
        )
        assert "condensed" in kinds(session)
        assert is_legal(CHAT, view)
        assert session.window.estimate <= session.window.limit_tokens


def test_f07_a_pending_answer_does_not_hide_the_real_one():
    """ "Pending" under the same id let the call be summarised; the approved result had no call."""
    asked = [user("Pay."), calling("pay"), answer("pay", "pending")]
    between = histories.wire(CHAT, steps(12), start=1)
    session = new_session(CHAT, repair=True)
    session.fit(chat(*asked, *between))
    session.compact(chat(*asked, *between))
    view = session.fit(chat(*asked, *between, answer("pay", "paid 70")))
    assert is_legal(CHAT, view)
    assert "paid 70" in known(session, view)


def known(session, view):
    """All that is visible in a view, or that its notices open."""
    found, texts = {}, list(reading.visible(view["messages"]))
    reading.reachable(session, texts, found)
    return "\n".join([*texts, *found.values()])


@pytest.mark.parametrize("how", ["missing", "extra", "reordered", "split"])
def test_f08_gemini_has_as_many_responses_as_calls(how):
    """Counts that differ are refused, and the request for a summary as well: unrecoverable."""
    contents = histories.wire("gemini", steps(2, calls=2, lines=1))
    parts = contents[2]["parts"]
    broken = {
        "missing": [{**contents[2], "parts": parts[:1]}],
        "extra": [{**contents[2], "parts": [*parts, extra(parts[0])]}],
        "reordered": [{**contents[2], "parts": parts[::-1]}],
        "split": [{**contents[2], "parts": [part]} for part in parts],
    }[how]
    request = histories.request(
        "gemini", [*contents[:2], *broken, *contents[3:]]
    )
    assert is_legal("gemini", new_session("gemini", repair=True).fit(request))


def extra(part):
    return {"functionResponse": {**part["functionResponse"], "id": "nobody"}}


def test_f09_calls_of_one_name_without_ids_are_paired_by_position():
    """Gemini may send calls by name alone; both results went to the first of them."""
    contents = histories.wire(
        "gemini", steps(1, calls=2, lines=900), reuse_ids=True
    )
    session = new_session("gemini", 200_000)
    session.fit(histories.request("gemini", contents))
    calls = [session.window.transcript.call_for(2, part) for part in (0, 1)]
    assert [json.loads(one.arguments)["path"] for one in calls] == [
        "run 0.0",
        "run 0.1",
    ]


def test_f10_ids_that_come_again_are_told_apart():
    """Gateways reuse ids: "tool_use ids must be unique", or a new call taken for a replay."""
    turns = [
        Turn(calls=(Call("bash", f"{n}", f"{n}\n{LINES * 400}"),))
        for n in range(6)
    ]
    messages = histories.wire(CHAT, turns, reuse_ids=True)
    session = new_session(CHAT, repair=True)
    view = session.fit(chat(*messages))
    assert is_legal(CHAT, view)
    assert all(f"{n}\n{LINES * 400}" in known(session, view) for n in range(6))
    twice = [
        user("Go."),
        calling("a", "a"),
        answer("a", "1"),
        answer("a", "2"),
    ]
    assert is_legal(CHAT, new_session(CHAT, repair=True).fit(chat(*twice)))


def test_f11_of_two_results_of_a_call_one_is_sent_and_the_other_kept():
    """A made-up error and the late real result were both sent."""
    messages = [
        user("Go."),
        calling("a"),
        answer("a", "first"),
        answer("a", "second"),
    ]
    session = new_session(CHAT, repair=True)
    view = session.fit(chat(*messages))
    assert is_legal(CHAT, view)
    assert sum(message["role"] == "tool" for message in view["messages"]) == 1
    assert {"first", "second"} <= set(known(session, view).split("\n"))


@wires
@pytest.mark.parametrize("to", WIRES)
def test_f12_ids_stay_unique_and_legal_from_one_provider_to_another(
    format, to
):
    """After a switch of providers ids collided, or held characters that are refused."""
    *_, whole = requests(format, steps(3, calls=2, lines=2), model="m")
    if format.startswith("openai"):
        whole = json.loads(
            re.sub(r'"call_(\d)', r'"call:é \1', json.dumps(whole))
        )
    there = convert(whole, to, format=format)
    assert problems(there, to) == []
    assert problems(convert(there, format, format=to), format) == []


def test_f13_thinking_is_sent_as_it_came_or_not_at_all():
    """ "Thinking blocks cannot be modified": edited or stripped of its signature, for good."""
    every = list(requests("anthropic", thinking(16), model="claude-opus-5-1"))
    came, provider = thoughts(every[-1]["messages"]), Bound()
    session = new_session("anthropic")
    for request, later in zip(every, [*every[1:], every[-1]], strict=True):
        shown = session.fit(request)["messages"]
        assert all(block in came for block in thoughts(shown))
        reply = later["messages"][len(request["messages"]) :]
        assert not provider.judge(shown, reply, grew=False)
    assert {"condensed", "pruned"} & kinds(session)


def thinking(count):
    return steps(count, thought=True)


def thoughts(messages):
    blocks = [
        b
        for m in messages
        if isinstance(m["content"], list)
        for b in m["content"]
    ]
    return [block for block in blocks if block["type"] == "thinking"]


def test_f14_no_message_is_left_with_reasoning_alone():
    """The calls of a message were pruned, and its reasoning stayed behind."""
    messages = []
    for message in histories.wire("anthropic", thinking(40)):
        blocks = message["content"]
        parts = [blocks[:1], blocks[1:]] if thoughts([message]) else [blocks]
        messages += [{**message, "content": part} for part in parts]
    session = new_session("anthropic")
    for stop in range(1, len(messages) + 1):
        if messages[stop - 1]["role"] == "user":
            shown = session.fit(
                histories.request("anthropic", messages[:stop])
            )["messages"]
            for one, behind in pairwise(shown):
                is_call = "tool_use" in str(behind["content"])
                assert is_call or not thoughts([one])
                assert one["role"] == "assistant" or not is_call
    assert "condensed" in kinds(session)


def test_f15_reasoning_of_the_responses_api_is_followed_by_its_item():
    """A function call without its reasoning, or reasoning without what follows, is refused."""
    *_, request = requests("openai-responses", thinking(9))
    for kept in range(1, 12):
        newest = partial(newest_messages, messages=kept)
        stage = partial(
            compact, is_due=asked, keep_from=newest, least_share=0.0
        )
        policy = replace(DEFAULT, name="newest", on_request=stage)
        session = new_session("openai-responses", 200_000, policy=policy)
        assert session.compact(request)
        view = session.fit(request)
        assert is_legal("openai-responses", view)
        types = [item.get("type", "message") for item in view["input"]]
        after = [
            types[at + 1]
            for at, kind in enumerate(types)
            if kind == "reasoning"
        ]
        assert set(after) <= {"message", "function_call"}
        assert types.count("reasoning") == types.count("function_call")


@pytest.mark.parametrize("to", ["anthropic", "openai-chat", "gemini"])
def test_f16_sealed_reasoning_is_not_handed_to_who_cannot_open_it(to):
    """Encrypted reasoning of one backend was replayed to another after a switch."""
    *_, whole = requests("openai-responses", thinking(3), model="m")
    assert "gAAAAA" in said(whole)
    assert "gAAAAA" not in said(convert(whole, to, format="openai-responses"))


@wires
@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_f17_nothing_empty_is_made_and_repair_fills_what_was(format, text):
    """An empty text block: "text content blocks must be non-empty", on every later request."""
    *_, whole = requests(
        format, [Turn(user=text or None, calls=(Call("bash", "x", text),))]
    )
    whole[FORMATS[format].key].insert(0, histories.user(format, text))
    assert is_legal(format, new_session(format, repair=True).fit(whole))


@wires
def test_f18_roles_are_right_after_a_compaction_at_every_point(format):
    """No user message was left after the summary, or two assistants in a row."""
    for request in requests(format, steps(5)):
        session = new_session(format, 200_000)
        session.compact(request)
        assert is_legal(format, session.fit(request))


def test_f19_a_tail_stays_where_every_user_turn_is_a_result():
    """The search for a clean cut ran off the end: 35 messages became none."""
    session = new_session("anthropic")
    for request in requests("anthropic", steps(35)):
        view = session.fit(request)
        assert view["messages"][-1] is request["messages"][-1]
        assert is_legal("anthropic", view)
    assert "condensed" in kinds(session)


def test_f20_a_servers_tool_and_its_result_go_together():
    """Approvals, server tools and their answers were parted, since they are no plain calls."""
    messages = [user("Search.")]
    for n in range(30):
        id, found = (
            f"srvtoolu_{n}",
            [{"type": "text", "text": f"{n} {LINES * 30}"}],
        )
        searched = {
            "type": "server_tool_use",
            "id": id,
            "name": "web_search",
            "input": {"q": "x"},
        }
        result = {
            "type": "web_search_tool_result",
            "tool_use_id": id,
            "content": [],
        }
        ran = {
            "type": "tool_use",
            "id": f"toolu_{n}",
            "name": "bash",
            "input": {},
        }
        printed = {
            "type": "tool_result",
            "tool_use_id": f"toolu_{n}",
            "content": "ok",
        }
        messages += [  # the server goes on once it has the other tool's result (A18)
            {"role": "assistant", "content": [searched, ran]},
            {"role": "user", "content": [printed]},
            {"role": "assistant", "content": [result, *found]},
        ]
    session = new_session("anthropic")
    view = session.fit(histories.request("anthropic", messages))
    assert "condensed" in kinds(session)
    assert is_legal("anthropic", view)


def test_f21_a_summary_is_asked_for_in_plain_text_and_the_tools_stay_as_they_were():
    """A request for a summary held tool blocks without tools, or the tools were gone after it."""
    model, messages = (
        Writer(tagged("It went on.")),
        histories.wire(CHAT, steps(8)),
    )
    session = new_session(CHAT, 200_000, summariser=model)
    tools = session.fit(chat(*messages))["tools"]
    assert session.compact(chat(*messages))
    assert session.fit(chat(*messages))["tools"] == tools
    assert all(isinstance(text, str) for text in model.asked[0].texts)

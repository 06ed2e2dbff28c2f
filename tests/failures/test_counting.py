"""F57 to F72: tokens that were counted wrong, and caches that were thrown away."""

import base64
import json
import struct
from itertools import pairwise

import pytest

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
from ullage import (
    Limits,
    MemoryStore,
    OverLimitError,
    Session,
    Usage,
    problems,
)
from ullage.core.tokens.meter import Meter
from ullage.core.values.messages import Opaque
from ullage.core.values.notices import pointers

CHAT = "openai-chat"
wires = pytest.mark.parametrize("format", WIRES)


def whole(format, turns, **more):
    return list(requests(format, turns, **more))[-1]


def png(width, height, filler):
    header = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(
        ">II", width, height
    )
    return base64.b64encode(header + bytes(filler)).decode()


def shot(filler):
    """A request of Anthropic's with one screenshot in a result."""
    call = {"type": "tool_use", "id": "s", "name": "screenshot", "input": {}}
    data = {
        "type": "base64",
        "media_type": "image/png",
        "data": png(1000, 800, filler),
    }
    result = {
        "type": "tool_result",
        "tool_use_id": "s",
        "content": [{"type": "image"}],
    }
    result["content"][0]["source"] = data
    said = [
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    return histories.request(
        "anthropic", [{"role": "user", "content": "Click."}, *said]
    )


def tokens_of(request, format="anthropic"):
    session = new_session(format, 200_000)
    session.fit(request)
    return session.window.tokens - session.window.head_tokens


def test_f57_what_is_no_text_costs_something_too():
    """JSON, images and blocks of new types counted as nothing: 239k were seen as under 100k."""
    assert tokens_of(shot(1_000)) > 800
    block = json.dumps({"type": "something_new", "body": LINES * 100})
    unknown = Opaque("something_new", block, 0)
    assert Meter("claude-sonnet-4-5").leaf(unknown) > 500


@pytest.mark.parametrize(
    "text",
    ["名前は猫である。", "🙂👩‍👩‍👧", "aGVsbG8gd29ybGQ", '{"a":1,"b":[2,3]}'],
)
def test_f58_text_that_is_no_english_is_not_counted_by_four_characters(text):
    """characters / 4 was three to four times too low."""
    exact, cold = Meter("gpt-4.1"), Meter("claude-sonnet-4-5")
    long = text * 300
    assert exact.text(long) > len(long) / 4
    assert cold.counter.bound(long) >= exact.text(long)


def test_f59_an_image_costs_by_its_pixels_and_not_by_its_base64():
    """Four megabytes of base64 were counted as text, and nothing fitted any more."""
    assert 800 < tokens_of(shot(4_000_000)) < 2_500


def shots(pictures, model="claude-opus-5"):
    """A request of Anthropic's in which each call shows a picture."""
    messages = [{"role": "user", "content": "Click."}]
    for number, data in enumerate(pictures):
        source = {"type": "base64", "media_type": "image/png", "data": data}
        call = {
            "type": "tool_use",
            "id": f"s{number}",
            "name": "screenshot",
            "input": {},
        }
        result = {"type": "tool_result", "tool_use_id": f"s{number}"}
        content = [
            {**result, "content": [{"type": "image", "source": source}]}
        ]
        messages += [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": content},
        ]
    return {**histories.request("anthropic", messages), "model": model}


def pictures_in(view):
    results = (
        m["content"][0].get("content", [{}])[0] for m in view["messages"][2::2]
    )
    return [result["type"] == "image" for result in results]


def test_f60_screenshots_that_weigh_too_much_go_the_oldest_first():
    """Few tokens, too many bytes: 42 screenshots of 34 MB, refused with 413, compaction too."""
    pictures, breaks, before = (
        [png(1000, 800, 600_000 + n) for n in range(42)],
        0,
        [],
    )
    session = Session("claude-opus-5")
    for count in range(30, len(pictures) + 1):
        view = session.fit(shots(pictures[:count]))
        assert len(str(view)) < 32_000_000
        assert pictures_in(view)[-1]
        breaks += view["messages"][: len(before)] != before
        before = view["messages"]
    shown = pictures_in(view)
    assert shown == sorted(shown)
    assert breaks == 1
    block = session.recall(
        {
            "type": "tool_use",
            "id": "r",
            "name": "get_continuation",
            "input": {"tool_call_id": pointers(json.dumps(view))[0].ref},
        }
    )
    assert pictures[0] in json.dumps(block)


@pytest.mark.parametrize(
    "size", [(9_000, 10, 10), (100, 100, 10_000_001)], ids=["long", "heavy"]
)
@pytest.mark.parametrize("who", ["tool", "user"])
def test_f61_a_picture_that_no_request_may_hold_is_set_aside_at_once(
    size, who
):
    """One image over a provider's limit made every later request fail."""
    good, picture = png(1000, 800, 600), png(*size)
    request = shots([good, picture, good])
    if who == "user":
        request["messages"][0] = {
            "role": "user",
            "content": request["messages"][4]["content"][0]["content"],
        }
        request["messages"][3:5] = []
    assert "A25" in {
        problem.rule for problem in problems(request, "anthropic")
    }
    session = Session("claude-opus-5")
    view = session.fit(request)
    assert problems(view, "anthropic") == []
    assert json.dumps(view).count(good) == 2
    assert kinds(session) >= {"pruned"}


def test_f61_more_large_pictures_than_may_be_sent_together_go_the_oldest_first():
    """The same, of twenty-one screenshots of a large screen."""
    session = Session("claude-opus-5")
    for count in range(1, 40):
        request = shots([png(2_560, 1_440, n) for n in range(count)])
        view = session.fit(request)
        assert problems(view, "anthropic") == []
        assert pictures_in(view)[-1]
    assert sum(pictures_in(view)) >= 10


def test_f62_system_text_and_tools_are_a_part_of_the_request():
    """60k of schemas were left out of the count."""
    function = {
        "name": "big",
        "description": "word " * 20_000,
        "parameters": {},
    }
    request = whole(
        CHAT, steps(30), tools=[{"type": "function", "function": function}]
    )
    session = new_session(CHAT, 32_000)
    session.fit(request)
    assert session.window.head_tokens > 18_000
    assert session.window.estimate <= session.window.limit_tokens
    with pytest.raises(OverLimitError):
        new_session(CHAT, 16_000).fit(request)


@pytest.mark.parametrize(
    "usage", [None, {"prompt_tokens": 0}, {"prompt_tokens": -1}, {}, "no"]
)
def test_f63_without_usage_it_is_decided_by_estimate(usage):
    """No usage: it never compacted; a sentinel: it always did."""
    session, alone = new_session(CHAT), new_session(CHAT)
    for request in requests(CHAT, steps(20)):
        assert session.fit(request) == alone.fit(request)
        session.observe({"usage": usage})
    assert kinds(session) - {"cache_broken"} == kinds(alone) | {"unreported"}


def test_f64_usage_summed_over_a_turn_is_not_taken_for_the_size_of_the_prompt():
    """A sum over twelve calls looked like a prompt 5.7 times as long."""
    session = new_session(CHAT, 600_000)
    for request in requests(CHAT, [Turn(user=LINES * 3_000), *steps(9)]):
        session.fit(request)
        session.observe(Usage(fresh_tokens=12 * session.window.tokens))
        assert session.window.estimate == session.window.tokens
    assert not kinds(session) & {"pruned", "condensed", "compacted", "cut"}


def test_f65_a_reply_is_taken_in_for_the_view_it_answers():
    """After a retry, usage was bound to the wrong request."""
    session = new_session(CHAT, 200_000)
    small, large, later = (whole(CHAT, steps(n)) for n in (1, 30, 31))
    first, second = session.fit(small), session.fit(large)
    tokens = session.window.tokens
    first.observe(Usage(fresh_tokens=tokens * 2))
    session.fit(large)
    cold = new_session(CHAT, 200_000)
    cold.take(session.news())
    cold.fit(large)
    assert session.window.estimate == cold.window.estimate > 2 * tokens
    second.observe(Usage(fresh_tokens=tokens))
    session.fit(later)
    assert session.window.estimate == pytest.approx(tokens, rel=0.1)


# ── prompt cache ─────────────────────────────────────────────────────────────────────────


def breaks(format, views):
    """How many views do not go on where the one before ended."""
    sent = [
        [json.dumps(message) for message in history(format, view)]
        for view in views
    ]
    return sum(new[: len(old)] != old for old, new in pairwise(sent))


@wires
def test_f66_old_messages_change_only_where_an_event_says_so(format):
    """Old messages were rewritten at every turn, and each time the whole prefix was lost."""
    session = new_session(format, 16_000)
    views = run(session, format, steps(60))
    rewriting = {"pruned", "condensed", "compacted", "cut"}
    turns = sum(
        any(e.kind in rewriting for e in view.events) for view in views
    )
    assert 0 < breaks(format, views) <= turns <= 15


@wires
def test_f67_nothing_that_changes_is_put_before_what_stays(format):
    """The time, or a status, was written into the beginning or into old messages."""
    views = run(new_session(format, 200_000), format, steps(12))
    assert breaks(format, views) == 0
    key = {
        "anthropic": "system",
        "openai-responses": "instructions",
        "gemini": "systemInstruction",
    }
    if format in key:
        assert len({json.dumps(view[key[format]]) for view in views}) == 1


@wires
def test_f68_the_tools_are_the_same_bytes_at_every_turn(format):
    """The list of tools, or its order, changed from turn to turn."""
    views = run(new_session(format), format, steps(20))
    tools = {
        json.dumps(view.get("tools") or view.get("config")) for view in views
    }
    assert len(tools) == 1


def test_f70_a_summary_does_not_come_before_what_stays_the_same():
    """The summary stood before unchanged blocks, so they were written to the cache again."""
    session = new_session(CHAT, 100_000)
    request = whole(CHAT, steps(9))
    before = session.fit(request)["messages"]
    session.compact(request)
    assert session.fit(request)["messages"][0] is before[0]


def test_f71_a_single_cold_report_changes_no_decision():
    """One call that read nothing from the cache was taken for a cache that had gone."""
    warm, cold = new_session(CHAT, 32_000), new_session(CHAT, 32_000)
    for number, request in enumerate(requests(CHAT, steps(30))):
        one, other = warm.fit(request), cold.fit(request)
        assert one == other
        tokens = 2 * warm.window.tokens
        assert warm.window.estimate == cold.window.estimate
        warm.observe(Usage(cache_read_tokens=tokens))
        cold.observe(
            Usage(fresh_tokens=tokens)
            if number == 9
            else Usage(cache_read_tokens=tokens)
        )


@wires
def test_f72_the_same_history_gives_the_same_bytes(format):
    """Markers held random ids or the time, and no cache was ever hit."""
    turns = [
        Turn(calls=(Call("bash", f"{n}", f"{n}\n{LINES * 900}"),))
        for n in range(9)
    ]
    once = [
        json.dumps(view) for view in run(new_session(format), format, turns)
    ]
    assert [
        json.dumps(view) for view in run(new_session(format), format, turns)
    ] == once


def test_f69_what_a_batch_breaks_is_paid_back():
    """Fewer tokens and a higher bill: 2 to 7 times."""
    session, plain, ours = new_session(CHAT, 64_000), 0.0, 0.0
    last_plain, last_ours = [], []
    for request in requests(CHAT, steps(120)):
        view = session.fit(request)
        plain += price(last_plain, request["messages"])
        ours += price(last_ours, view["messages"])
        last_plain, last_ours = request["messages"], view["messages"]
    assert ours < plain


def price(before, now):
    """Characters, a tenth for each in the shared prefix."""
    shared = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            break
        shared += len(str(new))
    return 1.25 * (len(str(now)) - shared) + 0.1 * shared


def test_f109_a_summariser_has_a_window_and_a_price_of_its_own():
    """Summaries ran on the dearest model, or on a cheap one whose window was too small."""
    model = Writer(
        tagged(
            "It went on.",
            usage=Usage(fresh_tokens=9_000),
            model="gpt-4.1-nano",
        )
    )
    session = Session(
        "gpt-4.1",
        limits=Limits(window_tokens=200_000),
        summariser=model,
        store=MemoryStore(),
    )
    session.compact(whole(CHAT, steps(9)))
    assert session.cost_usd == pytest.approx(9_000 * 0.1 / 1e6)

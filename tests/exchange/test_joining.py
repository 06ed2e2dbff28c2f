"""A conversation that a door meets under way, on each wire: `wrap` and the proxy stand on these."""

import json

import pytest

from tests import histories
from tests.exchange.scripted import Reply, ask, exchanges
from tests.exchange.test_exchange import PATHS, replied
from tests.session.test_joining import (
    KEYS,
    ROOMY,
    SEEDS,
    TURNS,
    UNBOUND,
    assert_costs_little,
    seeded,
    steps,
)
from tests.session.test_joining_wires import TOOLS, names

every = pytest.mark.parametrize("format", PATHS)


def body(format, turns, before=()):
    messages = [*before, *histories.wire(format, turns)]
    request = histories.request(
        format, messages, tools=TOOLS[format], model=UNBOUND[format]
    )
    if format == "gemini":
        del request["model"]
    return request


def relayed(format, turns, first, **settings):
    """What goes on of the requests behind ``first`` turns and on, and the reports of them."""
    door, reports = exchanges(limits=ROOMY, **settings)
    views = []
    for count in range(first, len(turns) + 1):
        asked = body(format, turns[:count])
        _, _, upstream = ask(
            door, PATHS[format], asked, Reply(replied(format))
        )
        views.append(json.loads(upstream.sent[-1]))
    return views, reports


@every
def test_it_sends_little_more_than_what_it_saw_from_the_start(format):
    turns = steps(TURNS)
    whole, _ = relayed(format, turns, 0)
    for first in (1, 3, 10):
        views, reports = relayed(format, turns, first)
        assert_costs_little(format, views, whole)
        assert views[-1] == whole[-1]
        assert reports[-1].standing is None


@every
def test_each_report_tells_why_nothing_is_cut(format):
    views, reports = relayed(format, steps(12), 2)
    joined = next(
        at
        for at, view in enumerate(views)
        if "get_continuation" in names(view)
    )
    assert joined > 0
    assert [report.standing.reason for report in reports[:joined]] == [
        "price"
    ] * joined
    assert [report.standing for report in reports[joined:]] == [None] * (
        len(views) - joined
    )


@every
def test_it_can_be_turned_off(format):
    views, reports = relayed(format, steps(12), 10, joins=False)
    assert names(views[-1]) == {"bash"}
    assert (reports[-1].standing.reason, reports[-1].is_changed) == (
        "joins",
        False,
    )


@every
@pytest.mark.parametrize("seed", SEEDS)
def test_a_client_that_makes_up_the_first_turns_is_cut_from_the_start(
    format, seed
):
    before = seeded(format, SEEDS[seed])
    door, reports = exchanges(limits=ROOMY)
    for count in range(4):
        asked = body(format, steps(count), before)
        _, _, upstream = ask(
            door, PATHS[format], asked, Reply(replied(format))
        )
    view = json.loads(upstream.sent[-1])
    assert "get_continuation" in names(view)
    assert view[KEYS[format]][: len(before)] == before
    assert len(upstream.sent[-1]) < 30_000 < 90_000 < len(json.dumps(asked))
    assert "joined" not in {
        event.kind for report in reports for event in report.events
    }


@every
def test_a_count_of_tokens_joins_nothing_for_want_of_tools(format):
    """Clients count a history without its tools before they go on with them."""
    paths = {
        "anthropic": "/v1/messages/count_tokens",
        "openai-responses": "/v1/responses/input_tokens",
        "gemini": "/v1beta/models/gemini-3-pro:countTokens",
    }
    if format not in paths:
        pytest.skip("Chat Completions counts no tokens")
    door, reports = exchanges(limits=ROOMY)
    bare = body(format, steps(3))
    del bare["tools"]
    ask(
        door, paths[format], bare, Reply({"input_tokens": 1, "totalTokens": 1})
    )
    _, _, upstream = ask(
        door, PATHS[format], body(format, steps(3)), Reply(replied(format))
    )
    assert names(json.loads(upstream.sent[-1])) == {"bash"}
    assert [report.standing.reason for report in reports] == ["tools", "price"]

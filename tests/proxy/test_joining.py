"""A conversation that the proxy meets under way, and where somebody who looks is told of it."""

import json

import pytest

from tests.exchange.test_exchange import PATHS
from tests.exchange.test_joining import body
from tests.proxy.told import FITTED, PRUNED, of, relayed
from tests.proxy.upstream import ask, proxy, settle, upstream
from tests.session.test_joining import TURNS, assert_costs_little, steps
from ullage.core.turn.standing import Standing
from ullage.core.values.events import Event
from ullage.doors.proxy.activity import Activity, joined
from ullage.doors.proxy.config import config_of
from ullage.tools.cli._tally import RunTally, summary

WHY = "nothing is cut, and no recall tools are offered: that does not pay yet"
WAITS = Standing("price", WHY, was_joined=True)
JOINED = Event(kind="joined", where="the whole history", why="that pays")


def through(format, turns, first, **settings):
    """The bodies that reach the upstream, and what the header of each reply says."""
    given = {"window_tokens": 1_000_000, "pages": True, **settings}
    bodies, said = [], []
    with upstream() as there, proxy(there, **given) as url:
        for count in range(first, len(turns) + 1):
            raw = json.dumps(body(format, turns[:count])).encode()
            said.append(ask(url, "POST", PATHS[format], raw)[1]["X-Ullage"])
            bodies.append(json.loads(there.requests[-1].body))
        settle(url)
        state = json.loads(ask(url, path="/_ullage/state")[2])
    return bodies, said, state


@pytest.mark.parametrize("format", PATHS)
def test_it_sends_little_more_than_what_it_saw_from_the_start(format):
    """At whichever turn it was joined: tests/exchange/test_joining.py."""
    turns = steps(TURNS)
    whole, _, _ = through(format, turns, 0)
    bodies, said, _ = through(format, turns, 3)
    assert_costs_little(format, bodies, whole)
    assert said.count("fitted; joined") == 1
    assert said[-1] == "fitted"


def test_a_header_says_what_it_waits_for_and_when_it_is_joined():
    _, said, state = through("openai-chat", steps(8), 2)
    at = said.index("fitted; joined")
    assert at > 0
    assert said[:at] == ["unchanged; waits=price"] * at
    assert set(said[at + 1 :]) == {"fitted"}
    assert state["conversations"][0]["standing"] is None


def test_the_page_says_why_nothing_is_cut():
    _, said, state = through("openai-chat", steps(3), 2)
    standing = state["conversations"][0]["standing"]
    assert "does not pay yet" in standing["why"]
    assert said == ["unchanged; waits=price"] * 2


def test_it_can_be_turned_off():
    _, said, state = through("openai-chat", steps(12), 10, joins=False)
    assert said == ["unchanged; waits=joins"] * 3
    assert "joins=False" in state["conversations"][0]["standing"]["why"]


def test_it_is_turned_off_in_a_file_or_the_environment(tmp_path):
    file = tmp_path / "proxy.toml"
    file.write_text("joins = false\n")
    assert config_of(file).joins is False
    assert config_of(None, {"ULLAGE_PROXY_JOINS": "false"}).joins is False
    assert config_of(None).joins is True


def seen_of(*told):
    found = Activity()
    for each in told:
        found.take(each)
    return found


def test_the_summary_of_a_run_says_what_became_of_them():
    waiting = [of(key, 1.0, standing=WAITS, events=()) for key in ("a", "b")]
    cut = [of("c", at, events=(JOINED, PRUNED)) for at in (1.0, 2.0)]
    found = seen_of(*waiting, *cut, of("d", 1.0))
    tally = RunTally()
    tally.take(relayed())
    lines = summary(tally, conversations=found.conversations)
    assert lines[-2:] == [
        "1 conversation began without ullage; shortened as one batch, and from then on.",
        f"2 conversations began without ullage: {WHY}.",
    ]
    plain = summary(tally, conversations=seen_of(relayed()).conversations)
    assert plain == lines[:-2]


def test_the_newest_standing_of_a_conversation_counts_whoever_served_it():
    one, other = (
        seen_of(of("a", 1.0, standing=WAITS)),
        seen_of(of("a", 2.0, events=(JOINED,))),
    )
    (shown,) = joined([one.conversations, other.conversations])
    assert shown.standing is None
    assert shown.is_joined
    assert FITTED.standing is None

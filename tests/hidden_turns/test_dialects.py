"""Each wire has its dialect."""

import pytest

from tests.hidden_turns.talk import RECALL, Reply, Talk
from tests.servers.replies import Prompt, body_of
from ullage.wires import WIRES


def test_every_wire_has_one():
    for wire in WIRES:
        dialect = wire.dialect(wire.format, bool)
        assert (
            type(dialect).__module__
            == f"{wire.home.removesuffix('.wire')}.hidden_turns"
        )


@pytest.mark.parametrize(
    ("format", "key", "asked"),
    [
        ("openai-chat", "choices", {"n": 2}),
        ("gemini", "candidates", {"generationConfig": {"candidateCount": 2}}),
    ],
)
def test_several_choices_make_no_further_round(format, key, asked):
    talk = Talk(format, **asked)
    talk.user("Go.")
    body = body_of(format, Reply("Hm.", [RECALL]), 1, Prompt(9))
    body[key].append({**body[key][0], "index": 1})
    talk.model(body)
    assert (talk.rounds, talk.recalled) == (1, 0)
    stops = [
        each.get("finish_reason") or each.get("finishReason")
        for each in talk.reply[key]
    ]
    assert [stop.lower() for stop in stops] == ["stop", "stop"]

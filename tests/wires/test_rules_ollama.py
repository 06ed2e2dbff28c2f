"""The judge of Ollama's own chat: legal and illegal examples of each rule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wires.rule_examples import BARE, DONE, GO, NEXT, numbered, ran, runs
from tests.wires.test_rules import SHAPES
from ullage import problems
from ullage.wires.rules.checker import check_of, problems_of

SYSTEM = {"role": "system", "content": "be brief"}
IMAGE = {"role": "user", "content": "what is it?", "images": ["AAAA"]}

LEGAL = {
    "nothing: the model is loaded": [],
    "the simplest": [GO],
    "system text anywhere": [SYSTEM, GO, SYSTEM, DONE, NEXT],
    "no content": [{"role": "user"}, {"role": "assistant", "thinking": "hm"}],
    "a picture": [IMAGE],
    "a step": [GO, runs("run"), ran()],
    "a picture in a result": [GO, runs("run"), ran(images=["AAAA"])],
    "an empty list of calls": [GO, runs(), NEXT],
    "calls of one name without ids": [GO, runs("run", "run"), ran(), ran()],
    "results in any order": [GO, runs("run", "look"), ran("look"), ran()],
    "ids in any order": [
        GO,
        runs(numbered("a"), numbered("b")),
        ran(tool_call_id="b"),
        ran(tool_call_id="a"),
    ],
    "an id on one side only": [
        GO,
        runs(numbered("a"), "run"),
        ran(),
        ran(tool_call_id="mine"),
    ],
    "ids used again": [GO, runs(numbered("a")), ran(tool_call_id="a")] * 2,
    "one id twice in a message": [GO, runs(numbered("a"), numbered("a"))]
    + [ran(tool_call_id="a")] * 2,
    "no word of the calls": [GO, runs("run", "look"), BARE, BARE],
    "no word of one call": [GO, runs("run", "look"), ran(), BARE],
    "the tool under the older name": [
        GO,
        runs("run"),
        {**BARE, "name": "run"},
    ],
}
ILLEGAL = [
    ("O0", [{"role": "robot", "content": "x"}]),
    ("O0", [{"role": "user", "content": ["x"]}]),
    (
        "O0",
        [
            GO,
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"name": "run"}],
            },
        ],
    ),
    ("O1", [GO, runs("run")]),
    ("O1", [GO, runs("run", "run"), ran(), NEXT]),
    ("O1", [GO, runs("run", "look"), BARE]),
    ("O2", [GO, ran()]),
    ("O2", [GO, BARE]),
    ("O2", [GO, runs("run"), ran(), BARE]),
    ("O2", [GO, runs("run"), BARE, BARE]),
    ("O3", [GO, runs("run"), NEXT, ran()]),
    ("O3", [GO, runs("run"), NEXT, BARE]),
    ("O3", [GO, runs("run"), DONE, ran()]),
    (
        "O3",
        [GO, runs("run"), DONE, BARE],
    ),  # the model's in a row are one reply
    ("O4", [GO, runs(numbered("a", arguments="{}")), ran()]),
    ("O5", [{**GO, "images": ["https://example.com/a.png"]}]),
]


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name):
    assert problems_of("ollama", LEGAL[name]) == []


@pytest.mark.parametrize(("rule", "messages"), ILLEGAL)
def test_illegal(rule, messages):
    assert {problem.rule for problem in problems_of("ollama", messages)} == {
        rule
    }


def test_a_result_that_says_nothing_is_of_no_earlier_reply():
    found = problems_of("ollama", [GO, runs("run"), NEXT, DONE, BARE])
    assert {problem.rule for problem in found} == {"O1", "O2"}


def test_a_request_without_messages_loads_the_model():
    assert problems({"model": "qwen3", "messages": [], "keep_alive": 0}) == []


@given(st.lists(SHAPES, max_size=5), SHAPES)
def test_no_shape_is_too_odd_for_it(messages, head):
    checker = check_of("ollama", head if isinstance(head, dict) else {})
    for message in messages:
        checker.feed(message)
        checker.problems()

"""The limits of media: what is just allowed, and what is just too much."""

import copy

import pytest

from lab.returned import problems
from tests.second_reading import broken
from tests.wires.rule_examples import assistant, gave, messages, png, use, user
from tests.wires.test_media_recall import (
    KEYS,
    MODELS,
    SENT,
    block_of,
    may_hold,
    step,
)
from ullage.core.values.limits import ANTHROPIC_MEDIA

BIG = ANTHROPIC_MEDIA.image_bytes

ROWS = [
    ("a side of 8,000 pixels", [png(8_000)], [png(8_001)], "claude-opus-5"),
    ("20 large images", [png(2_001)] * 20, [png(2_001)] * 21, "claude-opus-5"),
    (
        "21 images",
        [png(2_000)] * 21,
        [png(2_000)] * 20 + [png(2_001)],
        "claude-opus-5",
    ),
    (
        "100 images, small window",
        [png(9)] * 100,
        [png(9)] * 101,
        "claude-sonnet-4-5",
    ),
    (
        "600 images, large window",
        [png(9)] * 600,
        [png(9)] * 601,
        "claude-opus-5",
    ),
    ("600 images, no model named", [png(9)] * 600, [png(9)] * 601, None),
    ("ten megabytes", [png(9, BIG - 24)], [png(9, BIG)], "claude-opus-5"),
]


@pytest.mark.parametrize(
    ("near", "over", "model"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS]
)
def test_images_of_anthropic(near, over, model):
    """Sent by the user, and in the result of a tool, alike."""
    for given, expected in ((near, set()), (over, {"A25"})):
        result = messages(
            user(), assistant(use()), user(gave(content=given)), model=model
        )
        result["messages"][0] = user({"type": "text", "text": "look"})
        for request in (messages(user(*given), model=model), result):
            assert {
                problem.rule for problem in problems("anthropic", request)
            } == expected
            assert broken("anthropic", request) == expected


@pytest.mark.parametrize(("format", "kind"), SENT)
def test_the_validator_takes_in_results_what_the_data_says(format, kind):
    first = {"role": "user", "parts": [{"text": "go"}]}
    history = [
        first if format == "gemini" else {"role": "user", "content": "go"}
    ]
    history += step(format, 0, copy.deepcopy(block_of(format, kind)))
    request = {"model": MODELS[format], KEYS.get(format, "messages"): history}
    legal = problems(format, request) == []
    assert legal == may_hold(format, kind, result=True)

"""What is told of an error holds nothing of the request that met it."""

import pytest

from ullage.core.errors import (
    ConfigError,
    FormatError,
    OverLimitError,
    StoreError,
)
from ullage.doors.exchange.problems import place_of, problem_of


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            FormatError("messages[3].content[0]", "no role 'SECRET'", "…"),
            "messages[3].content[0]",
        ),
        (
            FormatError("tools[0].SECRET", "SECRET", "…"),
            "FormatError at tools[0].…",
        ),
        (OverLimitError(10, 20, {"tool SECRET": 20}), "20 tokens, 10 allowed"),
        (
            StoreError("sqlite", "commit", "SECRET", "SECRET"),
            "StoreError: sqlite, commit",
        ),
        (
            ConfigError("model", "no window is known for 'SECRET'", "…"),
            "ConfigError: model",
        ),
        (KeyError("SECRET"), "KeyError"),
    ],
)
def test_kind_place_and_numbers_are_told(error, told):
    assert told in problem_of(error)
    assert "SECRET" not in problem_of(error)


@pytest.mark.parametrize(
    ("where", "place"),
    [
        (
            "contents[0].parts[12].functionCall.args",
            "contents[0].parts[12].functionCall.args",
        ),
        ("messages[0].sk-ant-key-1", "messages[0].…"),
        ("messages[0]['a b']", "messages[0][…]"),
    ],
)
def test_a_place_is_told_by_the_wires_own_names(where, place):
    assert place_of(where) == place
    assert len(place_of("messages." * 1_000_000)) <= 200

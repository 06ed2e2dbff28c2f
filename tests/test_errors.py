"""Each message says what, with which numbers, and what to do."""

import pickle

import pytest

from ullage.core import errors

CASES = {
    "FormatError": (
        errors.FormatError(
            "messages[3]", "unknown role 'bard'", "Roles here are user, tool."
        ),
        "messages[3]: unknown role 'bard'. Roles here are user, tool.",
    ),
    "OverLimitError": (
        errors.OverLimitError(
            4_000, 9_100, {"system text": 600, "messages": 8_500}
        ),
        "the request needs at least 9,100 tokens and the limit is 4,000. Parts that may not be "
        "touched: messages 8,500, system text 600. Shorten the largest of them, lower the "
        "output reserve, or use a model with a larger window.",
    ),
    "OverLimitError without a guard": (
        errors.OverLimitError(
            4_000, 9_100, {"messages": 9_100}, has_guard=False
        ),
        "the request needs at least 9,100 tokens and the limit is 4,000. The policy has no "
        "guard, which would make it fit. Give it one: "
        "Policy(..., guard=ullage.policy.DEFAULT.guard).",
    ),
    "StoreError": (
        errors.StoreError(
            "sqlite", "commit", "the disk is full. Free some space", "ab12"
        ),
        "sqlite store: commit of 'ab12' failed: the disk is full. Free some space",
    ),
    "RefNotFound": (
        errors.RefNotFound("memory", "ab12"),
        "memory store: get of 'ab12' failed: nothing is kept under this ref for this tenant. "
        "Check the ref against the notice it came from; refs are case-sensitive",
    ),
    "StageError": (
        errors.StageError(
            "mine", "message 3", "the user answered this", "Leave it out."
        ),
        "stage mine, message 3: the user answered this. Leave it out.",
    ),
    "ConfigError": (
        errors.ConfigError(
            "policy", "'x' is not known", "Use one of default."
        ),
        "policy: 'x' is not known. Use one of default.",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_message_reads(name):
    error, message = CASES[name]
    assert type(error).__name__ == name.split()[0]
    assert str(error) == message
    assert isinstance(error, errors.UllageError)


def test_errors_carry_their_numbers():
    over = CASES["OverLimitError"][0]
    assert (over.limit_tokens, over.need_tokens) == (4_000, 9_100)
    assert list(over.parts) == ["messages", "system text"]
    spent = errors.BudgetExceeded("tokens", 1_000, 1_200)
    assert (spent.allowance, spent.spent) == (1_000, 1_200)
    assert "1,200" in str(spent)
    assert CASES["RefNotFound"][0].ref == "ab12"
    assert CASES["StoreError"][0].key == "ab12"


def test_an_error_of_the_store_is_caught_as_one():
    with pytest.raises(errors.StoreError):
        raise CASES["RefNotFound"][0]
    with pytest.raises(errors.FormatError):
        raise errors.UnsupportedPart(
            "messages[0]", "a hologram", "Leave it out."
        )


@pytest.mark.parametrize("name", CASES)
def test_an_error_goes_from_process_to_process(name):
    error, message = CASES[name]
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), vars(copy)) == (message, vars(error))

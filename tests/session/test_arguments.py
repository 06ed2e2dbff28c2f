"""What a session is given is checked where it is given, and says what to write instead."""

import pytest

from ullage import AsyncSession, Limits, Session
from ullage.core.errors import ConfigError
from ullage.session.arguments import check_arguments

MESSAGES = [{"role": "user", "content": [{"type": "text", "text": "Hi."}]}]
WRONG = [
    (
        {"model": 5},
        "model: an int names no model. Give its name: model='gpt-4.1'.",
    ),
    (
        {"limits": 64_000},
        "limits: an int is not Limits. Give limits=ullage.Limits(window_tokens=64000).",
    ),
    (
        {"limits": {"window_tokens": 9}},
        "limits: a dict is not Limits. Give limits=ullage.Limits(window_tokens=64000).",
    ),
    (
        {"recall": "yes"},
        "recall: 'yes' is not known. Give recall=True, False, 'auto' or 'host'.",
    ),
    (
        {"recall": 1},
        "recall: 1 is not known. Give recall=True, False, 'auto' or 'host'.",
    ),
    (
        {"budget": 5},
        "budget: an int is not a Budget. Give budget=ullage.Budget(tokens=…) or "
        "ullage.Budget(usd=…).",
    ),
    (
        {"policy": "defualt"},
        "policy: 'defualt' is not known. Did you mean 'default'? Use one of default, ",
    ),
    (
        {"format": "openai"},
        "format: 'openai' is not known. Did you mean 'openai-chat'? ",
    ),
]


@pytest.mark.parametrize("kind", [Session, AsyncSession])
@pytest.mark.parametrize(
    ("arguments", "message"), WRONG, ids=lambda it: str(it)[:30]
)
def test_a_wrong_argument_is_refused_at_once(kind, arguments, message):
    with pytest.raises(ConfigError) as refused:
        kind(**{"model": "gpt-4.1", **arguments})
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("tokens", ["64k", 5.5, True, None, b"sk-secret"])
def test_limits_are_whole_numbers(tokens):
    words = f"window_tokens: a value of type {type(tokens).__name__} is not"
    with pytest.raises(ConfigError, match=words) as refused:
        Limits(window_tokens=tokens)
    assert "secret" not in str(refused.value)
    if tokens is not None:
        with pytest.raises(ConfigError, match="output_reserve_tokens: a val"):
            Limits(window_tokens=9_000, output_reserve_tokens=tokens)


def test_no_value_is_in_the_message():
    """A key that was given in the wrong place is not repeated in a log."""
    with pytest.raises(ConfigError) as refused:
        check_arguments(b"sk-secret", None, "auto", None)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("recall", [True, False, "auto", "host"])
def test_what_is_right_is_taken(recall):
    with Session(
        "gpt-4.1", limits=Limits(window_tokens=9_000), recall=recall
    ) as session:
        assert session.settings.recall == recall


def test_a_slip_in_a_model_s_name_is_told_with_the_name_that_was_meant():
    with Session("clade-opus-4-8", format="anthropic") as session:
        session.fit(
            {
                "model": "clade-opus-4-8",
                "system": "Help.",
                "messages": MESSAGES,
            }
        )
        (event,) = [
            event for event in session.events if event.kind == "unknown_model"
        ]
    assert event.why.endswith("; did you mean claude-opus-4-8?")

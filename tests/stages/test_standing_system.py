"""What the system says in mid-history stays in force when what is around it is condensed.

Tools that were added, settings that were changed and instructions that were appended hold for
everything behind them, so they stand behind the account, in their order.
"""

import json

import pytest

from tests import histories
from ullage import Limits, Session, problems
from ullage.wires import FORMATS

TOOL = {
    "type": "function",
    "name": "grep",
    "parameters": {"type": "object"},
    "strict": None,
}
SAID = {
    "openai-chat": [
        {"role": "developer", "content": "From now on, answer in Latin."},
        {"role": "system", "content": "The user is on the telephone."},
    ],
    "openai-responses": [
        {"type": "additional_tools", "role": "developer", "tools": [TOOL]},
        {"type": "configuration_update", "reasoning": {"effort": "low"}},
        {"role": "developer", "content": "From now on, answer in Latin."},
    ],
    "anthropic": [
        {
            "role": "system",
            "content": [
                {
                    "type": "tool_addition",
                    "tool": {"type": "tool_reference", "name": "grep"},
                }
            ],
        },
        {"role": "system", "content": "From now on, answer in Latin."},
    ],
}
MODEL = {**histories.MODEL, "anthropic": "claude-opus-4-8"}
"""Models that take system messages among the others."""


def turn(number):
    call = histories.Call(
        "read_file", f"{number}.log", f"line {number}\n" * 300
    )
    return histories.Turn(said="Let me look.", calls=(call,))


def history(format, before=3, after=24):
    """A long run in which the system speaks twice: behind the results of a step each time."""
    messages = histories.wire(format, [turn(n) for n in range(before)])
    for number, said in enumerate(SAID[format]):
        first = before + number * after
        messages += [
            said,
            *histories.wire(
                format,
                [turn(n) for n in range(first, first + after)],
                start=first,
            ),
        ]
    return messages


@pytest.mark.parametrize("format", SAID)
def test_it_stands_behind_the_account(format):
    messages = history(format)
    wire = FORMATS[format]
    session = Session(
        MODEL[format],
        policy=histories.CUTS_ALWAYS,
        limits=Limits(window_tokens=4_000),
        format=format,
    )
    for stop in range(len(messages) // 2, len(messages) + 1):
        request = histories.request(
            format, messages[:stop], model=MODEL[format]
        )
        if problems(request, format):
            continue
        view = session.fit(request)
        shown = view[wire.key]
        assert problems(view, format) == []
        assert session.window.estimate <= session.window.limit_tokens
        standing = [said for said in SAID[format] if said in messages[:stop]]
        assert [
            m for m in shown if any(m is said for said in standing)
        ] == standing
    assert session.window.summaries
    account = next(
        i for i, m in enumerate(shown) if "[ullage:" in json.dumps(m) and i
    )
    assert shown[account + 1] is SAID[format][0]

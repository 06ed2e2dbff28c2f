"""What the guard gives up: rules that a user plants, and results that no view has shown.

python -m lab.guard rules [SEEDS]    rules kept verbatim, by policy and window
python -m lab.guard thinking         results unseen and prefix breaks under manual thinking
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

from ullage import Limits, Session
from ullage.documents.presets.three_layer import COMPACTION

POLICIES = (
    "default",
    "output_cache",
    "three_layer",
    "multi_stage",
    "token_budget",
    "continuation",
)
WINDOWS = (4_000, 8_000, 16_000)
_CALLS, _RULES = 120, 24
_BEGINNINGS = (
    "Never touch",
    "Always run",
    "Do not delete",
    "You must keep",
    "Prefer the tool for",
    "Only write to",
    "From now on leave alone",
    "Use tabs in",
)
_WORDS = (
    "unless",
    "until",
    "tests",
    "the owner",
    "agrees",
    "release",
    "branch",
    "before",
    "review",
)
_SMALL_TALK = (
    "Thanks, go on please.",
    "ok",
    "Looks good to me so far, continue.",
)
_MODEL, _CLAUDE = "gpt-4o", "claude-sonnet-4-5"


def planted(seed: int) -> tuple[list[dict[str, Any]], list[str]]:
    """A run of tool calls between which the user plants rules and small talk, and the rules."""
    random, rules = Random(seed), list[str]()
    at = set(random.sample(range(2, _CALLS - 2), _RULES))
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Mend the failing build."}
    ]
    for number in range(_CALLS):
        messages += _call(
            f"call_{number}", _text(random, random.randint(1_000, 3_000))
        )
        if number in at:
            rules.append(_rule(random, number))
            messages += [
                _said("assistant", "I go on."),
                _said("user", rules[-1]),
            ]
            messages += [
                _said("assistant", "Acknowledged."),
                _said("user", "go on"),
            ]
        elif random.random() < 0.15:
            talk = random.choice(_SMALL_TALK)
            messages += [
                _said("assistant", "Shall I go on?"),
                _said("user", talk),
            ]
    return messages, rules


def _said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def _call(id: str, output: str) -> list[dict[str, Any]]:
    function = {"name": "bash", "arguments": '{"command": "make ' + id + '"}'}
    call = {"id": id, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "content": output},
    ]


def _text(random: Random, chars: int) -> str:
    return " ".join(
        f"w{random.randint(0, 99_999)}" for _ in range(chars // 6)
    )[:chars]


def _rule(random: Random, number: int) -> str:
    text = f"{random.choice(_BEGINNINGS)} item_{random.randint(1_000, 9_999)} in module_{number}"
    chars = random.randint(60, 119)
    while len(text) < chars:
        text += f" {random.choice(_WORDS)}"
    return f"{text[:119]}."


def rules_kept(
    policy: str,
    window_tokens: int,
    seed: int,
    summariser: Callable[[object], str] | None = None,
) -> float:
    """The share of the planted rules that the last view of a run holds word for word."""
    messages, rules = planted(seed)
    limits = Limits(window_tokens=window_tokens)
    session = Session(
        _MODEL, policy=policy, limits=limits, summariser=summariser
    )
    view: dict[str, Any] = {}
    for stop in _requests(messages):
        view = session.fit({"model": _MODEL, "messages": messages[:stop]})
    shown = str(view["messages"])
    return sum(rule in shown for rule in rules) / len(rules)


def _requests(messages: list[dict[str, Any]]) -> Iterator[int]:
    """The lengths at which a request is sent."""
    for stop in range(1, len(messages)):
        if messages[stop]["role"] == "assistant":
            yield stop
    yield len(messages)


def adds_nothing(question: object) -> str:
    """A summariser whose words tell nothing of the user, in a form that each document takes."""
    said = f"{len(str(question)):,} characters were read."
    parts = "\n\n".join(
        f"{heading}\n{said}" for heading in COMPACTION.sections
    )
    return f"<summary>{parts}</summary>"


class Seen(NamedTuple):
    """Of a loop: results that the view after them did not hold whole, and prefix breaks."""

    unseen: int
    breaks: int


def loop(calls: int, *, thought: bool) -> list[dict[str, Any]]:
    """One turn of tool calls, which began with thinking or did not."""
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Read them all."}
    ]
    for number in range(calls):
        id = f"toolu_{number}"
        use = {
            "type": "tool_use",
            "id": id,
            "name": "read",
            "input": {"page": number},
        }
        thinking = {
            "type": "thinking",
            "thinking": "I look.",
            "signature": "c2ln",
        }
        result = {
            "type": "tool_result",
            "tool_use_id": id,
            "content": _page(number),
        }
        begins = [thinking] if thought and number == 0 else []
        messages.append({"role": "assistant", "content": [*begins, use]})
        messages.append({"role": "user", "content": [result]})
    return messages


def _page(number: int) -> str:
    return f"PAGE {number}\n" + "value of the thing\n" * 150


def seen(
    window_tokens: int, calls: int, *, thinking: bool, model: str = _CLAUDE
) -> Seen:
    """What a session shows of a loop, request by request."""
    session = Session(model, limits=Limits(window_tokens=window_tokens))
    messages, before, unseen, breaks = (
        loop(calls, thought=thinking),
        list[Any](),
        0,
        0,
    )
    for number in range(calls):
        request = {
            "model": model,
            "max_tokens": 2_000,
            "messages": messages[: 2 * number + 3],
        }
        if thinking:
            request["thinking"] = {"type": "enabled", "budget_tokens": 1_024}
        view = session.fit(request)["messages"]
        unseen += _page(number) not in str(view).replace("\\n", "\n")
        breaks += view[: len(before)] != before
        before = view
    return Seen(unseen, breaks)


def main(arguments: list[str]) -> None:
    """Print what is asked for."""
    what = arguments[0] if arguments else ""
    if what == "rules":
        seeds = range(int(arguments[1]) if len(arguments) > 1 else 20)
        print("rules kept verbatim, mean and worst of", len(seeds), "runs")
        for policy in POLICIES:
            for summariser in (None, adds_nothing):
                each = [
                    [
                        rules_kept(policy, window, seed, summariser)
                        for seed in seeds
                    ]
                    for window in WINDOWS
                ]
                told = "  ".join(
                    f"{sum(k) / len(k):5.0%} {min(k):5.0%}" for k in each
                )
                print(
                    f"{policy + (' + summariser' if summariser else ''):26}{told}",
                    flush=True,
                )
    elif what == "thinking":
        for window_tokens, calls in (
            (16_000, 600),
            (32_000, 600),
            (64_000, 600),
        ):
            for thinking in (True, False):
                found = seen(window_tokens, calls, thinking=thinking)
                kind = "manual thinking" if thinking else "without"
                print(
                    f"{window_tokens:>7,}  {kind:16} {found.unseen:>3} unseen",
                    end="",
                )
                print(f"  {found.breaks:>3} breaks", flush=True)
    else:
        print(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])

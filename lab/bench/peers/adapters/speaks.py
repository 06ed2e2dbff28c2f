"""How an adapter speaks to the bench: JSON Lines, one question and one answer at a time.

Runs inside a peer's own environment, so it imports nothing but the standard library.

    {"ask": "begin", "policy": …, "budget_tokens": …, "tools": […]}
                                            → {"versions": {…}}
    {"ask": "view", "new": [message, …]}    → {"view": […], "refs": […], "ms": …}
    {"ask": "open", "ref": …}               → {"page": "…"}: one call of the library's tool
    {"ask": "whole", "ref": …}              → {"page": "…"}: all that is kept, page after page

Messages are those of an OpenAI Chat request. ``new`` holds what came since the last question;
a view is the whole of what the library would send, where the number ``n`` stands for the
n-th message of the history, untouched. ``refs`` are the names in the view by which the
library's own tool reads on. ``ms`` is the processor time the library took, without conversion:
a busy machine does not count against it. A library that refuses a call answers
``{"refused": "…"}``; that is a finding, not an end.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

Message = dict[str, Any]
View = list[Any]


class Policy:
    """One policy of a library over one run. An adapter says what `view` does.

    Attributes:
        budget_tokens: what the messages may take.
        tools: the tool schemas of the request.
        history: all messages so far.
        ms: processor time that the library took for the last view.
    """

    def __init__(self, budget_tokens: int, tools: Sequence[Any]) -> None:
        """Begin a run."""
        self.budget_tokens, self.tools = budget_tokens, tools
        self.history: list[Message] = []
        self.ms = 0.0

    def view(self, new: Sequence[Message]) -> View:
        """What the library would send, `history` ending in these new messages."""
        raise NotImplementedError

    def refs(self) -> Sequence[str]:
        """The names by which the library's own tool opens what it took out of the view."""
        return ()

    def page(self, ref: str) -> str:
        """What one call of the library's tool with this name returns."""
        raise LookupError(ref)

    def whole(self, ref: str) -> str:
        """All that is kept under a name, page after page."""
        return self.page(ref)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count what is done within as the library's time; what it raises is its refusal."""
        began = time.process_time()
        try:
            yield
        except Exception as error:
            raise Refused(type(error).__name__) from error
        finally:
            self.ms += (time.process_time() - began) * 1e3


class Refused(Exception):
    """The library would not make a view for this call."""


Make = Callable[[int, Sequence[Any]], Policy]


def serve(policies: Mapping[str, Make], packages: Sequence[str]) -> None:
    """Answer until the questions end.

    Args:
        policies: what makes each policy, by name.
        packages: the distributions whose versions the bench shall print.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints must not stand among the answers
    running: Policy | None = None
    for line in sys.stdin:
        question = json.loads(line)
        if question["ask"] == "begin":
            running = policies[question["policy"]](
                question["budget_tokens"], question["tools"]
            )
            answer: Message = {
                "versions": {name: version(name) for name in packages}
            }
        else:
            assert running is not None, "begin comes first"
            answer = _answer(running, question)
        answers.write(json.dumps(answer, ensure_ascii=True) + "\n")
        answers.flush()


def _answer(policy: Policy, question: Message) -> Message:
    if question["ask"] == "view":
        return _view(policy, question["new"])
    opened = policy.page if question["ask"] == "open" else policy.whole
    return {"page": opened(question["ref"])}


def _view(policy: Policy, new: Sequence[Message]) -> Message:
    policy.history += new
    policy.ms = 0.0
    try:
        view = policy.view(new)
    except Refused as refused:
        return {"refused": str(refused)}
    return {"view": view, "refs": list(policy.refs()), "ms": policy.ms}


def placed(history: Sequence[Message], made: Sequence[Message]) -> View:
    """Chat messages as a view: those equal to one of the history, in order, as its number."""
    view: View = []
    start = 0
    for message in made:
        place = next(
            (i for i in range(start, len(history)) if history[i] == message),
            None,
        )
        view.append(message if place is None else place)
        start = start if place is None else place + 1
    return view


def text_of(message: Message) -> str:
    """The text of a message's content, its blocks joined."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(
            block["text"] for block in content if block.get("type") == "text"
        )
    return content or ""


def calls_of(message: Message) -> list[tuple[str, str, Any]]:
    """Id, name and parsed arguments of each call; arguments that are no object as they are."""
    found = []
    for call in message.get("tool_calls") or ():
        arguments = call["function"]["arguments"]
        try:
            parsed = json.loads(arguments or "{}")
        except ValueError:
            parsed = arguments
        found.append((call["id"], call["function"]["name"], parsed))
    return found

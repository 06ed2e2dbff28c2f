"""The model of the demo: deterministic, and with nothing to go on but the request.

It plays the provider: ``create(**request)`` takes a Chat Completions request and returns a
reply. It keeps no state. Where it is, it reads from the status line of its own last message;
what it knows, it reads from the tool results it is shown; what is no longer shown it calls
back, by the words of the notice that stands in its place. So the same request always gets
the same reply, and a view that hides something without saying how to get it back shows up
as an answer without evidence.

For each question: search the definition, read its file, read what that imports, search the
callers, read around three of them, find the constant, quote the evidence. At the very end,
quote all of it again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from demo.agenda import Question
from demo.evidence import Need, ToolUse, View, find, text_of, uses, ways
from demo.reading import callers, definition, hits, modules, region
from demo.status import Address, Answered, Status

__all__ = ["CONCLUSION", "NOT_FOUND", "Investigator", "count_request"]

NOT_FOUND = "(not found again)"
CONCLUSION = "All questions, with their evidence."
MAX_TRIES = 40
_PARALLEL = 4
_QUOTE = re.compile(r"^> (\S+?):(\d+): (.*)$", re.MULTILINE)


class Move(Struct, frozen=True):
    """What to say, what to call, and the status after it."""

    text: str
    calls: tuple[ToolUse, ...]
    status: Status


class Investigator:
    """Plays ``client.chat.completions``.

    Args:
        agenda: the questions, in order.
        count_tokens: the number of tokens of each text.
    """

    def __init__(
        self,
        agenda: Sequence[Question],
        count_tokens: Callable[[Sequence[str]], Sequence[int]],
    ) -> None:
        self.agenda = tuple(agenda)
        self._count = count_tokens
        self._steps: dict[str, Callable[[View, Status], Move]] = {
            "start": self._ask,
            "find": self._read,
            "read": self._imports,
            "imports": self._packages,
            "packages": self._callers,
            "callers": self._around,
            "around": self._constant,
            "constant": self._setting,
            "setting": self._answer,
            "recall": self._answer,
            "done": self._answer,
        }

    def create(self, **request: Any) -> dict[str, Any]:
        """The reply to one request: ``choices[0].message`` and ``usage``."""
        messages = request["messages"]
        view = View(messages, request.get("tools") or ())
        before = _status(messages)
        move = self._steps[before.step](view, before)
        status = replace(move.status, call=before.call + 1)
        message = _message(move, status)
        said = [
            message["content"],
            *(c["function"]["arguments"] for c in message["tool_calls"]),
        ]
        if not move.calls:
            del message["tool_calls"]
        return {
            "id": f"chatcmpl-{status.call:04d}",
            "object": "chat.completion",
            "model": request.get("model", ""),
            "choices": [
                {
                    "index": 0,
                    "message": message,
                    "finish_reason": "tool_calls" if move.calls else "stop",
                }
            ],
            "usage": _usage(
                count_request(request, self._count), sum(self._count(said))
            ),
        }

    def _question(self, status: Status) -> Question:
        return self.agenda[status.question]

    def _ask(self, view: View, status: Status) -> Move:
        """Begin a question: search its definition, and look at the folder beside it."""
        question = self._question(status)
        calls: tuple[ToolUse, ...] = (
            (
                "search",
                {
                    "pattern": rf"^\s*(async )?(def|class) {question.symbol}\b",
                    "path": question.scope,
                },
            ),
            ("list_dir", {"path": question.scope}),
        )
        text = f"Question {status.question + 1}: {question.name}. I search its definition."
        return Move(
            text, calls, replace(status, step="find", tries=0, found=())
        )

    def _read(self, view: View, status: Status) -> Move:
        question = self._question(status)
        place = definition(question, view.latest())
        if place is None:
            return self._answer(view, status)
        text = f"{question.symbol} is defined at {place}. I read the file."
        calls: tuple[ToolUse, ...] = (("read_file", {"path": place.path}),)
        return Move(
            text, calls, replace(status.keep("def", place), step="read")
        )

    def _imports(self, view: View, status: Status) -> Move:
        path = status.places["def"].path
        found = modules(path, "".join(shown.text for shown in view.latest()))
        if not found:
            return self._callers(view, status)
        line = next(iter(found.values()))
        listed = ", ".join(found)
        calls = tuple(("read_file", {"path": module}) for module in found)
        after = replace(
            status.keep("imp", Address(path, line)), step="imports"
        )
        return Move(
            f"Its module imports, among others, {listed}. I read these.",
            calls,
            after,
        )

    def _packages(self, view: View, status: Status) -> Move:
        """Some of the modules may be packages: read those again, the rest is done."""
        hints = [
            re.search(r"there is a folder (\S+)/", shown.text)
            for shown in view.latest()
        ]
        folders = [hint[1] for hint in hints if hint]
        if not folders:
            return self._callers(view, status)
        calls = tuple(
            ("read_file", {"path": f"{folder}/__init__.py"})
            for folder in folders
        )
        return Move(
            "Some are packages.", calls, replace(status, step="packages")
        )

    def _callers(self, view: View, status: Status) -> Move:
        question = self._question(status)
        calls: tuple[ToolUse, ...] = (
            (
                "search",
                {"pattern": question.usage, "path": question.usage_scope},
            ),
        )
        return Move(
            f"Who uses {question.symbol}?",
            calls,
            replace(status, step="callers"),
        )

    def _around(self, view: View, status: Status) -> Move:
        own = status.places["def"].path
        users = callers(view.latest(), own)
        if not users:
            return self._constant(view, status)
        calls = tuple(("read_file", region(place)) for place in users)
        text = (
            "Callers: " + ", ".join(map(str, users)) + ". I read around them."
        )
        return Move(
            text, calls, replace(status.keep("call", users[0]), step="around")
        )

    def _constant(self, view: View, status: Status) -> Move:
        question = self._question(status)
        if not question.constant:
            return self._answer(view, status)
        pattern = rf"^\s*{question.constant}\b.*="
        calls: tuple[ToolUse, ...] = (
            ("search", {"pattern": pattern, "path": question.scope}),
        )
        text = f"Now {question.meaning}: {question.constant}."
        return Move(text, calls, replace(status, step="constant"))

    def _setting(self, view: View, status: Status) -> Move:
        near = [place.path for _, place in status.found]
        places = [place for place, _ in hits(view.latest())]
        place = min(places, key=lambda hit: hit.path not in near, default=None)
        if place is None:
            return self._answer(view, status)
        calls: tuple[ToolUse, ...] = (("read_file", region(place)),)
        text = f"It is set at {place}. I read around it."
        return Move(
            text, calls, replace(status.keep("const", place), step="setting")
        )

    def _answer(self, view: View, status: Status) -> Move:
        """Quote what the question needs; call back what is not shown any more."""
        needs = self._needs(status)
        quotes = _quotes(view, needs, status)
        asked = _ways_on(view, needs, quotes, status)
        if asked:
            text = "\n".join(
                [
                    "I need my evidence again.",
                    *_quoted(needs, quotes, found=True),
                ]
            )
            after = replace(status, step="recall", tries=status.tries + 1)
            return Move(text, tuple(asked), after)
        if status.question == len(self.agenda):
            return self._conclude(needs, quotes, status)
        return self._finish(view, needs, quotes, status)

    def _finish(
        self,
        view: View,
        needs: Sequence[Need],
        quotes: Mapping[Address, str],
        status: Status,
    ) -> Move:
        """Answer a question and begin the next one in the same message."""
        number, places = status.question, status.places
        text = "\n".join([f"Answer {number + 1}.", *_quoted(needs, quotes)])
        done = status.answered
        if "def" in places:
            imported = places["imp"].line if "imp" in places else 0
            done = (
                *done,
                Answered(
                    number, places["def"].path, places["def"].line, imported
                ),
            )
        following = Status(
            call=status.call, question=number + 1, answered=done
        )
        last = number + 1 == len(self.agenda)
        move = (self._answer if last else self._ask)(view, following)
        return replace(move, text=f"{text}\n{move.text}")

    def _conclude(
        self,
        needs: Sequence[Need],
        quotes: Mapping[Address, str],
        status: Status,
    ) -> Move:
        lines = [CONCLUSION]
        for answered in status.answered:
            lines.append(
                f"{answered.question + 1}. {self.agenda[answered.question].name}"
            )
            lines += _quoted(
                [n for n in needs if n.place in _places(answered)], quotes
            )
        return Move("\n".join(lines), (), replace(status, step="done"))

    def _needs(self, status: Status) -> list[Need]:
        """The lines an answer quotes: of one question, or at the end of all of them."""
        if status.question == len(self.agenda):
            return [
                n
                for answered in status.answered
                for n in self._needs_again(answered)
            ]
        question = self._question(status)
        words = {
            "def": f"(def|class) {question.symbol}",
            "imp": "import",
            "call": question.symbol,
            "const": question.constant,
        }
        return [Need(place, words[name]) for name, place in status.found]

    def _needs_again(self, answered: Answered) -> list[Need]:
        symbol = self.agenda[answered.question].symbol
        words = [f"(def|class) {symbol}", "import"]
        return [
            Need(place, word)
            for place, word in zip(_places(answered), words, strict=False)
        ]


def count_request(
    request: Mapping[str, Any],
    count_tokens: Callable[[Sequence[str]], Sequence[int]],
) -> int:
    """The tokens of a request: every text, name and argument, and four for each message."""
    texts = [json.dumps(tool) for tool in request.get("tools") or ()]
    for message in request["messages"]:
        texts.append(text_of(message))
        for call in message.get("tool_calls") or ():
            texts += [call["function"]["name"], call["function"]["arguments"]]
    return sum(count_tokens(texts)) + 4 * len(request["messages"])


def _usage(prompt: int, completion: int) -> dict[str, int]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def _message(move: Move, status: Status) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": f"{move.text}\n{status}",
        "tool_calls": [
            {
                "id": f"call_{status.call:04d}_{number}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for number, (name, arguments) in enumerate(move.calls, 1)
        ],
    }


def _status(messages: Sequence[Mapping[str, Any]]) -> Status:
    """The newest status line of the view, in whatever message but a tool's it stands."""
    for message in reversed(messages):
        status = (
            None
            if message["role"] == "tool"
            else Status.read(text_of(message))
        )
        if status is not None:
            return status
    return Status()


def _places(answered: Answered) -> list[Address]:
    lines = (answered.definition, answered.imported)
    return [Address(answered.path, line) for line in lines if line]


def _phase(
    messages: Sequence[Mapping[str, Any]], status: Status
) -> list[Mapping[str, Any]]:
    """The replies so far that looked for the same evidence, the newest first."""
    phase = []
    for message in reversed(messages):
        if message["role"] == "assistant":
            then = Status.read(text_of(message))
            if then is None or (then.question, then.step) != (
                status.question,
                "recall",
            ):
                break
            phase.append(message)
    return phase


def _quotes(
    view: View, needs: Sequence[Need], status: Status
) -> dict[Address, str]:
    """The text of each needed line: shown by a tool now, or quoted since the search began."""
    said = "\n".join(
        text_of(message) for message in _phase(view.messages, status)
    )
    quotes = {Address(m[1], int(m[2])): m[3] for m in _QUOTE.finditer(said)}
    for need in needs:
        shown = find(view, need)
        if shown is not None:
            quotes[need.place] = shown
    return quotes


def _ways_on(
    view: View,
    needs: Sequence[Need],
    quotes: Mapping[Address, str],
    status: Status,
) -> list[ToolUse]:
    """For the first lines still missing, the best call not yet made for them.

    After ``MAX_TRIES`` replies only the last resort is left, and after as many again nothing.
    """
    if status.tries >= 2 * MAX_TRIES:
        return []
    first = 0 if status.tries < MAX_TRIES else -1
    tried = [use for m in _phase(view.messages, status) for _, use in uses(m)]
    asked: list[ToolUse] = []
    for need in needs:
        if need.place not in quotes and len(asked) < _PARALLEL:
            way = next(
                (
                    way
                    for way in list(ways(view, need))[first:]
                    if way not in tried
                ),
                None,
            )
            if way is not None and way not in asked:
                asked.append(way)
    return asked


def _quoted(
    needs: Sequence[Need],
    quotes: Mapping[Address, str],
    *,
    found: bool = False,
) -> list[str]:
    """The quotes as lines of an answer; ``found`` leaves out what is still missing."""
    return [
        f"> {need.place}: {quotes.get(need.place, NOT_FOUND)}"
        for need in needs
        if need.place in quotes or not found
    ]

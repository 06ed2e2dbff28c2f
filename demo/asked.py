"""A real model answers the demo's questions, through the wire of its vendor.

The loop is the demo's, on `ullage.wires`: so it is the same for four wires, with a session and
without. What comes from outside passes a `Recording`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import ullage
from demo.agenda import Question, task
from demo.providers import AskError, Provider
from demo.recording import Recording
from demo.tally import CountTokens
from demo.tools import SPECS, Tools
from ullage.core.tokens.catalog import lookup
from ullage.core.values.messages import Part, Text, ToolCall, ToolResult
from ullage.core.values.usage import Usage
from ullage.session.spend.cost import cost_usd
from ullage.wires import FORMATS, Format, ToolSpec

__all__ = ["MAX_CALLS", "Asked", "Done", "asked_task", "texts_of"]

MAX_CALLS = 300
_TOO_LONG = "too long"
_HOW = (
    "Write each piece of evidence as a line of its own: > path:line: text. For each question "
    "quote the definition, one import of its module, one call from another file and, where a "
    "constant is asked for, the line that sets it."
)


def asked_task(agenda: Sequence[Question]) -> str:
    """The user's message: the demo's task, and the form of the evidence."""
    return f"{task(agenda)}\n{_HOW}"


class Done:
    """One tool call and what came of it."""

    def __init__(self, call: ToolCall, text: str, *, is_recall: bool) -> None:
        self.call, self.text, self.is_recall = call, text, is_recall


class Asked:
    """One run: the model is asked until it has answered, and what it takes is added up.

    Its sums have the names of `demo.tally.Tally`, but tokens of prompts are as reported.

    Args:
        name: of the run, in the recording.
        provider: who is asked; ``create`` is called for what the recording does not hold.
        recording: what has come before, and where the rest is written.
        request: the first request, without tools.
        session: keeps the requests within the window, or None.
        tools: the agent's tools.
        count_tokens: tokens of each text, for the history.
        most_usd: the run ends when it has cost so much.
        watch: called after each reply.

    Attributes:
        ended: why the run ended, in words.
        answer: what the last reply said.
        done: every tool call, in order.
        seen: texts of the last view, but not the model's own, nor what recall tools returned.
        cost_usd: None if the model's prices are not known.
    """

    def __init__(
        self,
        name: str,
        provider: Provider,
        recording: Recording,
        request: Mapping[str, Any],
        *,
        session: ullage.Session | None,
        tools: Tools,
        count_tokens: CountTokens,
        most_usd: float,
        watch: Callable[[Asked], None] = lambda asked: None,
    ) -> None:
        self.name, self._provider, self._recording = name, provider, recording
        self.wire: Format = FORMATS[provider.format]
        self.history = self.wire.history(request)
        self.request = self.wire.compose(
            request, self.history, _tools(self.wire)
        )
        self._session, self._tools, self._count = session, tools, count_tokens
        self._most_usd, self._watch = most_usd, watch
        self._create: Callable[..., Any] | None = None
        self._info = lookup(str(request["model"]))
        self.ended, self.answer = "", ""
        self.done: list[Done] = []
        self.seen: list[str] = []
        self.calls = self.recalls = self.peak_tokens = self.sum_tokens = 0
        self.cached_tokens = self.output_tokens = 0
        self.history_tokens = self.history_sum_tokens = 0
        self.cost_usd: float | None = 0.0
        self._counted = 0

    @property
    def cache_share(self) -> float:
        """The part of all prompts that the provider read from its cache, from 0 to 1."""
        return self.cached_tokens / self.sum_tokens if self.sum_tokens else 0.0

    @property
    def repeated(self) -> int:
        """Calls of the agent's own tools that were made before, word for word."""
        own = [
            (done.call.name, done.call.arguments)
            for done in self.done
            if not done.is_recall
        ]
        return len(own) - len(set(own))

    def run(self) -> Asked:
        """Ask until it has answered, or may not go on.

        Raises:
            AskError: the provider refused, or could not be reached. The recording goes on from
                there.
        """
        while not (self.ended or self._stopped()):
            try:
                reply = self._ask()
            except (AskError, ullage.OverLimitError) as error:
                if not isinstance(
                    error, ullage.OverLimitError
                ) and not ullage.is_overflow(error):
                    raise
                self.ended = f"too long, call {self.calls + 1}"
                return self
            said = self.wire.reply(reply)
            self.history += said
            self._add(self.wire.usage(reply) or Usage())
            self._act(
                [call for raw in said for call in self.wire.calls(raw)], said
            )
            self._watch(self)
        return self

    # ── asking ───────────────────────────────────────────────────────────────────────

    def _ask(self) -> Any:
        if self._session is None:
            return self._take(**self.request)
        return self._session.call(self._take, **self.request)

    def _take(self, **view: Any) -> Any:
        """The reply to one request: of the recording, or else of the provider."""
        self._view = view
        values = self._recording.taken(
            self.name,
            "reply",
            lambda: self._dumped(view),
            digest=_digest(view),
        )
        if _TOO_LONG in values:
            raise AskError(values[_TOO_LONG])
        return self._provider.revive(values)

    def _dumped(self, view: dict[str, Any]) -> dict[str, Any]:
        """What the provider says now, as JSON values; one that it calls too long says so."""
        if self._create is None:
            self._create = self._provider.create()
        try:
            return self._provider.dump(self._create(**view))
        except AskError as error:
            if not ullage.is_overflow(error):
                raise
            return {_TOO_LONG: str(error)}

    def _stopped(self) -> bool:
        if self.calls >= MAX_CALLS:
            self.ended = f"stopped after {MAX_CALLS} calls"
        elif self.cost_usd is not None and self.cost_usd >= self._most_usd:
            self.ended = f"stopped at ${self._most_usd:,.2f}"
        return bool(self.ended)

    # ── answering its calls ──────────────────────────────────────────────────────────

    def _act(self, calls: Sequence[Any], said: Sequence[Any]) -> None:
        if not calls:
            self.ended = "answered"
            self.answer = "\n".join(texts_of(self.wire, said))
            self.seen = self._seen()
            return
        self.history += self.wire.results([self._result(raw) for raw in calls])

    def _result(self, raw: Any) -> Any:
        call = self.wire.call(raw)
        if self._session is not None and self._session.owns(raw):
            result = self._session.recall(raw)
            texts = [
                text
                for each in self.wire.results([result])
                for text in texts_of(self.wire, [each])
            ]
            self.done.append(Done(call, "\n".join(texts), is_recall=True))
            self.recalls += 1
            return result
        text = self._recording.taken(
            self.name, "result", lambda: self._tool(call)
        )
        self.done.append(Done(call, text, is_recall=False))
        return self.wire.result(call, text)

    def _tool(self, call: ToolCall) -> str:
        function = {"name": call.name, "arguments": call.arguments or "{}"}
        return str(
            self._tools.run({"id": call.id, "function": function})["content"]
        )

    def _seen(self) -> list[str]:
        """What was shown when the answer was asked for, but by the model and by recall tools."""
        recalled = {done.call.id for done in self.done if done.is_recall}
        messages = [
            self.wire.parse(raw, self.wire.key)
            for raw in self.wire.history(self._view)
        ]
        return [
            text
            for message in messages
            if message.role != "assistant"
            for part in message.parts
            if not (isinstance(part, ToolResult) and part.call_id in recalled)
            for text in _texts(part)
        ]

    # ── sums ─────────────────────────────────────────────────────────────────────────

    def _add(self, usage: Usage) -> None:
        new = self.history[self._counted :]
        self._counted = len(self.history)
        self.history_sum_tokens += self.history_tokens
        self.history_tokens += sum(self._count(texts_of(self.wire, new)))
        self.calls += 1
        self.peak_tokens = max(self.peak_tokens, usage.sent_tokens)
        self.sum_tokens += usage.input_tokens
        self.cached_tokens += usage.cache_read_tokens
        self.output_tokens += usage.output_tokens
        cost = cost_usd(usage, self._info)
        self.cost_usd = (
            None
            if cost is None or self.cost_usd is None
            else self.cost_usd + cost
        )


def texts_of(wire: Format, messages: Sequence[Any]) -> list[str]:
    """Every text in some messages: said, asked for, and returned by a tool."""
    parsed = [wire.parse(raw, wire.key) for raw in messages]
    return [
        text
        for message in parsed
        for part in message.parts
        for text in _texts(part)
    ]


def _texts(part: Part) -> list[str]:
    if isinstance(part, Text):
        return [part.text]
    if isinstance(part, ToolCall):
        return [part.arguments]
    if isinstance(part, ToolResult):
        return [each.text for each in part.content if isinstance(each, Text)]
    return []


def _tools(wire: Format) -> list[dict[str, Any]]:
    functions = [spec["function"] for spec in SPECS]
    return [
        wire.tool(ToolSpec(f["name"], f["description"], f["parameters"]))
        for f in functions
    ]


def _digest(view: Mapping[str, Any]) -> str:
    def fields(value: Any) -> Any:
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)

    text = json.dumps(view, sort_keys=True, default=fields)
    return sha256(text.encode()).hexdigest()[:16]

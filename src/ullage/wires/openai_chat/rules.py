"""The rules of OpenAI Chat Completions, C0 to C12 (`provider-rules` §1.B)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ullage.history.pairing import At, Pairing
from ullage.wires.gemini.models import signs_calls
from ullage.wires.openai_chat.blocks import CALLS, PARTS, ROLES
from ullage.wires.openai_chat.models import is_gpt_6_2
from ullage.wires.rules.problem import (
    Problem,
    Report,
    Wire,
    kind_of,
    name_in,
    plain_message,
)

__all__ = ["Check", "head_problems"]

ID_LENGTH = 40

_INSTEAD_OF_CONTENT = ("tool_calls", "function_call", "refusal", "audio")
_NOT_IN_GPT_6_2 = ("tools", "temperature", "top_p", "logprobs")


class Check:
    """One pass over the messages.

    The state is which call each result answers, where the calls stand, and the newest message
    that is no result: a call before it that is answered now breaks C3, never C1.
    """

    def __init__(self) -> None:
        self._report = Report()
        self._count = 0
        self.pairs = Pairing()
        self._places: dict[At, str] = {}
        self._newest = -1

    def feed(self, message: Any) -> None:
        """Judge the next message."""
        at = self._count
        self._count = at + 1
        role = name_in(message, "role")
        self.pairs.speaker(is_model=role == "assistant")
        if role == "tool":
            self._result(message, at)
        else:
            self._newest = at
            if role == "assistant":
                self._assistant(message, at)
                return
            if role == "function":
                self._report.fields("C0", message, [("name", str)], f"messages[{at}]")
                return
            if role not in ROLES:
                self._report.add("C0", f"messages[{at}].role", "no such role in this format")
                return
        content = message.get("content")
        if type(content) is not str:
            self._content(content, role, at)

    def close(self) -> list[Problem]:
        """Everything found, and the calls still open; may be asked at any point."""
        end = Report()
        if not self._count:
            end.add("C0", "messages", "at least one message is asked for")
        for call in self.pairs.unanswered:
            end.add("C1", self._places[call], "this call has no tool message")
        return self._report.found + end.found

    def _result(self, message: Wire, at: int) -> None:
        call_id = message.get("tool_call_id")
        if type(call_id) is not str:
            self._report.add("C0", f"messages[{at}]", "a tool message names its tool_call_id")
            return
        self._length(call_id, f"messages[{at}].tool_call_id")
        call = self.pairs.result((at, 0), call_id)
        if call is None:
            sentence = "this tool message answers no open call of the assistant message before"
            self._report.add("C2", f"messages[{at}].tool_call_id", sentence)
        elif call[0] != self._newest:
            sentence = "something stands between the call and this result"
            self._report.add("C3", f"messages[{at}]", sentence)

    def _assistant(self, message: Wire, at: int) -> None:
        calls = message.get("tool_calls")
        if calls is not None:
            self._calls(calls, at)
        content = message.get("content")
        if type(content) is str:
            return
        if content is not None:
            self._content(content, "assistant", at)
        elif not any(message.get(key) for key in _INSTEAD_OF_CONTENT):
            self._report.add("C5", f"messages[{at}].content", "content is null and no calls")

    def _calls(self, calls: Any, at: int) -> None:
        where = f"messages[{at}].tool_calls"
        if not isinstance(calls, list) or not calls:
            self._report.add("C4", where, "tool_calls must be a list with calls in it")
            return
        ids: set[str] = set()
        for number, call in enumerate(calls):
            self._call(call, (at, number), f"{where}[{number}]", ids)

    def _call(self, call: Any, at: At, where: str, ids: set[str]) -> None:
        if type(call) is not dict:
            self._report.add("C0", where, f"a call is an object, and it is {kind_of(call)}")
            return
        self._called(call, where)
        call_id = call.get("id")
        if type(call_id) is not str or not call_id:
            self._report.add("C0", f"{where}.id", "a call has an id")
            return
        self._length(call_id, f"{where}.id")
        if call_id in ids:
            self._report.add("C1", f"{where}.id", "two calls of one message share an id")
        else:
            self._places[at] = where
            self.pairs.call(at, call_id)
        ids.add(call_id)

    def _called(self, call: Wire, where: str) -> None:
        """What is called. A call of no type is a call all the same, and its id is answered."""
        kind = name_in(call, "type") if "type" in call else "function"
        if kind is None or kind not in CALLS:
            self._report.add("C0", f"{where}.type", "a call is of type function or custom")
            return
        body, field = call.get(kind), CALLS[kind].text
        if type(body) is not dict or type(body.get("name")) is not str or not body["name"]:
            self._report.add("C0", where, f"a call names its tool in {kind}.name")
        elif type(body.get(field)) is not str:
            sentence = f"{field} must be a string, and it is {kind_of(body.get(field))}"
            self._report.add("C7", f"{where}.{kind}.{field}", sentence)

    def _length(self, call_id: str, where: str) -> None:
        sentence = f"an id of {len(call_id)} characters, {ID_LENGTH} are allowed"
        self._report.need(len(call_id) <= ID_LENGTH, "C6", where, sentence)

    def _content(self, content: Any, role: str, at: int) -> None:
        """Content that is not a string: a list of parts this role may hold."""
        where = f"messages[{at}].content"
        if not isinstance(content, list) or not content:
            sentence = f"content must be text or a list of parts, and it is {kind_of(content)}"
            self._report.add("C0", where, sentence)
            return
        for index, part in enumerate(content):
            row = PARTS.get(name_in(part, "type") or "")
            if row is not None and role in row.roles:
                self._report.fields("C0", part, row.needs.items(), f"{where}[{index}]")
            else:
                rule = "C8" if role == "tool" else "C0"
                sentence = f"a part of this type may not stand in a {role} message"
                self._report.add(rule, f"{where}[{index}].type", sentence)


def head_problems(body: Wire, messages: Any) -> list[Problem]:
    """The rules that the messages alone do not show: C10 to C12, and that tools are a list."""
    report = Report()
    if body.get("stream_options") is not None and not body.get("stream"):
        report.add("C10", "stream_options", "stream_options is set and stream is not")
    if body.get("tools") is not None:
        report.fields("C0", body, [("tools", list)], "tools")
    if is_gpt_6_2(body.get("model")):
        for name in _NOT_IN_GPT_6_2:
            report.need(body.get(name) is None, "C11", name, "this model does not take it here")
    if signs_calls(body.get("model")):
        _signatures(messages if isinstance(messages, (list, tuple)) else (), report)
    return report.found


def _signatures(messages: Sequence[Any], report: Report) -> None:
    """C12: each step since the user last spoke begins with a signed call."""
    steps: list[tuple[str, Any]] = []
    for at, raw in enumerate(messages):
        message = plain_message(raw)
        if name_in(message, "role") == "user":
            steps = []
        calls = message.get("tool_calls") if type(message) is dict else None
        if isinstance(calls, list) and calls:
            steps.append((f"messages[{at}].tool_calls[0]", calls[0]))
    for where, call in steps:
        extra = call.get("extra_content") if type(call) is dict else None
        google = extra.get("google") if type(extra) is dict else None
        signed = name_in(google, "thought_signature")
        report.need(signed, "C12", where, "the first call of this step has no signature")

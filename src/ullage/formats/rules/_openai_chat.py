"""The rules of OpenAI Chat Completions, C0 to C10 (`provider-rules` §1.B)."""

from __future__ import annotations

from typing import Any

from ullage.formats.rules._problem import Problem, Report, Wire, kind_of, name_in

__all__ = ["Check", "head_problems"]

ID_LENGTH = 40

_PARTS: dict[str, dict[Any, tuple[str, type]]] = {
    "system": {"text": ("text", str)},
    "developer": {"text": ("text", str)},
    "tool": {"text": ("text", str)},
    "assistant": {"text": ("text", str), "refusal": ("refusal", str)},
    "user": {
        "text": ("text", str),
        "image_url": ("image_url", dict),
        "input_audio": ("input_audio", dict),
        "file": ("file", dict),
    },
}
_INSTEAD_OF_CONTENT = ("tool_calls", "function_call", "refusal", "audio")
_BODIES = {"function": "arguments", "custom": "input"}


class Check:
    """One pass over the messages.

    The state is the open batch: the ids still to be answered, and where they were asked.
    """

    def __init__(self) -> None:
        self._report = Report()
        self._count = 0
        self._open: dict[str, str] = {}
        self._late: set[str] = set()

    def feed(self, message: Any) -> None:
        """Judge the next message."""
        at = self._count
        self._count = at + 1
        role = name_in(message, "role")
        if role == "tool":
            self._result(message, at)
        else:
            if self._open:
                self._missed(self._report, f"before messages[{at}]")
                self._late.update(self._open)
                self._open = {}
            if role == "assistant":
                self._assistant(message, at)
                return
            if role == "function":
                self._report.fields("C0", message, [("name", str)], f"messages[{at}]")
                return
            if role not in _PARTS:
                self._report.add("C0", f"messages[{at}].role", "no such role in this format")
                return
        content = message.get("content")
        if type(content) is not str:
            self._content(content, role, at)

    def close(self) -> list[Problem]:
        """Everything found, and the calls still open; may be asked at any point."""
        if self._count and not self._open:
            return list(self._report.found)
        end = Report()
        if not self._count:
            end.add("C0", "messages", "at least one message is asked for")
        self._missed(end, "at the end")
        return self._report.found + end.found

    def _missed(self, report: Report, until: str) -> None:
        for call_id, where in self._open.items():
            report.add("C1", where, f"the call {call_id[:64]!r} has no tool message {until}")

    def _result(self, message: Wire, at: int) -> None:
        call_id = message.get("tool_call_id")
        if type(call_id) is not str:
            self._report.add("C0", f"messages[{at}]", "a tool message names its tool_call_id")
        elif self._open.pop(call_id, None) is not None:
            pass
        elif call_id in self._late:
            self._late.discard(call_id)
            sentence = "something stands between the call and this result"
            self._report.add("C3", f"messages[{at}]", sentence)
        else:
            sentence = "this tool message answers no open call of the assistant message before"
            self._report.add("C2", f"messages[{at}].tool_call_id", sentence)

    def _assistant(self, message: Wire, at: int) -> None:
        calls = message.get("tool_calls")
        if calls is not None:
            self._calls(calls, f"messages[{at}].tool_calls")
        content = message.get("content")
        if type(content) is str:
            return
        if content is not None:
            self._content(content, "assistant", at)
        elif not any(message.get(key) for key in _INSTEAD_OF_CONTENT):
            self._report.add("C5", f"messages[{at}].content", "content is null and no calls")

    def _calls(self, calls: Any, where: str) -> None:
        if not isinstance(calls, list) or not calls:
            self._report.add("C4", where, "tool_calls must be a list with calls in it")
            return
        for index, call in enumerate(calls):
            self._call(call, f"{where}[{index}]")

    def _call(self, call: Any, where: str) -> None:
        kind = name_in(call, "type") if type(call) is dict and "type" in call else "function"
        if kind not in _BODIES or type(call) is not dict:
            self._report.add("C0", where, "a call is an object of type function or custom")
            return
        call_id, body, field = call.get("id"), call.get(kind), _BODIES[kind]
        if type(body) is not dict or type(body.get("name")) is not str or not body["name"]:
            self._report.add("C0", where, f"a call names its tool in {kind}.name")
        elif type(body.get(field)) is not str:
            sentence = f"{field} must be a string, and it is {kind_of(body.get(field))}"
            self._report.add("C7", f"{where}.{kind}.{field}", sentence)
        if type(call_id) is not str or not call_id:
            self._report.add("C0", f"{where}.id", "a call has an id")
            return
        if len(call_id) > ID_LENGTH:
            sentence = f"an id of {len(call_id)} characters, {ID_LENGTH} are allowed"
            self._report.add("C6", f"{where}.id", sentence)
        if call_id in self._open:
            self._report.add("C1", f"{where}.id", "two calls of one message share an id")
        self._open[call_id] = where
        self._late.discard(call_id)

    def _content(self, content: Any, role: str, at: int) -> None:
        """Content that is not a string: a list of parts this role may hold."""
        where = f"messages[{at}].content"
        if not isinstance(content, list) or not content:
            sentence = f"content must be text or a list of parts, and it is {kind_of(content)}"
            self._report.add("C5", where, sentence)
            return
        allowed = _PARTS[role]
        for index, part in enumerate(content):
            kind = name_in(part, "type")
            if kind in allowed:
                self._report.fields("C0", part, [allowed[kind]], f"{where}[{index}]")
            else:
                rule = "C8" if role == "tool" else "C0"
                sentence = f"a part of this type may not stand in a {role} message"
                self._report.add(rule, f"{where}[{index}].type", sentence)


def head_problems(body: Wire, messages: Any) -> list[Problem]:
    """The rules about everything but the messages: C10, and that tools are a list."""
    report = Report()
    if body.get("stream_options") is not None and not body.get("stream"):
        report.add("C10", "stream_options", "stream_options is set and stream is not")
    if body.get("tools") is not None:
        report.fields("C0", body, [("tools", list)], "tools")
    return report.found

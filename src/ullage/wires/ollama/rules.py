"""The rules of Ollama's own chat, O0 to O6.

The server decodes a request by its types, and refuses what does not fit them (O0, O4 to O6). It
does not look at how calls and results stand: a model's template writes them one after the other,
and a call without its result is a call that the model sees unanswered (O1 to O3).

An empty history is legal: it loads the model, or unloads it.
"""

from __future__ import annotations

import re
from typing import Any

from ullage.core.history.pairing import NAMELESS
from ullage.wires.ollama.blocks import ROLES, TEXTS, TOOL_NAMES
from ullage.wires.ollama.format import named
from ullage.wires.rules.problem import (
    Check,
    JsonObject,
    items_of,
    kind_of,
    name_in,
)

_BASE64 = re.compile(
    r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\Z"
).match
_LINE_ENDS = re.compile(r"[\r\n]")
_OBJECTS = ("options",)
_LISTS = ("tools",)


class OllamaCheck(Check):
    """One pass over the messages.

    The state is which call each result answers, and the newest message that is no result: a call
    before it that is answered now breaks O3, never O1.
    """

    holds = ("tool_calls", "images")
    asks_one = None
    _newest = -1

    def _judge(self, message: Any, at: int, path: str) -> None:
        role = name_in(message, "role")
        self.pairs.begin_message(is_model=role == "assistant")
        if role != "tool":
            self._newest = at
        if role not in ROLES:
            self.add("O0", f"{path}.role", "no such role in this format")
            return
        for name in (*TEXTS, *TOOL_NAMES, "tool_call_id"):
            self._has("O0", message, name, str, path)
        self._images(message, path)
        if role == "tool":
            self._result(message, at, path)
        elif role == "assistant":
            self._calls(message, at, path)

    def _calls(self, message: JsonObject, at: int, path: str) -> None:
        if not self._has("O0", message, "tool_calls", list, path):
            return
        for number, call in enumerate(items_of(message.get("tool_calls"))):
            self._call(call, at, number, f"{path}.tool_calls[{number}]")

    def _end(self) -> None:
        """The calls still open."""
        for at, number in self.pairs.unanswered:
            path = f"messages[{at}].tool_calls[{number}]"
            self.add("O1", path, "this call has no tool message")

    def _request(self, head: JsonObject) -> None:
        """What stands beside the messages."""
        for name in _OBJECTS:
            self._has("O0", head, name, dict, name)
        for name in _LISTS:
            self._has("O0", head, name, list, name)
        form = head.get("format")
        is_known = form in (None, "", "json") or isinstance(form, dict)
        self.need(is_known, "O6", "format", 'format is "json" or a schema')

    def _has(
        self, rule: str, thing: JsonObject, name: str, kind: type, path: str
    ) -> bool:
        """Whether a field that is there has its type; else ``rule`` is broken."""
        value = thing.get(name)
        if value is None or type(value) is kind:
            return True
        sentence = f"{name} is {kind_of(kind())}, and it is {kind_of(value)}"
        self.add(rule, path if path == name else f"{path}.{name}", sentence)
        return False

    def _images(self, message: JsonObject, path: str) -> None:
        self._has("O0", message, "images", list, path)
        sentence = "an image is base64, without a URL"
        for at, image in enumerate(items_of(message.get("images"))):
            is_data = isinstance(image, str) and _BASE64(
                _LINE_ENDS.sub("", image)
            )
            self.need(is_data, "O5", f"{path}.images[{at}]", sentence)

    def _result(self, message: JsonObject, at: int, path: str) -> None:
        call_id, tool = named(message)
        if not call_id and not tool:
            call_id = NAMELESS
        call = self.pairs.add_result((at, 0), call_id, tool)
        if call is None:
            sentence = "this tool message answers no open call of the assistant message before"
            self.add("O2", path, sentence)
        elif call[0] != self._newest:
            self.add(
                "O3", path, "something stands between the call and this result"
            )

    def _call(self, call: Any, at: int, number: int, path: str) -> None:
        body = call.get("function") if type(call) is dict else None
        name = name_in(body, "name")
        if type(body) is not dict or not name:
            self.add("O0", path, "a call names its tool in function.name")
            return
        raw_id = call.get("id")
        self._has("O0", call, "id", str, path)
        arguments = body.get("arguments")
        is_object = arguments is None or type(arguments) is dict
        sentence = (
            f"arguments must be an object, and it is {kind_of(arguments)}"
        )
        self.need(is_object, "O4", f"{path}.function.arguments", sentence)
        call_id = raw_id if isinstance(raw_id, str) else ""
        self.pairs.add_call((at, number), call_id, name)


CHECK = OllamaCheck

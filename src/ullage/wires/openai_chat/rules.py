"""The rules of OpenAI Chat Completions, C0 to C12 (`provider-rules` §1.B)."""

from __future__ import annotations

from typing import Any

from ullage.core.history.pairing import At
from ullage.wires.block import Block
from ullage.wires.gemini.models import signs_calls
from ullage.wires.models import is_elsewhere, is_gpt_6_2
from ullage.wires.openai_chat.blocks import (
    BLOCKS,
    CALLS,
    ID_LENGTH,
    INSTEAD_OF_CONTENT,
    PARTS,
    ROLES,
)
from ullage.wires.rules.problem import (
    Check,
    JsonObject,
    items_of,
    kind_of,
    name_in,
)

_NOT_IN_GPT_6_2 = ("tools", "temperature", "top_p", "logprobs")
_FUNCTION = Block("function", needs={"name": str})


class ChatCheck(Check):
    """One pass over the messages.

    The state is which call each result answers, and the newest message that is no result: a call
    before it that is answered now breaks C3, never C1.
    """

    holds = ("content", "tool_calls")
    asks_one = ("C0", "at least one message is asked for")
    _newest = -1

    def _judge(self, message: Any, at: int, path: str) -> None:
        role = name_in(message, "role")
        self.pairs.begin_message(is_model=role == "assistant")
        if role != "tool":
            self._newest = at
        elif self.fields("C0", message, BLOCKS["tool"].needs, path):
            self._result(message["tool_call_id"], at, path)
        if role == "function":
            self.block("C0", message, _FUNCTION, path)
        elif role not in ROLES:
            self.add("C0", f"{path}.role", "no such role in this format")
        else:
            self._body(message, role, at, path)

    def _body(
        self, message: JsonObject, role: str, at: int, path: str
    ) -> None:
        """The calls and the content of a message."""
        content = message.get("content")
        place = f"{path}.content"
        if role == "assistant":
            self._calls(message.get("tool_calls"), at, f"{path}.tool_calls")
        if role == "assistant" and content is None:
            says = any(message.get(key) for key in INSTEAD_OF_CONTENT)
            self.need(says, "C5", place, "content is null and no calls")
        elif type(content) is not str:
            self._content(content, role, place)

    def _end(self) -> None:
        """The calls still open."""
        for at, number in self.pairs.unanswered:
            path = f"messages[{at}].tool_calls[{number}]"
            self.add("C1", path, "this call has no tool message")

    def _result(self, call_id: str, at: int, path: str) -> None:
        self._length(call_id, f"{path}.tool_call_id")
        call = self.pairs.add_result((at, 0), call_id)
        if call is None:
            self.add(
                "C2",
                f"{path}.tool_call_id",
                (
                    "this tool message answers no open call of the assistant message before"
                ),
            )
        elif call[0] != self._newest:
            self.add(
                "C3", path, "something stands between the call and this result"
            )

    def _calls(self, calls: Any, at: int, path: str) -> None:
        if calls is not None and not (isinstance(calls, list) and calls):
            self.add("C4", path, "tool_calls must be a list with calls in it")
        ids: set[str] = set()
        for number, call in enumerate(items_of(calls)):
            self._call(call, (at, number), f"{path}[{number}]", ids)

    def _call(self, call: Any, here: At, path: str, ids: set[str]) -> None:
        if type(call) is not dict:
            self.add(
                "C0", path, f"a call is an object, and it is {kind_of(call)}"
            )
            return
        self._called(call, path)
        call_id = call.get("id")
        if type(call_id) is not str or not call_id:
            self.add("C0", f"{path}.id", "a call has an id")
            return
        self._length(call_id, f"{path}.id")
        if call_id in ids:
            self.add(
                "C1", f"{path}.id", "two calls of one message share an id"
            )
        else:
            self.pairs.add_call(here, call_id)
        ids.add(call_id)

    def _called(self, call: JsonObject, path: str) -> None:
        """C0 and C7: a call names its tool, and its arguments are text.

        A call of an unknown type is a call all the same: its id is answered.
        """
        kind = name_in(call, "type") if "type" in call else "function"
        if kind is None or kind not in CALLS:
            self.add(
                "C0", f"{path}.type", "a call is of type function or custom"
            )
            return
        body = call.get(kind)
        field = CALLS[kind].text
        if type(body) is not dict or not name_in(body, "name"):
            self.add("C0", path, f"a call names its tool in {kind}.name")
        elif type(body.get(field)) is not str:
            self.add(
                "C7",
                f"{path}.{kind}.{field}",
                f"{field} must be a string, and it is {kind_of(body.get(field))}",
            )

    def _length(self, call_id: str, path: str) -> None:
        sentence = (
            f"an id of {len(call_id)} characters, {ID_LENGTH} are allowed"
        )
        fits = len(call_id) <= ID_LENGTH or is_elsewhere(
            self.head.get("model")
        )
        self.need(fits, "C6", path, sentence)

    def _content(self, content: Any, role: str, path: str) -> None:
        """Content that is not a string: a list of parts this role may hold."""
        if not isinstance(content, list) or not content:
            self.add(
                "C0",
                path,
                (
                    f"content must be text or a list of parts, and it is {kind_of(content)}"
                ),
            )
        for index, part in enumerate(items_of(content)):
            row = PARTS.get(name_in(part, "type") or "")
            if row is not None and role in row.roles:
                self.block("C0", part, row, f"{path}[{index}]")
            else:
                rule = "C8" if role == "tool" else "C0"
                self.add(
                    rule,
                    f"{path}[{index}].type",
                    f"a part of this type may not stand in a {role} message",
                )

    def _request(self, head: JsonObject) -> None:
        """C10 to C12, and that tools are a list."""
        if head.get("stream_options") is not None and not head.get("stream"):
            self.add(
                "C10",
                "stream_options",
                "stream_options is set and stream is not",
            )
        if head.get("tools") is not None:
            self.fields("C0", head, {"tools": list}, "tools")
        if is_gpt_6_2(head.get("model")):
            for name in _NOT_IN_GPT_6_2:
                self.need(
                    head.get(name) is None,
                    "C11",
                    name,
                    "this model does not take it here",
                )
        if signs_calls(head.get("model")):
            self._signatures()

    def _signatures(self) -> None:
        """C12: each step since the user last spoke begins with a signed call."""
        for at in reversed(range(len(self.messages))):
            message = self.messages[at]
            if name_in(message, "role") == "user":
                return
            calls = items_of(_in(message, "tool_calls"))
            if not calls:
                continue
            google = _in(_in(calls[0], "extra_content"), "google")
            self.need(
                name_in(google, "thought_signature"),
                "C12",
                f"messages[{at}].tool_calls[0]",
                "the first call of this step has no signature",
            )


def _in(thing: Any, key: str) -> Any:
    """The field of an object; None of anything else."""
    if type(thing) is dict:
        return thing.get(key)
    return None


CHECK = ChatCheck

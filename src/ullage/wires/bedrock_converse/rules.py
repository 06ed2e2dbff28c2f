"""The rules of Amazon Bedrock Converse, B0 to B12, as one pass sees them.

Calls and results of tools that a server runs are not paired here. Messages of the system's, which
add and remove tools, stand between any others.
"""

from __future__ import annotations

import re
from typing import Any

from ullage.core.history.pairing import At
from ullage.wires.anthropic.models import claude
from ullage.wires.bedrock_converse.blocks import (
    BLOCKS,
    CACHE_POINT,
    ROLES,
    is_by_server,
    is_cache_point,
)
from ullage.wires.bedrock_converse.models import NAME, call_ids
from ullage.wires.rules.problem import Check, JsonObject, items_of, kind_of, name_in

_MESSAGE = frozenset(("role", "content"))
_OF_A_CALL = frozenset(("modelId", "system", "inferenceConfig"))
_NO_PREFILL_SINCE = (4, 6)
_POINTS = 4
_SOURCES = frozenset(("bytes", "s3Location", "text", "content"))
_DOCUMENT_NAME = re.compile(r"[a-zA-Z0-9()\[\]\s-]{1,200}\Z").match
_TWO_SPACES = re.compile(r"\s\s").search
_THINKING = ("thinking", "reasoning_config")


class ConverseCheck(Check):
    """One pass over the messages.

    The state: who spoke last; of the newest assistant message its place and the ids it calls by;
    every call id seen and answered; the times of the cache points; whether any block was a tool's;
    and the open tool loop, which goes back to the last message that held more than results.
    """

    asks_one = ("B1", "at least one message is asked for")

    def __init__(self, head: JsonObject | None = None) -> None:
        super().__init__(head)
        self._spoke: str | None = None
        self._caller = -1
        self._batch: set[str] = set()
        self._seen: set[str] = set()
        self._answered: set[str] = set()
        self._ttls: list[str] = []
        self._has_tool_blocks = False
        self._loop = -1
        self._is_loop_over = True
        self._holds_results = False
        self._legal_id = call_ids(self.head.get("modelId")).match
        for where, entries in self._lists_of_head():
            for index, entry in enumerate(entries):
                if is_cache_point(entry):
                    place = f"{where}[{index}]"
                    self.need(
                        index, "B10", place, "a cache point stands behind something"
                    )
                    self._point(entry[CACHE_POINT], place)

    def _lists_of_head(self) -> list[tuple[str, list[Any]]]:
        """The lists that are cached before the messages, in that order, each with its path."""
        config = self.head.get("toolConfig")
        tools = items_of(config.get("tools")) if type(config) is dict else []
        return [
            ("toolConfig.tools", tools),
            ("system", items_of(self.head.get("system"))),
        ]

    def _judge(self, message: Any, at: int, where: str) -> None:
        role = name_in(message, "role")
        if role is None or role not in ROLES:
            self.add("B0", f"{where}.role", "no such role in this format")
            return
        self.unknown("B0", [key for key in message if key not in _MESSAGE], where)
        content = message.get("content")
        self.pairs.speaker(is_model=role == "assistant")
        if type(content) is not list:
            sentence = f"content must be a list of blocks, and it is {kind_of(content)}"
            self.add("B0", f"{where}.content", sentence)
        elif not content:
            self.add("B6", f"{where}.content", "the message has no content")
        if role != "system":
            self._turn(role, items_of(content), at, where)
        for index, block in enumerate(items_of(content)):
            self._block(block, role, (at, index), f"{where}.content[{index}]")
        self._documents(items_of(content), f"{where}.content")

    def _end(self) -> None:
        """B3 of calls that nothing follows."""
        self._missed()

    # -- between messages -----------------------------------------------------------------

    def _turn(self, role: str, blocks: list[Any], at: int, where: str) -> None:
        """What the change of roles from the message before means."""
        if self._spoke is None:
            first = "the first message must be the user's"
            self.need(role == "user", "B1", f"{where}.role", first)
        elif self._spoke == role:
            self.add("B2", f"{where}.role", f"two messages of the {role} in a row")
        kinds = {_kind(block) for block in blocks if not is_cache_point(block)}
        self._holds_results = "toolResult" in kinds
        if role == "assistant":
            self._missed()
            if self._is_loop_over:
                self._loop, self._is_loop_over = at, False
            self._caller, self._batch = at, set()
        else:
            self._is_loop_over = kinds != {"toolResult"}
        self._spoke = role

    def _missed(self) -> None:
        for call in self.pairs.unanswered:
            if call[0] == self._caller:
                self.add(
                    "B3", _path(call), "this call has no toolResult in the next message"
                )

    # -- within a message -----------------------------------------------------------------

    def _block(self, block: Any, role: str, here: At, where: str) -> None:
        if is_cache_point(block):
            self.need(here[1], "B10", where, "a cache point stands behind a block")
            self._point(block[CACHE_POINT], where)
            return
        kind = self._shape(block, where)
        if kind is None:
            return
        body, row = block[kind], BLOCKS[kind]
        if role not in row.roles:
            self.add(
                "B0", where, f"a {kind} block may not stand in a message of the {role}"
            )
            return
        if kind in ("toolUse", "toolResult"):
            self._tool(kind, body, role, here, where)

    def _tool(
        self, kind: str, body: JsonObject, role: str, here: At, where: str
    ) -> None:
        self._has_tool_blocks = True
        if kind == "toolResult":
            for index, item in enumerate(items_of(body.get("content"))):
                self._item(item, f"{where}.toolResult.content[{index}]")
        if is_by_server(body):
            return
        call_id, name = name_in(body, "toolUseId"), name_in(body, "name")
        if call_id is not None and not self._legal_id(call_id):
            self.add("B7", f"{where}.{kind}.toolUseId", "the id is not allowed")
        if name is not None and not NAME.match(name):
            self.add("B7", f"{where}.{kind}.name", "the tool's name is not allowed")
        if kind == "toolUse" and call_id is not None:
            self._call(call_id, here, where)
        elif role == "assistant":
            self.add("B0", where, "a toolResult block stands in a message of the user")
        elif call_id is not None:
            self._result(call_id, here, where)
        if (
            kind == "toolResult"
            and body.get("status") == "error"
            and body.get("content") == []
        ):
            self.add(
                "B6",
                f"{where}.toolResult.content",
                "the result of an error has no content",
            )

    def _call(self, call_id: str, here: At, where: str) -> None:
        self.need(
            call_id not in self._seen, "B5", where, "this toolUseId was used before"
        )
        if call_id not in self._batch:
            self.pairs.call(here, call_id)
        self._seen.add(call_id)
        self._batch.add(call_id)

    def _result(self, call_id: str, here: At, where: str) -> None:
        self.pairs.result(here, call_id)
        if call_id in self._answered:
            self.add("B5", where, "this call already has a result")
        self._answered.add(call_id)
        stands_behind = self._caller == here[0] - 1 and call_id in self._batch
        self.need(stands_behind, "B4", where, "no such call in the message before")

    def _item(self, item: Any, where: str) -> None:
        """An item of a result."""
        kind = self._shape(item, where)
        if kind is not None and not BLOCKS[kind].in_result:
            self.add("B0", where, f"a {kind} block may not stand in a toolResult")

    def _shape(self, block: Any, where: str) -> str | None:
        """The kind of a block, whose fields are judged; None if that is wrong or not known."""
        if type(block) is not dict:
            self.add("B0", where, f"a block is an object, and it is {kind_of(block)}")
            return None
        names = [name for name, value in block.items() if value is not None]
        kind = _kind(block)
        if len(names) != 1:
            self.add("B0", where, f"a block has one field, and here are {len(names)}")
            return None
        if not kind:
            return None  # a block from the future
        body = block[kind]
        if kind == "text":
            self._text(body, where)
        elif kind == "json":
            self.need(type(body) is dict, "B0", f"{where}.json", "json is an object")
        elif type(body) is not dict:
            self.add("B0", where, f"{kind} is an object, and it is {kind_of(body)}")
            return None
        else:
            self._body(kind, body, f"{where}.{kind}")
        return kind

    def _body(self, kind: str, body: JsonObject, where: str) -> None:
        row = BLOCKS[kind]
        self.unknown("B0", row.unknown_fields(body), where)
        if self.fields("B0", body, row.needs, where) and row.media:
            names = [
                name for name, value in body["source"].items() if value is not None
            ]
            holds = len(names) == 1 and names[0] in _SOURCES
            sentence = "a source has one of bytes, s3Location, text and content"
            self.need(holds, "B0", f"{where}.source", sentence)
        if kind == "searchResult":
            for index, item in enumerate(items_of(body.get("content"))):
                text = item.get("text") if type(item) is dict else None
                self._text(text, f"{where}.content[{index}]")

    def _text(self, text: Any, where: str) -> None:
        if type(text) is not str:
            self.add("B0", where, f"text is a string, and it is {kind_of(text)}")
        else:
            is_blank = not text or text.isspace()
            self.need(not is_blank, "B6", where, "the text is empty or only spaces")

    def _documents(self, blocks: list[Any], where: str) -> None:
        """B12."""
        named = [
            (f"{where}[{index}].document", name_in(block["document"], "name"))
            for index, block in enumerate(blocks)
            if _kind(block) == "document"
        ]
        for place, name in named:
            if name is not None and (not _DOCUMENT_NAME(name) or _TWO_SPACES(name)):
                self.add(
                    "B12", f"{place}.name", "the name has characters not allowed in it"
                )
        has_text = any(_kind(block) == "text" for block in blocks)
        if named and not has_text:
            self.add("B12", where, "a document stands in a message without a text")

    # -- cache points ---------------------------------------------------------------------

    def _point(self, point: Any, where: str) -> None:
        """B10 of the next cache point in the order of the request."""
        ttl = (name_in(point, "ttl") or "5m") if type(point) is dict else "5m"
        if ttl == "1h" and "5m" in self._ttls:
            self.add(
                "B10",
                where,
                "a cache point of an hour stands behind one of five minutes",
            )
        self._ttls.append(ttl)
        if len(self._ttls) == _POINTS + 1:
            self.add("B10", where, f"more than {_POINTS} cache points")

    # -- where a request ends -------------------------------------------------------------

    def _request(self, head: JsonObject) -> None:
        config = head.get("toolConfig")
        tools = items_of(config.get("tools")) if type(config) is dict else []
        if config is not None and not tools:
            self.add(
                "B0", "toolConfig", "toolConfig has a list of tools, and one at least"
            )
        is_whole = not _OF_A_CALL.isdisjoint(head)  # else a history alone
        if is_whole and self._has_tool_blocks and config is None:
            sentence = (
                "toolConfig is asked for where a message has toolUse or toolResult"
            )
            self.add("B8", "toolConfig", sentence)
        self._judge_head(head, tools)
        model = claude(head.get("modelId"))
        if (
            self._spoke == "assistant"
            and model is not None
            and model[1] >= _NO_PREFILL_SINCE
        ):
            where = f"messages[{len(self.messages) - 1}]"
            self.add("B9", where, "the last message is the assistant's")
        self._judge_loop(head)

    def _judge_head(self, head: JsonObject, tools: list[Any]) -> None:
        """B0, B6 and B7 of system text and tools."""
        if head.get("system") is not None:
            self.fields("B0", head, {"system": list}, "system")
        for index, block in enumerate(items_of(head.get("system"))):
            if type(block) is not dict:
                self.add("B0", f"system[{index}]", "a block is an object")
            elif "text" in block:
                self._text(block["text"], f"system[{index}]")
        for index, tool in enumerate(tools):
            spec = tool.get("toolSpec") if type(tool) is dict else None
            name = name_in(spec, "name")
            legal = name is None or NAME.match(name)
            where = f"toolConfig.tools[{index}].toolSpec.name"
            self.need(legal, "B7", where, "the tool's name is not allowed")

    def _judge_loop(self, head: JsonObject) -> None:
        """B11: what thinking asks of an open tool loop."""
        more = head.get("additionalModelRequestFields")
        settings = [more.get(name) for name in _THINKING] if type(more) is dict else []
        is_manual = any(name_in(one, "type") == "enabled" for one in settings)
        is_open = self._spoke == "user" and self._holds_results and self._loop >= 0
        if not is_manual or not is_open:
            return
        content = items_of(self.messages[self._loop].get("content"))
        begins = bool(content) and _kind(content[0]) == "reasoningContent"
        where = f"messages[{self._loop}].content"
        self.need(begins, "B11", where, "the open turn does not begin with reasoning")


def _kind(block: Any) -> str:
    """The known field that a block has; ``""`` of any other."""
    if type(block) is not dict:
        return ""
    return next(
        (name for name in block if name in BLOCKS and block[name] is not None), ""
    )


def _path(at: At) -> str:
    return f"messages[{at[0]}].content[{at[1]}]"


CHECK = ConverseCheck

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
from ullage.wires.bedrock_converse.blocks import kind_of as kind_of_block
from ullage.wires.bedrock_converse.models import NAME, call_ids
from ullage.wires.rules.problem import (
    Check,
    JsonObject,
    items_of,
    kind_of,
    name_in,
)

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
        sentence = "a cache point stands behind something"
        for path, entries in self._lists_of_head():
            for index, entry in enumerate(entries):
                if is_cache_point(entry):
                    place = f"{path}[{index}]"
                    self.need(index, "B10", place, sentence)
                    self._point(entry[CACHE_POINT], place)

    def _lists_of_head(self) -> list[tuple[str, list[Any]]]:
        """The lists that are cached before the messages, in that order, each with its path."""
        return [
            ("toolConfig.tools", _tools_in(self.head)),
            ("system", items_of(self.head.get("system"))),
        ]

    def _judge(self, message: Any, at: int, path: str) -> None:
        role = name_in(message, "role")
        if role is None or role not in ROLES:
            self.add("B0", f"{path}.role", "no such role in this format")
            return
        self.unknown(
            "B0", [key for key in message if key not in _MESSAGE], path
        )
        content = message.get("content")
        blocks = items_of(content)
        place = f"{path}.content"
        self.pairs.begin_message(is_model=role == "assistant")
        if type(content) is not list:
            sentence = f"content must be a list of blocks, and it is {kind_of(content)}"
            self.add("B0", place, sentence)
        elif not content:
            self.add("B6", place, "the message has no content")
        if role != "system":
            self._turn(role, blocks, at, path)
        for index, block in enumerate(blocks):
            self._block(block, role, (at, index), f"{place}[{index}]")
        self._documents(blocks, place)

    def _end(self) -> None:
        """B3 of calls that nothing follows."""
        self._missed()

    # -- between messages -----------------------------------------------------------------

    def _turn(self, role: str, blocks: list[Any], at: int, path: str) -> None:
        """What the change of roles from the message before means."""
        if self._spoke is None:
            sentence = "the first message must be the user's"
            self.need(role == "user", "B1", f"{path}.role", sentence)
        elif self._spoke == role:
            self.add(
                "B2", f"{path}.role", f"two messages of the {role} in a row"
            )
        kinds = {_kind(block) for block in blocks if not is_cache_point(block)}
        self._holds_results = "toolResult" in kinds
        if role == "assistant":
            self._missed()
            if self._is_loop_over:
                self._loop = at
                self._is_loop_over = False
            self._caller = at
            self._batch = set()
        else:
            self._is_loop_over = kinds != {"toolResult"}
        self._spoke = role

    def _missed(self) -> None:
        sentence = "this call has no toolResult in the next message"
        for call in self.pairs.unanswered:
            if call[0] == self._caller:
                self.add("B3", _path(call), sentence)

    # -- within a message -----------------------------------------------------------------

    def _block(self, block: Any, role: str, here: At, path: str) -> None:
        if is_cache_point(block):
            self.need(
                here[1], "B10", path, "a cache point stands behind a block"
            )
            self._point(block[CACHE_POINT], path)
            return
        kind = self._shape(block, path)
        if kind is None:
            return
        if role not in BLOCKS[kind].roles:
            sentence = (
                f"a {kind} block may not stand in a message of the {role}"
            )
            self.add("B0", path, sentence)
            return
        body = block[kind]
        if kind == "toolUse":
            self._has_tool_blocks = True
            self._call(body, here, path)
        elif kind == "toolResult":
            self._has_tool_blocks = True
            self._result(body, role, here, path)

    def _call(self, body: JsonObject, here: At, path: str) -> None:
        if is_by_server(body):
            return
        call_id = self._id_in(body, f"{path}.toolUse")
        if call_id is None:
            return
        is_new = call_id not in self._seen
        self.need(is_new, "B5", path, "this toolUseId was used before")
        if call_id not in self._batch:
            self.pairs.add_call(here, call_id)
        self._seen.add(call_id)
        self._batch.add(call_id)

    def _result(
        self, body: JsonObject, role: str, here: At, path: str
    ) -> None:
        content_path = f"{path}.toolResult.content"
        for index, item in enumerate(items_of(body.get("content"))):
            self._item(item, f"{content_path}[{index}]")
        if is_by_server(body):
            return
        call_id = self._id_in(body, f"{path}.toolResult")
        if role == "assistant":
            self.add(
                "B0",
                path,
                "a toolResult block stands in a message of the user",
            )
        elif call_id is not None:
            self._answer(call_id, here, path)
        if body.get("status") == "error" and body.get("content") == []:
            self.add(
                "B6", content_path, "the result of an error has no content"
            )

    def _id_in(self, body: JsonObject, path: str) -> str | None:
        """The id in a call or a result, None if there is none; id and name are judged (B7)."""
        call_id = name_in(body, "toolUseId")
        if call_id is not None and not self._legal_id(call_id):
            self.add("B7", f"{path}.toolUseId", "the id is not allowed")
        name = name_in(body, "name")
        if name is not None and not NAME.match(name):
            self.add("B7", f"{path}.name", "the tool's name is not allowed")
        return call_id

    def _answer(self, call_id: str, here: At, path: str) -> None:
        """Judge which call a result answers (B4, B5)."""
        self.pairs.add_result(here, call_id)
        if call_id in self._answered:
            self.add("B5", path, "this call already has a result")
        self._answered.add(call_id)
        stands_behind = self._caller == here[0] - 1 and call_id in self._batch
        self.need(
            stands_behind, "B4", path, "no such call in the message before"
        )

    def _item(self, item: Any, path: str) -> None:
        """An item of a result."""
        kind = self._shape(item, path)
        if kind is not None and not BLOCKS[kind].in_result:
            self.add(
                "B0", path, f"a {kind} block may not stand in a toolResult"
            )

    def _shape(self, block: Any, path: str) -> str | None:
        """The kind of a block, whose fields are judged; None if that is wrong or not known."""
        if type(block) is not dict:
            self.add(
                "B0", path, f"a block is an object, and it is {kind_of(block)}"
            )
            return None
        names = [name for name, value in block.items() if value is not None]
        if len(names) != 1:
            self.add(
                "B0", path, f"a block has one field, and here are {len(names)}"
            )
            return None
        kind = _kind(block)
        if not kind:
            return None  # a block from the future
        body = block[kind]
        if kind == "text":
            self._text(body, path)
        elif kind == "json":
            self.need(
                type(body) is dict, "B0", f"{path}.json", "json is an object"
            )
        elif type(body) is not dict:
            self.add(
                "B0", path, f"{kind} is an object, and it is {kind_of(body)}"
            )
            return None
        else:
            self._body(kind, body, f"{path}.{kind}")
        return kind

    def _body(self, kind: str, body: JsonObject, path: str) -> None:
        row = BLOCKS[kind]
        self.unknown("B0", row.unknown_fields(body), path)
        is_complete = self.fields("B0", body, row.needs, path)
        if is_complete and row.media:
            self._source(body["source"], f"{path}.source")
        if kind == "searchResult":
            for index, item in enumerate(items_of(body.get("content"))):
                text = item.get("text") if type(item) is dict else None
                self._text(text, f"{path}.content[{index}]")

    def _source(self, source: JsonObject, path: str) -> None:
        names = [name for name, value in source.items() if value is not None]
        is_one = len(names) == 1 and names[0] in _SOURCES
        sentence = "a source has one of bytes, s3Location, text and content"
        self.need(is_one, "B0", path, sentence)

    def _text(self, text: Any, path: str) -> None:
        if type(text) is not str:
            self.add(
                "B0", path, f"text is a string, and it is {kind_of(text)}"
            )
        else:
            is_blank = not text or text.isspace()
            self.need(
                not is_blank, "B6", path, "the text is empty or only spaces"
            )

    def _documents(self, blocks: list[Any], path: str) -> None:
        """B12."""
        has_document = False
        sentence = "the name has characters not allowed in it"
        for index, block in enumerate(blocks):
            if _kind(block) != "document":
                continue
            has_document = True
            name = name_in(block["document"], "name")
            if name is not None and (
                not _DOCUMENT_NAME(name) or _TWO_SPACES(name)
            ):
                self.add("B12", f"{path}[{index}].document.name", sentence)
        has_text = any(_kind(block) == "text" for block in blocks)
        if has_document and not has_text:
            self.add(
                "B12", path, "a document stands in a message without a text"
            )

    # -- cache points ---------------------------------------------------------------------

    def _point(self, point: Any, path: str) -> None:
        """B10 of the next cache point in the order of the request."""
        ttl = name_in(point, "ttl") or "5m"
        if ttl == "1h" and "5m" in self._ttls:
            sentence = (
                "a cache point of an hour stands behind one of five minutes"
            )
            self.add("B10", path, sentence)
        self._ttls.append(ttl)
        if len(self._ttls) == _POINTS + 1:
            self.add("B10", path, f"more than {_POINTS} cache points")

    # -- where a request ends -------------------------------------------------------------

    def _request(self, head: JsonObject) -> None:
        config = head.get("toolConfig")
        tools = _tools_in(head)
        if config is not None and not tools:
            sentence = "toolConfig has a list of tools, and one at least"
            self.add("B0", "toolConfig", sentence)
        is_whole = not _OF_A_CALL.isdisjoint(head)  # else a history alone
        if is_whole and self._has_tool_blocks and config is None:
            sentence = "toolConfig is asked for where a message has toolUse or toolResult"
            self.add("B8", "toolConfig", sentence)
        self._judge_head(head, tools)
        self._judge_prefill(head)
        self._judge_loop(head)

    def _judge_prefill(self, head: JsonObject) -> None:
        """B9: a Claude from some version on does not go on from a reply that was begun."""
        model = claude(head.get("modelId"))
        if model is None or model[1] < _NO_PREFILL_SINCE:
            return
        path = f"messages[{len(self.messages) - 1}]"
        is_legal = self._spoke != "assistant"
        self.need(is_legal, "B9", path, "the last message is the assistant's")

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
            if name is not None and not NAME.match(name):
                path = f"toolConfig.tools[{index}].toolSpec.name"
                self.add("B7", path, "the tool's name is not allowed")

    def _judge_loop(self, head: JsonObject) -> None:
        """B11: what thinking asks of an open tool loop."""
        is_open = (
            self._spoke == "user" and self._holds_results and self._loop >= 0
        )
        if not is_open or not _thinks_manually(head):
            return
        content = items_of(self.messages[self._loop].get("content"))
        begins = bool(content) and _kind(content[0]) == "reasoningContent"
        path = f"messages[{self._loop}].content"
        self.need(
            begins, "B11", path, "the open turn does not begin with reasoning"
        )


def _thinks_manually(head: JsonObject) -> bool:
    """Whether a request asks for a Claude's manual thinking."""
    settings = head.get("additionalModelRequestFields")
    if type(settings) is not dict:
        return False
    kinds = [name_in(settings.get(name), "type") for name in _THINKING]
    return "enabled" in kinds


def _tools_in(head: JsonObject) -> list[Any]:
    config = head.get("toolConfig")
    if type(config) is not dict:
        return []
    return items_of(config.get("tools"))


def _kind(block: Any) -> str:
    """The known field that a block has; ``""`` of any other."""
    if type(block) is not dict:
        return ""
    return kind_of_block(block)


def _path(at: At) -> str:
    return f"messages[{at[0]}].content[{at[1]}]"


CHECK = ConverseCheck

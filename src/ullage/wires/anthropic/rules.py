"""The rules of Anthropic Messages, A0 to A25 (`provider-rules` §1.A), as one pass sees them.

A server tool runs at the provider: call and result both stand in assistant messages. The result
follows in the same reply, which is all that the assistant says in a row (A2), or, where client
tools were called beside it, in the reply after. So two generations of open calls are enough:
those of this reply, and those carried over from the one before. System messages end no reply.
"""

from __future__ import annotations

import re
from typing import Any

from ullage.core.history.pairing import At
from ullage.core.tokens import catalog
from ullage.core.tokens.payload import image_size
from ullage.core.values.limits import ANTHROPIC_MEDIA
from ullage.wires.anthropic.blocks import (
    BLOCKS,
    ROLES,
    SERVER,
    SERVER_CALLS,
    THOUGHTS,
)
from ullage.wires.anthropic.models import (
    call_ids,
    claude,
    refuses_force,
    takes_no_system_messages,
)
from ullage.wires.block import Block
from ullage.wires.rules.problem import (
    Check,
    JsonObject,
    items_of,
    kind_of,
    name_in,
)

_MESSAGE = frozenset(("role", "content"))
_SYSTEM_MESSAGE = _MESSAGE | {"clear_at", "output_config"}
_NO_PREFILL_SINCE = (4, 6)
_TURN_BEGINS = ("thinking", "redacted_thinking", "compaction")
_COMPACT = "compaction"
_ID_FIELDS = {"call": "id", "result": "tool_use_id"}
_MARKERS = 4
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z").match


class AnthropicCheck(Check):
    """One pass over the messages.

    The state: the role before; of the newest assistant message its place and the ids it calls by,
    how many user messages have followed, and whether those held nothing but results; every call
    id seen and answered; the server's calls open in this reply and carried over to it, with their
    tools.

    A tool loop is one turn (A14): it goes back to the last message of the user's that held more
    than results. Words beside the newest results leave it open, a message behind them ends it, and
    system messages are no part of it. A model that is not named is judged by no rule of its own.
    """

    asks_one = ("A1", "at least one message is asked for")

    def __init__(self, head: JsonObject | None = None) -> None:
        super().__init__(head)
        self._images: list[tuple[str, JsonObject]] = []
        self._ttls: list[str] = []
        self._role: str | None = None
        self._spoke: str | None = None
        self._caller = -1
        self._batch: set[str] = set()
        self._answering = 0
        self._only_results = True
        self._seen: set[str] = set()
        self._answered: set[str] = set()
        self._empty = ""
        self._server_calls: set[At] = set()
        self._open: dict[At, str | None] = {}
        self._carried: dict[At, str | None] = {}
        self._ends_with_server_result = False
        self._signed = 0
        self._reply_calls = False
        self._loop = -1
        self._is_loop_over = True
        self._holds_results = False
        for key in ("tools", "system"):
            for index, block in enumerate(items_of(self.head.get(key))):
                if _is_marked(block):
                    self._marker(block, f"{key}[{index}]")

    def _judge(self, message: Any, at: int, path: str) -> None:
        role = name_in(message, "role")
        if role is None or role not in ROLES:
            self.add("A0", f"{path}.role", "no such role in this format")
            return
        if self._empty:
            self.add(
                "A9",
                self._empty,
                "only the last assistant message may be empty",
            )
        legal = _SYSTEM_MESSAGE if role == "system" else _MESSAGE
        self.unknown("A23", [key for key in message if key not in legal], path)

        content = message.get("content")
        blocks = items_of(content)
        if at == 0 and role == "assistant":
            is_compacted = (
                bool(blocks) and name_in(blocks[0], "type") == _COMPACT
            )
            self.need(
                is_compacted,
                "A1",
                f"{path}.role",
                "the first message must be the user's",
            )
        # Between messages first: the blocks below are judged by what the change of roles opened.
        self.pairs.begin_message(is_model=role == "assistant")
        self._turn(role, content, at, path)
        self._text(content, role, f"{path}.content")
        for index, block in enumerate(blocks):
            here = (at, index)
            self._block(block, role, here, _path(here))
        self._role = role

    def _end(self) -> None:
        """A3 and A18."""
        self._missed()
        self._overdue()

    # -- between messages -----------------------------------------------------------------

    def _turn(self, role: str, content: Any, at: int, path: str) -> None:
        """Judge the change of roles from the message before to this one."""
        if role == "system":
            self._system(at, path)
            return
        if self._role == "system" and role == "user":
            self.add(
                "A20",
                path,
                "an assistant message must follow the system message",
            )
        kinds = {name_in(block, "type") for block in items_of(content)}
        self._holds_results = "tool_result" in kinds
        speaker = self._spoke
        self._spoke = role
        if role == "assistant":
            self._assistant(at, begins_reply=speaker != "assistant")
        else:
            has_only_results = type(content) is list and kinds <= {
                "tool_result"
            }
            self._user(kinds, path, has_only_results=has_only_results)

    def _assistant(self, at: int, *, begins_reply: bool) -> None:
        """A message of the assistant opens a batch, and a reply where the user spoke before."""
        if begins_reply:
            self._overdue()
            self._carried = self._open
            self._open = {}
            self._reply_calls = False
        # A loop is one turn (A14): later messages of it do not begin another.
        if self._is_loop_over:
            self._loop = at
            self._is_loop_over = False
        self._missed()
        self._caller = at
        self._batch = set()
        self._answering = 0
        self._only_results = True
        self._ends_with_server_result = False

    def _user(
        self,
        kinds: set[str | None],
        path: str,
        *,
        has_only_results: bool,
    ) -> None:
        """A18 and A19: what may follow a reply with calls of the server's open."""
        if kinds != {"tool_result"}:
            self._is_loop_over = True
        self._answering += 1
        if self._reply_calls:
            sentence = (
                "an unfinished server tool allows nothing but results here"
            )
            is_legal = has_only_results or not self._open
            self.need(is_legal, "A19", f"{path}.content", sentence)
            return
        sentence = f"this server tool call has no result before {path}"
        for call in self._open:
            self.add("A18", _path(call), sentence)
        self._open = {}

    def _system(self, at: int, path: str) -> None:
        follows_assistant = self._role == "assistant"
        if takes_no_system_messages(self.head.get("model")):
            self.add(
                "A0",
                f"{path}.role",
                "this model takes no system messages here",
            )
        if follows_assistant and self._unanswered():
            self.add(
                "A20", path, "a system message parts a call from its result"
            )
        elif at == 0:
            self.add("A20", path, "a system message may not be the first")
        elif follows_assistant and not self._ends_with_server_result:
            self.add(
                "A20", path, "a system message must follow a user message"
            )

    def _missed(self) -> None:
        sentence = "this call has no tool_result in the next message"
        for call in self._unanswered():
            self.add("A3", _path(call), sentence)

    def _overdue(self) -> None:
        for call in self._carried:
            self.add("A18", _path(call), "this server tool call has no result")

    def _unanswered(self) -> list[At]:
        """The client's calls of the last assistant message without a result."""
        calls = []
        for call in self.pairs.unanswered:
            if call[0] == self._caller and call not in self._server_calls:
                calls.append(call)
        return calls

    def _text(self, content: Any, role: str, path: str) -> None:
        """A9: content that is no list of blocks, or an empty one."""
        # The last one of the assistant may be empty, so it is judged when another follows.
        is_empty_reply = role == "assistant" and content in ("", [])
        self._empty = path if is_empty_reply else ""
        if type(content) is str:
            if role == "user":
                self._only_results = False
            if not is_empty_reply:
                self._words(content, path)
        elif type(content) is not list:
            self.add(
                "A9",
                path,
                f"content must be text or a list, and it is {kind_of(content)}",
            )
        elif not content and not is_empty_reply:
            self.add("A9", path, "the message has no content")

    # -- within a message -----------------------------------------------------------------

    def _block(self, block: Any, role: str, here: At, path: str) -> None:
        kind = name_in(block, "type")
        if kind is None:
            self.add("A0", path, "a block is an object with a type")
            return
        row = BLOCKS.get(kind)
        if row is not None:
            self.need(
                role in row.roles,
                "A0",
                path,
                f"a {kind} block may not stand in a {role} message",
            )
            self._fields(block, row, path)
        match kind:
            case "text":
                self._words(block.get("text"), path)
            case "tool_use":
                self._call(block, role, here, path)
            case "tool_result":
                self._result(block, role, here, path)
            case "compaction":
                self._compaction(block, here, path)
        self._server_tool(block, kind, here, path)
        if kind != "tool_result" and role == "user":
            self._only_results = False
        if _is_marked(block):
            self._block_marker(block, path)

    def _fields(self, block: JsonObject, row: Block, path: str) -> None:
        """A0, A8 and A23."""
        fields = block
        if row.kind in THOUGHTS and _is_marked(block):  # A21 says so
            fields = {
                key: block[key] for key in block if key != "cache_control"
            }
        self.block("A0", fields, row, path, "A23")
        self._names(block, row, path)
        if row.media == ("image",):
            self._images.append((path, block))
        for index, item in enumerate(items_of(block.get("content"))):
            place = f"{path}.content[{index}]"
            if row.kind == "tool_result":
                self._item(item, place)
            elif row.kind == "search_result":
                self._search_item(item, place)
        if row.kind == "document":
            self._document(block.get("source"), f"{path}.source")

    def _names(self, block: JsonObject, row: Block, path: str) -> None:
        """A8: the id of a call or a result, and the name of its tool."""
        field = _ID_FIELDS.get(row.becomes, "")
        call_id = name_in(block, field)
        legal_id = call_ids(self.head.get("model"))
        if call_id is not None and not legal_id.match(call_id):
            self.add(
                "A8", path, f"the {field} has characters not allowed in it"
            )
        if row.becomes != "call":
            return
        tool = name_in(block, "name")
        if tool is not None and not _TOOL_NAME(tool):
            self.add("A8", path, "the tool's name is not allowed")

    def _call(self, block: JsonObject, role: str, here: At, path: str) -> None:
        call_id = block.get("id")
        if type(call_id) is not str or role != "assistant":
            return
        if call_id in self._seen:
            self.add("A7", path, "this tool_use id was used before")
        # A second call of one id is reported above, and its result is that of the first.
        if call_id not in self._batch:
            self.pairs.add_call(here, call_id)
        self._reply_calls = True
        self._seen.add(call_id)
        self._batch.add(call_id)

    def _result(
        self, block: JsonObject, role: str, here: At, path: str
    ) -> None:
        call_id = block.get("tool_use_id")
        if type(call_id) is not str or role != "user":
            return
        call = self.pairs.add_result(here, call_id)
        if call_id in self._answered:
            self.add("A7", path, "this call already has a result")
        self._answered.add(call_id)

        is_first_result = call is not None and call[0] == self._caller
        if call_id not in self._batch:
            self.add("A4", path, "no such call just before")
        elif is_first_result and not self._only_results:
            self.add("A5", path, "a result stands behind another block")
        elif is_first_result and self._answering > 1:
            self.add(
                "A6",
                path,
                "the results of one batch are split over several user messages",
            )
        content = block.get("content", "")
        if not isinstance(content, (str, list)):
            self.add(
                "A0",
                f"{path}.content",
                f"text or a list, not {kind_of(content)}",
            )

    def _item(self, item: Any, path: str) -> None:
        """An item of a result."""
        row = BLOCKS.get(name_in(item, "type") or "")
        if row is None or not row.in_result:
            self.add(
                "A0",
                path,
                "a block of this type may not stand in a tool_result",
            )
        else:
            self._fields(item, row, path)
        if _is_marked(item):
            self._block_marker(item, path)

    def _search_item(self, item: Any, path: str) -> None:
        """An item of a search result: text and nothing else, and never a blank one."""
        if name_in(item, "type") != "text":
            self.add("A0", path, "a search_result holds blocks of text alone")
            return
        self._item(item, path)
        self._words(item.get("text"), path)

    def _document(self, source: Any, path: str) -> None:
        """The texts of a document: its data, its content, or the texts in its content."""
        match name_in(source, "type"):
            case "text":
                self._words(source.get("data"), f"{path}.data")
            case "content":
                content = source.get("content")
                self._words(content, f"{path}.content")
                for index, item in enumerate(items_of(content)):
                    if name_in(item, "type") == "text":
                        self._words(
                            item.get("text"), f"{path}.content[{index}]"
                        )

    def _words(self, text: Any, path: str) -> None:
        """A9: a text has words in it. What is no text is judged by its block."""
        is_blank = type(text) is str and (not text or text.isspace())
        self.need(not is_blank, "A9", path, "the text is empty or only spaces")

    def _compaction(self, block: JsonObject, here: At, path: str) -> None:
        """A22, as far as a request shows it: one signed block, first."""
        self.need(block.get("content") != "", "A22", path, "an empty summary")
        if not block.get("signature"):
            return
        self._signed += 1
        self.need(
            here == (0, 0), "A22", path, "a signed summary is not the first"
        )
        self.need(
            self._signed < 2,
            "A22",
            path,
            f"{self._signed} signed summaries, and one is allowed",
        )

    def _server_tool(
        self, block: JsonObject, kind: str, here: At, path: str
    ) -> None:
        """A18: a tool of the server's, whoever made the block."""
        self._ends_with_server_result = kind.endswith("_tool_result")
        if kind in SERVER_CALLS:
            self.pairs.add_call(here, f"{SERVER}{block.get('id')}")
            self._server_calls.add(here)
            is_named = kind == "server_tool_use"
            self._open[here] = name_in(block, "name") if is_named else None
        elif self._ends_with_server_result:
            call = self.pairs.add_result(
                here, f"{SERVER}{block.get('tool_use_id')}"
            )
            if call in self._open:
                del self._open[call]
            elif call in self._carried:
                del self._carried[call]
            else:
                self.add(
                    "A18", path, "a server tool's result without its call"
                )

    # -- where a request ends -------------------------------------------------------------

    def _request(self, head: JsonObject) -> None:
        blocks = blocks_of(self.messages[-1]) if self.messages else []
        last_block = blocks[-1] if blocks else None
        self._judge_head(head)
        if self._role == "assistant":
            self._ending(head, last_block)
        self._manual_thinking(head)
        self._open_tools(head)
        self._forced_tool(head)
        self._judge_images(head)
        self._judge_marker(head, last_block)

    def _ending(self, head: JsonObject, block: Any) -> None:
        """A11 and A12. A paused turn may end the request; its open server tool shows it."""
        path = f"messages[{len(self.messages) - 1}]"
        model = claude(head.get("model"))
        if model is not None and model[1] >= _NO_PREFILL_SINCE:
            self.need(
                self._open, "A11", path, "the last message is the assistant's"
            )
        elif name_in(block, "type") == "text":
            text = name_in(block, "text") or ""
            is_trimmed = text == text.rstrip()
            self.need(
                is_trimmed, "A12", path, "its text ends with white space"
            )

    def _manual_thinking(self, head: JsonObject) -> None:
        """A14: with manual thinking the open turn begins with its thinking."""
        if (
            not _thinks_manually(head)
            or not self._holds_results
            or self._loop < 0
        ):
            return
        blocks = blocks_of(self.messages[self._loop])
        is_thought = (
            bool(blocks) and name_in(blocks[0], "type") in _TURN_BEGINS
        )
        path = f"messages[{self._loop}].content"
        self.need(
            is_thought,
            "A14",
            path,
            "the open turn does not begin with thinking, and thinking is manual",
        )

    def _open_tools(self, head: JsonObject) -> None:
        """A19: a server's tool whose call is open is among the tools."""
        tools = head.get("tools")
        if not isinstance(tools, list) and not head.get("model"):
            return  # a history alone
        if not self._reply_calls or self._spoke == "assistant":
            return
        names = {name_in(tool, "name") for tool in items_of(tools)}
        for name in set(self._open.values()) - names:
            if name:
                self.add(
                    "A19",
                    "tools",
                    f"an open call of {name[:64]!r} without its tool",
                )

    def _forced_tool(self, head: JsonObject) -> None:
        """A24: neither manual thinking nor some models allow that a tool is forced."""
        if name_in(head.get("tool_choice"), "type") not in ("any", "tool"):
            return
        is_allowed = not _thinks_manually(head) and not refuses_force(
            head.get("model")
        )
        self.need(
            is_allowed,
            "A24",
            "tool_choice",
            "a forced tool, with a model or a mode of thinking that excludes it",
        )

    def _judge_head(self, head: JsonObject) -> None:
        """A0, A8 and A9: system texts and tools."""
        for key, kinds in (("system", (str, list)), ("tools", list)):
            if head.get(key) is not None:
                self.fields("A0", head, {key: kinds}, key)
        for index, block in enumerate(items_of(head.get("system"))):
            text = name_in(block, "text") or ""
            has_words = text and not text.isspace()
            self.need(
                has_words,
                "A9",
                f"system[{index}]",
                "a text block with text is asked for",
            )
        for index, tool in enumerate(items_of(head.get("tools"))):
            name = tool.get("name") if type(tool) is dict else None
            is_legal = name is None or (type(name) is str and _TOOL_NAME(name))
            path = f"tools[{index}].name"
            self.need(is_legal, "A8", path, "the tool's name is not allowed")

    def _judge_images(self, head: JsonObject) -> None:
        """A25. The size shows of images whose data is in the request."""
        limits = ANTHROPIC_MEDIA
        count = len(self._images)
        most = limits.images
        if count > limits.images_small_window:
            model = catalog.lookup(str(head.get("model") or ""))
            if (
                model.known
                and model.window_tokens <= limits.small_window_tokens
            ):
                most = limits.images_small_window
        self.need(
            count <= most,
            "A25",
            "messages",
            f"{count} images, {most} may be sent",
        )
        most_px = limits.side_px
        if count > limits.many_images:
            most_px = limits.many_side_px
        for path, block in self._images:
            source = block.get("source")
            if name_in(source, "type") == "base64":
                data = name_in(source, "data")
                if data is not None:
                    self._judge_image(data, most_px, path)

    def _judge_image(self, data: str, most_px: int, path: str) -> None:
        """A25 of one image: ``data`` is its base64, ``most_px`` the most pixels of a side."""
        side_px = max(image_size(data))
        self.need(
            side_px <= most_px,
            "A25",
            path,
            f"{side_px} pixels a side, {most_px} are allowed",
        )
        padding = data[-2:].count("=")
        size_bytes = (len(data) - padding) * 3 // 4
        most_bytes = ANTHROPIC_MEDIA.image_bytes
        self.need(
            size_bytes <= most_bytes,
            "A25",
            path,
            f"{size_bytes} bytes, {most_bytes} are allowed",
        )

    # -- cache markers --------------------------------------------------------------------

    def _block_marker(self, block: JsonObject, path: str) -> None:
        """A21 of the marker that a block of a message carries."""
        if block.get("type") in THOUGHTS:
            self.add("A21", path, "thinking carries no cache marker")
        elif block.get("type") == "text" and not block.get("text"):
            self.add("A21", path, "empty text carries no cache marker")
        self._marker(block, path)

    def _marker(self, thing: JsonObject, path: str) -> None:
        """A21 of the next marker in the order of the request: tools, system, messages."""
        ttl = _ttl(thing)
        if ttl == "1h" and "5m" in self._ttls:
            self.add("A21", path, "a 1h marker stands behind a 5m marker")
        self._ttls.append(ttl)
        if len(self._ttls) == _MARKERS + 1:
            self.add("A21", path, f"more than {_MARKERS} cache markers")

    def _judge_marker(self, head: JsonObject, block: Any) -> None:
        """A21 of the marker of the request itself, which is one on its last block."""
        if head.get("cache_control") is None:
            return
        if _is_marked(block) and _ttl(block) != _ttl(head):
            self.add(
                "A21",
                "cache_control",
                "it lives otherwise than the marker of the last block",
            )
        self._marker(head, "cache_control")
        # A request may be judged again when it has grown: only markers of blocks stay counted.
        self._ttls.pop()


def blocks_of(thing: Any) -> list[Any]:
    """The content of a message or a result as blocks; a string is one text."""
    content = thing.get("content") if type(thing) is dict else None
    if type(content) is str:
        return [{"type": "text", "text": content}]
    return items_of(content)


def _is_marked(thing: Any) -> bool:
    return type(thing) is dict and thing.get("cache_control") is not None


def _thinks_manually(head: JsonObject) -> bool:
    return name_in(head.get("thinking"), "type") == "enabled"


def _ttl(thing: JsonObject) -> str:
    control = thing.get("cache_control")
    if type(control) is not dict:
        return "5m"
    return str(control.get("ttl") or "5m")


def _path(at: At) -> str:
    return f"messages[{at[0]}].content[{at[1]}]"


CHECK = AnthropicCheck

"""The rules of Anthropic Messages, A0 to A23 (`provider-rules` §1.A).

Two machines run side by side over the messages: the *calls* machine (A3 to A7, A19: what the
last assistant message asked and what has answered it) and the *blocks* machine (shape, ids,
text). Shapes of blocks and their ids (A0, A8, A23) are in `rules_blocks`, server tools (A18) and
cache markers (A21) in `rules_extras`.
"""

from __future__ import annotations

from typing import Any

from ullage.history.pairing import At, Pairing
from ullage.wires.anthropic.blocks import ROLES
from ullage.wires.anthropic.rules_blocks import judge_block, judge_content
from ullage.wires.anthropic.rules_extras import Markers, ServerTools
from ullage.wires.rules.problem import Problem, Report, Wire, kind_of, name_in

__all__ = ["Check"]

_MESSAGE = {"role", "content"}
_SYSTEM_MESSAGE = {"role", "content", "clear_at", "output_config"}


class Check:
    """One pass over the messages.

    The state of the calls machine: which call each result answers, the last assistant message
    (``_caller``) and the ids it calls by (``_batch``), how many user messages have followed and
    whether those held nothing but results, and every call id seen and answered so far.
    """

    def __init__(self) -> None:
        self._report = Report()
        self._count = 0
        self._role: str | None = None
        self.pairs = Pairing()
        self._caller = -1
        self._batch: set[str] = set()
        self._answered: set[str] = set()
        self._answering = 0
        self._seen: set[str] = set()
        self._only_results = True
        self._hollow: str | None = None
        self._server = ServerTools(self._report)
        self._markers = Markers(self._report)

    def feed(self, message: Any) -> None:
        """Judge the next message."""
        at = self._count
        self._count = at + 1
        role = name_in(message, "role")
        if role is None or role not in ROLES:
            self._report.add("A0", f"messages[{at}].role", "no such role in this format")
            return
        if self._hollow:
            self._report.add("A9", self._hollow, "only the last assistant message may be empty")
            self._hollow = None
        self._envelope(message, role, at)
        self.pairs.speaker(is_model=role == "assistant")
        content = message.get("content")
        self._turn(role, content, at)
        if type(content) is str:
            self._string(content, role, at)
        elif isinstance(content, list):
            self._list(content, role, at)
        else:
            sentence = f"content must be text or a list, and it is {kind_of(content)}"
            self._report.add("A9", f"messages[{at}].content", sentence)
        self._role = role

    def close(self) -> list[Problem]:
        """Everything found, and the calls still open; may be asked at any point."""
        end = Report()
        if not self._count:
            end.add("A1", "messages", "at least one message is asked for")
        self._missed(end)
        self._server.overdue(end)
        return self._report.found + end.found

    # -- between messages -----------------------------------------------------------------

    def _envelope(self, message: Wire, role: str, at: int) -> None:
        known = _SYSTEM_MESSAGE if role == "system" else _MESSAGE
        extra = ", ".join(repr(key) for key in message if key not in known)
        if extra:
            sentence = f"fields the API does not know: {extra[:200]}"
            self._report.add("A23", f"messages[{at}]", sentence)
        if at == 0 and role == "assistant" and not _begins_compacted(message.get("content")):
            self._report.add("A1", "messages[0].role", "the first message must be the user's")

    def _turn(self, role: str, content: Any, at: int) -> None:
        """What the change of roles from the message before means."""
        if role == "system":
            self._system(at)
            return
        if self._role == "system" and role == "user":
            sentence = "an assistant message must follow the system message"
            self._report.add("A20", f"messages[{at}]", sentence)
        if role == "assistant":
            self._missed(self._report)
            self._caller, self._batch, self._answering = at, set(), 0
            self._only_results = True
            self._server.begin_assistant()
        elif self._batch:
            self._answering += 1
            self._server.follow_up(content, at)
        elif self._role == "assistant":
            self._server.interrupted(at)

    def _system(self, at: int) -> None:
        where = f"messages[{at}]"
        if self._unanswered():
            self._report.add("A20", where, "a system message parts a call from its result")
        elif at == 0:
            self._report.add("A20", where, "a system message may not be the first")
        elif self._role == "assistant" and not self._server.ended_with_result:
            self._report.add("A20", where, "a system message must follow a user message")

    def _missed(self, report: Report) -> None:
        for at, number in self._unanswered():
            report.add("A3", _path(at, number), "this call has no tool_result in the next message")

    def _unanswered(self) -> list[At]:
        """The calls of the last assistant message without a result."""
        return [call for call in self.pairs.unanswered if call[0] == self._caller]

    # -- within a message -----------------------------------------------------------------

    def _string(self, content: str, role: str, at: int) -> None:
        self._only_results = self._only_results and role != "user"
        if content and not content.isspace():
            return
        if role == "assistant" and not content:
            self._hollow = f"messages[{at}].content"
        else:
            self._report.add("A9", f"messages[{at}].content", "the text is empty or only spaces")

    def _list(self, content: list[Any], role: str, at: int) -> None:
        if not content and role == "assistant":
            self._hollow = f"messages[{at}].content"
        elif not content:
            self._report.add("A9", f"messages[{at}].content", "the message has no content")
        for index, block in enumerate(content):
            self._block(block, role, at, index)

    def _block(self, block: Any, role: str, at: int, index: int) -> None:
        kind = name_in(block, "type")
        if kind is None:
            self._report.add("A0", _path(at, index), "a block is an object with a type")
            return
        judge_block(block, kind, role, _path(at, index), self._report)
        if kind == "text":
            self._text(block.get("text"), at, index)
        elif kind == "tool_use":
            self._call(block, role, at, index)
        elif kind == "tool_result":
            self._result(block, role, at, index)
        self._server.block(block, kind, _path(at, index))
        if kind != "tool_result" and role == "user":
            self._only_results = False
        if block.get("cache_control") is not None:
            self._markers.block(block, _path(at, index))

    def _text(self, text: Any, at: int, index: int) -> None:
        if type(text) is str and (not text or text.isspace()):
            self._report.add("A9", _path(at, index), "the text is empty or only spaces")

    def _call(self, block: Wire, role: str, at: int, index: int) -> None:
        call_id = block.get("id")
        if type(call_id) is not str or role != "assistant":
            return
        if call_id in self._seen:
            self._report.add("A7", _path(at, index), "this tool_use id was used before")
        self._seen.add(call_id)
        if call_id not in self._batch:
            self.pairs.call((at, index), call_id)
        self._batch.add(call_id)

    def _result(self, block: Wire, role: str, at: int, index: int) -> None:
        call_id = block.get("tool_use_id")
        if type(call_id) is not str or role != "user":
            return
        here = (at, index)
        call = self.pairs.result(here, call_id)
        if call_id in self._answered:
            self._report.add("A7", _path(at, index), "this call already has a result")
        self._answered.add(call_id)
        if (self.pairs.of(here) or (-2, 0))[0] != self._caller:
            self._report.add("A4", _path(at, index), "no such call just before")
        elif call is not None and not self._only_results:
            self._report.add("A5", _path(at, index), "a result stands behind another block")
        elif call is not None and self._answering > 1:
            sentence = "the results of one batch are split over several user messages"
            self._report.add("A6", _path(at, index), sentence)
        content = block.get("content", "")
        judge_content(content, f"{_path(at, index)}.content", self._report)
        for inner, item in enumerate(content if isinstance(content, list) else ()):
            if type(item) is dict and item.get("cache_control") is not None:
                self._markers.block(item, f"{_path(at, index)}.content[{inner}]")


def _begins_compacted(content: Any) -> bool:
    """The message begins with a compaction block, which may come first (A1)."""
    first = content[0] if isinstance(content, list) and content else None
    return type(first) is dict and first.get("type") == "compaction"


def _path(at: int, index: int) -> str:
    return f"messages[{at}].content[{index}]"

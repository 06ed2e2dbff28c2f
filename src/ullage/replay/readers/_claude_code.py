"""Claude Code session logs: the Anthropic history behind a log of lines.

A log holds one JSON object a line. Lines of type ``user`` and ``assistant`` carry a piece of
a message; the rest (progress, snapshots, titles) only matters as a link in the chain of
``parentUuid``. What was sent is put together again in three steps:

1. *threads*: the lines of one session, and each sidechain (a subagent) by itself;
2. *order*: from the last line back along ``parentUuid`` (over a compaction along
   ``logicalParentUuid``), plus what hangs beside the chain but belongs to it: other lines
   of the same reply and the results of its calls. What is left over are branches the user
   went back on; they are no part of the history;
3. *messages*: the lines of one reply (same ``message.id``) are one assistant message; the
   results of its calls are one user message directly after it, whatever came between.

A log is not a request: it has empty texts the client never sent back, and calls cut short.
Those are left out, or answered by a short error where later messages build on them, and each
is reported as damage. No system prompt and no tools are in such a log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ullage.replay.readers._history import History, Turn, seconds, usage_of
from ullage.replay.readers._run import Report, Run

__all__ = ["ANTHROPIC_COUNTS", "Log", "is_line"]

ANTHROPIC_COUNTS = (
    *("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
    *("output_tokens", ""),
)
"""What Anthropic's usage object calls its counts; cached tokens lie outside the input."""
_LINKS = ("parentUuid", "leafUuid", "snapshot")
_NOTES = ("queue-operation", "ai-title", "last-prompt", "pr-link", "custom-title", "mode")


def is_line(value: dict[str, Any]) -> bool:
    """Whether the value is a line of such a log: it has a type and a link to other lines."""
    kind = value.get("type")
    return isinstance(kind, str) and (kind in _NOTES or any(key in value for key in _LINKS))


class Line(Struct, frozen=True):
    """One line that carries a piece of a message."""

    number: int
    uuid: str
    role: str
    message: dict[str, Any]
    stamp: float | None


class Log:
    """Gathers the lines of one file, then gives its runs."""

    def __init__(self, name: str, report: Report) -> None:
        self._name = name
        self._report = report
        self._parents: dict[str, str] = {}
        self._threads: dict[str, list[Line]] = {}

    def add(self, value: dict[str, Any], number: int) -> Iterator[Run]:
        """Take one line; no session is over before the file is."""
        self._add(value, number)
        return iter(())

    def _add(self, value: dict[str, Any], number: int) -> None:
        uuid = value.get("uuid")
        uuid = uuid if isinstance(uuid, str) else f"line {number}"
        parent = value.get("parentUuid") or value.get("logicalParentUuid")
        if isinstance(parent, str):
            self._parents[uuid] = parent
        role, message = value["type"], value.get("message")
        if role not in ("user", "assistant") or _never_sent(value):
            return
        if not isinstance(message, dict) or not isinstance(message.get("content"), (str, list)):
            self._report.add(number, "a line of a session without a message")
            return
        line = Line(number, uuid, role, message, seconds(value.get("timestamp")))
        self._threads.setdefault(self._thread(value, uuid), []).append(line)

    def runs(self) -> Iterator[Run]:
        """The runs: each session, then each sidechain, in order of their first line."""
        for thread, lines in self._threads.items():
            run = _Session(thread, self._in_order(lines), self._report).run()
            if run is not None:
                yield run

    def _thread(self, value: dict[str, Any], uuid: str) -> str:
        session = value.get("sessionId")
        session = session if isinstance(session, str) else self._name
        if not value.get("isSidechain"):
            return session
        agent = value.get("agentId")
        return f"{session}/{agent if isinstance(agent, str) else self._root(uuid)}"

    def _root(self, uuid: str) -> str:
        seen = set()
        while uuid in self._parents and uuid not in seen:
            seen.add(uuid)
            uuid = self._parents[uuid]
        return uuid

    def _in_order(self, lines: list[Line]) -> list[Line]:
        """The lines that belong to the history, in order of the log."""
        parts: dict[str, list[Line]] = {}
        for line in lines:
            parts.setdefault(self._root(line.uuid), []).append(line)
        kept = [line for part in parts.values() for line in self._main(part)]
        return sorted(kept, key=lambda line: line.number)

    def _main(self, part: list[Line]) -> list[Line]:
        """The lines on the chain that ends last, and those that belong beside it."""
        chain = self._ancestors(part[-1].uuid)
        replies = {_reply(line) for line in part if line.uuid in chain} - {None}
        asked = set(_ids("tool_use", (line for line in part if _reply(line) in replies)))
        return [
            line
            for line in part
            if line.uuid in chain
            or _reply(line) in replies
            or not asked.isdisjoint(_ids("tool_result", [line]))
        ]

    def _ancestors(self, uuid: str) -> set[str]:
        chain = {uuid}
        while (parent := self._parents.get(uuid)) is not None and parent not in chain:
            chain.add(parent)
            uuid = parent
        return chain


def _never_sent(value: dict[str, Any]) -> bool:
    """Lines the client made for the screen: errors, and notes only shown in the transcript."""
    message = value.get("message")
    model = message.get("model") if isinstance(message, dict) else None
    shown_only = value.get("isVisibleInTranscriptOnly") and not value.get("isCompactSummary")
    return bool(value.get("isApiErrorMessage") or model == "<synthetic>" or shown_only)


def _reply(line: Line) -> str | None:
    reply = line.message.get("id")
    return reply if line.role == "assistant" and isinstance(reply, str) else None


def _ids(kind: str, lines: Iterable[Line]) -> Iterator[str]:
    """The call ids in the blocks of one type."""
    key = "id" if kind == "tool_use" else "tool_use_id"
    for line in lines:
        content = line.message["content"]
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == kind:
                yield str(block.get(key))


class _Session:
    """The lines of one thread, in order, made into messages (step 3)."""

    def __init__(self, id: str, lines: list[Line], report: Report) -> None:
        self._report = report
        self._history = History(id, "anthropic", "claude-code", report, lines[0].number)
        self._replies: dict[str, Turn] = {}
        for line in lines:
            if line.role == "assistant":
                self._reply(line)
            else:
                self._user(line)
        models = [line.message.get("model") for line in lines if line.role == "assistant"]
        self._history.of_model(models[-1] if models else None)

    def run(self) -> Run | None:
        """The run these lines make, or None when no reply is left."""
        turns = self._history.turns
        turns[:] = [turn for turn in turns if turn.raws[0]["content"]]
        return self._history.run()

    def _reply(self, line: Line) -> None:
        """One line of a reply: begins it, or adds to it. The last usage counts."""
        id, blocks = str(line.message.get("id") or line.uuid), self._blocks(line)
        turn = self._replies.get(id)
        if turn is None:
            raw = {"role": "assistant", "content": []}
            turn = self._replies[id] = self._history.reply([raw], {}, line.number, line.stamp)
        turn.raws[0]["content"] += blocks
        calls = [str(block.get("id")) for block in blocks if _is(block, "tool_use")]
        self._history.asks(turn, dict.fromkeys(calls, ""))
        usage = usage_of(line.message.get("usage"), ANTHROPIC_COUNTS)
        if usage is not None:  # its output is often the count at the start of the stream
            turn.usage = replace(usage, output_tokens=0)

    def _user(self, line: Line) -> None:
        """Results go to the reply that asked; the rest beside them, or is a message by itself."""
        answered, rest = None, []
        for block in self._blocks(line):
            if not _is(block, "tool_result"):
                rest.append(block)
                continue
            turn = self._history.result(str(block.get("tool_use_id")), block, line.number)
            if turn is not None:
                answered, turn.answered_s = turn, line.stamp
        if answered is not None:
            answered.beside += rest
        elif rest:
            content = line.message["content"]
            raw = {"role": "user", "content": content if isinstance(content, str) else rest}
            self._history.say(raw, line.number, line.stamp)

    def _blocks(self, line: Line) -> list[Any]:
        """The blocks without empty texts: a provider sends some, and takes none back."""
        content = line.message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        kept = [b for b in blocks if not (_is(b, "text") and not str(b.get("text")).strip())]
        if len(kept) < len(blocks):
            self._report.repaired(line.number, "an empty text is left out")
        return kept


def _is(block: Any, kind: str) -> bool:
    return isinstance(block, dict) and block.get("type") == kind

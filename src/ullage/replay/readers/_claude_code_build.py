"""Lines of a session log, in order, to one run. See `_claude_code`, step 3."""

from __future__ import annotations

from typing import Any, Protocol

from ullage.replay.readers._history import Asked
from ullage.replay.readers._request import anthropic_usage
from ullage.replay.readers._run import Report, Run
from ullage.values.usage import Usage

__all__ = ["build"]

NO_RESULT = "No result was recorded for this call."


class LogLine(Protocol):
    """What is needed of a line."""

    @property
    def number(self) -> int: ...
    @property
    def uuid(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def message(self) -> dict[str, Any]: ...
    @property
    def stamp(self) -> float | None: ...


class _Draft:
    """A message in the making. A reply also gathers what answers it."""

    def __init__(self, role: str, line: LogLine) -> None:
        self.role = role
        self.number = line.number
        self.stamp = line.stamp
        self.content: str | list[Any] = []
        self.usage: Usage | None = None
        self.results: dict[str, dict[str, Any]] = {}
        self.beside: list[Any] = []
        self.answered_at: float | None = None

    @property
    def calls(self) -> list[str]:
        """The ids of its calls, in order."""
        blocks = self.content if isinstance(self.content, list) else []
        return [str(block.get("id")) for block in blocks if _is(block, "tool_use")]

    @property
    def unanswered(self) -> list[str]:
        """The calls without a result."""
        return [call_id for call_id in self.calls if call_id not in self.results]


def build(id: str, lines: list[Any], report: Report) -> Run | None:
    """The run these lines make, or None when no reply is left."""
    drafts = _drafts(lines, report)
    while drafts and drafts[0].role == "assistant":
        report.repaired(drafts.pop(0).number, "the log begins with a reply, which is left out")
    kept, cut = _cut(drafts, report)
    if not any(draft.role == "assistant" for draft in kept) and cut is None:
        return None
    models = [line.message.get("model") for line in lines if line.role == "assistant"]
    run = Run(id, "anthropic", {}, [], {}, "claude-code", {}, lines[0].number)
    for draft in kept:
        _emit(draft, run, report)
    if cut is not None and cut.usage is not None:
        run.usage[len(run.messages)] = cut.usage
    if models and isinstance(models[-1], str):
        run.request["model"] = models[-1]
    return run


def _drafts(lines: list[Any], report: Report) -> list[_Draft]:
    drafts: list[_Draft] = []
    replies: dict[str, _Draft] = {}
    asked: Asked[_Draft] = Asked()
    for line in lines:
        if line.role == "assistant":
            _reply_line(line, drafts, replies, asked, report)
        else:
            _user_line(line, drafts, asked, report)
    return [draft for draft in drafts if draft.content]


def _reply_line(
    line: LogLine,
    drafts: list[_Draft],
    replies: dict[str, _Draft],
    asked: Asked[_Draft],
    report: Report,
) -> None:
    """One line of a reply: begins its draft, or adds to it. The last usage counts."""
    reply = str(line.message.get("id") or line.uuid)
    draft = replies.get(reply)
    if draft is None:
        draft = replies[reply] = _Draft("assistant", line)
        drafts.append(draft)
    blocks = _with_text(_blocks(line), line, report)
    draft.content = [*draft.content, *blocks]
    draft.usage = anthropic_usage(line.message.get("usage"), output=False) or draft.usage
    asked.ask(draft, (str(block.get("id")) for block in blocks if _is(block, "tool_use")))


def _user_line(line: LogLine, drafts: list[_Draft], asked: Asked[_Draft], report: Report) -> None:
    """Results go to the reply that asked; the rest beside them, or as a message of its own."""
    answered: _Draft | None = None
    rest = []
    for block in _blocks(line):
        if not _is(block, "tool_result"):
            rest.append(block)
            continue
        call_id = str(block.get("tool_use_id"))
        draft, problem = asked.answer(call_id)
        if draft is None:
            report.repaired(line.number, problem)
        else:
            draft.results[call_id], answered = block, draft
            draft.answered_at = line.stamp
    rest = _with_text(rest, line, report)
    if answered is not None:
        answered.beside += rest
    elif rest:
        draft = _Draft("user", line)
        content = line.message["content"]
        draft.content = content if isinstance(content, str) else rest
        drafts.append(draft)


def _cut(drafts: list[_Draft], report: Report) -> tuple[list[_Draft], _Draft | None]:
    """Without a last reply whose calls were never all answered, and what came after it."""
    last = max((i for i, d in enumerate(drafts) if d.role == "assistant"), default=-1)
    if last < 0 or not drafts[last].unanswered:
        return drafts, None
    report.repaired(drafts[last].number, "the last reply has calls without results, left out")
    return drafts[:last], drafts[last]


def _emit(draft: _Draft, run: Run, report: Report) -> None:
    """Append the message, its usage and stamp, and the message of its results."""
    if draft.usage is not None:
        run.usage[len(run.messages)] = draft.usage
    _append(run, draft.role, draft.content, draft.stamp)
    for call_id in draft.unanswered:
        report.repaired(draft.number, "a call without a result is answered by a short error")
        draft.results[call_id] = {
            "type": "tool_result",
            "tool_use_id": call_id,
            "content": NO_RESULT,
            "is_error": True,
        }
    if draft.calls:
        results = [draft.results[call_id] for call_id in dict.fromkeys(draft.calls)]
        _append(run, "user", results + draft.beside, draft.answered_at)


def _append(run: Run, role: str, content: str | list[Any], stamp: float | None) -> None:
    if stamp is not None:
        run.stamps[len(run.messages)] = stamp
    run.messages.append({"role": role, "content": content})


def _blocks(line: LogLine) -> list[Any]:
    content = line.message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _with_text(blocks: list[Any], line: LogLine, report: Report) -> list[Any]:
    """The blocks without empty texts: a provider sends some, and takes none back."""
    kept = [b for b in blocks if not (_is(b, "text") and not str(b.get("text")).strip())]
    if len(kept) < len(blocks):
        report.repaired(line.number, "an empty text is left out")
    return kept


def _is(block: Any, kind: str) -> bool:
    return isinstance(block, dict) and block.get("type") == kind

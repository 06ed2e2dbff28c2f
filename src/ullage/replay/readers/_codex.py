"""Codex rollouts: the items of a Responses history, one a line.

    {"timestamp": …, "type": "session_meta",  "payload": {"id": …, "base_instructions": …}}
    {"timestamp": …, "type": "turn_context",  "payload": {"model": …}}
    {"timestamp": …, "type": "response_item", "payload": {"type": "function_call", …}}
    {"timestamp": …, "type": "event_msg",     "payload": {"type": "token_count", …}}
    {"timestamp": …, "type": "compacted",     "payload": {"message": …}}

In rollouts of the first versions an item is the line itself. Events repeat on the screen what
the items say; of them only the counts of tokens and the user's going back are read. What was
compacted stays in the history, and the summary is what the user says next: a run is the whole
of what happened, longer than what the model saw.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ullage.replay.readers._history import History, seconds
from ullage.replay.readers._run import Report, Run
from ullage.values.usage import Usage

__all__ = ["Log", "is_line"]

_LINES = ("session_meta", "turn_context", "response_item", "event_msg", "compacted")
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_OF_THE_MODEL = (*_CALLS, "reasoning", "web_search_call", "image_generation_call")
_BY_THE_CLIENT = ("id", "status", "phase", "internal_chat_message_metadata_passthrough")


def is_line(value: dict[str, Any]) -> bool:
    """Whether the value is a line of a rollout."""
    kind = value.get("type")
    if isinstance(value.get("payload"), dict):
        return kind in _LINES
    return value.get("record_type") == "state" or _is_item(value) or _is_old_head(value)


def _is_item(value: dict[str, Any]) -> bool:
    kind = value.get("type")
    if kind == "message":
        return isinstance(value.get("content"), list) and "role" in value
    return kind in _OF_THE_MODEL or str(kind) in {f"{call}_output" for call in _CALLS}


def _is_old_head(value: dict[str, Any]) -> bool:
    return {"id", "timestamp", "instructions"} <= value.keys() and "type" not in value


class Log:
    """Gathers the lines of one file; each ``session_meta`` of another session begins a run."""

    def __init__(self, name: str, report: Report) -> None:
        self._name, self._report = name, report
        self._histories: dict[str, History] = {}
        self._now = self._begin(name)

    def _begin(self, id: str) -> History:
        return self._histories.setdefault(
            id, History(id, "openai-responses", "codex", self._report)
        )

    def add(self, value: dict[str, Any], line: int) -> None:
        """Take one line."""
        kind, payload = value.get("type"), value.get("payload")
        stamp = seconds(value.get("timestamp"))
        if not isinstance(payload, dict):
            kind, payload = ("response_item" if _is_item(value) else "session_meta"), value
        match kind:
            case "session_meta":
                self._meta(payload)
            case "turn_context":
                self._now.of_model(payload.get("model"))
            case "response_item":
                self._item(payload, line, stamp)
            case "event_msg":
                self._event(payload)
            case "compacted" if payload.get("message"):
                said = {"role": "user", "content": str(payload["message"])}
                self._now.say(said, line, stamp)

    def runs(self) -> Iterator[Run]:
        """The runs, in order of their first line."""
        for history in self._histories.values():
            run = history.run()
            if run is not None:
                yield run

    def _meta(self, payload: dict[str, Any]) -> None:
        if isinstance(payload.get("id"), str) and self._now.is_empty:
            self._now = self._begin(payload["id"])
        told = payload.get("base_instructions") or payload.get("instructions")
        text = told.get("text") if isinstance(told, dict) else told
        if isinstance(text, str) and text:
            self._now.request.setdefault("instructions", text)

    def _item(self, payload: dict[str, Any], line: int, stamp: float | None) -> None:
        kind, item = payload.get("type"), _sent(payload)
        call_id = payload.get("call_id") or payload.get("id")
        if kind == "message" and payload.get("role") != "assistant":
            if payload.get("content"):
                self._now.say(item, line, stamp)
        elif kind == "message" or kind in _OF_THE_MODEL:
            calls = {str(call_id): str(kind)} if kind in _CALLS else {}
            self._now.more(item, calls, line, stamp)
        elif str(kind).endswith("_output"):
            self._now.result(str(call_id), lambda _: item, line)

    def _event(self, payload: dict[str, Any]) -> None:
        if payload.get("type") == "token_count":
            self._now.used(_usage(payload.get("info")))
        elif payload.get("type") == "thread_rolled_back":
            turns = payload.get("num_turns")
            self._now.back(turns if isinstance(turns, int) else 0)


def _sent(payload: dict[str, Any]) -> dict[str, Any]:
    """The item as it was sent: without what is null, and without the client's own notes."""
    item = {
        key: value
        for key, value in payload.items()
        if value is not None and key not in _BY_THE_CLIENT
    }
    output = item.get("output")
    if isinstance(output, dict):  # of the first versions: {"content": …, "success": …}
        item["output"] = str(output.get("content") or "")
    if item.get("type") == "local_shell_call":
        item |= {"call_id": payload.get("call_id") or payload.get("id"), "status": "completed"}
    return item


_WRITTEN = "cache_write_input_tokens"


def _usage(info: Any) -> Usage | None:
    """The counts of the last request: cached tokens lie inside the input."""
    counts = info.get("last_token_usage") if isinstance(info, dict) else None
    if not isinstance(counts, dict) or not isinstance(counts.get("input_tokens"), int):
        return None
    read, written = (counts.get(key) or 0 for key in ("cached_input_tokens", _WRITTEN))
    return Usage(
        fresh_tokens=max(counts["input_tokens"] - read - written, 0),
        cache_read_tokens=read,
        cache_write_tokens=written,
        output_tokens=counts.get("output_tokens") or 0,
        reasoning_tokens=counts.get("reasoning_output_tokens") or 0,
    )

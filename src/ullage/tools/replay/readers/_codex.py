"""Codex rollouts: the items of a Responses history, one a line.

    {"timestamp": …, "type": "session_meta",  "payload": {"id": …, "base_instructions": …}}
    {"timestamp": …, "type": "turn_context",  "payload": {"model": …}}
    {"timestamp": …, "type": "response_item", "payload": {"type": "function_call", …}}
    {"timestamp": …, "type": "event_msg",     "payload": {"type": "thread_rolled_back", …}}
    {"timestamp": …, "type": "compacted",     "payload": {"message": …}}

In rollouts of the first versions an item is the line itself. Events repeat on the screen what
the items say; of them only the user's going back is read. Lines of other types, to which each
version adds (the state of the world, counts of tokens), carry nothing of the history. What was
compacted stays in the history, and the summary is what the user says next: a run is the whole of
what happened, longer than what the model saw.
"""

from __future__ import annotations

from typing import Any

from ullage.tools.replay.readers._log import Event, LoggedConversation, LogKind

_LINES = (
    "session_meta",
    "turn_context",
    "response_item",
    "event_msg",
    "compacted",
)
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_OF_THE_MODEL = (
    *_CALLS,
    "reasoning",
    "web_search_call",
    "image_generation_call",
)
_BY_THE_CLIENT = (
    "id",
    "status",
    "phase",
    "internal_chat_message_metadata_passthrough",
)


def _is_line(value: Event) -> bool:
    if isinstance(value.get("payload"), dict):
        is_of_later = (
            isinstance(value.get("type"), str) and "timestamp" in value
        )
        return value.get("type") in _LINES or is_of_later
    is_old_head = {
        "id",
        "timestamp",
        "instructions",
    } <= value.keys() and "type" not in value
    return (
        value.get("record_type") == "state" or _is_item(value) or is_old_head
    )


def _is_item(value: Event) -> bool:
    kind = value.get("type")
    if kind == "message":
        return isinstance(value.get("content"), list) and "role" in value
    return kind in _OF_THE_MODEL or str(kind) in {
        f"{call}_output" for call in _CALLS
    }


def _take(history: LoggedConversation, value: Event) -> None:
    kind = value.get("type")
    payload = value.get("payload")
    if not isinstance(payload, dict):
        kind = "response_item" if _is_item(value) else "session_meta"
        payload = value
    match kind:
        case "session_meta":
            _meta(history, payload)
        case "turn_context":
            history.of_model(payload.get("model"))
        case "response_item":
            _item(history, payload)
        case "event_msg" if payload.get("type") == "thread_rolled_back":
            _back(history, payload.get("num_turns"))
        case "compacted" if payload.get("message"):
            history.say({"role": "user", "content": str(payload["message"])})


def _meta(history: LoggedConversation, payload: Event) -> None:
    """The head of the session; in one under way, that of another it was made from."""
    if isinstance(payload.get("id"), str) and not history.turns:
        history.id = payload["id"]
        history.request = {}
    instructions = payload.get("base_instructions") or payload.get(
        "instructions"
    )
    text = (
        instructions.get("text")
        if isinstance(instructions, dict)
        else instructions
    )
    if isinstance(text, str) and text:
        history.request.setdefault("instructions", text)


def _item(history: LoggedConversation, payload: Event) -> None:
    kind = payload.get("type")
    item = _sent(payload)
    call_id = str(payload.get("call_id") or payload.get("id"))
    if kind == "message" and payload.get("role") != "assistant":
        if payload.get("content"):
            history.say(item)
    elif kind == "message" or kind in _OF_THE_MODEL:
        calls = {call_id: str(kind)} if kind in _CALLS else {}
        turn = history.turns[-1] if history.turns else None
        if turn is None or turn.calls is None or turn.results:
            history.reply([item], calls)
        else:  # one more item of the same reply
            turn.raws.append(item)
            history.asks(turn, calls)
    elif str(kind).endswith("_output"):
        history.result(call_id, item)


def _back(history: LoggedConversation, turns: Any) -> None:
    """The user goes back: what was said and replied since so many turns ago is dropped."""
    is_reply = [turn.calls is not None for turn in history.turns]
    starts = [
        at
        for at, now in enumerate(is_reply)
        if at and is_reply[at - 1] and not now
    ]
    if isinstance(turns, int) and turns > 0:
        del history.turns[([0, *starts])[-turns:][0] :]


def _sent(payload: Event) -> Event:
    """The item as it was sent: without what is null, and without the client's own notes."""
    item = {
        key: value
        for key, value in payload.items()
        if value is not None and key not in _BY_THE_CLIENT
    }
    output = item.get("output")
    if isinstance(
        output, dict
    ):  # of the first versions: {"content": …, "success": …}
        item["output"] = str(output.get("content") or "")
    if item.get("type") == "local_shell_call":
        item |= {
            "call_id": payload.get("call_id") or payload.get("id"),
            "status": "completed",
        }
    return item


CODEX = LogKind(format="openai-responses", is_line=_is_line, take=_take)

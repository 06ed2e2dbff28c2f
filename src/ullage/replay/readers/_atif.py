"""ATIF, the Agent Trajectory Interchange Format: one document, its steps in order.

    {"schema_version": "ATIF-v…", "agent": {"model_name": …}, "steps": [
        {"source": "user", "message": …},
        {"source": "agent", "message": …, "tool_calls": [{"tool_call_id": …,
         "function_name": …, "arguments": {…}}], "observation": {"results": [
             {"source_call_id": …, "content": …}]}, "metrics": {"prompt_tokens": …}}]}

A step is one reply with what came of it. Agents that act by text observe without calls: what
they observe is told by the user.
"""

from __future__ import annotations

from typing import Any

from ullage.replay.readers._chat import chat_reply, chat_result, fields_of, text_of
from ullage.replay.readers._history import History, seconds
from ullage.values.usage import Usage

__all__ = ["is_atif", "tell"]


def is_atif(value: dict[str, Any]) -> bool:
    """Whether the value is a trajectory of this format, of any version."""
    steps = value.get("steps")
    known = str(value.get("schema_version")).startswith("ATIF-") and isinstance(steps, list)
    return known and all(isinstance(step, dict) for step in value["steps"])


def tell(value: dict[str, Any], history: History, line: int) -> None:
    """Tell the history what the steps say."""
    history.of_model(fields_of(value.get("agent")).get("model_name"))
    for step in value["steps"]:
        stamp, text = seconds(step.get("timestamp")), _text(step.get("message"))
        history.of_model(step.get("model_name"))
        if step.get("source") in ("user", "system"):
            if text:
                history.say({"role": step["source"], "content": text}, line, stamp)
            continue
        asked = [call for call in step.get("tool_calls") or () if isinstance(call, dict)]
        calls_made = [
            (str(c.get("tool_call_id")), str(c.get("function_name")), c.get("arguments"))
            for c in asked
        ]
        reply, names = chat_reply(text, calls_made)
        history.reply([reply], names, line, stamp, _usage(step.get("metrics")))
        _observe(step.get("observation"), bool(names), history, line)


def _observe(observation: Any, is_called: bool, history: History, line: int) -> None:
    """The results of a step; what came back without a call is told by the user."""
    for result in fields_of(observation).get("results") or ():
        text, source = _text(result.get("content")), result.get("source_call_id")
        if is_called:
            history.result(str(source) if source else None, chat_result(text), line)
        elif text:
            history.say({"role": "user", "content": text}, line)


def _text(content: Any) -> str:
    return text_of(content) if isinstance(content, (str, list)) else ""


def _usage(metrics: Any) -> Usage | None:
    """Cached tokens lie inside the prompt."""
    if not isinstance(metrics, dict) or not isinstance(metrics.get("prompt_tokens"), int):
        return None
    read = metrics.get("cached_tokens") or 0
    return Usage(
        fresh_tokens=max(metrics["prompt_tokens"] - read, 0),
        cache_read_tokens=read,
        output_tokens=metrics.get("completion_tokens") or 0,
    )

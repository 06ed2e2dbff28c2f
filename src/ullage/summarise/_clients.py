"""Summaries through the official SDKs. A client is given; nothing is imported."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ullage.summarise._summariser import TIMEOUT_S, Summariser
from ullage.values.effects import Reply, Summarise
from ullage.values.messages import Text
from ullage.values.usage import Usage
from ullage.wires import FORMATS, Format
from ullage.wires.base import field

__all__ = ["anthropic", "gemini", "openai"]


def anthropic(
    client: Any, model: str = "", *, window_tokens: int | None = None, timeout_s: float = TIMEOUT_S
) -> Summariser:
    """Summaries through ``anthropic.Anthropic`` or ``anthropic.AsyncAnthropic``.

    Args:
        client: the SDK's client.
        model: the model to be asked; ``""`` for the model of the conversation.
        window_tokens: its context window; None for what is known of the model.
        timeout_s: how long one request may take, in seconds.
    """

    def send(asked: Summarise, model: str) -> Any:
        more = {"system": asked.system} if asked.system else {}
        content = [{"type": "text", "text": text} for text in asked.texts]
        return client.messages.create(
            model=model,
            max_tokens=asked.most_tokens,
            messages=[{"role": "user", "content": content}],
            timeout=timeout_s,
            **more,
        )

    return _through("anthropic", client, send, _stop_reason, model, window_tokens, timeout_s)


def openai(
    client: Any, model: str = "", *, window_tokens: int | None = None, timeout_s: float = TIMEOUT_S
) -> Summariser:
    """Summaries through ``openai.OpenAI`` or ``openai.AsyncOpenAI``. See `anthropic`."""

    def send(asked: Summarise, model: str) -> Any:
        system = [{"role": "system", "content": asked.system}] if asked.system else []
        return client.chat.completions.create(
            model=model,
            max_completion_tokens=asked.most_tokens,
            messages=[*system, *({"role": "user", "content": text} for text in asked.texts)],
            timeout=timeout_s,
        )

    return _through("openai-chat", client, send, _finish_reason, model, window_tokens, timeout_s)


def gemini(
    client: Any, model: str = "", *, window_tokens: int | None = None, timeout_s: float = TIMEOUT_S
) -> Summariser:
    """Summaries through ``google.genai.Client`` or its ``aio``. See `anthropic`."""

    def send(asked: Summarise, model: str) -> Any:
        config: dict[str, Any] = {
            "max_output_tokens": asked.most_tokens,
            "http_options": {"timeout": int(timeout_s * 1_000)},
        }
        if asked.system:
            config["system_instruction"] = asked.system
        parts = [{"text": text} for text in asked.texts]
        return client.models.generate_content(
            model=model, contents=[{"role": "user", "parts": parts}], config=config
        )

    return _through("gemini", client, send, _candidate_reason, model, window_tokens, timeout_s)


def _through(
    format: str,
    client: Any,
    send: Callable[[Summarise, str], Any],
    reason: Callable[[Any], Any],
    model: str,
    window_tokens: int | None,
    timeout_s: float,
) -> Summariser:
    return Summariser(
        send=send,
        read=partial(_read, FORMATS[format], reason),
        is_async=type(client).__name__.startswith("Async"),
        model=model,
        window_tokens=window_tokens,
        timeout_s=timeout_s,
    )


_FINISHED = frozenset(("end_turn", "stop_sequence", "stop"))


def _read(wire: Format, reason: Callable[[Any], Any], came: Any) -> Reply:
    parts = [part for raw in wire.reply(came) for part in wire.parse(raw, wire.key).parts]
    ended = reason(came)
    return Reply(
        text="".join(part.text for part in parts if isinstance(part, Text)),
        finished=str(getattr(ended, "value", ended)).lower() in _FINISHED,
        usage=wire.usage(came) or Usage(),
        model=str(field(came, "model") or ""),
    )


def _stop_reason(came: Any) -> Any:
    return field(came, "stop_reason")


def _finish_reason(came: Any) -> Any:
    return next((field(choice, "finish_reason") for choice in field(came, "choices") or ()), None)


def _candidate_reason(came: Any) -> Any:
    found = field(came, "candidates") or ()
    return next(
        (field(each, "finish_reason") or field(each, "finishReason") for each in found), None
    )

"""Real models, each through its vendor's own SDK; keys come from the environment alone.

``claude-…`` is asked over Anthropic Messages, ``gemini-…`` over Gemini, ``gpt-…`` and OpenAI's
others over Responses; what a server of one's own runs, over Chat Completions. The SDKs' own
variables (``ANTHROPIC_BASE_URL``, ``OPENAI_BASE_URL``, ``GOOGLE_GEMINI_BASE_URL``) lead elsewhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

__all__ = [
    "MAX_OUTPUT_TOKENS",
    "AskError",
    "Provider",
    "provider_of",
    "server_model",
]

MAX_OUTPUT_TOKENS = 8_192
LOCAL_KEY = "DEMO_API_KEY"
RETRIES = 5
_NAMES = {
    "anthropic": r"(anthropic[:/])?claude-",
    "gemini": r"(google[:/]|models/)?gemini-",
    "openai-responses": r"(openai[:/])?(gpt-|chatgpt-|o\d)",
}
_WORDS_CHARS = 300


class AskError(Exception):
    """A model could not be asked; says what to do. ``status`` is what the process exits with."""

    def __init__(self, words: str, *, status: int = 1) -> None:
        super().__init__(words)
        self.status = status


class Provider(Struct, frozen=True):
    """How one vendor is asked.

    Attributes:
        format: its wire, of ``ullage.wires.FORMATS``.
        keys: the environment variables that may hold its key, the first that is set counts.
        connect: given the key, makes ``create``: a request as keyword arguments, a reply of the
            SDK.
        dump: a reply as JSON values.
        revive: the reply such values were made of.
        first: makes the first request of a model and a task.
    """

    format: str
    keys: tuple[str, ...]
    connect: Callable[[str], Callable[..., Any]]
    dump: Callable[[Any], dict[str, Any]]
    revive: Callable[[dict[str, Any]], Any]
    first: Callable[[str, str], dict[str, Any]]

    def create(self) -> Callable[..., Any]:
        """The SDK's call, with every error in words.

        Raises:
            AskError: no key is set.
        """
        key = next(
            (value for name in self.keys if (value := os.environ.get(name))),
            "",
        )
        if not key and self.keys != (LOCAL_KEY,):
            raise AskError(
                f"No key: set {' or '.join(self.keys)} in the environment.",
                status=2,
            )
        create = self.connect(key or "none")

        def asked(**request: Any) -> Any:
            try:
                return create(**request)
            except Exception as error:
                words = _words(error, request["model"], self.keys, key)
                if words is None:
                    raise
                raise AskError(words) from error

        return asked


def provider_of(model: str, url: str | None = None) -> Provider:
    """How a model is asked.

    Args:
        model: its name, as its vendor writes it.
        url: the base URL of a server that speaks Chat Completions, up to ``/v1``.

    Raises:
        AskError: nobody is known who has a model of such a name.
    """
    if url:
        return _chat(url)
    makers = {
        "anthropic": _anthropic,
        "gemini": _gemini,
        "openai-responses": _responses,
    }
    for format, pattern in _NAMES.items():
        if re.match(pattern, model):
            return makers[format]()
    raise AskError(
        f"Who has {model!r}? Names begin with claude-, gpt- or gemini-. For a server of your own "
        "give its URL too: make demo MODEL=name URL=http://localhost:8000/v1",
        status=2,
    )


def server_model(url: str) -> str:
    """The first model that a server of one's own lists.

    Raises:
        AskError: it cannot be reached, or lists none.
    """
    try:
        listed = list(
            _openai(os.environ.get(LOCAL_KEY) or "none", url).models.list()
        )
    except Exception as error:
        words = _words(error, "", (LOCAL_KEY,), os.environ.get(LOCAL_KEY, ""))
        if words is None:
            raise
        raise AskError(words) from error
    if not listed:
        raise AskError(
            "The server lists no model: name one with MODEL=, its URL with URL=."
        )
    return str(listed[0].id)


# ── vendors ──────────────────────────────────────────────────────────────────────────────


def _plain(reply: Any) -> dict[str, Any]:
    dumped: dict[str, Any] = reply.to_dict(mode="json")
    return dumped


def _anthropic() -> Provider:
    import anthropic

    def connect(key: str) -> Callable[..., Any]:
        return anthropic.Anthropic(
            api_key=key, max_retries=RETRIES
        ).messages.create

    def first(model: str, task: str) -> dict[str, Any]:
        return {
            "model": model,
            "max_tokens": MAX_OUTPUT_TOKENS,
            "cache_control": {"type": "ephemeral"},
            "messages": [{"role": "user", "content": task}],
        }

    def revive(values: dict[str, Any]) -> Any:
        return anthropic.types.Message.construct(**values)

    return Provider(
        "anthropic", ("ANTHROPIC_API_KEY",), connect, _plain, revive, first
    )


def _openai(key: str, url: str | None = None) -> Any:
    import openai

    return openai.OpenAI(api_key=key, base_url=url, max_retries=RETRIES)


def _responses() -> Provider:
    from openai.types.responses import Response

    def first(model: str, task: str) -> dict[str, Any]:
        return {"model": model, "input": [{"role": "user", "content": task}]}

    return Provider(
        "openai-responses",
        ("OPENAI_API_KEY",),
        lambda key: _openai(key).responses.create,
        _plain,
        lambda values: Response.construct(**values),
        first,
    )


def _chat(url: str) -> Provider:
    from openai.types.chat import ChatCompletion

    def first(model: str, task: str) -> dict[str, Any]:
        return {
            "model": model,
            "messages": [{"role": "user", "content": task}],
        }

    return Provider(
        "openai-chat",
        (LOCAL_KEY,),
        lambda key: _openai(key, url).chat.completions.create,
        _plain,
        lambda values: ChatCompletion.construct(**values),
        first,
    )


def _gemini() -> Provider:
    from google import genai
    from google.genai import types

    def connect(key: str) -> Callable[..., Any]:
        retry = types.HttpRetryOptions(attempts=RETRIES + 1)
        client = genai.Client(
            api_key=key, http_options=types.HttpOptions(retry_options=retry)
        )
        # the client itself is held: one that nobody holds closes its connections
        return lambda **request: client.models.generate_content(**request)

    def dump(reply: Any) -> dict[str, Any]:
        said: dict[str, Any] = reply.model_dump(
            mode="json",
            by_alias=True,
            exclude_none=True,
            exclude={"sdk_http_response"},
        )
        return said

    def first(model: str, task: str) -> dict[str, Any]:
        contents = [{"role": "user", "parts": [{"text": task}]}]
        return {"model": model, "contents": contents, "config": {}}

    def revive(values: dict[str, Any]) -> Any:
        import msgspec

        # from JSON text: signatures are bytes, which only that form tells from a string
        return types.GenerateContentResponse.model_validate_json(
            msgspec.json.encode(values)
        )

    return Provider(
        "gemini",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        connect,
        dump,
        revive,
        first,
    )


# ── errors ───────────────────────────────────────────────────────────────────────────────


def _words(
    error: Exception, model: str, keys: tuple[str, ...], key: str
) -> str | None:
    """What an SDK's error means to the person at the keyboard, or None: it is no such error."""
    status = getattr(error, "status_code", None) or getattr(
        error, "code", None
    )
    if not isinstance(status, int):
        kinds = {kind.__name__ for kind in type(error).__mro__}
        is_network = bool(
            kinds & {"APIConnectionError", "TransportError", "ConnectionError"}
        )
        return (
            "The provider was not reached. Is it up, and its URL right?"
            if is_network
            else None
        )
    said = _said(error, key)
    if status in (401, 403):
        return f"The key is refused ({status}): is {' or '.join(keys)} right for this provider?"
    if status == 404:
        return f"The provider knows no model {model!r} ({status}). {said}"
    if status == 429:
        return f"Too many requests, or the account's limit is reached ({status}). {said}"
    return f"The provider answers {status}. {said}"


def _said(error: Exception, key: str) -> str:
    """The provider's own words, short, on one line and without the key."""
    words = " ".join(str(getattr(error, "message", None) or error).split())
    clean = words.replace(key, "…") if key else words
    return f"It says: {clean[:_WORDS_CHARS]}"

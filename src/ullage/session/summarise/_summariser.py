"""What a summariser is, and those of the official SDKs. A client is given; nothing is imported."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from msgspec import Struct

from ullage.core.errors import ConfigError, SummaryError
from ullage.core.history.raw import field
from ullage.core.tokens.catalog import lookup
from ullage.core.values.effects import Reply, Summarise
from ullage.core.values.messages import Text
from ullage.core.values.usage import Usage
from ullage.wires import FORMATS, Format

TIMEOUT_S = 60.0


class Summariser(Struct, frozen=True, kw_only=True):
    """A model that writes summaries.

    Attributes:
        send: sends a request to the model of this name, and gives what came back.
        read: the reply in what came back.
        is_async: whether ``send`` must be awaited.
        model: the model that is asked, unless a policy names another; ``""`` for the model of
            the conversation.
        window_tokens: its context window; None for what is known of the model.
        timeout_s: how long one request may take, in seconds.
        waits: whether a turn waits for its answer where one is needed at once. False: it is asked
            beside the turns alone, and a turn goes on with what is there.
        may_ask: whether it may be asked now, as a turn ends; None: always.

    Raises:
        ConfigError: a number is not positive.
    """

    send: Callable[[Summarise, str], Any]
    read: Callable[[Any], Reply]
    is_async: bool = False
    model: str = ""
    window_tokens: int | None = None
    timeout_s: float = TIMEOUT_S
    waits: bool = True
    may_ask: Callable[[], bool] | None = None

    def __post_init__(self) -> None:
        for name, value in (
            ("timeout_s", self.timeout_s),
            ("window_tokens", self.window_tokens),
        ):
            if value is not None and not value > 0:
                raise ConfigError(
                    name, f"{value} is not positive", "Give more than 0."
                )

    def model_for(self, model: str, caller: str) -> str:
        """The name of the model that is asked.

        Args:
            model: the one that the policy names, or ``""``.
            caller: the model of the conversation.
        """
        return model or self.model or caller

    def window_for(self, model: str, caller: str) -> int:
        """The context window, in tokens, of the model that is asked.

        Args:
            model: see `model_for`.
            caller: see `model_for`.
        """
        return (
            self.window_tokens
            or lookup(self.model_for(model, caller)).window_tokens
        )


def of(
    call: Callable[[Summarise], Any] | Summariser,
    *,
    model: str = "",
    window_tokens: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Summariser:
    """A summariser from any callable.

    Args:
        call: takes a `Summarise` and returns a `Reply`, or the text alone; it may be async. A
            `Summariser` is returned as it is.
        model: see `Summariser`.
        window_tokens: see `Summariser`.
        timeout_s: see `Summariser`.

    Raises:
        ConfigError: it cannot be called, or a number is not positive.
    """
    if isinstance(call, Summariser):
        return call
    if not callable(call):
        raise ConfigError(
            "summariser",
            f"a {type(call).__name__} cannot be called",
            "Give a function or a client.",
        )
    return Summariser(
        send=lambda request, _: call(request),
        read=_read,
        is_async=inspect.iscoroutinefunction(call)
        or inspect.iscoroutinefunction(getattr(call, "__call__", None)),  # noqa: B004
        model=model,
        window_tokens=window_tokens,
        timeout_s=timeout_s,
    )


def _read(response: Any) -> Reply:
    if (
        isinstance(response, Reply)
        and isinstance(response.text, str)
        and isinstance(response.usage, Usage)
    ):
        return response
    if isinstance(response, str):
        return Reply(text=response)
    raise SummaryError(
        f"the summariser returned a {type(response).__name__}; return a str or a Reply"
    )


def anthropic(
    client: Any,
    model: str = "",
    *,
    window_tokens: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Summariser:
    """Summaries through ``anthropic.Anthropic`` or ``anthropic.AsyncAnthropic``.

    Args:
        client: the SDK's client.
        model: the model that is asked; ``""`` for the model of the conversation.
        window_tokens: its context window; None for what is known of the model.
        timeout_s: how long one request may take, in seconds.

    Raises:
        ConfigError: a number is not positive.
    """

    def send(request: Summarise, model: str) -> Any:
        more = {"system": request.system} if request.system else {}
        content = [{"type": "text", "text": text} for text in request.texts]
        return client.messages.create(
            model=model,
            max_tokens=request.most_tokens,
            messages=[{"role": "user", "content": content}],
            timeout=timeout_s,
            **more,
        )

    return _through("anthropic", client, send, model, window_tokens, timeout_s)


def openai(
    client: Any,
    model: str = "",
    *,
    window_tokens: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Summariser:
    """Summaries through ``openai.OpenAI`` or ``openai.AsyncOpenAI``. See `anthropic`."""

    def send(request: Summarise, model: str) -> Any:
        system = (
            [{"role": "system", "content": request.system}]
            if request.system
            else []
        )
        return client.chat.completions.create(
            model=model,
            max_completion_tokens=request.most_tokens,
            messages=[
                *system,
                *({"role": "user", "content": text} for text in request.texts),
            ],
            timeout=timeout_s,
        )

    return _through(
        "openai-chat", client, send, model, window_tokens, timeout_s
    )


def gemini(
    client: Any,
    model: str = "",
    *,
    window_tokens: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Summariser:
    """Summaries through ``google.genai.Client`` or its ``aio``; arguments as of `anthropic`."""

    def send(request: Summarise, model: str) -> Any:
        config: dict[str, Any] = {
            "max_output_tokens": request.most_tokens,
            "http_options": {"timeout": int(timeout_s * 1_000)},
        }
        if request.system:
            config["system_instruction"] = request.system
        parts = [{"text": text} for text in request.texts]
        return client.models.generate_content(
            model=model,
            contents=[{"role": "user", "parts": parts}],
            config=config,
        )

    return _through("gemini", client, send, model, window_tokens, timeout_s)


def _through(
    format: str,
    client: Any,
    send: Callable[[Summarise, str], Any],
    model: str,
    window_tokens: int | None,
    timeout_s: float,
) -> Summariser:
    return Summariser(
        send=send,
        read=partial(read_reply, FORMATS[format]),
        is_async=type(client).__name__.startswith("Async"),
        model=model,
        window_tokens=window_tokens,
        timeout_s=timeout_s,
    )


_REASONS = (
    *("stop_reason", "finish_reason", "finishReason"),
    *("stopReason", "done_reason", "status"),
)
"""Where a reply says why it ended, by the vendors' names."""
_FINISHED = frozenset(("end_turn", "stop_sequence", "stop", "completed"))


def read_reply(wire: Format, response: Any) -> Reply:
    """The summary in a provider's reply, for a summariser of your own.

    Args:
        wire: the format of the reply.
        response: the reply, a dict or the SDK's object.
    """
    parts = [
        part
        for raw in wire.reply(response)
        for part in wire.parse(raw, wire.key).parts
    ]
    end_reason = next(
        (reason for reason in _reasons(response) if reason is not None), None
    )
    return Reply(
        text="".join(part.text for part in parts if isinstance(part, Text)),
        finished=str(getattr(end_reason, "value", end_reason)).lower()
        in _FINISHED,
        usage=wire.usage(response) or Usage(),
        model=str(field(response, "model") or ""),
    )


def _reasons(response: Any) -> Iterator[Any]:
    """Why a reply of any of the vendors ended; None where it does not say so."""
    answers = (
        *(field(response, "choices") or ()),
        *(field(response, "candidates") or ()),
    )
    for at in (response, *answers[:1]):
        yield from (field(at, name) for name in _REASONS)

"""The clients that can be wrapped, and how a copy of each is made."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from msgspec.structs import replace

from ullage import Budget, Limits, Policy
from ullage.core.errors import ConfigError
from ullage.core.redaction import Redact
from ullage.documents import PolicyName
from ullage.doors.host import named_tools
from ullage.doors.wrapping._boto import is_bedrock, session_of, wrapped_around
from ullage.doors.wrapping._http import (
    http_client_around,
    is_awaited,
    library_of,
)
from ullage.doors.wrapping._signing import Signer
from ullage.doors.wrapping.wrapped import Wrapped
from ullage.session.summarise import Summarise, Summariser, of
from ullage.stores import AsyncStore, Store, open_lasting

C = TypeVar("C")

_TAKEN = (
    "Give a client of anthropic (Anthropic, AsyncAnthropic, also for Bedrock, Vertex and others), "
    "of openai (OpenAI, AsyncOpenAI, also for Azure and Bedrock), google.genai.Client, a client of "
    'ollama (Client, AsyncClient) or boto3.client("bedrock-runtime"), or use a Session'
)


def wrap(
    client: C,
    *,
    store: str | os.PathLike[str] | Store | AsyncStore | None = None,
    blobs: str | None = None,
    cache: str | None = None,
    tenant: str = "",
    recall: bool = True,
    joins: bool = True,
    mark_cache: bool = False,
    policy: PolicyName | str | Policy = "default",
    limits: Limits | None = None,
    repair: bool = False,
    budget: Budget | Callable[[str], Budget] | None = None,
    summariser: Summariser | Callable[[Summarise], Any] | None = None,
    redact: Redact | None = None,
    user_tools: Iterable[str] = (),
    outline: bool = True,
    most: int = 256,
    most_bytes: int = 256 << 20,
    holdout: float = 0.0,
) -> C:
    """A copy of a provider's client whose requests are fitted, and everything else as it was.

    Args:
        client: a client of anthropic, openai, google-genai or ollama, for threads or for an event
            loop, or boto3's of ``bedrock-runtime``, whose ``converse`` and ``converse_stream`` are
            fitted. It is not changed; the copy shares its connections, and closing one closes both.
        store: where what is set aside is kept: None (memory), ``"sqlite"``, a path, or a store.
            With one on disk a conversation goes on after a restart as if there was none.
        blobs: where its larger texts are kept, as of `ullage.Session`, like the next one.
        cache: what holds copies of them.
        tenant: whose content this is; a ref opens only what the same tenant put there.
        recall: whether requests that have tools are offered the recall tools. The model's calls of
            them are answered here; neither they nor their results reach the caller. Without
            them the default policy cuts nothing until the window is nearly full.
        joins: whether a conversation that is first seen under way is offered them too, and cut as
            one batch, once it saves money; see `ullage.Session`.
        mark_cache: whether a request to Anthropic that has no cache markers gets some, at the
            places that survive the next batch.
        policy: as of `ullage.Session`, like the next five.
        limits: the window, and what is kept free for the answer.
        repair: whether a history is repaired that the provider would refuse.
        budget: what may be spent: by all together, or what makes one of a conversation's key.
        summariser: a model that adds to the summaries of what is compacted. It is asked beside
            the calls, before a compaction is due, and no call waits for it.
        redact: takes secrets out of what is set aside.
        user_tools: your own tools by which the user answers, as of `ullage.Session`.
        outline: whether the store names the messages of a conversation, as of `ullage.Session`.
        most: the most conversations that are held in memory; see `ullage.Sessions`.
        most_bytes: about the most that they hold of their histories together.
        holdout: the share of conversations that pass unfitted, as of `ullage.Sessions`.

    Returns:
        A client of the same class. `ullage.wrapped` gives what stands behind it.

    Raises:
        ConfigError: this client is not known, is wrapped already, or a setting is not known.
        StoreError: the store cannot be opened.
    """
    inner = _taken(client)
    fitting: dict[str, Any] = {
        "policy": policy,
        "limits": limits,
        "joins": joins,
        "holdout": holdout,
        "repair": repair,
        "redact": redact,
        "user_tools": named_tools(user_tools),
        "outline": outline,
    }
    bounds = {
        "budget": budget,
        "summariser": None
        if summariser is None
        else replace(of(summariser), waits=False),
        "most": most,
        "most_bytes": most_bytes,
    }
    is_genai = hasattr(client, "_api_client")
    is_boto = is_bedrock(client)
    is_async = is_genai or (not is_boto and is_awaited(inner))
    shared = Wrapped(
        open_lasting(store, blobs, cache) if blobs or cache else store,
        tenant,
        {**fitting, **bounds},
        recalls=recall,
        is_async=is_async,
        marks_cache=mark_cache,
    )
    wrap_kind = _wrap_stainless
    if is_genai:
        wrap_kind = _wrap_genai
    elif is_boto:
        wrap_kind = wrapped_around
    elif _is_ollama(client):
        wrap_kind = _wrap_ollama
    wrapper: C = wrap_kind(client, shared)
    return wrapper


def _taken(client: Any) -> Any:
    """The HTTP client of a client that can be wrapped."""
    inner = _http_client(client)
    if inner is None or not (is_bedrock(client) or library_of(inner)):
        raise ConfigError(
            "client",
            f"a {type(client).__name__} cannot be wrapped",
            f"{_TAKEN}.",
        )
    if hasattr(inner, "wrapped"):
        raise ConfigError(
            "client", "it is wrapped already", "Use it as it is."
        )
    return inner


def wrapped(client: Any) -> Wrapped:
    """What stands behind a wrapped client, or a copy of one: sessions, counts, reports.

    Raises:
        ConfigError: it is not wrapped.
    """
    shared = getattr(_http_client(client), "wrapped", None)
    if not isinstance(shared, Wrapped):
        raise ConfigError(
            "client", "it is not wrapped", "Give what ullage.wrap returned."
        )
    return shared


def _http_client(client: Any) -> Any:
    """The HTTP client of an SDK's client, or None."""
    if is_bedrock(client):
        return session_of(client)
    api = getattr(client, "_api_client", None)
    if api is not None:
        return getattr(api, "_httpx_client", None)
    is_known = hasattr(client, "with_options") or _is_ollama(client)
    return getattr(client, "_client", None) if is_known else None


def _is_ollama(client: Any) -> bool:
    """Whether this is a client of ollama, or of a class that stands on one."""
    return any(
        kind.__module__.partition(".")[0] == "ollama"
        for kind in type(client).__mro__
    )


def _wrap_ollama(client: Any, shared: Wrapped) -> Any:
    """A copy of a client of ollama, whose own ``copy`` is for models."""
    duplicate = copy.copy(client)
    duplicate._client = http_client_around(
        client._client, shared, Signer(client)
    )
    duplicate._client.headers = (
        client._client.headers
    )  # it looks there for its key
    return duplicate


def _wrap_stainless(client: Any, shared: Wrapped) -> Any:
    """A copy of a client of anthropic or openai."""
    return client.copy(
        http_client=http_client_around(client._client, shared, Signer(client))
    )


def _wrap_genai(client: Any, shared: Wrapped) -> Any:
    """A copy of a client of google-genai, which has no ``copy``.

    Its parts (``models``, ``chats``, ``aio`` and the like) are made anew over a copy of what sends
    for them. HTTP clients that are given to that are its caller's, so it does not close them.
    """
    api = copy.copy(client._api_client)
    signer = Signer(client)
    options = {
        "httpx_client": http_client_around(api._httpx_client, shared, signer)
    }
    if api._async_httpx_client is not None:
        options["httpx_async_client"] = http_client_around(
            api._async_httpx_client, shared, signer
        )
        api._async_httpx_client = options["httpx_async_client"]
    api._httpx_client = options["httpx_client"]
    api._http_options = api._http_options.model_copy(update=options)
    duplicate = copy.copy(client)
    for name, part in vars(client).items():
        if getattr(part, "_api_client", None) is client._api_client:
            setattr(duplicate, name, type(part)(api))
    duplicate._api_client = api
    return duplicate

"""Which path of which provider is which wire.

Only the end of a path is looked at, so that any prefix of a gateway or of a compatible server will
do: ``/v1/chat/completions`` is also ``/openai/deployments/NAME/chat/completions`` (Azure) and
``/api/v1/chat/completions`` (a gateway).

    …/v1/messages                                  anthropic
    …/v1/messages/count_tokens                     anthropic, counted
    …/v1/messages/batches                          anthropic, a batch
    …/chat/completions                             openai-chat
    …/responses                                    openai-responses
    …/responses/input_tokens                       openai-responses, counted
    …/responses/compact                            openai-responses, compacted by the provider
    …/models/M:generateContent                     gemini; also :streamGenerateContent
    …/models/M:countTokens                         gemini, counted
    …/models/M:batchGenerateContent                gemini, a batch
    …/publishers/anthropic/models/M:rawPredict     anthropic (Vertex); also :streamRawPredict
    …/publishers/anthropic/models/count-tokens:rawPredict     the same, counted
    /model/M/invoke                                anthropic (Bedrock)
    /model/M/invoke-with-response-stream           the same, in Amazon's binary frames

What a provider keeps is asked for with GET, and done away with by DELETE:

    …/responses/ID                                 openai-responses, stored
    …/responses/ID/input_items                     the items of its request
    …/chat/completions                             openai-chat, a list of what is stored
    …/chat/completions/ID                          one of them
    …/chat/completions/ID/messages                 the messages of its request

Source: the SDKs' own paths (anthropic 2.11, openai 3.52, google-genai 3.4).
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from msgspec import Struct

Kind: TypeAlias = Literal[
    "create", "count", "compact", "batch", "reply", "replies", "items", "delete"
]


class Route(Struct, frozen=True):
    """What is asked at a path.

    Attributes:
        wire: the name of the wire of the request's body.
        kind: ``"create"``: a reply is asked for; ``"count"``: the tokens of the request;
            ``"compact"``: the request's history in short; ``"batch"``: replies to many requests,
            later; ``"reply"``, ``"replies"``, ``"items"``: what is stored of one, of many, of a
            request; ``"delete"``: it is to go.
        model: the model, where the path names it; else ``""``.
        streams: whether the path itself asks for a stream; None: the body says.
        is_array: whether a streamed answer comes as the items of one JSON array.
        reply_id: the id of what is stored, where the path names it; else ``""``.
    """

    wire: str
    kind: Kind = "create"
    model: str = ""
    streams: bool | None = None
    is_array: bool = False
    reply_id: str = ""

    @property
    def is_stored(self) -> bool:
        """Whether it is asked for what a provider keeps."""
        return self.kind in ("reply", "replies", "items", "delete")


def route_of(method: str, path: str) -> Route | None:
    """What is asked at a path, or None where there is no history in the body.

    Args:
        method: the HTTP method.
        path: the path of the URL as it stands there, quoted; a query behind it is passed over.
    """
    path, _, query = path.partition("?")
    path = path.rstrip("/")
    if method.upper() != "POST":
        return _stored(method.upper(), path)
    for pattern, route in _ROUTES:
        if found := pattern.search(path):
            model = _unquoted(found.groupdict().get("model") or "")
            is_array = route.wire == "gemini" and bool(route.streams) and "alt=sse" not in query
            return Route(route.wire, route.kind, model, route.streams, is_array)
    return None


def _stored(method: str, path: str) -> Route | None:
    """What is asked of what a provider keeps."""
    for known, pattern, route in _STORED:
        if known == method and (found := pattern.search(path)):
            name = _unquoted(found.groupdict().get("id") or "")
            return Route(route.wire, route.kind, reply_id=name)
    return None


def _unquoted(text: str) -> str:
    """A part of a path without its percent signs."""
    raw = re.sub(
        rb"%([0-9a-fA-F]{2})", lambda found: bytes.fromhex(found[1].decode()), text.encode()
    )
    return raw.decode("utf-8", "replace")


_ROUTES = tuple(
    (re.compile(pattern), route)
    for pattern, route in (
        (r"/models/count-tokens:rawPredict$", Route("anthropic", "count")),
        (r"/publishers/anthropic/models/(?P<model>[^/]+):rawPredict$", Route("anthropic")),
        (
            r"/publishers/anthropic/models/(?P<model>[^/]+):streamRawPredict$",
            Route("anthropic", streams=True),
        ),
        (r"/model/(?P<model>[^/]+)/invoke$", Route("anthropic", streams=False)),
        (
            r"/model/(?P<model>[^/]+)/invoke-with-response-stream$",
            Route("anthropic", streams=True),
        ),
        (r"/v1/messages$", Route("anthropic")),
        (r"/v1/messages/count_tokens$", Route("anthropic", "count")),
        (r"/v1/messages/batches$", Route("anthropic", "batch")),
        (r"/deployments/(?P<model>[^/]+)/chat/completions$", Route("openai-chat")),
        (r"/chat/completions$", Route("openai-chat")),
        (r"/responses$", Route("openai-responses")),
        (r"/responses/input_tokens$", Route("openai-responses", "count")),
        (r"/responses/compact$", Route("openai-responses", "compact")),
        (r"/(?P<model>[^/:]+):generateContent$", Route("gemini", streams=False)),
        (r"/(?P<model>[^/:]+):streamGenerateContent$", Route("gemini", streams=True)),
        (r"/(?P<model>[^/:]+):countTokens$", Route("gemini", "count")),
        (r"/(?P<model>[^/:]+):batchGenerateContent$", Route("gemini", "batch")),
    )
)

_STORED = tuple(
    (method, re.compile(pattern), route)
    for method, pattern, route in (
        ("GET", r"/responses/(?P<id>[^/]+)$", Route("openai-responses", "reply")),
        ("GET", r"/responses/(?P<id>[^/]+)/input_items$", Route("openai-responses", "items")),
        ("GET", r"/chat/completions$", Route("openai-chat", "replies")),
        ("GET", r"/chat/completions/(?P<id>[^/]+)$", Route("openai-chat", "reply")),
        ("GET", r"/chat/completions/(?P<id>[^/]+)/messages$", Route("openai-chat", "items")),
        ("DELETE", r"/responses/(?P<id>[^/]+)$", Route("openai-responses", "delete")),
        ("DELETE", r"/chat/completions/(?P<id>[^/]+)$", Route("openai-chat", "delete")),
    )
)

"""A wire over HTTP: its paths, its batches, its errors, and what a stream is to be asked for.

Only the end of a path is looked at, so that any prefix of a gateway or of a compatible server will
do. Source of the paths: the SDKs' own (anthropic 2.11, openai 3.52, google-genai 3.4).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

from msgspec import Struct

Kind: TypeAlias = Literal[
    "create",
    "count",
    "compact",
    "batch",
    "reply",
    "replies",
    "items",
    "delete",
]

_PERCENT = re.compile(rb"%([0-9a-fA-F]{2})")


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


class Endpoint(Struct, frozen=True, kw_only=True):
    """A path of a provider's API.

    Attributes:
        path: a regular expression for its end, quoted as it stands in a URL. The groups ``model``
            and ``id`` are the model, and the id of what is stored.
        kind: see `Route`.
        method: of HTTP.
        streams: see `Route`.
        array_without: a stream comes as one JSON array unless this stands in the query; ``""``: it
            never does.
    """

    path: re.Pattern[str]
    kind: Kind = "create"
    method: str = "POST"
    streams: bool | None = None
    array_without: str = ""


def endpoint(
    path: str,
    kind: Kind = "create",
    *,
    method: str = "POST",
    streams: bool | None = None,
    array_without: str = "",
) -> Endpoint:
    """An `Endpoint`; ``path`` is the text of its regular expression."""
    return Endpoint(
        path=re.compile(path + "$"),
        kind=kind,
        method=method,
        streams=streams,
        array_without=array_without,
    )


class BatchPaths(Struct, frozen=True):
    """Where the requests of a batch stand.

    Attributes:
        requests: the fields that lead to the list of its items.
        request: the field of an item with its request.
    """

    requests: tuple[str, ...]
    request: str


class Question(Struct, frozen=True):
    """A question of ours, which no client asked.

    Attributes:
        path: the end of its path, behind whatever stands before the API.
        body: what is sent, as JSON values.
    """

    path: str
    body: dict[str, Any]


class CacheRefresh(Struct, frozen=True):
    """A request that reads a prompt cache, so that it lives on.

    Attributes:
        body: what is sent: the same prompt, asked for one token, in one piece.
        lives_s: how long the cache lives once it was read.
        is_long: whether it is written at the price of a longer life.
    """

    body: dict[str, Any]
    lives_s: float
    is_long: bool = False


class CountRequest(NamedTuple):
    """What asks a provider to count the tokens of a request.

    Attributes:
        path: where it is asked.
        body: what is sent there.
    """

    path: str
    body: dict[str, Any]


class Http(ABC):
    """One wire over HTTP.

    Attributes:
        wire: its name.
        endpoints: its paths, the first that fits counts.
        batch: where a batch has its requests; None: the wire has no batches of whole requests.
        maker_field: a field that each request has at the paths which take models of several makers;
            a request without it is of another wire. ``""``: there are no such paths.
        openings: the types of events of a stream that come before all content.
        failures: the types of a body, or of an event, that says that there is no reply.
        base: what stands between a vendor's host and the path of a `question`.
        cache_life_s: the shortest life of a prompt cache that lives on when it is read; None: the
            provider's rules know of none.
        asks: how the path ends at which a reply is asked for, and which a `question` may take.
        names_events: whether an event is an object with one field, whose name is its type: in
            Amazon's frames that is a header. Else a frame holds an event as bytes.
        count_field: the field of an answer that counts (`counted`).
    """

    wire: ClassVar[str]
    endpoints: ClassVar[tuple[Endpoint, ...]]
    batch: ClassVar[BatchPaths | None] = None
    maker_field: ClassVar[str] = ""
    openings: ClassVar[frozenset[str]] = frozenset()
    failures: ClassVar[frozenset[str]] = frozenset(("error",))
    base: ClassVar[str] = ""
    cache_life_s: ClassVar[float | None] = None
    asks: ClassVar[re.Pattern[str]]
    names_events: ClassVar[bool] = False
    count_field: ClassVar[str] = "input_tokens"

    @abstractmethod
    def question(
        self, model: str, system: str, texts: Sequence[str], most_tokens: int
    ) -> Question:
        """A question without tools, to be answered in one piece.

        Args:
            model: the model that is asked.
            system: the system text; ``""``: none.
            texts: what the user says, in order.
            most_tokens: the most that the answer may have.
        """

    def key_headers(self, key: str) -> dict[str, str]:
        """The headers that carry a key of the vendor's.

        Args:
            key: the key.
        """
        return {"Authorization": f"Bearer {key}"}

    def refresh(self, body: Mapping[str, Any]) -> CacheRefresh | None:
        """What reads the prompt cache of a request again, and does nothing else.

        Args:
            body: of the request.

        Returns:
            The request; None where the provider's rules say nothing of a cache that lives on when
            it is read, or where it cannot be asked for one token.
        """
        return None

    def path_beside(self, path: str, question: Question) -> str | None:
        """The path of a question at the API that a client asks at another path of it.

        Args:
            path: the client's, without a query.
            question: the question.

        Returns:
            The path; None where the client's is none that a reply is asked for at.
        """
        match = self.asks.search(path)
        if match is None:
            return None
        return path[: match.start()] + question.path

    def route(self, method: str, path: str, query: str) -> Route | None:
        """What is asked at a path; None if it is none of this wire's.

        Args:
            method: of HTTP, in capitals.
            path: quoted, without a slash at its end.
            query: what stands behind the ``?``.
        """
        found = self.endpoint_at(method, path)
        if found is None:
            return None
        return self.route_at(*found, query)

    def endpoint_at(
        self, method: str, path: str
    ) -> tuple[Endpoint, re.Match[str]] | None:
        """The endpoint at a path, and where the path names it; None if it is none of this wire's.

        Args:
            method: of HTTP, in capitals.
            path: quoted, without a slash at its end.
        """
        for row in self.endpoints:
            if row.method != method:
                continue
            match = row.path.search(path)
            if match is not None:
                return row, match
        return None

    def route_at(
        self, row: Endpoint, match: re.Match[str], query: str
    ) -> Route:
        """What is asked at a path that is an endpoint's.

        Args:
            row: the endpoint.
            match: where the path names it.
            query: what stands behind the ``?``.
        """
        groups = match.groupdict()
        return Route(
            wire=self.wire,
            kind=row.kind,
            model=_unquoted(groups.get("model") or ""),
            streams=row.streams,
            is_array=bool(row.array_without)
            and row.array_without not in query,
            reply_id=_unquoted(groups.get("id") or ""),
        )

    def with_usage(self, request: Mapping[str, Any]) -> dict[str, Any] | None:
        """A request whose stream is asked to report usage; None where it reports it anyway.

        Source: `provider-rules` §4.3.
        """
        return None

    def count_of(
        self, path: str, request: Mapping[str, Any]
    ) -> CountRequest | None:
        """What asks the provider to count a request; None where it has no endpoint for that.

        Args:
            path: where the request goes, quoted, without a query.
            request: the request, with its model.
        """
        return None

    def counted(self, reply: Any) -> int | None:
        """The tokens of a prompt that such an endpoint answers; None where it tells none.

        Args:
            reply: the body of its answer, as JSON.
        """
        if not isinstance(reply, dict):
            return None
        value = reply.get(self.count_field)
        if not isinstance(value, int) or isinstance(value, bool):
            return None
        if value > 0:
            return value
        return None

    def is_opening(self, event: Mapping[str, Any]) -> bool:
        """Whether an event of a stream comes before all content."""
        return event.get("type") in self.openings

    def is_error(self, value: Mapping[str, Any]) -> bool:
        """Whether a body or an event says that there is no reply, whatever its status."""
        return bool(value.get("error")) or value.get("type") in self.failures

    def error(self, status: int, message: str) -> dict[str, Any]:
        """An error of ours, as the body of an answer or an event of a stream.

        Args:
            status: of HTTP.
            message: for whoever reads the client's log.
        """
        return {"error": {"type": "ullage_error", "message": message}}

    def spent(
        self, message: str, *, can_retry: bool
    ) -> tuple[int, dict[str, Any]]:
        """The status and the body of an answer to a request that goes over a budget.

        They are those with which the vendor tells that a quota of the account is spent, so that
        clients show the message and leave the request alone.

        Args:
            message: for the client's user.
            can_retry: whether the same request may succeed in a few seconds.
        """
        kind = "rate_limit_exceeded" if can_retry else "insufficient_quota"
        error = {
            "message": message,
            "type": kind,
            "param": None,
            "code": kind,
        }
        return 429, {"error": error}


_UNRESERVED = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
)


def quoted(text: str) -> str:
    """A text as one part of a path (RFC 3986, 2.3), a slash in it quoted too.

    Args:
        text: such as a model's name.
    """
    return "".join(
        chr(byte) if byte in _UNRESERVED else f"%{byte:02X}"
        for byte in text.encode("utf-8", "replace")
    )


def _unquoted(text: str) -> str:
    """A part of a path without its percent signs."""
    return _PERCENT.sub(_byte_of, text.encode()).decode("utf-8", "replace")


def _byte_of(match: re.Match[bytes]) -> bytes:
    return bytes.fromhex(match[1].decode())

"""Several servers as one, without I/O: whose each frame is, and under which names and ids.

    hub = Hub(["git", "files"], tell)
    moves = hub.from_client(frame)           [(server or None for the client, frame), …]
    moves = hub.from_server("git", frame)

The names of our own tools are taken from the start, so that no server can answer for them.
What every server has its say in is asked of all and their answers are joined: ``initialize``,
``server/discover``, ``ping``, and the lists. A call goes to the server that has listed its name; a
server whose name for something another has too gets its own name before it (``git_status``). What
a server asks of the client (sampling, elicitation, roots) goes under an id of ours and back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from msgspec import UNSET, Raw, Struct

from ullage import __version__
from ullage.core.locks import Lock
from ullage.doors.mcp.frames import (
    Id,
    RpcMessage,
    UnreadableFrame,
    batch_of,
    encode,
    failure,
    fields_of,
    items_of,
    reply,
    rpc_message_of,
    value_of,
    with_field,
)
from ullage.doors.mcp.tools import is_our_name
from ullage.doors.mcp.waiting import Strays, same_id

Move = tuple[str | None, bytes]
"""A frame and the server it goes to; None: the client."""

LISTS: Mapping[str, tuple[str, str | None]] = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", None),
    "resources/templates/list": ("resourceTemplates", None),
}
"""Of each list its field, and the field of its items that must be one server's alone."""

CALLS: Mapping[str, tuple[str, str]] = {
    "tools/call": ("tools/list", "name"),
    "prompts/get": ("prompts/list", "name"),
    "resources/read": ("resources/list", "uri"),
    "resources/subscribe": ("resources/list", "uri"),
    "resources/unsubscribe": ("resources/list", "uri"),
}
"""Which list names what is called, and the parameter that does."""

_INVALID = -32602
_GONE = -32000


class _Joined(Struct):
    """A request that several servers answer.

    Attributes:
        method: what was asked.
        waiting: the servers that have not answered.
        answers: of each that has, its result, or None where it is an error.
        error: the frame of the first error.
    """

    method: str
    waiting: set[str]
    answers: dict[str, dict[str, Raw] | None]
    error: bytes = b""


class Hub:
    """Several servers behind one client. Any thread may bring a frame.

    Args:
        servers: their names, in the order in which they are listed.
        tell: called with a line about what is dropped.
    """

    def __init__(
        self,
        servers: Sequence[str],
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._strays = Strays(tell)
        self._servers = list(servers)
        self._is_shared = len(servers) > 1
        self._lock = Lock()
        self._joined: dict[Id, _Joined] = {}
        self._routed: dict[Id, str] = {}
        # list, server, its name → ours
        self._aliases: dict[tuple[str, str, str], str] = {}
        # list, our name → server, its
        self._owners: dict[tuple[str, str], tuple[str, str]] = {}
        # our id → server, its id
        self._server_requests: dict[Id, tuple[str, bytes]] = {}
        self._numbers = count(1)

    # ── from the client ──────────────────────────────────────────────────────────────────

    def from_client(self, frame: bytes) -> list[Move]:
        """Where a client's frame goes."""
        message = rpc_message_of(frame)
        if message is None:
            moves = [
                move
                for part in batch_of(frame)
                for move in self.from_client(part)
            ]
            return moves or [(name, frame) for name in self._servers]
        with self._lock:
            if message.method is UNSET:
                return self._answered(frame, message)
            if not isinstance(message.id, Id):
                return self._notified(frame, message)
            try:
                return self._requested(frame, str(message.method), message)
            except UnreadableFrame:
                return [
                    (
                        None,
                        failure(
                            message.id, _INVALID, "the params cannot be read"
                        ),
                    )
                ]

    def _answered(self, frame: bytes, message: RpcMessage) -> list[Move]:
        """The client's answer to what a server asked, under the server's own id."""
        origin = (
            self._server_requests.pop(message.id, None)
            if isinstance(message.id, Id)
            else None
        )
        if origin is None:
            return []
        server, server_id = origin
        return [(server, with_field(frame, "id", server_id))]

    def _notified(self, frame: bytes, message: RpcMessage) -> list[Move]:
        if message.method == "notifications/cancelled":
            request_id = _request_id(message)
            if request_id in self._routed:
                return [(self._routed.pop(request_id), frame)]
            self._joined.pop(request_id, None)
        return [(name, frame) for name in self._servers]

    def _requested(
        self, frame: bytes, method: str, message: RpcMessage
    ) -> list[Move]:
        id = message.id
        assert isinstance(id, Id)
        params = {} if message.params is UNSET else fields_of(message.params)
        if method in CALLS:
            called, name = CALLS[method]
            alias = value_of(params.get(name, b"null"))
            server, original = self._owner(called, alias)
            if server not in self._servers:
                reason = (
                    f"the server {server} has ended"
                    if server
                    else f"nobody has listed this {name}"
                )
                return [(None, failure(id, _INVALID, f"ullage mcp: {reason}"))]
            self._routed[id] = server
            return [
                (
                    server,
                    frame
                    if original == alias
                    else _with_param(frame, params, name, original),
                )
            ]
        frames = dict.fromkeys(self._servers, frame)
        if method in LISTS and "cursor" in params:
            frames = {
                name: _with_param(frame, params, "cursor", cursor)
                for name, cursor in _cursors(params["cursor"]).items()
                if name in self._servers
            }
        if not frames:
            return [(None, failure(id, _INVALID, "no server can answer this"))]
        self._joined[id] = _Joined(method, {*frames}, {})
        return list(frames.items())

    def _owner(self, called: str, alias: Any) -> tuple[str, str]:
        """The server that something is called of, and how it calls it.

        A client may remember a list of an earlier session: then the name says whose it is, or
        there is only one server that it can be.
        """
        if not isinstance(alias, str):
            return "", ""
        if (called, alias) in self._owners:
            return self._owners[called, alias]
        for server in self._servers:
            if alias.startswith(f"{server}_"):
                return server, alias[len(server) + 1 :]
        return (
            (self._servers[0], alias) if len(self._servers) == 1 else ("", "")
        )

    # ── from a server ────────────────────────────────────────────────────────────────────

    def from_server(self, server: str, frame: bytes) -> list[Move]:
        """Where a server's frame goes."""
        message = rpc_message_of(frame)
        if message is None:
            moves = [
                move
                for part in batch_of(frame)
                for move in self.from_server(server, part)
            ]
            return moves or [(None, frame)]
        with self._lock:
            if message.method is not UNSET:
                return [(None, self._to_client(server, frame, message))]
            if isinstance(message.id, Id):
                return self._answers(server, frame, message, message.id)
        return [(None, frame)]

    def _answers(
        self, server: str, frame: bytes, message: RpcMessage, id: Id
    ) -> list[Move]:
        """What becomes of an answer: only those whom a request went to can answer it, once."""
        joined = same_id(id, self._joined)
        routed = same_id(id, self._routed)
        if joined is not None and server in self._joined[joined].waiting:
            return self._join(server, frame, message, joined)
        is_of_another = routed is not None and self._routed[routed] != server
        if joined is not None or is_of_another:
            self._strays.dropped()
            return []
        if routed is not None:
            del self._routed[routed]
        return [(None, frame)]

    def _to_client(
        self, server: str, frame: bytes, message: RpcMessage
    ) -> bytes:
        """What a server asks or tells the client; what it asks, under an id of ours."""
        if isinstance(message.id, Id):
            number = f"{server}:{next(self._numbers)}"
            self._server_requests[number] = server, encode(message.id)
            return with_field(frame, "id", encode(number))
        if message.method == "notifications/cancelled":
            request_id = encode(_request_id(message))
            for own_id, origin in self._server_requests.items():
                if origin == (server, request_id):
                    del self._server_requests[own_id]
                    params = {
                        **fields_of(message.params or b"{}"),
                        "requestId": own_id,
                    }
                    return with_field(frame, "params", encode(params))
        return frame

    def _join(
        self, server: str, frame: bytes, message: RpcMessage, id: Id
    ) -> list[Move]:
        joined = self._joined[id]
        joined.waiting.discard(server)
        try:
            result = (
                None if message.result is UNSET else fields_of(message.result)
            )
        except UnreadableFrame:
            result = None
        joined.answers[server] = result
        if result is None and not joined.error:
            joined.error = frame
        return self._finished(id, joined)

    def ended(self, server: str, reason: str) -> list[Move]:
        """What the client is told when a server has ended; the others go on."""
        with self._lock:
            self._servers.remove(server)
            lost_ids = [
                id for id, name in self._routed.items() if name == server
            ]
            moves: list[Move] = []
            for id in lost_ids:
                del self._routed[id]
                moves.append(
                    (
                        None,
                        failure(id, _GONE, f"ullage mcp: {server}: {reason}"),
                    )
                )
            for id, joined in list(self._joined.items()):
                if server in joined.waiting:
                    joined.waiting.discard(server)
                    joined.error = joined.error or failure(
                        id, _GONE, f"ullage mcp: {server}: {reason}"
                    )
                    moves += self._finished(id, joined)
            return moves

    def _finished(self, id: Id, joined: _Joined) -> list[Move]:
        """The one answer, once all have answered."""
        if joined.waiting:
            return []
        del self._joined[id]
        order = [name for name in self._servers if name in joined.answers]
        answers = {
            name: answer
            for name in order
            if (answer := joined.answers[name]) is not None
        }
        is_refused = joined.method == "server/discover" and len(answers) < len(
            joined.answers
        )
        # one that knows no stateless protocol: shake hands with all
        if is_refused or not answers:
            return [(None, joined.error)]
        return [(None, reply(id, self._one(joined.method, answers)))]

    def _one(
        self, method: str, answers: Mapping[str, dict[str, Raw]]
    ) -> Mapping[str, Any]:
        if method in LISTS:
            return self._list(method, answers)
        if method in ("initialize", "server/discover"):
            return _introduced(answers)
        return next(iter(answers.values()))

    def _list(
        self, method: str, answers: Mapping[str, dict[str, Raw]]
    ) -> Mapping[str, Any]:
        """The lists of all servers joined, with one cursor that holds theirs."""
        field, name = LISTS[method]
        items: list[Raw] = []
        cursors: dict[str, Any] = {}
        for server, answer in answers.items():
            for item in items_of(answer.get(field, b"[]")):
                items.append(
                    item
                    if name is None
                    else self._named(method, server, item, name)
                )
                if name is None:
                    self._owns(method, server, item)
            cursor = value_of(answer.get("nextCursor", b"null"))
            if cursor is not None:
                cursors[server] = cursor
        merged: dict[str, Any] = {}
        for answer in answers.values():
            merged = {**answer, **merged}
        ages = [
            value_of(answer["ttlMs"])
            for answer in answers.values()
            if "ttlMs" in answer
        ]
        if ages:
            merged["ttlMs"] = min(ages)
        merged.pop("nextCursor", None)
        more = {"nextCursor": encode(cursors).decode()} if cursors else {}
        return {**merged, field: items, **more}

    def _named(self, method: str, server: str, item: Raw, field: str) -> Raw:
        """An item under a name that is its server's alone."""
        fields = fields_of(item)
        original = value_of(fields.get(field, b"null"))
        if not isinstance(original, str):
            return item
        alias = self._aliases.get((method, server, original))
        if alias is None:
            alias = next(
                name
                for name in _candidates(server, original)
                if not self._is_taken(method, name)
            )
            self._aliases[method, server, original] = alias
            self._owners[method, alias] = server, original
        return (
            item
            if alias == original
            else Raw(encode({**fields, field: alias}))
        )

    def _is_taken(self, method: str, name: str) -> bool:
        """Whether a name belongs to another server, or to a tool of ours beside several."""
        is_ours = (
            self._is_shared and method == "tools/list" and is_our_name(name)
        )
        return is_ours or (method, name) in self._owners

    def _owns(self, method: str, server: str, item: Raw) -> None:
        """Whose a resource is; the first that lists it."""
        uri = value_of(fields_of(item).get("uri", b"null"))
        if isinstance(uri, str):
            self._owners.setdefault((method, uri), (server, uri))


def _candidates(server: str, original: str) -> Iterator[str]:
    yield original
    yield f"{server}_{original}"
    for n in count(2):
        yield f"{server}{n}_{original}"


def _cursors(cursor: Raw) -> dict[str, Any]:
    """The cursor of each server that has more."""
    written = value_of(cursor)
    cursors = value_of(written.encode()) if isinstance(written, str) else None
    return cursors if isinstance(cursors, dict) else {}


def _with_param(
    frame: bytes, params: Mapping[str, Raw], name: str, value: Any
) -> bytes:
    return with_field(frame, "params", encode({**params, name: value}))


def _request_id(message: RpcMessage) -> Any:
    try:
        params = fields_of(message.params or b"{}")
        request_id = value_of(params.get("requestId", b"null"))
    except UnreadableFrame:
        return None
    return request_id if isinstance(request_id, Id) else None


def _introduced(answers: Mapping[str, dict[str, Raw]]) -> dict[str, Any]:
    """What several servers say of themselves, as one."""
    read = {
        server: {name: value_of(raw) for name, raw in answer.items()}
        for server, answer in answers.items()
    }
    merged: dict[str, Any] = {}
    capabilities: dict[str, Any] = {}
    for fields in read.values():
        merged = {**fields, **merged}
        capabilities = _deep(capabilities, fields.get("capabilities") or {})
    merged["capabilities"] = capabilities
    if "serverInfo" in merged:
        merged["serverInfo"] = {
            "name": "ullage mcp: " + ", ".join(read),
            "version": __version__,
        }
    instructions = {
        server: fields["instructions"]
        for server, fields in read.items()
        if fields.get("instructions")
    }
    if instructions:
        merged["instructions"] = "\n\n".join(
            f"{server}: {text}" for server, text in instructions.items()
        )
    versions = [
        fields["protocolVersion"]
        for fields in read.values()
        if "protocolVersion" in fields
    ]
    if versions:
        merged["protocolVersion"] = min(versions)
    if "supportedVersions" in merged:
        lists = [
            fields.get("supportedVersions", []) for fields in read.values()
        ]
        merged["supportedVersions"] = [
            version
            for version in lists[0]
            if all(version in supported for supported in lists)
        ]
    return merged


def _deep(base: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Both, fields of fields too; what either can do, all can."""
    merged = dict(base)
    for name, value in extra.items():
        current = merged.get(name)
        if isinstance(current, dict) and isinstance(value, Mapping):
            merged[name] = _deep(current, value)
        else:
            merged[name] = current or value
    return merged

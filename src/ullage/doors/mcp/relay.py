"""The proxy itself, without I/O: what becomes of each frame, in both directions.

    relay = Relay(settings, store, tell)
    on, back = relay.from_client(frame)     to the server, and to the client: frames or b""
    frame = relay.from_server(frame)        to the client

Only ``tools/list``, ``tools/call``, their answers, and what a task gives in the end are looked
into. What is changed is a result that is too large and the end of a list of tools; every other
frame is given back as the very bytes that came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from msgspec import UNSET, Raw, Struct, UnsetType

from ullage import open_result
from ullage.core.errors import StoreError
from ullage.core.locks import Lock
from ullage.doors.host import Words
from ullage.doors.mcp.cutting import UNLISTED, CutResult, cut
from ullage.doors.mcp.frames import (
    Id,
    RpcMessage,
    UnreadableFrame,
    batch_of,
    batched,
    encode,
    failure,
    fields_of,
    reply,
    rpc_message_of,
    value_of,
    with_field,
)
from ullage.doors.mcp.settings import McpSettings, limit_of, may_cut
from ullage.doors.mcp.tools import (
    ToolListing,
    extended,
    is_our_name,
    our_words,
    version_of,
)
from ullage.doors.mcp.waiting import Strays, Waiting
from ullage.stores import Blobs

Told = Callable[[str], None]
"""Takes a line for whoever looks after the proxy. Never content."""

_GIVE = ("tools/call", "tasks/result")
_READ = ("tools/list", "tasks/get", *_GIVE)
_REFS = ("tool_call_id", "ref_id")
"""The arguments of our tools that name an output."""
_MOST_TASKS = 1_000
_GONE = -32000


class PendingRequest(Struct, frozen=True, gc=False):
    """A request that the server has not answered.

    Attributes:
        method: what was asked for.
        tool: of a call, and of what a task gives, the tool.
        limit_chars: the most to show of what it gives; None for all.
        is_first_page: of ``tools/list``, whether the list begins with it.
    """

    method: str
    tool: str = ""
    limit_chars: int | None = None
    is_first_page: bool = True


@dataclass(slots=True)
class RelayState:
    """The state of a session. Relays of one session may share it.

    Attributes:
        listed: what the lists say of the tools.
        tasks: the calls that became tasks, by the task's id.
        lock: held where tasks change.
    """

    listed: ToolListing = field(default_factory=ToolListing)
    tasks: dict[str, PendingRequest] = field(default_factory=dict)
    lock: AbstractContextManager[Any] = field(default_factory=Lock)


class SessionRelay:
    """One session between a client and a server. Each direction may have a thread of its own.

    Args:
        settings: the limits.
        store: where the originals of what is cut are kept.
        tell: told what goes wrong, in a line.
        known: what the session has told before.
        asked: what was asked before, by the request's id.
        is_complete: whether nothing else than ``pending`` and what comes from the client can be
            answered here.
    """

    def __init__(
        self,
        settings: McpSettings,
        store: Blobs,
        tell: Told,
        state: RelayState | None = None,
        pending: Mapping[Id, PendingRequest] | None = None,
        *,
        is_complete: bool = True,
    ) -> None:
        self._settings = settings
        self._store = store
        self._tell = tell
        self._state = state or RelayState()
        self._waiting = Waiting(pending, is_complete=is_complete)
        self._strays = Strays(tell)

    @property
    def pending(self) -> dict[Id, PendingRequest]:
        """The requests that the server has not answered, by id."""
        return self._waiting.open

    def ask_unread(self) -> None:
        """A frame of the client's was passed on unread."""
        self._waiting.ask_unread()

    # ── from the client ──────────────────────────────────────────────────────────────────

    def from_client(self, frame: bytes) -> tuple[bytes, bytes]:
        """Relay a frame of the client's.

        Returns:
            The frame for the server, and the frame for the client; ``b""`` for none.
        """
        message = rpc_message_of(frame)
        if message is None and (batch := batch_of(frame)):
            ways = [self.from_client(part) for part in batch]
            to_server = batched([part for part, _ in ways if part])
            to_client = batched([part for _, part in ways if part])
            return to_server if to_client else frame, to_client
        if message is None:
            self._waiting.ask_unread()
            return frame, b""
        if message.method is UNSET:
            return frame, b""
        if not isinstance(message.id, Id):
            self._notified(message)
            return frame, b""
        try:
            request, params = self._read(message)
        except UnreadableFrame:
            request = PendingRequest(str(message.method))
            params = {}
        own_words = (
            self._our_words(request.tool, params)
            if request.method == "tools/call"
            else None
        )
        if own_words is not None:
            return b"", reply(
                message.id, self._answer(request.tool, params, own_words)
            )
        self._waiting.ask(message.id, request)
        return frame, b""

    def _our_words(self, tool: str, params: dict[str, Raw]) -> Words | None:
        """The wording under which a call is for a tool of ours; None if it is for the server's.

        A server may take one of our names in mid-session. A call of it that names an output of
        ours still follows a notice of ours.
        """
        words = self._state.listed.words_of(tool)
        if words is not None or not is_our_name(tool):
            return words
        try:
            arguments = value_of(params.get("arguments", b"{}"))
            ref = next(
                (arguments[name] for name in _REFS if name in arguments), ""
            )
            self._store.stat(self._settings.tenant, str(ref))
        except (UnreadableFrame, TypeError, StoreError):
            return None
        return our_words(tool)

    def _notified(self, message: RpcMessage) -> None:
        if message.method == "notifications/cancelled":
            try:
                request_id = value_of(
                    fields_of(message.params or b"{}").get(
                        "requestId", b"null"
                    )
                )
            except UnreadableFrame:
                return
            if isinstance(request_id, Id):
                self._waiting.cancel(request_id)

    def _read(
        self, message: RpcMessage
    ) -> tuple[PendingRequest, dict[str, Raw]]:
        """A request as it is remembered, and its parameters."""
        method = str(message.method)
        if method not in _READ:
            return PendingRequest(method), {}
        params = {} if message.params is UNSET else fields_of(message.params)
        if method == "tools/list":
            cursor = value_of(params["cursor"]) if "cursor" in params else None
            return PendingRequest(method, is_first_page=cursor is None), params
        if method.startswith("tasks/"):
            task = self._task(params)
            return PendingRequest(method, task.tool, task.limit_chars), params
        tool = _text(params.get("name"))
        limits = self._settings.limits
        user_tools = self._settings.user_tools
        limit = limit_of(limits, tool, params.get("arguments"), user_tools)
        return PendingRequest(method, tool, limit), params

    def _task(self, params: dict[str, Raw]) -> PendingRequest:
        """The call that became a task; of an earlier session, one of any tool."""
        call = self._state.tasks.get(_text(params.get("taskId")))
        return call or PendingRequest(
            "", limit_chars=limit_of(self._settings.limits, "", None)
        )

    def _answer(
        self, tool: str, params: dict[str, Raw], words: Words
    ) -> dict[str, Any]:
        arguments = bytes(params.get("arguments", b"{}")).decode()
        tenant = self._settings.tenant
        try:
            answer = open_result(
                tool, arguments, self._store, tenant=tenant, words=words
            )
            text = answer.text
            is_error = answer.is_error
        except StoreError as error:
            text = f"{error}. Make the call again that the output came from."
            is_error = True
        result = {
            "content": [{"type": "text", "text": text}],
            "isError": is_error,
        }
        meta = (
            {"_meta": value_of(params["_meta"])} if "_meta" in params else {}
        )
        return (
            {"resultType": "complete", **result}
            if version_of(meta)
            else result
        )

    # ── from the server ──────────────────────────────────────────────────────────────────

    def from_server(self, frame: bytes) -> bytes:
        """What goes on to the client; b"" of an answer to nothing that is open."""
        message = rpc_message_of(frame)
        if message is None:
            batch = batch_of(frame)
            parts = [self.from_server(item) for item in batch]
            to_client = batched([part for part in parts if part])
            return frame if parts == batch else to_client
        may_go_on = True
        request = None
        if message.method is UNSET and isinstance(message.id, Id):
            may_go_on, request = self._waiting.answer(message.id)
        if not may_go_on:
            self._strays.dropped()
            return b""
        if (
            message.method == "notifications/tasks"
        ):  # as if it had been asked for
            request = PendingRequest("tasks/get")
        part = "result" if message.method is UNSET else "params"
        raw: Raw | UnsetType = getattr(message, part)
        if request is None or request.method not in _READ or raw is UNSET:
            return frame
        try:
            if request.method == "tools/list":
                return self._listing(frame, raw, request)
            cut_result = (
                self._cut(raw, request)
                if request.method in _GIVE
                else self._cut_task(raw)
            )
            if cut_result is None:
                return frame
            changed = with_field(frame, part, cut_result.result)
            self._store.put(self._settings.tenant, cut_result.outputs)
            return changed
        except (UnreadableFrame, UnicodeError, RecursionError):
            self._tell(
                f"an answer to {request.method} could not be read; it was passed on as it is"
            )
        except StoreError as error:
            self._tell(
                f"a result was passed on whole, for it could not be kept: {error}"
            )
        return frame

    def _listing(
        self, frame: bytes, result: Raw, request: PendingRequest
    ) -> bytes:
        page, listed = extended(
            result,
            self._state.listed,
            is_first_page=request.is_first_page,
            may_cut=partial(
                may_cut,
                self._settings.limits,
                user_tools=self._settings.user_tools,
            ),
        )
        self._state.listed = listed
        return frame if page is None else with_field(frame, "result", page)

    def _cut(self, result: Raw, request: PendingRequest) -> CutResult | None:
        limit = request.limit_chars
        listed = self._state.listed
        if limit is None or len(result) <= limit:
            if b'"task"' in bytes(result) and len(result) < 10_000:
                self._remember_task(result, request)
            return None
        schema = listed.schemas.get(request.tool, UNLISTED)
        return cut(
            result,
            request.tool,
            limit,
            schema,
            listed.words,
            self._settings.whole_chars,
        )

    def _cut_task(self, raw: Raw) -> CutResult | None:
        """Cut the result within a task (protocols from 2026-07-28 on)."""
        fields = fields_of(raw)
        cut_result = (
            self._cut(fields["result"], self._task(fields))
            if "result" in fields
            else None
        )
        if cut_result is None:
            return None
        return CutResult(
            encode({**fields, "result": Raw(cut_result.result)}),
            cut_result.outputs,
        )

    def _remember_task(self, result: Raw, request: PendingRequest) -> None:
        """A call became a task: its result, asked for later, is one of this tool."""
        fields = fields_of(result)
        task = fields_of(fields["task"]) if "task" in fields else fields
        if "task" in fields or _text(fields.get("resultType")) == "task":
            with self._state.lock:
                _add(
                    self._state.tasks,
                    _text(task.get("taskId")),
                    request,
                    _MOST_TASKS,
                )

    # ── the end ──────────────────────────────────────────────────────────────────────────

    def ended(self, reason: str) -> Iterator[bytes]:
        """The frames that tell a client of requests which the server will never answer."""
        for id in self._waiting.end():
            yield failure(
                id, _GONE, f"ullage mcp: {reason} before it answered"
            )


_Key = TypeVar("_Key")


def _add(
    to: dict[_Key, PendingRequest],
    key: _Key,
    request: PendingRequest,
    most: int,
) -> None:
    """Remember one more; the oldest is forgotten, of a server that answers nothing."""
    to[key] = request
    if len(to) > most:
        del to[next(iter(to))]


def _text(raw: Raw | None) -> str:
    value = "" if raw is None else value_of(raw)
    return value if isinstance(value, str) else ""

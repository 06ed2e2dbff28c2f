"""The proxy itself, without I/O: what becomes of each frame, in both directions.

    relay = Relay(settings, store, tell)
    on, back = relay.from_client(frame)     to the server, and to the client: frames or b""
    frame = relay.from_server(frame)        to the client

Only ``tools/list``, ``tools/call``, ``tasks/result`` and their answers are looked into. What is
changed is a result that is too large and the end of a list of tools; every other frame is given
back as the very bytes that came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any

from msgspec import UNSET, Raw, Struct

from ullage.errors import StoreError
from ullage.mcp.cutting import UNLISTED, cut
from ullage.mcp.frames import (
    Envelope,
    Id,
    Unreadable,
    envelope_of,
    failure,
    fields_of,
    reply,
    value_of,
    with_field,
)
from ullage.mcp.settings import Settings, limit_of
from ullage.mcp.tools import Listed, extended, version_of
from ullage.session.results import open_result
from ullage.stores import Blobs
from ullage.values.notices import Words

__all__ = ["Relay", "Told"]

Told = Callable[[str], None]
"""Takes a line for whoever looks after the proxy. Never content."""

_MOST_IN_FLIGHT = 10_000
_MOST_TASKS = 1_000
_GONE = -32000


class _Asked(Struct, frozen=True, gc=False):
    """A request that the server has not answered.

    Attributes:
        method: what was asked for.
        tool: of ``tools/call`` and ``tasks/result``, the tool.
        limit_chars: the most to show of what it gives; None for all.
        is_first_page: of ``tools/list``, whether the list begins with it.
    """

    method: str
    tool: str = ""
    limit_chars: int | None = None
    is_first_page: bool = True


class Relay:
    """One session between a client and a server. Each direction may have a thread of its own.

    Args:
        settings: the limits.
        store: where the originals of what is cut are kept.
        tell: told what goes wrong, in a line.

    Attributes:
        listed: what the lists have told so far.
    """

    def __init__(self, settings: Settings, store: Blobs, tell: Told) -> None:
        self._settings = settings
        self._store = store
        self._tell = tell
        self._lock = Lock()
        self._asked: dict[Id, _Asked] = {}
        self._tasks: dict[str, _Asked] = {}
        self.listed = Listed()

    # ── from the client ──────────────────────────────────────────────────────────────────

    def from_client(self, frame: bytes) -> tuple[bytes, bytes]:
        """What goes on to the server, and what goes back to the client."""
        message = envelope_of(frame)
        if message is None or message.method is UNSET:
            return frame, b""
        if not isinstance(message.id, Id):
            self._notified(message)
            return frame, b""
        try:
            asked, given = self._read(message)
        except Unreadable:
            asked, given = _Asked(str(message.method)), {}
        ours = self.listed.words_of(asked.tool) if asked.method == "tools/call" else None
        if ours is not None:
            return b"", reply(message.id, self._answer(asked.tool, given, ours))
        with self._lock:
            self._asked[message.id] = asked
            if len(self._asked) > _MOST_IN_FLIGHT:  # a server that answers nothing
                del self._asked[next(iter(self._asked))]
        return frame, b""

    def _notified(self, message: Envelope) -> None:
        if message.method == "notifications/cancelled":
            try:
                wanted = value_of(fields_of(message.params or b"{}").get("requestId", b"null"))
            except Unreadable:
                return
            if isinstance(wanted, Id):
                with self._lock:
                    self._asked.pop(wanted, None)

    def _read(self, message: Envelope) -> tuple[_Asked, dict[str, Raw]]:
        """What is asked for, and its parameters."""
        method = str(message.method)
        if method not in ("tools/call", "tools/list", "tasks/result"):
            return _Asked(method), {}
        given = {} if message.params is UNSET else fields_of(message.params)
        if method == "tools/list":
            cursor = value_of(given["cursor"]) if "cursor" in given else None
            return _Asked(method, is_first_page=cursor is None), given
        if method == "tasks/result":
            task = self._tasks.get(_text(given.get("taskId")), _Asked(""))
            return _Asked(method, task.tool, task.limit_chars), given
        tool = _text(given.get("name"))
        limit = limit_of(self._settings.limits, tool, given.get("arguments"))
        return _Asked(method, tool, limit), given

    def _answer(self, tool: str, given: dict[str, Raw], words: Words) -> dict[str, Any]:
        arguments = bytes(given.get("arguments", b"{}")).decode()
        tenant = self._settings.tenant
        try:
            answer = open_result(tool, arguments, self._store, tenant=tenant, words=words)
            text, is_error = answer.text, answer.is_error
        except StoreError as error:
            text, is_error = f"{error}. Make the call again that the output came from.", True
        result = {"content": [{"type": "text", "text": text}], "isError": is_error}
        meta = {"_meta": value_of(given["_meta"])} if "_meta" in given else {}
        return {"resultType": "complete", **result} if version_of(meta) else result

    # ── from the server ──────────────────────────────────────────────────────────────────

    def from_server(self, frame: bytes) -> bytes:
        """What goes on to the client."""
        message = envelope_of(frame)
        if message is None or message.method is not UNSET or not isinstance(message.id, Id):
            return frame
        with self._lock:
            asked = self._asked.pop(message.id, None)
        if asked is None or message.result is UNSET:
            return frame
        try:
            if asked.method == "tools/list":
                return self._listing(frame, message.result, asked)
            if asked.method in ("tools/call", "tasks/result"):
                return self._result(frame, message.result, asked)
        except (Unreadable, UnicodeError, RecursionError):
            self._tell(f"an answer to {asked.method} could not be read; it was passed on as it is")
        except StoreError as error:
            self._tell(f"a result was passed on whole, for it could not be kept: {error}")
        return frame

    def _listing(self, frame: bytes, result: Raw, asked: _Asked) -> bytes:
        page, listed = extended(result, self.listed, is_first_page=asked.is_first_page)
        self.listed = listed
        return frame if page is None else with_field(frame, "result", page)

    def _result(self, frame: bytes, result: Raw, asked: _Asked) -> bytes:
        limit = asked.limit_chars
        if limit is None or len(frame) <= limit:
            if b'"task"' in frame and len(frame) < 10_000:
                self._remember_task(result, asked)
            return frame
        schema = self.listed.schemas.get(asked.tool, UNLISTED)
        words, whole_chars = self.listed.words, self._settings.whole_chars
        made = cut(result, asked.tool, limit, schema, words, whole_chars)
        if made is None:
            return frame
        changed = with_field(frame, "result", made.result)
        self._store.put(self._settings.tenant, made.outputs)
        return changed

    def _remember_task(self, result: Raw, asked: _Asked) -> None:
        """A call became a task: its result, asked for later, is one of this tool."""
        fields = fields_of(result)
        if "task" in fields:
            with self._lock:
                self._tasks[_text(fields_of(fields["task"]).get("taskId"))] = asked
                if len(self._tasks) > _MOST_TASKS:
                    del self._tasks[next(iter(self._tasks))]

    # ── the end ──────────────────────────────────────────────────────────────────────────

    def ended(self, why: str) -> Iterator[bytes]:
        """The frames that tell a client of requests which the server will never answer."""
        with self._lock:
            asked, self._asked = self._asked, {}
        for id in asked:
            yield failure(id, _GONE, f"ullage mcp: {why} before it answered")


def _text(raw: Raw | None) -> str:
    value = "" if raw is None else value_of(raw)
    return value if isinstance(value, str) else ""

"""What a user decides on the page of a conversation: asked, priced, and written to the ledger.

    GET  /_ullage/conversations/K/window     what stands in the window, and what was decided
    POST /_ullage/conversations/K/preview    what a decision would change and cost
    POST /_ullage/conversations/K/decide     the decision

Whoever is given the page may decide on it (`ullage.doors.proxy.access`). A decision changes what a
model reads, so a POST has to be one that no other page can send: JSON, and a header of ours. A
browser sends neither to another origin without asking first, and is never allowed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import msgspec
from aiohttp import web
from msgspec import Struct

from ullage.core.errors import RefNotFound, StoreError, UllageError
from ullage.doors.proxy.answers import failure, json_answer
from ullage.doors.proxy.headers import TREATMENT_HEADER

Asked: TypeAlias = Literal["window", "preview", "decide"]
MOST_BYTES = 64 << 10
"""The most that a decision may have."""
_PATIENCE_S = 10.0
_TOLD = ("held", "overruled")
"""Kinds of events that say why a decision does less than was asked for."""


class PageDecision(Struct, frozen=True, forbid_unknown_fields=True):
    """A decision as the page sends it; see `ullage.Session.pin` and those beside it.

    Attributes:
        verb: what is asked for.
        target: a name of a text, a batch or a decision, or a ref.
        lines: the first and the last line of a text.
        when: of a restore.
        text: of a note.
        reason: why.
    """

    verb: Literal["pin", "drop", "restore", "undo", "note"]
    target: str | None = None
    lines: tuple[int, int] | None = None
    when: Literal["batch", "end", "now"] = "batch"
    text: str = ""
    reason: str = ""

    @property
    def reference(self) -> str | None:
        """What the session's method takes first."""
        return self.text if self.verb == "note" else self.target

    def options(self, author: str) -> dict[str, Any]:
        """The other arguments of that method."""
        options: dict[str, Any] = {"reason": self.reason, "author": author}
        if self.verb in ("pin", "restore") and self.lines is not None:
            options["lines"] = self.lines
        if self.verb == "restore":
            options["when"] = self.when
        return options


_decode = msgspec.json.Decoder(PageDecision).decode


def part_of(path: str) -> tuple[str, Asked] | None:
    """The key of a conversation and what is asked of it; None: the path asks for none of these.

    Args:
        path: behind ``/conversations/``.
    """
    key, _, name = path.partition("/")
    match name:
        case "window" | "preview" | "decide" if key.isalnum():
            return key, name
    return None


def problem(request: web.BaseRequest) -> str | None:
    """Why a POST of the page is refused; None: it is one of the page's own."""
    headers = request.headers
    kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    site = headers.get("Sec-Fetch-Site", "same-origin").strip().lower()
    if (
        kind != "application/json"
        or TREATMENT_HEADER not in headers
        or site != "same-origin"
    ):
        return (
            "any web page could have sent it. Send Content-Type: application/json and "
            f"{TREATMENT_HEADER}: page, from the page itself or a program."
        )
    return None


async def body_of(request: web.BaseRequest) -> bytes | web.Response:
    """The body of a POST, or the answer to who sends too much, or too slowly."""
    length = request.content_length
    if length is None or length > MOST_BYTES:
        words = f"a decision has a Content-Length of at most {MOST_BYTES:,}."
        return failure(413, words, Connection="close")
    with contextlib.suppress(TimeoutError, asyncio.IncompleteReadError):
        async with asyncio.timeout(_PATIENCE_S):
            return await request.content.readexactly(length)
    return failure(408, "the decision did not come.", Connection="close")


async def answered(
    session: Any,
    asked: Asked,
    body: bytes,
    author: str,
    look: Callable[[], Any],
) -> web.Response:
    """Answer what the page asks of a session.

    Args:
        session: an `ullage.AsyncSession`.
        asked: what is asked.
        body: of the request.
        author: who decides; ``""``: not told.
        look: tells what stands in the window; awaited.
    """
    try:
        if asked == "window":
            return json_answer(await look())
        decision = _decode(body)
        options = decision.options(author)
        if asked == "preview":
            told = await session.preview(
                decision.verb, decision.reference, **options
            )
            return json_answer(_as_told(told))
        method = getattr(session, decision.verb)
        name = await method(decision.reference, **options)
        return json_answer({"name": name, "window": await look()})
    except msgspec.MsgspecError:
        return failure(
            400, "this is no decision: docs/hand.md says which there are."
        )
    except UllageError as error:
        is_stores = isinstance(error, StoreError)
        if is_stores and not isinstance(error, RefNotFound):
            return failure(503, str(error))
        if asked == "preview":  # that it cannot be is what was asked
            return json_answer({"problem": str(error)})
        return failure(409, str(error))


def _as_told(preview: Any) -> dict[str, Any]:
    """A preview as the page reads it, with what keeps the decision from all that was asked for."""
    fields = {
        name: getattr(preview, name)
        for name in preview.__struct_fields__
        if name != "events"
    }
    notes = [event.why for event in preview.events if event.kind in _TOLD]
    return {
        **fields,
        "changes_nothing": preview.changes_nothing,
        "notes": notes,
    }

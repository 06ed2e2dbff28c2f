"""The live page of a proxy, and the page of one conversation behind it.

The proxy knows this module by its name (`ullage.doors.proxy.pages`) and loads it for who looks.
Nothing is fetched from elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any, cast

from ullage.core.errors import UllageError
from ullage.session.drivers import run
from ullage.session.stored.conversation import StoredConversation
from ullage.session.stored.current import current
from ullage.session.stored.why import WindowRecord, why_of
from ullage.stores import Store, innermost
from ullage.tools.hand.described import as_page
from ullage.tools.replay.cost.prices import OWN, PROFILES, ProfileChoice
from ullage.tools.replay.readers import Run
from ullage.tools.replay.report.pages import page_of_session
from ullage.tools.replay.stored import from_store
from ullage.wires import FORMATS, Format

__all__ = [
    "current",
    "live_page",
    "page_of_conversation",
    "style_of_figures",
    "window_of",
]


def style_of_figures() -> str:
    """The style of a page that begins with figures, in light and dark."""
    return _text("page.css") + _text("live.css")


@cache
def live_page() -> str:
    """The page that shows what goes through the proxy."""
    style = style_of_figures()
    script = _text("live.js")
    policy = (
        f"default-src 'none'; script-src 'sha256-{_hash(script)}'; "
        f"style-src 'sha256-{_hash(style)}'; img-src data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'"
    )
    page = Template(_text("live.html"))
    return page.substitute(policy=policy, style=style, script=script)


def page_of_conversation(key: str, session: Any) -> str | None:
    """What a session did to its history, turn by turn; None if that cannot be shown.

    Args:
        key: what the session is kept under.
        session: the session; its store is read.
    """
    settings = session.settings
    request = session.newest_request()
    if request is None:
        return None
    profiles: list[ProfileChoice] = [OWN, *PROFILES.values()]
    try:
        stored = from_store(
            _run(key, FORMATS[session.state.format], request),
            _store(session),
            profiles=profiles,
            window_tokens=settings.limits and settings.limits.window_tokens,
            tenant=settings.tenant,
        )
    except UllageError:
        return None
    return page_of_session(
        key, stored, profiles, hand={"live": True}, record=_record(session)
    )


def window_of(
    session: Any, stored: StoredConversation | None
) -> dict[str, Any] | None:
    """What the page shows of a session's conversation as it stands: no text of it.

    Args:
        session: the session.
        stored: its conversation, as `current` of it says; None: nothing was fitted yet.
    """
    return None if stored is None else as_page(stored, session.events)


def _record(session: Any) -> WindowRecord | None:
    """What left the window of a session, and why; None where its store cannot be read."""
    tenant = session.settings.tenant
    try:
        stored = run(current(session), _store(session), tenant)
    except UllageError:
        return None
    return None if stored is None else why_of(stored)


def _run(key: str, wire: Format, request: Mapping[str, Any]) -> Run:
    """The conversation as a run that was recorded."""
    return Run(
        id=key[:6],
        format=wire.name,  # type: ignore[arg-type]
        request={
            name: value for name, value in request.items() if name != wire.key
        },
        messages=list(wire.history(request)),
        sent_whole=True,
    )


def _store(session: Any) -> Store:
    """The store underneath that of a session."""
    return cast("Store", innermost(session.store))


def _text(name: str) -> str:
    return (
        files("ullage.tools.replay.report")
        .joinpath(name)
        .read_text(encoding="utf-8")
    )


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

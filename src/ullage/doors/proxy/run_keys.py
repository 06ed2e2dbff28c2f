"""Keys that admit one command to the proxy of ``ullage run``.

A port of this machine is open to every user of it, and that proxy has one tenant: whoever reached
it could look at the page, open what was set aside, and find out what a model had been told. So the
command is given addresses that begin with a key, new for each run, and nothing is answered without
one. Environments are private to a user on every platform. Arguments are not: Codex takes its
address from those alone. For them there is a key of its own, which counts only where the system
does not say that another user holds the connection.
"""

from __future__ import annotations

import hmac
import os
import secrets
from typing import TYPE_CHECKING

from msgspec import Struct

from ullage.doors.proxy.access import user_of_connection

if TYPE_CHECKING:
    from aiohttp import web

_KEY_BYTES = 24
_ROOT_USER = 0


class RunKeys(Struct, frozen=True):
    """The keys of one run.

    Attributes:
        key: for addresses that stand in an environment.
        shown_key: for those that stand where other users can read them.
    """

    key: str
    shown_key: str

    def __repr__(self) -> str:
        return "Door()"

    def target(self, request: web.BaseRequest) -> str | None:
        """What a request asks for, without its key; None: it has none that counts."""
        begins, slash, rest = request.raw_path.removeprefix("/").partition("/")
        key = begins.encode("utf-8", "surrogateescape")
        is_known = hmac.compare_digest(key, self.key.encode())
        is_shown = hmac.compare_digest(key, self.shown_key.encode())
        if not is_known and not (is_shown and _is_of_own_user(request)):
            return None
        return f"{slash}{rest}" or "/"


def new_run_keys() -> RunKeys:
    """Keys that nobody has seen."""
    return RunKeys(
        secrets.token_urlsafe(_KEY_BYTES), secrets.token_urlsafe(_KEY_BYTES)
    )


def _is_of_own_user(request: web.BaseRequest) -> bool:
    """Whether our user, or root, holds the other end of a connection, as far as the system says."""
    user = user_of_connection(request)
    return user is None or user in (_ROOT_USER, os.geteuid())

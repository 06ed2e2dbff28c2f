"""Whose content a request is: named by the configuration, or known by its credential.

A credential is only ever hashed: with a secret of this installation where it makes a tenant, so
that nobody can tell from a store whose it is. The secret lies with the store, for every worker
and the next start to find.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from ullage.errors import ConfigError
from ullage.proxy.config import Config
from ullage.stores._file import default_path
from ullage.stores._open import is_url

_HEADERS = ("x-api-key", "authorization", "x-goog-api-key", "api-key")


def credential_of(url: str, headers: Mapping[str, str]) -> str:
    """The credential of a request, or an empty text: never to be kept or printed."""
    for name in _HEADERS:
        if value := headers.get(name):
            return value.removeprefix("Bearer ").removeprefix("bearer ").strip()
    return dict(parse_qsl(urlsplit(url).query)).get("key", "")


class Tenants:
    """Names the tenant of each request.

    Args:
        config: the names that are given.
        secret: what the others are made with.
    """

    def __init__(self, config: Config, secret: bytes) -> None:
        self._one, self._secret = config.tenant, secret
        self._named = {
            digest: name for name, digests in config.tenants.items() for digest in digests
        }

    def of(self, url: str, headers: Mapping[str, str]) -> str:
        """The tenant of a request."""
        if self._one is not None:
            return self._one
        credential = credential_of(url, headers).encode()
        named = self._named.get(hashlib.sha256(credential).hexdigest())
        if named is not None:
            return named
        return hmac.new(self._secret, credential, hashlib.sha256).hexdigest()[:32]


def secret_of(store: str | None) -> bytes:
    """The secret of the installation that keeps its store there; made the first time.

    It is beside the file, or on the server with the rest, for every machine.

    Raises:
        ConfigError: it can be neither read nor written.
        StoreError: the server cannot be asked.
    """
    if is_url(store):
        from ullage.stores import PostgresStore  # the driver: 11 MB that a file does not need

        with closing(PostgresStore(store)) as kept:
            return kept.agreed("proxy secret", secrets.token_bytes(32))
    return _secret_beside(Path(store) if store else default_path())


def _secret_beside(store: Path) -> bytes:
    """The secret beside a file.

    Raises:
        ConfigError: it can be neither read nor written.
    """
    file = store.with_name(f"{store.name}.secret")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            _write_once(file, secrets.token_bytes(32))
        found = file.read_bytes()
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise ConfigError(
            "store", f"the secret beside it cannot be kept ({why})", "Name a store you may write."
        ) from None
    if len(found) < 32:
        raise ConfigError("store", "the secret beside it is cut short", "Remove that file.")
    return found


def _write_once(file: Path, data: bytes) -> None:
    """Write a file whole or not at all, unless it is there; for its owner alone."""
    made = file.with_name(f"{file.name}.{os.getpid()}")
    with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
        out.write(data)
    try:
        os.link(made, file)
    finally:
        made.unlink()

"""What is asked of an S3 bucket, and what its failures mean.

Each request is tried again by obstore until the time is up: all of it is idempotent. No answer
of the server is shown in an error, nor the address: either may hold what is nobody's business.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from obstore.exceptions import BaseError
from obstore.store import S3Store

from ullage.core.errors import ConfigError, StoreError

NAME = "object storage"
_SETTINGS = frozenset(
    ("endpoint", "region", "virtual_hosted_style_request", "skip_signature")
)
_CONNECT_S = 5.0

_REFUSED = (
    "the bucket refused the credentials. Check AWS_ACCESS_KEY_ID, or the role"
)
_REASONS = {
    "NoSuchBucket": "there is no such bucket. Create it",
    **dict.fromkeys(
        ("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch"),
        _REFUSED,
    ),
}
"""What the codes mean that S3 answers with."""
_UNREACHABLE = (
    "the bucket cannot be reached, or failed. Check its address, and try again"
)


_process: int | None = None
"""The process that loaded obstore: its threads are in no fork, where a call would never return."""


class ObjectEntry(NamedTuple):
    """An object of a list: its name, and when it was written, by the server's clock."""

    name: str
    written: datetime


class Bucket:
    """The objects under one prefix of a bucket.

    Args:
        url: ``s3://bucket/prefix``; ``endpoint``, ``region`` and the like in its query. What is
            not in it, and the credentials, are those of the environment (``AWS_…``), or of the
            machine's or the pod's role.
        timeout_s: how long a request is tried before it fails.

    Raises:
        ConfigError: the address cannot be read.
    """

    def __init__(self, url: str, timeout_s: float) -> None:
        global _process
        bucket, prefix, settings = _parse_url(url)
        _process = _process or os.getpid()
        try:
            self._store = S3Store(
                bucket,
                prefix=prefix or None,
                client_options={
                    "allow_http": True,  # if the address says so
                    "connect_timeout": timedelta(
                        seconds=min(_CONNECT_S, timeout_s)
                    ),
                    "timeout": timedelta(seconds=timeout_s),
                },
                retry_config={"retry_timeout": timedelta(seconds=timeout_s)},
                **settings,
            )
        except (BaseError, ValueError, TypeError):
            raise _address_error("it is not one of a bucket") from None

    def put(self, name: str, body: bytes) -> None:
        """Write an object.

        Raises:
            StoreError: it could not be written.
        """
        with _store_errors("put"):
            self._store.put(name, body)

    def get(self, name: str, most_bytes: int) -> bytes | None:
        """The bytes of an object; None if it is not there, or is larger than it may be.

        Raises:
            StoreError: the bucket failed.
        """
        with _store_errors("get"):
            try:
                result = self._store.get(name)
            except FileNotFoundError:
                return None
            return (
                None
                if result.meta["size"] > most_bytes
                else bytes(result.bytes())
            )

    def delete(self, names: Sequence[str]) -> None:
        """Let go of objects, whether or not they are there.

        Raises:
            StoreError: the bucket failed.
        """
        with _store_errors("collect"):
            self._store.delete(list(names))

    def page(self, prefix: str, after: str, limit: int) -> list[ObjectEntry]:
        """The next objects behind a name, in the order of names; fewer than ``limit``: the last.

        Raises:
            StoreError: the bucket failed, or it is not there.
        """
        entries: list[ObjectEntry] = []
        with _store_errors("list"):
            for chunk in self._store.list(
                prefix or None, offset=after or None, chunk_size=limit
            ):
                entries += (
                    ObjectEntry(meta["path"], meta["last_modified"])
                    for meta in chunk
                )
                if len(entries) >= limit:
                    break
        return entries[:limit]


def _parse_url(url: str) -> tuple[str, str, dict[str, Any]]:
    """Bucket, prefix and settings of an address; nothing in it is escaped."""
    scheme, _, rest = url.partition("://")
    location, _, query = rest.partition("?")
    bucket, _, prefix = location.partition("/")
    if scheme != "s3" or not bucket:
        raise _address_error("it is not one of a bucket")
    pairs = (pair.partition("=") for pair in query.split("&") if pair)
    settings = {name: value for name, _, value in pairs}
    if "@" in bucket or not _SETTINGS.issuperset(settings):
        names = ", ".join(sorted(_SETTINGS))
        raise _address_error(
            f"of settings it takes {names}; credentials are of the environment"
        )
    return bucket, prefix.strip("/"), settings


def _address_error(reason: str) -> ConfigError:
    remedy = "Write it as s3://bucket/prefix or s3://bucket/prefix?endpoint=https://host"
    return ConfigError("blobs", f"as an address, {reason}", remedy)


@contextmanager
def _store_errors(operation: str) -> Iterator[None]:
    """Failures of the bucket as StoreError."""
    if _process != os.getpid():
        reason = "this process was forked after a bucket was opened. Start it with spawn"
        raise StoreError(NAME, operation, reason)
    try:
        yield
    except (BaseError, OSError) as error:
        message = str(error)
        reasons = (
            reason for code, reason in _REASONS.items() if code in message
        )
        raise StoreError(
            NAME, operation, next(reasons, _UNREACHABLE)
        ) from None

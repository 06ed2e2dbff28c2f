"""Whose content a request is: named by the configuration, or known by its credentials.

What the upstream sees decides: every credential of the request, without those that are placeholders
where another one is none. Two users who share a gateway's key and bring tokens of their own are two
tenants. A credential that is refreshed stays the same tenant where it names its owner: a JSON Web
Token by its issuer and subject, a signature of AWS by its access key. Neither is checked here. Who
forges one meets an upstream that does check it, and is answered nothing.

A credential is only ever hashed: with a secret of this installation where it makes a tenant, so
that nobody can tell from a store who owns it. The secret lies with the store, for every worker
and the next start to find.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import parse_qsl, urlsplit

import msgspec

from ullage.core.errors import ConfigError
from ullage.doors.proxy.config import Config
from ullage.stores import default_path, is_url

if TYPE_CHECKING:
    from multidict import CIMultiDict, CIMultiDictProxy

    Headers: TypeAlias = CIMultiDict[str] | CIMultiDictProxy[str]

_HEADERS = (
    *("x-api-key", "authorization", "x-goog-api-key", "api-key"),
    *(
        "ocp-apim-subscription-key",
        "x-litellm-api-key",
        "x-portkey-api-key",
        "helicone-auth",
    ),
    *(
        "x-auth-token",
        "x-access-token",
        "cf-access-client-secret",
        "cf-access-jwt-assertion",
    ),
    *("x-goog-iap-jwt-assertion", "x-amzn-oidc-data", "cookie"),
)
"""Where vendors, gateways and what stands before them look for a credential."""

_FIELDS = ("key", "api_key", "api-key", "access_token", "X-Amz-Credential")
"""The same in a query."""

_WORDS = (
    "- 0 1234 123456 abc anonymous any anything api-key api_key apikey bearer changeme "
    "default demo dummy dummy-key empty example fake fake-key foo ignored invalid "
    "key-not-needed lm-studio lmstudio local localhost n/a na no-key no-key-needed "
    "no-key-required nokey none not-needed not-required not-used nothing notneeded null "
    "ollama openai placeholder proxy sk-1234 sk-dummy sk-fake sk-local sk-no-key "
    "sk-no-key-required sk-none sk-not-needed sk-placeholder sk-test something string test "
    "test-key testing todo token-abc123 undefined unused vllm x your-api-key your-key "
    "your_api_key your_key "
)
_PLACEHOLDERS = frozenset(_WORDS.split())
"""What documentation writes where a client insists on a key and nobody looks at it."""

_FILLED = re.compile(
    r"(?:sk-(?:ant-)?)?([*.x_0-])\1*|<[^>]*>|\$\{?[a-z_]+\}?|your[-_ ].*"
)
_AWS = re.compile(r"AWS4-[A-Z0-9-]+ +Credential=([^/,\s]+)/")
_JWT = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]{16,}")
_NO_ALGORITHM = "none"
_LONGEST_TOKEN = 32_768
_TENANT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_OF_CREDENTIAL = re.compile(r"[0-9a-f]{32}")
"""What `Tenants` makes of a credential."""


def is_tenant_name(name: str) -> bool:
    """Whether a reverse proxy may name a tenant so: as no credential of anybody is named."""
    is_plain = _TENANT_NAME.fullmatch(name) is not None
    return is_plain and _OF_CREDENTIAL.fullmatch(name) is None


def is_placeholder(credential: str) -> bool:
    """Whether a credential is one that everybody may write."""
    lower = credential.strip().lower()
    return lower in _PLACEHOLDERS or _FILLED.fullmatch(lower) is not None


def credentials_of(
    url: str, headers: Headers, more: Iterable[str] = ()
) -> list[str]:
    """The credentials of a request: never to be kept or printed.

    Args:
        url: its URL.
        headers: its headers.
        more: names of headers that tell users apart besides.

    Gives:
        all that are there, in a fixed order; without placeholders, if that leaves any.
    """
    credentials = [*_in_headers(headers, (*_HEADERS, *more)), *_in_query(url)]
    real = [
        credential
        for credential in credentials
        if not is_placeholder(credential)
    ]
    return real or credentials


def _in_headers(headers: Headers, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        for value in headers.getall(name, []):
            credential = _without_scheme(value)
            if credential:
                yield credential


def _without_scheme(value: str) -> str:
    """A header's credential; the name of its scheme is in any case (RFC 9110, 11.1)."""
    scheme, _, rest = value.strip().partition(" ")
    return rest.strip() if scheme.lower() == "bearer" else value.strip()


def _in_query(url: str) -> Iterator[str]:
    if "?" not in url:
        return
    query = parse_qsl(urlsplit(url).query)
    for field in _FIELDS:
        yield from (value for name, value in query if name == field and value)


def identity_of(credential: str) -> str:
    """The identity that a credential names; itself if it names none."""
    signed = _AWS.match(credential)
    if signed is not None:
        return f"aws\0{signed[1]}"
    token = _JWT.fullmatch(credential)
    if token is None or len(credential) > _LONGEST_TOKEN:
        return credential
    header = _decoded(token[1])
    claims = _decoded(token[2])
    issuer = claims.get("iss")
    subject = claims.get("sub")
    is_signed = str(header.get("alg", _NO_ALGORITHM)).lower() != _NO_ALGORITHM
    if not is_signed or not (
        isinstance(issuer, str) and isinstance(subject, str) and subject
    ):
        return credential
    return f"jwt\0{issuer}\0{subject}"


def _decoded(part: str) -> dict[str, object]:
    """A part of a JSON Web Token (RFC 7519); empty where it is none."""
    try:
        data = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
        return msgspec.json.decode(data, type=dict[str, object])
    except (binascii.Error, msgspec.DecodeError, UnicodeError, RecursionError):
        return {}


def _bytes(text: str) -> bytes:
    return text.encode(
        "utf-8", "surrogateescape"
    )  # a header's bytes need be no text


class Tenants:
    """Names the tenant of each request.

    Args:
        config: the names that are given.
        secret: what the others are made with.
    """

    def __init__(self, config: Config, secret: bytes) -> None:
        self._one = config.tenant
        self._secret = secret
        self._header = config.access.tenant_header
        self._more = [name.lower() for name in config.tenant_headers]
        self._named = {
            digest: name
            for name, digests in config.tenants.items()
            for digest in digests
        }

    def of(
        self, url: str, headers: Headers, *, is_trusted: bool = False
    ) -> str:
        """The tenant of a request.

        Args:
            url: its URL.
            headers: its headers.
            is_trusted: whether a reverse proxy sends it whose headers are believed.
        """
        if self._one is not None:
            return self._one
        if is_trusted and self._header is not None:
            team = headers.get(self._header, "").strip()
            if is_tenant_name(team):
                return team
        credentials = credentials_of(url, headers, self._more)
        if self._named:
            for credential in credentials:
                name = self._named.get(
                    hashlib.sha256(_bytes(credential)).hexdigest()
                )
                if name is not None:
                    return name
        # an upstream that takes another one need not check what this says
        if len(credentials) == 1:
            credentials = [identity_of(credentials[0])]
        identity = _bytes("\0\0".join(credentials))
        return hmac.new(self._secret, identity, hashlib.sha256).hexdigest()[
            :32
        ]


def secret_of(store: str | None) -> bytes:
    """The secret of the installation that keeps its store there; made the first time.

    It is beside the file, or on the server with the rest, for every machine.

    Raises:
        ConfigError: it can be neither read nor written.
        StoreError: the server cannot be asked.
    """
    if is_url(store):
        # the driver: 11 MB that a file does not need
        from ullage.stores import (
            PostgresStore,
        )

        with closing(PostgresStore(store)) as postgres:
            return postgres.agreed("proxy secret", secrets.token_bytes(32))
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
        secret = file.read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(
            "store",
            f"the secret beside it cannot be kept ({reason})",
            "Name a store you may write.",
        ) from None
    if len(secret) < 32:
        raise ConfigError(
            "store", "the secret beside it is cut short", "Remove that file."
        )
    return secret


def _write_once(file: Path, data: bytes) -> None:
    """Write a file whole or not at all, unless it is there; for its owner alone."""
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    with os.fdopen(
        os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb"
    ) as out:
        out.write(data)
    try:
        os.link(draft, file)
    finally:
        draft.unlink()

"""The settings of a proxy: one frozen value.

A TOML file, the environment and the options of the command line are laid over each other in this
order; each key is named as the field.

    listen = "127.0.0.1:8787"
    policy = "default"
    [upstreams]
    anthropic = "https://api.anthropic.com"
    [limits]
    body_bytes = 67108864
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from ullage import TeamBudget
from ullage.core.errors import ConfigError, did_you_mean
from ullage.documents import NAMES
from ullage.doors.host import named_tools
from ullage.wires import WIRES

UPSTREAMS = {
    name: url for wire in WIRES for name, url in wire.upstreams.items()
}
"""Where requests go if nothing else is said: the providers' own addresses, by name."""

PROVIDERS = {
    name: wire.name for wire in reversed(WIRES) for name in wire.upstreams
}
"""The wire that a question of ours is asked on, by the name of an upstream."""

_NAME = re.compile(r"[a-z][a-z0-9.-]{0,127}")
_HEADER = re.compile(r"[a-z0-9-]+")
_HOST_NAME = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")
_ORIGIN = re.compile(
    r"([a-z][a-z0-9+.-]*)://(\*|[a-z0-9._-]+(?::[0-9]{1,5})?|\[[0-9a-f:.]+\](?::[0-9]{1,5})?)"
)
_SHA256 = re.compile(r"[0-9a-f]{64}")


class ProxyLimits(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """How much a proxy holds, and how long it waits. What is over is passed on, never refused,
    except where a number of connections says so.

    Attributes:
        body_bytes: a longer request body passes through as it comes, unfitted; also what a
            compressed one may become.
        reply_bytes: a longer reply in one piece passes as it comes, unread.
        held_bytes: about the most of request bodies that one worker holds at once; what comes
            beyond passes through unfitted.
        conversations_bytes: about the most of conversations that one worker keeps warm, their
            newest bodies with them.
        older_bytes: about the most of it for conversations that are not among the 16 used last.
            What is not warm is worked out again from its next request and the store.
        exchanges: the most requests of one worker in flight; more are answered 503.
        connections: the most connections of clients to one worker; None: as many as its
            descriptors allow. Those that wait for a request make room for new ones.
        head_s: how long the head of a request may take from its first byte on.
        idle_s: how long a client may be silent in the middle of its request, or take nothing of
            its reply.
        connect_s: how long an upstream may take to accept a connection.
        drain_s: how long replies under way may take when the proxy is stopped.
    """

    body_bytes: int = 64 << 20
    reply_bytes: int = 64 << 20
    held_bytes: int = 512 << 20
    conversations_bytes: int = 128 << 20
    older_bytes: int = 512 << 10
    exchanges: int = 1_024
    connections: int | None = None
    head_s: float = 15.0
    idle_s: float = 120.0
    connect_s: float = 30.0
    drain_s: float = 30.0


class AccessSettings(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Who may look at the pages from elsewhere. Once anything is set, everybody has to.

    Attributes:
        token_sha256: the SHA-256 (hex) of a token. Programs send it as ``Authorization: Bearer``,
            browsers ask for it as a password.
        user_header: the header in which a reverse proxy says who asks, once it has let them in.
        tenant_header: the header in which a reverse proxy names the tenant of a model request. A
            request from elsewhere that has it is refused, and it is not passed on.
        proxies: networks (``10.0.0.0/8``) of the reverse proxies whose headers are believed.
    """

    token_sha256: str | None = None
    user_header: str | None = None
    tenant_header: str | None = None
    proxies: list[str] = []

    @property
    def is_set(self) -> bool:
        """Whether there is any way to authenticate."""
        return self.token_sha256 is not None or self.user_header is not None


class SummariserSettings(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A model that writes summaries beside the requests; no client waits for it.

    Attributes:
        provider: ``"anthropic"``, ``"openai"``, ``"gemini"``, ``"ollama"`` or ``"bedrock"``.
        model: the model that is asked; with a client's credential ``""`` is the conversation's.
        key_env: the environment variable that holds the provider's key; ``""``: it takes none.
        url: its base URL; ``""``: the upstream of the provider's name.
        credential: whose credential is used: ``"key"`` that of who runs the proxy, ``"client"``
            that of the client's own request, at the address that this went to.
        timeout_s: how long one request may take.
        at_once: the most requests of one worker at a time. A conversation has one.
    """

    provider: str = ""
    model: str = ""
    key_env: str = ""
    url: str = ""
    credential: Literal["key", "client"] = "key"
    timeout_s: float = 60.0
    at_once: int = 4


class KeepAliveSettings(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """How often a provider's prompt cache is kept from expiring in a pause, where it saves money.

    Attributes:
        most: the most times in one pause.
        at_once: the most requests of one worker at a time.
        timeout_s: how long one may take.
    """

    most: int = 3
    at_once: int = 4
    timeout_s: float = 30.0


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A proxy's settings.

    Attributes:
        listen: address and port; port 0 is any free one.
        upstreams: base URLs by name. A request goes to the one whose name its path begins with
            (``/anthropic/v1/messages``), else to the one its path and headers are of.
        tenant: the one name that everybody's content is kept under; None: by credential.
        tenants: names of tenants, each with the SHA-256 (hex) of its credentials. Whose is in
            none of them has a tenant made of it.
        tenant_headers: headers that tell users apart besides those that hold credentials.
        policy: a preset; see `ullage.documents`.
        joins: whether a conversation that is first seen under way is offered the recall tools,
            and cut as one batch, once it saves money; see `ullage.Session`.
        redact: whether known forms of keys are taken out of what is set aside and kept
            (`ullage.common_keys`).
        outline: whether the store keeps the first 60 characters of each text, so that
            ``ullage window`` can name the messages of a conversation.
        window_tokens: the window of every model; None: each model's own.
        holdout: the share of conversations that pass unfitted, to be compared with, such as 0.05;
            see `ullage.Sessions`.
        count_sample: the share of shortened requests that their provider is asked to count as they
            came, such as 0.02, so that a report can say how well ullage reckons; see
            `ullage.doors.proxy.counting`.
        discover: which upstreams are asked for the windows of their models: a list of names, true
            for all, false for none. None: those on this machine, about models whose window their
            name does not tell.
        user_tools: clients' own tools by which the user answers, beside those of the agents that
            ullage knows; their results are the user's words.
        budgets: what tenants may spend in a day or a month; see `ullage.TeamBudget`.
        store: an SQLite file, or ``postgresql://…``; None: the platform's place for it.
        blobs: ``s3://bucket/prefix``, for the larger texts; None: in the store with the rest.
        cache: ``valkey://host``, for copies of those, and for leases; None: without.
        workers: processes that serve.
        dry_run: fit and count, but send every request as it came.
        opt_out_header: a request with this header set to ``off`` passes through.
        log: whether a line of JSON is written to standard error for each request.
        pages: whether the live page is served.
        access: who else may look at it; by default it is for this machine alone.
        allowed_hosts: names that clients may know the proxy by, besides addresses, names without
            a dot and those of private domains.
        allowed_origins: origins whose pages may send requests: ``https://app.example``, or of a
            scheme that is not the web's, ``vscode-webview://*``.
        use_system_proxy: reach upstreams through the proxy that the environment names.
        summariser: a model that writes summaries; None: none does.
        keepalive: whether a prompt cache is kept from expiring in a pause; None: it is not.
        limits: how much is held, and how long is waited.
    """

    listen: str = "127.0.0.1:8787"
    upstreams: dict[str, str] = msgspec.field(default_factory=UPSTREAMS.copy)
    tenant: str | None = None
    tenants: dict[str, list[str]] = {}
    tenant_headers: list[str] = []
    policy: str = "default"
    joins: bool = True
    redact: bool = False
    outline: bool = True
    window_tokens: int | None = None
    holdout: float = 0.0
    count_sample: float = 0.0
    discover: bool | list[str] | None = None
    user_tools: list[str] = []
    budgets: list[TeamBudget] = []
    store: str | None = None
    blobs: str | None = None
    cache: str | None = None
    workers: int = 1
    dry_run: bool = False
    opt_out_header: str = "x-ullage"
    log: bool = False
    pages: bool = True
    access: AccessSettings = AccessSettings()
    allowed_hosts: list[str] = []
    allowed_origins: list[str] = []
    use_system_proxy: bool = True
    summariser: SummariserSettings | None = None
    keepalive: KeepAliveSettings | None = None
    limits: ProxyLimits = ProxyLimits()

    @property
    def own_headers(self) -> tuple[str, ...]:
        """Headers of a request that are for the proxy, and are not passed on; in lower case."""
        tenant_header = self.access.tenant_header
        if tenant_header is None:
            return (self.opt_out_header,)
        return self.opt_out_header, tenant_header.lower()

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        host_and_port(self.listen)
        for name, url in self.upstreams.items():
            _check_upstream(f"upstreams.{name}", name, url)
        for name, digests in self.tenants.items():
            if not all(_SHA256.fullmatch(digest) for digest in digests):
                raise ConfigError(
                    f"tenants.{name}",
                    "it lists something that is no SHA-256 in hex",
                    'List digests, never credentials: printf %s "$KEY" | sha256sum',
                )
        _check_one_owner(self.tenants)
        if self.policy not in NAMES:
            raise ConfigError(
                "policy",
                f"there is no {self.policy!r}",
                f"Use one of {NAMES}.",
            )
        if not _HEADER.fullmatch(self.opt_out_header):
            raise ConfigError(
                "opt_out_header",
                "it is not a header's name",
                "Write it in lower case.",
            )
        _check_discover(self.discover, self.upstreams)
        named_tools(self.user_tools)
        _check_numbers(self)
        _check_access(self.access)
        if self.keepalive is not None:
            _check_positive(self.keepalive, "keepalive")
        if self.summariser is not None:
            _check_summariser(self.summariser, self.upstreams)
        _check_budgets(self)
        _check_tenant_headers(self.tenant_headers)
        _check_store(self.store)
        for host in self.allowed_hosts:
            _check_host(host)
        for origin in self.allowed_origins:
            _check_origin(origin)


def config_of(
    file: Path | None = None,
    environment: Mapping[str, str] = {},
    **options: Any,
) -> Config:
    """The settings of a file, with those of the environment and of options laid over them.

    Args:
        file: a TOML file; None: no file.
        environment: ``ULLAGE_PROXY_LISTEN`` and the like, a variable for each field that is a
            text, a number, a flag or, with commas, a list of texts; ``ULLAGE_STORE``,
            ``ULLAGE_BLOBS``, ``ULLAGE_CACHE``.
        options: fields by name; None is left out. Upstreams are added to those of the file, and
            those to the vendors'.

    Raises:
        ConfigError: the file cannot be read, or something in it or in the others cannot be meant.
    """
    settings = {} if file is None else _read(file)
    for name in _PLAIN:
        value = environment.get(f"ULLAGE_PROXY_{name.upper()}")
        if value is not None:
            settings[name] = value
    for name in _LISTS:
        value = environment.get(f"ULLAGE_PROXY_{name.upper()}")
        if value is not None:
            settings[name] = [
                item.strip() for item in value.split(",") if item.strip()
            ]
    for name in ("store", "blobs", "cache"):
        if environment.get(f"ULLAGE_{name.upper()}"):
            settings.setdefault(name, environment[f"ULLAGE_{name.upper()}"])
    overrides = {
        name: value for name, value in options.items() if value is not None
    }
    for name in _LISTS:
        if not overrides.get(
            name
        ):  # an option that may come many times, and did not
            overrides.pop(name, None)
    named = settings.get("upstreams", {}), overrides.get("upstreams", {})
    overrides["upstreams"] = {**UPSTREAMS, **named[0], **named[1]}
    try:
        return msgspec.convert({**settings, **overrides}, Config, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(
            "the proxy's settings", str(error), "See docs/proxy.md."
        ) from None


_PLAIN = (
    *(
        "listen",
        "tenant",
        "policy",
        "joins",
        "window_tokens",
        "holdout",
        "count_sample",
        "store",
        "blobs",
        "cache",
    ),
    *("workers", "dry_run", "discover", "redact", "outline"),
    *("opt_out_header", "log", "pages", "use_system_proxy"),
)
_LISTS = ("allowed_hosts", "allowed_origins", "tenant_headers", "user_tools")


def _read(file: Path) -> dict[str, Any]:
    try:
        settings: dict[str, Any] = msgspec.toml.decode(file.read_bytes())
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(
            "--config", f"the file cannot be read ({reason})", "Name another."
        ) from None
    except msgspec.DecodeError as error:
        raise ConfigError(
            "--config", f"the file is not TOML: {error}", "Fix it."
        ) from None
    return settings


def host_and_port(listen: str) -> tuple[str, int]:
    """The two halves of an address; IPv6 in brackets.

    Raises:
        ConfigError: it is not an address with a port.
    """
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise ConfigError(
            "listen",
            f"{listen!r} is no address and port",
            "Write 127.0.0.1:8787.",
        )
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_upstream(setting: str, name: str, url: str) -> None:
    """Raise ConfigError if a name or a URL is none, or holds more than it may."""
    parts = urlsplit(url)
    if not _NAME.fullmatch(name):
        raise ConfigError(
            setting,
            "the name is no lower-case word",
            "Rename it: it stands in paths.",
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            setting,
            "it is not a URL of http or https",
            "Write https://host/path.",
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ConfigError(
            setting,
            "it holds more than host and path",
            "Clients send their own credentials.",
        )


def _check_discover(
    discover: bool | list[str] | None, upstreams: Mapping[str, str]
) -> None:
    """Raise ConfigError if a list of upstreams to ask names one that there is not."""
    unknown = (
        sorted({*discover} - {*upstreams})
        if isinstance(discover, list)
        else []
    )
    if unknown:
        raise ConfigError(
            "discover",
            f"it names no upstream of ours: {unknown}",
            "Name one of upstreams.",
        )


def _check_one_owner(tenants: Mapping[str, list[str]]) -> None:
    """Raise ConfigError if two tenants list the same digest: one of them would never be used."""
    owners: dict[str, str] = {}
    for name, digests in tenants.items():
        for digest in digests:
            owner = owners.setdefault(digest, name)
            if owner != name:
                raise ConfigError(
                    "tenants",
                    f"{owner!r} and {name!r} list the digest of the same key",
                    "A key belongs to one tenant: take it out of the other.",
                )


def _check_tenant_headers(headers: Iterable[str]) -> None:
    """Raise ConfigError if one of these is no header's name."""
    for header in headers:
        if not _HEADER.fullmatch(header.lower()):
            raise ConfigError(
                "tenant_headers",
                "it lists no header's name",
                "Write x-user-id.",
            )


def _check_host(host: str) -> None:
    if not _HOST_NAME.fullmatch(host):
        raise ConfigError(
            "allowed_hosts",
            "it lists something that is no host's name",
            "Write proxy.example.",
        )


def _check_origin(origin: str) -> None:
    """Refuse what is no origin, or is that of too many pages."""
    match = _ORIGIN.fullmatch(origin)
    if match is None:
        raise ConfigError(
            "allowed_origins",
            "it lists something that is no origin",
            "Write https://app.example, as the browser sends it: lower case, no path.",
        )
    if match[2] == "*" and match[1] in ("http", "https", "file"):
        raise ConfigError(
            "allowed_origins",
            f"{origin!r} would allow any page",
            "Name the origins one by one.",
        )


def _check_positive(settings: Struct, name: str) -> None:
    """Raise ConfigError if a number of some settings is none to count with."""
    for setting, value in msgspec.structs.asdict(settings).items():
        if isinstance(value, int | float) and value <= 0:
            raise ConfigError(
                f"{name}.{setting}",
                f"{value:g} is not more than 0",
                "Give a positive number, or leave the table out.",
            )


def _check_summariser(
    settings: SummariserSettings, upstreams: Mapping[str, str]
) -> None:
    """Raise ConfigError if it is not clear who is asked, and with which credential."""
    own = (settings.provider, settings.key_env, settings.url)
    if settings.credential == "client" and any(own):
        raise ConfigError(
            "summariser.credential",
            "a client's credential goes to the client's own upstream alone",
            "Leave out provider, key_env and url, or credential.",
        )
    if settings.credential == "key" and settings.provider not in PROVIDERS:
        raise ConfigError(
            "summariser.provider",
            f"{settings.provider!r} is none that is asked",
            f"Use one of {', '.join(sorted(PROVIDERS))}.",
        )
    if settings.credential == "key" and not settings.model:
        raise ConfigError(
            "summariser.model", "it names none", "Name the provider's model."
        )
    if settings.url:
        _check_upstream("summariser.url", settings.provider, settings.url)
    _check_positive(settings, "summariser")


def _check_access(access: AccessSettings) -> None:
    if access.token_sha256 is not None and not _SHA256.fullmatch(
        access.token_sha256
    ):
        raise ConfigError(
            "access.token_sha256",
            "it is not a SHA-256 in hex",
            'Give a digest, never the token: printf %s "$TOKEN" | sha256sum',
        )
    headers = {
        "user_header": (access.user_header, "x-forwarded-user"),
        "tenant_header": (access.tenant_header, "x-team"),
    }
    for name, (header, example) in headers.items():
        if header is not None and not _HEADER.fullmatch(header.lower()):
            raise ConfigError(
                f"access.{name}",
                "it is not a header's name",
                f"Write {example}.",
            )
    is_believed = any(header is not None for header, _ in headers.values())
    if is_believed != bool(access.proxies):
        raise ConfigError(
            "access.proxies",
            "a header is believed where a network of reverse proxies is named, and only there",
            "Give both user_header (or tenant_header) and proxies, or neither.",
        )
    for network in access.proxies:
        try:
            ipaddress.ip_network(network)
        except ValueError:
            raise ConfigError(
                "access.proxies",
                "it lists something that is no network",
                "Write 10.0.0.0/8.",
            ) from None


def _check_budgets(config: Config) -> None:
    """Raise ConfigError if two budgets have one name, or one is for tenants that are not named."""
    names = [budget.name for budget in config.budgets]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(
            "budgets",
            f"there is more than one named {twice[0]!r}",
            "Give each a name of its own.",
        )
    tenants = [*config.tenants, *filter(None, [config.tenant])]
    for budget in config.budgets:
        unknown = sorted({*budget.tenants} - {*tenants})
        if unknown:
            raise ConfigError(
                f"budgets.{budget.name}.tenants",
                f"no tenant is called {unknown[0]!r}",
                f"{did_you_mean(unknown[0], tenants)}Name one of [tenants], or leave tenants out: "
                "the budget then counts for everybody.",
            )


def _check_store(store: str | None) -> None:
    """Raise ConfigError if a store keeps nothing: what a view names has to open again."""
    if store == "memory":
        raise ConfigError(
            "store",
            "a proxy cannot keep in memory what its clients open again after a restart",
            'Name "sqlite", a path or "postgresql://…". To try it, use --dry-run.',
        )


def _check_numbers(config: Config) -> None:
    limits = msgspec.structs.asdict(config.limits)
    for name, value in {"workers": config.workers, **limits}.items():
        if value is not None and value <= 0:
            raise ConfigError(
                name, f"{value} is not more than 0", "Give a positive number."
            )
    shares = {
        "holdout": config.holdout,
        "count_sample": config.count_sample,
    }
    for name, share in shares.items():
        if not 0 <= share <= 1:
            problem = f"{share} is no share"
            raise ConfigError(
                name, problem, "Give 0 to 1: 0.05 is one in twenty."
            )
    if config.window_tokens is not None and config.window_tokens < 1_000:
        raise ConfigError(
            "window_tokens",
            f"{config.window_tokens:,} is too small",
            "Give 1,000 or more.",
        )

"""Options that several commands share, and how they print."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import click
import msgspec
from click.core import ParameterSource

from ullage.core.errors import ConfigError, FormatError
from ullage.stores import (
    Store,
    default_path,
    is_url,
    open_lasting,
    receipts_of,
)
from ullage.tools.cli._choices import NamedChoice
from ullage.wires import FORMATS

_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)  # a tab and a line end are none
_MOST_BYTES = 256 * 1024 * 1024
F = TypeVar("F", bound=Callable[..., Any])

_TOKENS = re.compile(r"(\d[\d_,]*(?:\.\d+)?)\s*([km]?)", re.IGNORECASE)
_MOST_TENANTS = 10
_SUFFIXES = (".db", ".sqlite", ".sqlite3")
_DAY_S, _HOUR_S, _MINUTE_S = 86_400, 3_600, 60
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


class TokenCount(click.ParamType):  # type: ignore[type-arg]
    """A number of tokens as people write it: ``64000``, ``64_000``, ``64k``, ``1M``."""

    name = "tokens"

    def __init__(self, least: int = 1) -> None:
        self.least = least

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> int:
        """The number. Fails if it is none, or less than the least."""
        written = _TOKENS.fullmatch(str(value).strip())
        if written is None:
            self.fail(
                f"{value!r} is no number of tokens: write 64000, 64k or 1M.",
                param,
                ctx,
            )
        number = float(written[1].replace(",", "").replace("_", ""))
        tokens = int(number * _UNITS[written[2].lower()])
        if tokens < self.least:
            self.fail(
                f"{value} is less than {self.least:,} tokens.", param, ctx
            )
        return tokens


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON."
)
format_option = click.option(
    "--format",
    "wire",
    type=NamedChoice(sorted(FORMATS)),
    help="The wire format.",
)
store_option = click.option(
    "--store",
    "address",
    envvar="ULLAGE_STORE",
    metavar="PATH",
    help="The SQLite file, or postgresql://…. Default: the platform's place for it.",
)

user_tools_option = click.option(
    "--user-tool",
    "user_tools",
    multiple=True,
    metavar="NAME",
    help="A tool of yours by which the user answers; its results are the user's words.",
)


def count_option(
    *names: str, least: int, default: int, help: str
) -> Callable[[F], F]:
    """An option that takes a whole number from ``least`` up, and shows its default."""
    settings: Any = {
        "type": click.IntRange(least),
        "default": default,
        "show_default": True,
    }
    return click.option(*names, help=help, **settings)


def store_options(command: F) -> F:
    """``--store``, ``--tenant`` and ``--json``."""
    whose = click.option(
        "--tenant",
        default="",
        help="Whose content. Default: the unnamed tenant.",
    )
    return store_option(whose(json_option(command)))


store_argument = click.argument("place", metavar="[STORE]", required=False)
"""The same as ``--store``, as people type it first."""


def one_store(place: str | None, address: str | None) -> str | None:
    """The address of a store that is named as an argument or by an option.

    Args:
        place: as an argument; it counts where ``ULLAGE_STORE`` says otherwise.
        address: as an option.

    Raises:
        ConfigError: both were typed, and they differ.
    """
    source = click.get_current_context().get_parameter_source("address")
    is_typed = source is ParameterSource.COMMANDLINE
    if place and is_typed and place != address:
        problem = f"two stores were given, {place!r} and --store {address!r}"
        raise ConfigError("--store", problem, "Give one of them.")
    return place or address


def is_store(name: str) -> bool:
    """Whether a word is the address of a store, and no name of a conversation.

    Args:
        name: the word.
    """
    if is_url(name) or os.sep in name:
        return True
    return Path(name).suffix in _SUFFIXES


def tenant_in(store: Store, tenant: str) -> str:
    """The tenant that somebody typed: itself, or the one that `typable` shows so.

    Args:
        store: where its content is.
        tenant: as it was typed.
    """
    if not tenant or store.newest(tenant, "outline", 1):
        return tenant
    names = [name for name in tenants_of(store) if typable(name) == tenant]
    if len(names) != 1:
        return tenant
    return names[0]


def tenants_of(store: Store) -> list[str]:
    """The tenants of a store as its receipts name them, those of the newest days first.

    Args:
        store: the store.
    """
    keeper = receipts_of(store)
    receipts = () if keeper is None else keeper.receipts()
    names = [receipt.key.tenant for receipt in reversed(receipts)]
    return [name for name in dict.fromkeys(names) if name]


def typable(tenant: str) -> str:
    """The name of a tenant as people can type it: an adapter's JSON list by its parts.

    Args:
        tenant: as the store knows it, such as ``["app", "ann"]``, which is ``app/ann``.
    """
    try:
        parts = msgspec.json.decode(tenant, type=list[str | None])
    except msgspec.MsgspecError:
        return tenant
    return "/".join(part for part in parts if part is not None)


def told_of_tenants(store: Store, command: str, tenant: str = "") -> list[str]:
    """The commands that show the other tenants of a store, a line each.

    Args:
        store: the store.
        command: of ``ullage``, such as ``ls``.
        tenant: whom that command was asked for.
    """
    names = [name for name in tenants_of(store) if name != tenant]
    shown = [typable(name) for name in names]
    lines = list[str]()
    for name, short in zip(names[:_MOST_TENANTS], shown, strict=False):
        if shown.count(short) > 1:
            short = name
        quoted = harmless(shlex.quote(short))
        lines.append(f"  ullage {command} --tenant {quoted}")
    if len(names) > _MOST_TENANTS:
        lines.append(f"  and {len(names) - _MOST_TENANTS:,} more")
    return lines


def usual_address() -> str | None:
    """The store that `ullage run` uses when it is given none; None: the platform's place for it.

    ``ULLAGE_STORE`` names it, or the configuration file of the proxy in ``ULLAGE_PROXY_CONFIG``.

    Raises:
        ConfigError: the file cannot be read, or something in it cannot be meant.
    """
    file = os.environ.get("ULLAGE_PROXY_CONFIG")
    if not file:
        return os.environ.get("ULLAGE_STORE") or None
    # it loads the settings of the proxy, which few commands need
    from ullage.doors.proxy.config import config_of

    return config_of(Path(file), os.environ).store


def short_path(path: Path) -> str:
    """A path as people write it: from ``~`` on, where it is in the user's home folder."""
    with suppress(RuntimeError, ValueError):
        return str(Path("~") / path.absolute().relative_to(Path.home()))
    return str(path)


def path_of_store(address: str | os.PathLike[str] | None) -> Path:
    """The SQLite file at an address, or the usual one.

    Raises:
        ConfigError: there is no file there; reading must not make one. Or it is a server.
    """
    if is_url(address):
        raise ConfigError(
            "store", "this is the address of a server", "Give an SQLite file."
        )
    if address is not None and os.fspath(address) != os.environ.get(
        "ULLAGE_STORE"
    ):
        path, place = Path(address), "at this path"
    else:
        usual = address or usual_address()
        path = Path(usual) if usual else default_path()
        place = f"at the usual place, {short_path(path)}"
    if not path.exists():
        raise ConfigError(
            "store",
            f"there is no store {place}",
            "Name one: --store PATH. `ullage run -- COMMAND` or a session's store= begins one.",
        )
    return path


def open_kept(address: str | os.PathLike[str] | None) -> Store:
    """The store at an address, at a path, or the one that `ullage run` uses.

    A bucket and a cache beside it are those of ``ULLAGE_BLOBS`` and ``ULLAGE_CACHE``.

    Raises:
        ConfigError: there is no file at the path; reading must not make one.
    """
    beside = os.environ.get("ULLAGE_BLOBS"), os.environ.get("ULLAGE_CACHE")
    usual = usual_address() if address is None else address
    if is_url(usual):
        return open_lasting(usual, *beside, leases=False)
    return open_lasting(path_of_store(address), *beside, leases=False)


def read_whole(file: BinaryIO) -> bytes:
    """All of a file or a pipe that a user named; what has no end is not read to it.

    Raises:
        FormatError: it is longer than any request.
    """
    data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise FormatError(
            "the file",
            f"longer than {_MOST_BYTES:,} bytes",
            "Give one request.",
        )
    return data


def ago(seconds: float) -> str:
    """How long ago something was, in words."""
    if seconds >= _DAY_S:
        return f"{seconds / _DAY_S:.0f} d ago"
    if seconds >= _HOUR_S:
        return f"{seconds / _HOUR_S:.0f} h ago"
    return f"{max(seconds, 0) / _MINUTE_S:.0f} min ago"


def harmless(text: str) -> str:
    """A text that rewrites nothing a terminal shows: its control characters as their codes."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def print_kept(text: str) -> None:
    """Text that was kept, on standard output: byte for byte, but harmless on a terminal."""
    if sys.stdout.isatty():
        text = harmless(text)
    sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass"))


def print_json(value: object) -> None:
    """One JSON document on standard output; lone surrogates in it are escaped."""
    try:
        click.echo(msgspec.json.format(msgspec.json.encode(value)))
    except UnicodeEncodeError:
        click.echo(json.dumps(msgspec.to_builtins(value), indent=2))

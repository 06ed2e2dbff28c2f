"""What is wrong with a set-up, and what to do: ``ullage doctor``.

Nothing is changed but a file that is made and removed to see whether one can be, and the network is
asked nothing unless that is wanted.
"""

from __future__ import annotations

import importlib.metadata
import shlex
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from ullage.core.errors import UllageError
from ullage.core.installing import install_remedy
from ullage.doors.proxy.agents import AGENTS, MARK, VARIABLES
from ullage.doors.proxy.answering import answers_at
from ullage.doors.proxy.config import Config, host_and_port, is_loopback
from ullage.doors.proxy.installing import PointedClient, pointed_clients
from ullage.stores import default_path, is_url, open_lasting

Verdict: TypeAlias = Literal["ok", "note", "wrong"]


class Finding(Struct, frozen=True):
    """One thing that was looked at.

    Attributes:
        about: what.
        verdict: whether it is as it should be; a note is for one's information.
        words: what was found, and what to do if it is wrong.
    """

    about: str
    verdict: Verdict
    words: str


def findings(
    config: Config, environment: Mapping[str, str], *, online: bool = False
) -> Iterator[Finding]:
    """Everything that is looked at, in order.

    Args:
        config: the proxy's settings.
        environment: of the user's shell.
        online: whether the upstreams are to be connected to.
    """
    yield _python()
    yield _extra("aiohttp", "proxy", "the proxy cannot be started")
    yield _extra(
        "toktok",
        "exact",
        "OpenAI's tokens are estimated, not counted",
        needed=False,
    )
    yield _store(config)
    yield from _address(config)
    for name, url in config.upstreams.items():
        yield _upstream(name, url, online=online)
    yield from _agents(environment)
    yield from _clients()
    yield from _variables(environment)


def _python() -> Finding:
    return Finding("python", "ok", ".".join(map(str, sys.version_info[:3])))


def _extra(
    package: str, extra: str, without: str, *, needed: bool = True
) -> Finding:
    """Whether what an extra brings is there."""
    about = f"extra {extra}"
    name = {"toktok": "toktok-rs"}.get(package, package)
    try:
        return Finding(
            about, "ok", f"{name} {importlib.metadata.version(name)}"
        )
    except importlib.metadata.PackageNotFoundError:
        remedy = f"{name} is not installed: {without}. {install_remedy(extra)}"
        return Finding(about, "wrong" if needed else "note", remedy)


def _store(config: Config) -> Finding:
    """Whether the store can be opened, or be made."""
    path = Path(config.store) if config.store else default_path()
    try:
        if is_url(config.store):
            open_lasting(config.store, config.blobs, config.cache).close()
            return Finding("store", "ok", "it opens")
        if path.exists():
            open_lasting(path, config.blobs, config.cache).close()
            return Finding(
                "store",
                "ok",
                f"it opens, and holds {path.stat().st_size:,} bytes",
            )
        there = next(
            folder for folder in path.absolute().parents if folder.exists()
        )
        with tempfile.TemporaryFile(dir=there):
            return Finding("store", "ok", "there is none yet; it can be made")
    except (OSError, UllageError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return Finding(
            "store",
            "wrong",
            f"{reason}. Give a path you may write, or a server: --store PATH",
        )


def _address(config: Config) -> Iterator[Finding]:
    host, port = host_and_port(config.listen)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
        yield Finding("address", "ok", f"{config.listen} is free")
    except OSError as error:
        yield _taken(config.listen, error)
    if not is_loopback(host):
        words = "other machines reach the proxy. It asks nobody who he is: put what does before it"
        yield Finding("address", "note", words)


def _taken(place: str, error: OSError) -> Finding:
    """What holds an address that cannot be listened on."""
    if answers_at(place) == "proxy":
        return Finding("address", "ok", f"a ullage proxy answers at {place}")
    reason = error.strerror or type(error).__name__
    remedy = "Stop the program that listens there, or choose another port: --listen ADDRESS:PORT"
    return Finding("address", "wrong", f"{place}: {reason}. {remedy}")


def _upstream(name: str, url: str, *, online: bool) -> Finding:
    about = f"upstream {name}"
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme == "http" and not is_loopback(host):
        return Finding(
            about,
            "wrong",
            f"{url}: credentials would go unencrypted. Use https",
        )
    if not online:
        return Finding(about, "ok", f"{url} (not asked; --online connects)")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return Finding(
            about,
            "wrong",
            f"{url}: no connection ({reason}). Is the URL right?",
        )
    return Finding(about, "ok", f"{url} takes connections")


def _agents(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Which coding agents are there."""
    programs = [
        name
        for name in AGENTS
        if shutil.which(name, path=environment.get("PATH"))
    ]
    words = ", ".join(f"ullage run -- {name}" for name in programs)
    yield Finding(
        "agents",
        "note",
        words or f"none of {', '.join(AGENTS)} is on the PATH",
    )


def _clients() -> Iterator[Finding]:
    """Which clients are pointed at a proxy by their own settings, and whether it answers."""
    for client in pointed_clients():
        about = f"client {client.name}"
        place = client.place
        answering = answers_at(place, client.gateways)
        if answering == "proxy":
            words = f"points at the proxy on {place}"
            if client.gateways:
                names = ", ".join(client.gateways)
                words += f", which has the upstreams it needs: {names}"
            yield Finding(about, "ok", words)
            continue
        problem = {
            "nobody": "nothing answers",
            "another": "another program answers",
            "lacking": "a proxy answers without the upstreams it needs",
        }[answering]
        start = shlex.join(_start(client))
        words = (
            f"points at {place}, where {problem}. Start the proxy: {start}. "
            f"Or point it back: ullage uninstall {client.name}"
        )
        yield Finding(about, "wrong", words)


def _start(client: PointedClient) -> list[str]:
    """The command that starts the proxy which a client needs."""
    words = ["ullage", "proxy", "--listen", client.place]
    for name, url in client.gateways.items():
        parts = urlsplit(url)
        is_secret = bool(parts.username or parts.password or parts.query)
        shown = url if url and not is_secret else "URL"
        words += ["--upstream", f"{name}={shown}"]
    return words


def _variables(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Which variables lead somewhere already, told without what may be secret in them."""
    if MARK in environment:
        address = urlsplit(
            environment[MARK]
        ).netloc  # and not the key behind it
        yield Finding(
            "environment",
            "note",
            f"this shell is behind the proxy on {address}",
        )
        return
    for name in VARIABLES:
        if value := environment.get(name):
            host = urlsplit(value).hostname or "no URL"
            words = f"leads to {host}: under `ullage run` that is where its requests go"
            yield Finding(name, "note" if host != "no URL" else "wrong", words)
    proxied = any(
        environment.get(name) for name in ("HTTPS_PROXY", "https_proxy")
    )
    if proxied:
        words = "upstreams are reached through the proxy it names"
        yield Finding("HTTPS_PROXY", "note", words)

"""``ullage install CLIENT`` and ``uninstall``: point a client at a proxy that keeps running."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from ullage.core.errors import ConfigError
from ullage.doors.files.changing import Change, apply, called_as
from ullage.doors.proxy import installing
from ullage.doors.proxy.answering import answers_at
from ullage.doors.proxy.config import (
    Config,
    config_of,
    host_and_port,
    is_loopback,
)
from ullage.doors.proxy.service import (
    Service,
    removed,
    service_here,
    written,
)
from ullage.doors.proxy.settings_files import AGENT_FILES, AgentFile
from ullage.tools.cli._choices import NamedChoice
from ullage.tools.cli._options import short_path

_SERVICE = "service"
_NAMES = (*AGENT_FILES, _SERVICE)

_OPTIONS = (
    click.argument(
        "clients", nargs=-1, type=NamedChoice(_NAMES), metavar="[CLIENT]…"
    ),
    click.option(
        "--file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="The client's settings file, if it is elsewhere.",
    ),
    click.option("-y", "--yes", is_flag=True, help="Do not ask."),
    click.option(
        "--dry-run", is_flag=True, help="Show the change and make none."
    ),
)


def _changing(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@click.command(
    "install", short_help="Point a client at a proxy that keeps running."
)
@click.option(
    "--listen",
    metavar="ADDRESS:PORT",
    help="Where the proxy listens. Default: 127.0.0.1:8787.",
)
@click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The proxy's TOML file, for the service. Default: ULLAGE_PROXY_CONFIG.",
)
@_changing
def install(
    clients: tuple[str, ...],
    listen: str | None,
    config_file: Path | None,
    file: Path | None,
    yes: bool,
    dry_run: bool,
) -> None:
    """Point CLIENTs at a proxy that keeps running, in their own settings files.

    CLIENT is claude, codex, gemini, goose or opencode; without one, all that are installed here.
    The change is shown first, and the file as it was is kept beside it. `ullage uninstall` takes
    the change back.

    The proxy itself is started by `ullage proxy` in a terminal, or as a service of yours:
    `ullage install service`.
    """
    config_file = config_file or _usual_file()
    config = config_of(config_file, os.environ, listen=listen)
    url = url_of(config.listen)

    def change_of(agent: AgentFile, path: Path) -> Change | None:
        return installing.install(agent, path, url)

    _change_clients(clients, change_of, file, yes=yes, dry_run=dry_run)
    words = _proxy_words(config, config_file)
    command = [*called_as(), *words]
    if _SERVICE in clients:
        _install_service(service_here(), command, yes=yes, dry_run=dry_run)
    elif not dry_run:
        _say_whether_it_runs(url, ["ullage", *words])
    _say_what_is_not_known()


@click.command(
    "uninstall", short_help="Take the proxy out of a client's settings."
)
@_changing
def uninstall(
    clients: tuple[str, ...], file: Path | None, yes: bool, dry_run: bool
) -> None:
    """Take the proxy out of the settings of CLIENTs; of all, and the service, if none is named.

    What the settings said before is put back. What you changed since stays.
    """
    _change_clients(
        clients, installing.uninstall, file, yes=yes, dry_run=dry_run
    )
    if clients and _SERVICE not in clients:
        return
    try:
        service = service_here()
    except ConfigError:
        if clients:
            raise
        return
    change = removed(service)
    if change is None:
        click.echo("service: there is nothing to change.")
    elif _agreed(change, yes=yes, dry_run=dry_run):
        apply(change)
        click.echo("service: its file is removed. To stop it:")
        _print_commands(service.stops)


def _usual_file() -> Path | None:
    """The proxy's configuration file that the environment names, or None."""
    file = os.environ.get("ULLAGE_PROXY_CONFIG")
    return Path(file) if file else None


def url_of(listen: str) -> str:
    """The address by which a program on this machine reaches the proxy.

    Args:
        listen: where it listens, as ``0.0.0.0:8787``.

    Raises:
        ConfigError: it listens on any free port.
    """
    host, port = host_and_port(listen)
    if port == 0:
        raise ConfigError(
            "listen", "a client needs a port that stays", "Name one: 8787."
        )
    if not is_loopback(host):
        host = "127.0.0.1"
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _change_clients(
    clients: Sequence[str],
    change_of: Callable[[AgentFile, Path], Change | None],
    file: Path | None,
    *,
    yes: bool,
    dry_run: bool,
) -> None:
    """Show what would change at each client, ask, and do it."""
    names = [name for name in clients if name != _SERVICE]
    if file is not None and len(names) != 1:
        raise ConfigError(
            "file",
            "it is of one client",
            "Name which: ullage install claude.",
        )
    for name in names or ([] if clients else AGENT_FILES):
        agent = AGENT_FILES[name]
        path = file or installing.file_of(agent)
        is_here = path.is_file() or shutil.which(name) is not None
        if not names and not is_here:
            continue
        try:
            change = change_of(agent, path)
        except ConfigError as error:
            if names:
                raise
            click.echo(f"{name}: not changed. {error}")
            continue
        if change is None:
            click.echo(f"{name}: there is nothing to change.")
        elif _agreed(change, yes=yes, dry_run=dry_run):
            apply(change)
            click.echo(f"{name}: done. Restart it.")


def _agreed(change: Change, *, yes: bool, dry_run: bool) -> bool:
    """Show a change and ask whether to make it."""
    click.echo(change.diff)
    place = short_path(change.path)
    return not dry_run and (yes or click.confirm(f"Change {place}?"))


def _proxy_words(config: Config, file: Path | None) -> list[str]:
    """The command that serves the clients which are installed, without its program.

    Args:
        config: the proxy's settings.
        file: that they stand in; None: in none. A service finds no variables of a shell.
    """
    words = ["proxy", "--listen", config.listen]
    if file is None:
        # one tenant, as `ullage run` has: so that `ullage last` finds what it kept
        words += ["--tenant", ""]
    else:
        # who writes a file says there whose content is whose
        words += ["--config", str(file.absolute())]
    store = os.environ.get("ULLAGE_STORE")
    is_path = store is not None and "://" not in store
    if (
        store and is_path and config.store == store
    ):  # an address can hold a password
        words += ["--store", str(Path(store).absolute())]
    for client in installing.pointed_clients():
        for name, url in client.gateways.items():
            words += ["--upstream", f"{name}={url or 'URL'}"]
    return words


def _install_service(
    service: Service, command: Sequence[str], *, yes: bool, dry_run: bool
) -> None:
    change = written(service, command)
    if change is None:
        click.echo("service: there is nothing to change.")
    elif _agreed(change, yes=yes, dry_run=dry_run):
        apply(change)
        click.echo("service: its file is written. To start it:")
        _print_commands(service.starts)


def _say_whether_it_runs(url: str, command: Sequence[str]) -> None:
    place = url.removeprefix("http://")
    needed = [
        name
        for client in installing.pointed_clients()
        for name in client.gateways
    ]
    answering = answers_at(place, needed)
    if answering == "proxy":
        click.echo(f"The proxy answers at {place}.")
        return
    problem = {
        "nobody": f"Nothing answers at {place} yet.",
        "another": f"Another program answers at {place}.",
        "lacking": f"The proxy at {place} was started without an upstream that they need.",
    }[answering]
    click.echo(
        f"{problem} The clients above reach no model until this runs there:"
    )
    _print_commands([shlex.join(command)])
    click.echo("Or let it start when you log in: ullage install service")


def _say_what_is_not_known() -> None:
    """Tell of clients that stay with a gateway which this shell does not name."""
    for client in installing.pointed_clients():
        for name, url in client.gateways.items():
            if not url:
                click.echo(
                    f"{client.name}: its requests still go to the upstream {name}, as when you"
                    " installed it. This shell does not name its URL: put it in the command. To"
                    f" go to the vendor instead: ullage uninstall {client.name}, then install."
                )


def _print_commands(commands: Sequence[str]) -> None:
    for command in commands:
        click.echo(f"  {command}")

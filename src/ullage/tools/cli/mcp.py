"""``ullage mcp -- SERVER…``: an MCP server whose large results are cut, kept and read on."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from ullage.core.errors import ConfigError
from ullage.core.installing import install_remedy
from ullage.doors.mcp import forwarding, stdio
from ullage.tools.cli._choices import NamedChoice

if TYPE_CHECKING:
    from ullage.doors.files.changing import Change
    from ullage.doors.mcp.clients import Client
    from ullage.doors.mcp.settings import McpSettings

_Given: TypeAlias = tuple[
    tuple[str, ...], str | None, str | None, str, tuple[str, ...]
]
"""The options: limits, a file of settings, a store, a tenant."""

_CLIENTS = (
    *(
        "claude-code",
        "claude-desktop",
        "codex",
        "cursor",
        "gemini-cli",
        "opencode",
        "vscode",
    ),
)


class _Mcp(click.Group):
    """A group in which unknown words, and all behind ``--``, are the server's command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        server_words = args[args.index("--") + 1 :] if "--" in args else None
        super().parse_args(ctx, args)
        rest = [*ctx._protected_args, *ctx.args]
        ctx.meta["is_server"] = (
            server_words is not None and server_words == rest
        )
        return rest

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not ctx.meta["is_server"] and args[0] in self.commands:
            return super().resolve_command(ctx, args)
        return "", _run, ["--", *args]


@click.group(
    "mcp",
    cls=_Mcp,
    short_help="Run an MCP server, its results cut.",
    subcommand_metavar="-- SERVER [ARGUMENT]…",
    invoke_without_command=True,
)
@click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="[TOOL=]N",
    help="Characters shown.",
)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False),
    help="A TOML file.",
)
@click.option("--url", help="The server is there, and speaks streamable HTTP.")
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME:VALUE",
    help="For the URL.",
)
@click.option(
    "--listen",
    metavar="ADDRESS:PORT",
    help="Serve it here: a URL in front of that URL.",
)
@click.option(
    "--store",
    metavar="PATH",
    help="Keep what was cut in this file or folder, for later too.",
)
@click.option(
    "--tenant", default="", help="Under whose name it is kept there."
)
@click.option(
    "--user-tool",
    "user_tools",
    multiple=True,
    metavar="NAME",
    help="Its results stay whole.",
)
@click.pass_context
def command(
    ctx: click.Context,
    limits: tuple[str, ...],
    config: str | None,
    url: str | None,
    headers: tuple[str, ...],
    listen: str | None,
    store: str | None,
    tenant: str,
    user_tools: tuple[str, ...],
) -> None:
    """Run an MCP server; cut results that are too large, and let the model read on in them.

    \b
    ullage mcp -- npx some-server
    ullage mcp --limit 'read_*=20000' -- uvx mcp-server-git
    ullage mcp --url https://host/mcp
    ullage mcp --config servers.toml
    """  # noqa: D301 - click reads the character
    ctx.obj = limits, config, store, tenant, user_tools
    if ctx.invoked_subcommand is not None:
        return
    if config is None and url is None:
        raise click.UsageError(
            "Give a server behind --, a --url, or a file of several: --config."
        )
    settings = _settings(*ctx.obj)
    if listen is not None:
        _listen(listen, url, headers, settings)
    else:
        forwarding.run_several(
            _with_url(settings, url, headers) if url else settings
        )


@click.command(
    "run", hidden=True, context_settings={"ignore_unknown_options": True}
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def _run(options: _Given, words: tuple[str, ...]) -> None:
    forwarding.run(words, lambda: _settings(*options))


def _with_url(
    settings: McpSettings, url: str, headers: tuple[str, ...]
) -> McpSettings:
    """The settings with one server, which is behind a URL."""
    from msgspec.structs import replace

    from ullage.doors.mcp.settings import ServerConfig

    return replace(
        settings, servers={"": ServerConfig(url=url, headers=_pairs(headers))}
    )


def _pairs(headers: tuple[str, ...]) -> dict[str, str]:
    parted = [header.partition(":") for header in headers]
    return {name.strip(): value.strip() for name, _, value in parted}


def _listen(
    listen: str,
    url: str | None,
    headers: tuple[str, ...],
    settings: McpSettings,
) -> None:
    """Serve a URL in front of a URL."""
    host, _, port = listen.rpartition(":")
    if url is None or not port.isdecimal():
        raise click.UsageError(
            "--listen ADDRESS:PORT stands in front of a --url."
        )
    try:
        from ullage.doors.mcp.front import serve
    except ImportError:
        remedy = f"Run {install_remedy('mcp', 'proxy')}."
        raise ConfigError(
            "listen", "aiohttp is not installed", remedy
        ) from None
    serve(
        url,
        _pairs(headers),
        settings,
        host.strip("[]") or "127.0.0.1",
        int(port),
    )


def _settings(
    limits: tuple[str, ...],
    config: str | None,
    store: str | None,
    tenant: str,
    user_tools: tuple[str, ...],
) -> McpSettings:
    """What the file says, and over it the options."""
    from msgspec.structs import replace

    from ullage.doors.mcp.settings import McpSettings, rule_of, settings_of

    written = (
        settings_of(Path(config).read_text(encoding="utf-8"))
        if config
        else McpSettings()
    )
    rules = (*map(rule_of, limits), *written.limits)
    if tenant and store is None and written.store is None:
        raise ConfigError(
            "tenant", "only a store has tenants", "Give --store PATH as well."
        )
    return replace(
        written,
        limits=rules,
        store=written.store if store is None else store,
        tenant=tenant or written.tenant,
        user_tools=(*user_tools, *written.user_tools),
    )


@command.command("serve", short_help="Serve what stores hold to a model.")
@click.argument("paths", nargs=-1, type=click.Path())
@click.option(
    "--tenant", default="", help="Whose outputs. Default: the unnamed tenant."
)
@click.option(
    "--decides",
    type=click.Choice(["user", "model"]),
    help="Serve tools to pin, drop, restore, undo and note, too. user: a call needs a slash "
    "command of the user's; model: the model may decide by itself, after the user.",
)
@click.option(
    "--author",
    default="",
    help="The user's name in the record of decisions. Default: user.",
)
def serve(
    paths: tuple[str, ...], tenant: str, decides: Any, author: str
) -> None:
    """Serve what the stores at PATHS hold of one tenant: to be listed, read and searched.

    Without PATHS, the store that `ullage run` uses. With --decides, decisions are about the
    conversations of the first store.
    """
    from ullage.doors.mcp.serving import Shelf, answered
    from ullage.tools.cli._options import open_kept

    stores = [open_kept(forwarding.store_at(path)) for path in paths]
    stores = stores or [open_kept(None)]
    shelf, hand = Shelf(stores, tenant), None
    if decides is not None:
        from ullage.tools.hand.serving import HandTools

        hand = HandTools(stores[0], tenant, decides, author=author)
    client = stdio.Pipe(1)
    stdio.pump(0, lambda frame: client.write(answered(frame, shelf, hand)))


_changing = (
    click.argument(
        "clients", nargs=-1, type=NamedChoice(_CLIENTS), metavar="[CLIENT]…"
    ),
    click.option(
        "--file",
        type=click.Path(exists=True, dir_okay=False),
        help="Their file of settings, if it is elsewhere.",
    ),
    click.option("-y", "--yes", is_flag=True, help="Do not ask."),
    click.option(
        "--dry-run", is_flag=True, help="Show the change and make none."
    ),
)


def _that_changes(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_changing):
        function = option(function)
    return function


@command.command(
    "install", short_help="Put this before the servers of a client."
)
@click.option(
    "--server",
    "servers",
    multiple=True,
    metavar="NAME",
    help="Only the server of this name.",
)
@_that_changes
@click.pass_obj
def install(options: _Given, /, servers: tuple[str, ...], **how: Any) -> None:
    """Put this before the MCP servers of CLIENTs; of all that are here if none is named.

    Shows the change and asks. The file as it was is kept beside it. Options before ``install``
    (``ullage mcp --limit 6000 install``) become those of the servers.
    """
    from ullage.doors.files import changing
    from ullage.doors.mcp import installing

    limits, config, store, tenant, user_tools = options
    prefix = [*changing.called_as(), "mcp"]
    several = [("--limit", limit) for limit in limits]
    several += [("--user-tool", tool) for tool in user_tools]
    for name, value in (*several, ("--tenant", tenant)):
        prefix += [name, value] if value else []
    for name, path in (("--config", config), ("--store", store)):
        prefix += [name, str(Path(path).absolute())] if path else []

    def change_of(client: Client, path: Path) -> Change | None:
        return installing.install(client, path, prefix, servers)

    _change(change_of, installing.permit_recall, **how)


@command.command("uninstall", short_help="Take it away from them again.")
@_that_changes
def uninstall(**how: Any) -> None:
    """Take this away from the MCP servers of CLIENTs again; of all if none is named."""
    from ullage.doors.mcp import installing

    _change(installing.uninstall, installing.unpermit_recall, **how)


def _change(
    change_of: Callable[[Client, Path], Change | None],
    permissions_of: Callable[[Client, Path, Collection[str]], Change | None],
    clients: tuple[str, ...],
    file: str | None,
    yes: bool,
    dry_run: bool,
) -> None:
    """Show what would change at each client, ask, and do it."""
    from ullage.doors.files import changing
    from ullage.doors.mcp import installing
    from ullage.doors.mcp.clients import CLIENTS

    if file is not None and len(clients) != 1:
        raise ConfigError(
            "file",
            "it is of one client",
            "Name which: ullage mcp install cursor.",
        )
    for name in clients or CLIENTS:
        client = CLIENTS[name]
        path = Path(file) if file else installing.file_of(client)
        if path is None:
            if clients:
                click.echo(f"{name}: there is no file of it here.")
            continue
        change = change_of(client, path)
        if change is None:
            click.echo(f"{name}: there is nothing to change.")
            continue
        changes = [change]
        permissions = None if file else installing.permissions_of(client)
        if permissions is not None:
            permitted = permissions_of(client, permissions, change.servers)
            changes += [permitted] if permitted is not None else []
        for edit in changes:
            click.echo(edit.diff)
        if dry_run or not (
            yes or click.confirm(f"Change {', '.join(change.servers)}?")
        ):
            continue
        for edit in changes:
            changing.apply(edit)
        click.echo(f"{name}: done. Restart it.")

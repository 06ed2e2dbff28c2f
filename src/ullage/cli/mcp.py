"""``ullage mcp -- SERVER…``: an MCP server whose large results are cut, kept and read on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ullage.errors import ConfigError
from ullage.mcp import stdio

if TYPE_CHECKING:
    from ullage.mcp.settings import Settings

__all__ = ["command"]


class _Mcp(click.Group):
    """What is no command of ours, or stands behind ``--``, is the server's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        behind = args[args.index("--") + 1 :] if "--" in args else None
        super().parse_args(ctx, args)
        rest = [*ctx._protected_args, *ctx.args]
        ctx.meta["is_server"] = behind is not None and behind == rest
        return rest

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not ctx.meta["is_server"] and args[0] in self.commands:
            return super().resolve_command(ctx, args)
        return "", _run, ["--", *args]


@click.group("mcp", cls=_Mcp, subcommand_metavar="-- SERVER [ARGUMENT]…")
@click.option("--limit", "limits", multiple=True, metavar="[TOOL=]N", help="Characters shown.")
@click.option("--config", type=click.Path(exists=True, dir_okay=False), help="A TOML file.")
@click.option("--store", metavar="PATH", help="Keep what was cut in this file, for later too.")
@click.option("--tenant", default="", help="Under whose name it is kept there.")
@click.pass_context
def command(
    ctx: click.Context, limits: tuple[str, ...], config: str | None, store: str | None, tenant: str
) -> None:
    r"""Run an MCP server; cut results that are too large, and let the model read on in them.

    \b
    ullage mcp -- npx -y @modelcontextprotocol/server-filesystem .
    ullage mcp --limit 'read_*=20000' -- uvx mcp-server-git
    """
    ctx.obj = limits, config, store, tenant


@click.command("run", hidden=True, context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def _run(
    given: tuple[tuple[str, ...], str | None, str | None, str], words: tuple[str, ...]
) -> None:
    limits, config, store, tenant = given

    def settings() -> Settings:
        return _settings(limits, config, store, tenant)

    stdio.run(words, settings)


def _settings(
    limits: tuple[str, ...], config: str | None, store: str | None, tenant: str
) -> Settings:
    """What the file says, and over it the options."""
    from msgspec.structs import replace

    from ullage.mcp.settings import Settings, rule_of, settings_of

    written = settings_of(Path(config).read_text(encoding="utf-8")) if config else Settings()
    rules = (*map(rule_of, limits), *written.limits)
    if tenant and store is None and written.store is None:
        raise ConfigError("tenant", "only a store has tenants", "Give --store PATH as well.")
    return replace(
        written,
        limits=rules,
        store=written.store if store is None else store,
        tenant=tenant or written.tenant,
    )

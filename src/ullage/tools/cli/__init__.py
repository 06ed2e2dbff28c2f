"""The command line: the same engine on files. One module a command, loaded when it is called.

Each ends with a status: 0 if all is well, 1 if something failed (or was not found, or broken), 2 if
it was not typed as its help says, 130 if it was interrupted. `check`, `grep` and `replay` say in
their help what else they distinguish.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress

import click

from ullage import __version__
from ullage.core.errors import ConfigError, UllageError, did_you_mean

__all__ = ["main"]

_MODULES = {
    **dict.fromkeys(("drop", "note", "pin", "restore", "undo"), "decide"),
    **dict.fromkeys(("install", "uninstall"), "install"),
    "slash": "commands",
}
"""The module of each command that shares one; the others have one of their own name."""
_UNLISTED = ("slash",)
"""Commands that other programs run."""
_COMMANDS = (
    *(
        "check",
        "commands",
        "completion",
        "doctor",
        "drop",
        "fit",
        "forget",
        "gc",
        "grep",
        "inspect",
        "install",
        "last",
        "ls",
        "mcp",
    ),
    *(
        "note",
        "pin",
        "proxy",
        "read",
        "replay",
        "report",
        "restore",
        "run",
        "undo",
        "uninstall",
        "watch",
    ),
    "window",
)

_INTERRUPTED = 128 + 2
"""The status of a command that a user interrupted, as shells have it."""
_PATIENCE_S = 2.0
"""So long an interrupted command may wait for its threads. A pool whose processes ended while
one was written to is waited for without end (CPython before 3.11.5, gh-94777)."""


class _Commands(click.Group):
    """Loads a command's module when the command is called, and shows our errors as ours."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(
        self, ctx: click.Context, cmd_name: str
    ) -> click.Command | None:
        if cmd_name not in (*_COMMANDS, *_UNLISTED):
            return None
        module_name = _MODULES.get(cmd_name, cmd_name)
        module = importlib.import_module(f"ullage.tools.cli.{module_name}")
        command: click.Command = getattr(
            module, cmd_name if cmd_name in _MODULES else "command"
        )
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            question = did_you_mean(args[0], _COMMANDS).strip()
            if not question:
                raise
            raise click.UsageError(
                f"{error.message} {question}", ctx
            ) from None

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except UllageError as error:
            raise click.ClickException(_as_typed(error, ctx)) from None
        except KeyboardInterrupt:
            click.echo("", err=True)  # behind the terminal's ^C
            raise click.exceptions.Exit(_INTERRUPTED) from None


def _as_typed(error: UllageError, ctx: click.Context) -> str:
    """What an error says; a setting that was given as an option is called as it was typed."""
    command = _cli.get_command(ctx, ctx.invoked_subcommand or "")
    if isinstance(error, ConfigError) and command is not None:
        for option in command.params:
            if isinstance(
                option, click.Option
            ) and error.setting in _settings_of(option):
                return str(error).replace(error.setting, option.opts[-1], 1)
    return str(error)


def _settings_of(option: click.Option) -> set[str]:
    """The settings an option gives: under its own name, and under that of its parameter."""
    names = {name.removeprefix("--").replace("-", "_") for name in option.opts}
    return {option.name or "", *names, *(f"{name}_tokens" for name in names)}


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__)
def _cli() -> None:
    """Keeps room in the context window of tool-using agents; nothing that leaves it is lost."""


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its status."""
    try:
        _cli.main(list(args) if args is not None else None, prog_name="ullage")
    except SystemExit as end:
        if end.code == _INTERRUPTED:
            patience = threading.Timer(_PATIENCE_S, os._exit, (_INTERRUPTED,))
            patience.daemon = True
            patience.start()
            with suppress(OSError, ValueError):
                sys.stdout.flush()
        raise

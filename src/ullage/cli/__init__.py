"""The command line: the same engine on files. One module a command, loaded when it is called.

ullage replay PATH…    what would a policy have done to these recorded runs
ullage inspect STORE FILE  what a session did, turn by turn, from its store and its history
ullage fit FILE        make one request fit
ullage check FILE      is this request legal, by its provider's rules
ullage read REF        open what was set aside
ullage grep PATTERN    search what was set aside
ullage mcp -- SERVER…   cut what an MCP server says too much of
ullage gc              let go of what was set aside long ago
ullage forget STORE    erase a tenant or a conversation
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

import click

from ullage import __version__
from ullage.errors import UllageError

__all__ = ["main"]

_COMMANDS = ("check", "fit", "forget", "gc", "grep", "inspect", "mcp", "read", "replay")


class _Commands(click.Group):
    """Loads a command's module when the command is called, and shows our errors as ours."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"ullage.cli.{cmd_name}").command
        return command

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except UllageError as error:
            raise click.ClickException(str(error)) from None


@click.group(cls=_Commands)
@click.version_option(__version__)
def _cli() -> None:
    """Keeps room in the context window of tool-using agents; nothing that leaves it is lost."""


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its status."""
    _cli.main(list(args) if args is not None else None, prog_name="ullage")

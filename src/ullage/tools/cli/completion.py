"""``ullage completion SHELL``: what a shell needs to complete our commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from ullage.tools.cli._choices import NamedChoice

_VARIABLE = "_ULLAGE_COMPLETE"


@click.command(
    "completion", short_help="Print what makes a shell complete this."
)
@click.argument("shell", type=NamedChoice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the script that completes `ullage` in SHELL.

    \b
    bash   add to ~/.bashrc:  eval "$(ullage completion bash)"
    zsh    add to ~/.zshrc:   eval "$(ullage completion zsh)"
    fish   ullage completion fish > ~/.config/fish/completions/ullage.fish
    """  # noqa: D301 - click reads the character
    kind = get_completion_class(shell)
    if kind is None:  # a click without that shell
        raise click.ClickException(
            f"click {click.__version__} completes nothing in {shell}."
        )
    click.echo(kind(ctx.find_root().command, {}, "ullage", _VARIABLE).source())

"""``ullage commands``: slash commands of coding agents; ``ullage slash`` is what they run."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from ullage.core.errors import ConfigError, UllageError
from ullage.core.turn.hand import described
from ullage.core.values.decisions import Verb
from ullage.doors.files.changing import called_as
from ullage.session.stored.conversation import (
    conversation,
    decide,
    decision_of,
)
from ullage.session.stored.estimate import estimate_of
from ullage.tools.cli._options import (
    harmless,
    open_kept,
    store_option,
    tenant_in,
)
from ullage.tools.hand.commands import (
    END,
    FOLDERS,
    VERBS,
    FileChange,
    apply,
    folder_of,
    installed,
    removed,
)
from ullage.tools.hand.described import sentence, window_lines

_LINES = re.compile(r"--lines[= ]+(\d+)-(\d+)")
_WHEN = re.compile(r"--when[= ]+(batch|end|now)\b")
_CONVERSATION = re.compile(r"--conversation[= ]+(c\w+)")
_agents = click.argument(
    "agents",
    nargs=-1,
    type=click.Choice(tuple(FOLDERS)),
    metavar="[AGENT]…",
)
_yes = click.option("-y", "--yes", is_flag=True, help="Do not ask.")
_dry_run = click.option(
    "--dry-run", is_flag=True, help="Show the change and make none."
)


@click.group("commands", short_help="Slash commands for coding agents.")
def command() -> None:
    """Give Claude Code, opencode and Codex slash commands to pin, drop, restore, undo and note."""


@command.command("install", short_help="Write them.")
@_agents
@_yes
@_dry_run
def install(agents: tuple[str, ...], yes: bool, dry_run: bool) -> None:
    """Write the commands of AGENTs: claude-code, opencode, codex; of all that are here if none is
    named.

    Shows the files and asks. A file of yours of the same name is kept beside it.
    """
    for name, folder in _folders(agents):
        changes = installed(FOLDERS[name], folder, called_as())
        _change(name, list(changes), yes=yes, dry_run=dry_run)


@command.command("uninstall", short_help="Remove them.")
@_agents
@_yes
@_dry_run
def uninstall(agents: tuple[str, ...], yes: bool, dry_run: bool) -> None:
    """Remove the commands of AGENTs again; of all if none is named."""
    for name, folder in _folders(agents):
        changes = removed(FOLDERS[name], folder)
        _change(name, list(changes), yes=yes, dry_run=dry_run)


def _folders(agents: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    """The folders of commands; without names, of the agents that have been used here."""
    for name in agents or FOLDERS:
        folder = folder_of(FOLDERS[name], os.environ, Path.home())
        if agents or folder.parent.exists():
            yield name, folder


def _change(
    name: str, changes: list[FileChange], *, yes: bool, dry_run: bool
) -> None:
    """Show what would change for one agent, ask, and do it."""
    if not changes:
        click.echo(f"{name}: there is nothing to change.")
        return
    for change in changes:
        click.echo(f"{name}: {change}")
    if dry_run or not (yes or click.confirm("Do this?")):
        return
    for change in changes:
        apply(change)
    click.echo(f"{name}: done. Restart it.")


# ── what a command runs ──────────────────────────────────────────────────────────────────


@click.command("slash", hidden=True)
@click.argument("verb", type=click.Choice(VERBS))
@store_option
@click.option("--tenant", default="")
def slash(verb: Any, address: str | None, tenant: str) -> None:
    """Decide what was typed behind a slash command, which comes on standard input.

    Whatever happens is said on standard output: an agent shows that, and ends at a status.
    """
    try:
        text = _typed(sys.stdin.read())
        lines = _slash(verb, text, address, tenant)
    except UllageError as error:
        lines = [f"Nothing was decided: {error}"]
    for line in lines:
        click.echo(harmless(line))


def _typed(text: str) -> str:
    """What was typed.

    Raises:
        ConfigError: it does not end as it should: a sign in it ended it.
    """
    typed, is_whole, _ = text.rpartition(END)
    if not is_whole:
        raise ConfigError(
            "command",
            "what was typed came only in part",
            "Leave out backquotes.",
        )
    # `opencode run` puts quotes around it
    return _unquoted(typed.strip())


def _slash(
    verb: str, text: str, address: str | None, tenant: str
) -> list[str]:
    """The lines that are said."""
    fields, words = _fields(verb, text)
    with closing(open_kept(address)) as store:
        name = fields.pop("conversation", None)
        stored = conversation(store, tenant_in(store, tenant), name)
        if verb == "window":
            return list(window_lines(stored))
        decided: Verb = verb  # type: ignore[assignment]
        target = words.pop(0) if words else None
        decision = decision_of(
            stored,
            decided,
            target,
            reason=_unquoted(" ".join(words)),
            author="user",
            **fields,
        )
        estimate = estimate_of(stored, decision)
        name = decide(store, stored, decision)
    description = described(decision, stored.transcript)
    what = sentence(stored, name, description, estimate)
    return [what, f"Take it back: ullage undo {name}"]


def _unquoted(text: str) -> str:
    """A text without the quotes around it."""
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if is_quoted else text


def _fields(verb: str, text: str) -> tuple[dict[str, Any], list[str]]:
    """The options that were typed, and the other words: a target, and why."""
    if verb == "note":
        return {"text": text}, []
    fields: dict[str, Any] = {}
    if lines := _LINES.search(text):
        fields["lines"] = int(lines[1]), int(lines[2])
    if when := _WHEN.search(text):
        fields["when"] = when[1]
    if name := _CONVERSATION.search(text):
        fields["conversation"] = name[1]
    for option in (_LINES, _WHEN, _CONVERSATION):
        text = option.sub(" ", text)
    return fields, text.replace("--reason", " ").split()

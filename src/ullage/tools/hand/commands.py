"""Slash commands of coding agents by which their user decides: written as files, and removed.

    claude-code   ~/.claude/commands/ullage-pin.md            /ullage-pin m12
    opencode      ~/.config/opencode/commands/ullage-pin.md   /ullage-pin m12
    codex         ~/.codex/skills/ullage-pin/SKILL.md         $ullage-pin m12

The first two run ``ullage slash`` themselves, before the model reads anything, so it is the user
who decides. What was typed goes to it as a quoted here-document: no shell reads a word of it. Codex
has skills instead, which its model runs; a file beside each says that only the user may call it.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from ullage.core.errors import ConfigError

MARK = "written by ullage; `ullage commands uninstall` removes it"
"""What every file of ours holds."""
END = "[end of what was typed]"
"""The last line that ``ullage slash`` reads; without it, something cut the text short."""
KEPT = ".before-ullage"
"""Behind the name of a file that was there before."""
_HINTS = {
    "window": ("Show what is in the context window", ""),
    "pin": ("Keep a text whole in every request", "m12 [why]"),
    "drop": ("Take a text out of the context window", "m12 [why]"),
    "restore": ("Bring a text back into the context window", "m12 [why]"),
    "undo": ("Take back a batch or a decision", "[d… or b…]"),
    "note": ("Add a note to every request", "the note"),
}
VERBS = tuple(_HINTS)


class CommandFolder(Struct, frozen=True):
    """Where a coding agent has its slash commands.

    Attributes:
        name: of the agent.
        variable: the variable that names its folder of settings; ``""``: none does.
        home: that folder without it, from the user's home on.
        folder: of commands, in it.
        file: of a command, in that.
        is_run: whether the agent runs a line of the file before its model reads it.
    """

    name: str
    variable: str
    home: str
    folder: str
    file: str = "ullage-{verb}.md"
    is_run: bool = True


FOLDERS: Mapping[str, CommandFolder] = {
    agent.name: agent
    for agent in (
        CommandFolder(
            "claude-code", "CLAUDE_CONFIG_DIR", ".claude", "commands"
        ),
        CommandFolder(
            "opencode", "XDG_CONFIG_HOME", ".config", "opencode/commands"
        ),
        CommandFolder(
            "codex",
            "CODEX_HOME",
            ".codex",
            "skills",
            "ullage-{verb}/SKILL.md",
            is_run=False,
        ),
    )
}


class FileChange(Struct, frozen=True):
    """What is done to one file.

    Attributes:
        path: of the file.
        text: what is written; None: it is removed.
        keeps: whether what is there now is kept beside it.
        restores: whether what was kept beside it comes back.
    """

    path: Path
    text: str | None
    keeps: bool = False
    restores: bool = False

    def __str__(self) -> str:
        done = "remove" if self.text is None else "write"
        more = f", and keep what is there as *{KEPT}" if self.keeps else ""
        more += ", and put back what was there" if self.restores else ""
        return f"{done} {self.path}{more}"


def folder_of(
    agent: CommandFolder, environment: Mapping[str, str], home: Path
) -> Path:
    """Where an agent looks for its commands.

    Args:
        agent: the agent.
        environment: its variables.
        home: the user's home folder.
    """
    given = environment.get(agent.variable, "")
    return (Path(given) if given else home / agent.home) / agent.folder


def text_of(agent: CommandFolder, verb: str, program: Sequence[str]) -> str:
    """The file of a command.

    Args:
        agent: whose command it is.
        verb: what it does.
        program: the words that run ullage.
    """
    description, hint = _HINTS[verb]
    run = f"{shlex.join(program)} slash {verb}"
    head = [f'description: "{description} (ullage)"']
    words = "$ARGUMENTS" if agent.is_run else "WORDS"
    typed = f"{run} <<'ULLAGE_END'\n{words}\n{END}\nULLAGE_END"
    if not agent.is_run:
        head.insert(0, f"name: ullage-{verb}")
        body = (
            "The user calls this by name. In place of WORDS put what the user typed behind the "
            "name, unchanged; nothing if there was nothing. Run it in the shell, and tell in a "
            f"line or two what it says. Do nothing else.\n\n```sh\n{typed}\n```"
        )
    elif verb == "window":
        body = (
            f"This is what is in your context window:\n\n!`{typed}`\n\n"
            "Tell me what is whole, in short, set aside and pinned, and what takes most "
            "room. Do nothing else."
        )
    else:
        body = (
            "I decided about the context window. This is what ullage says of it:\n\n"
            f"!`{typed}`\n\n"
            "Tell me that in a line or two. Do nothing else."
        )
    if agent.is_run:
        head.append(f"allowed-tools: Bash({run}:*)")
        if hint:
            head.append(f'argument-hint: "{hint}"')
    lines = "\n".join(head)
    return f"---\n{lines}\n---\n<!-- {MARK} -->\n{body}\n"


def files_of(
    agent: CommandFolder, program: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """The files of an agent's commands, by their path in its folder.

    Args:
        agent: whose commands they are.
        program: the words that run ullage.
    """
    for verb in VERBS:
        path = agent.file.format(verb=verb)
        yield path, text_of(agent, verb, program)
        if not agent.is_run:
            policy = "policy:\n  allow_implicit_invocation: false\n"
            rules = Path(path).parent / "agents" / "openai.yaml"
            yield rules.as_posix(), f"# {MARK}\n{policy}"


def installed(
    agent: CommandFolder, folder: Path, program: Sequence[str]
) -> Iterator[FileChange]:
    """What is to be done so that an agent has the commands; nothing where it has them.

    Args:
        agent: the agent.
        folder: of its commands.
        program: the words that run ullage.

    Raises:
        ConfigError: a file cannot be read.
    """
    for name, text in files_of(agent, program):
        path = folder / name
        there = _text_at(path)
        if there != text:
            is_foreign = there is not None and MARK not in there
            yield FileChange(path, text, keeps=is_foreign)


def removed(agent: CommandFolder, folder: Path) -> Iterator[FileChange]:
    """What is to be done so that an agent has none of the commands; files of others stay.

    Args:
        agent: the agent.
        folder: of its commands.

    Raises:
        ConfigError: a file cannot be read.
    """
    for name, _ in files_of(agent, ()):
        path = folder / name
        if MARK in (_text_at(path) or ""):
            yield FileChange(path, None, restores=_kept(path).exists())


def apply(change: FileChange) -> None:
    """Do it.

    Raises:
        ConfigError: a file or folder cannot be written.
    """
    path = change.path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if change.keeps and not _kept(path).exists():
            shutil.copy2(path, _kept(path))
        if change.text is not None:
            whole = path.with_name(f"{path.name}.part")
            whole.write_text(change.text, encoding="utf-8")
            whole.replace(path)
        elif change.restores:
            _kept(path).replace(path)
        else:
            path.unlink()
            for parent in list(path.parents)[:2]:
                if (
                    parent.name.startswith("ullage-")
                    or parent.name == "agents"
                ):
                    _remove_empty(parent)
    except OSError as error:
        raise ConfigError(
            "commands",
            f"a file cannot be written ({error.strerror or type(error).__name__})",
            "Look who owns the folder.",
        ) from None


def _remove_empty(folder: Path) -> None:
    """Remove a folder that was made for a command, once nothing is in it."""
    if not any(folder.iterdir()):
        folder.rmdir()


def _kept(path: Path) -> Path:
    return path.with_name(path.name + KEPT)


def _text_at(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            "commands",
            f"a file cannot be read ({type(error).__name__})",
            "Look at the files ullage-*.md in the agent's folder of commands.",
        ) from None

"""Whether a tool call may be made again for nothing but its answer: judged by its name.

Of a shell the commands are judged. What is not known to read is taken to write.
"""

from __future__ import annotations

import re

from ullage.core.contract.kinds import kind_of
from ullage.core.values.messages import ToolCall
from ullage.tools.replay.evidence.atoms import leaves

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_READS = re.compile(
    "browse|cat|describe|fetch|find|get|glob|grep|list|lookup|ls|open|query|read|search|show|"
    "tree|view"
)
_WRITES = re.compile(
    "add|apply|book|cancel|create|delete|edit|exchange|insert|install|modify|move|patch|post|put|"
    "remove|rename|replace|return|run|save|send|set|submit|transfer|update|write"
)
_COMMANDS = re.compile(
    "cat|cd|cut|date|diff|du|echo|env|file|find|grep|head|jq|less|ls|nl|pwd|realpath|rg|sort|"
    "stat|tail|tree|type|uniq|wc|which"
)
_GIT = re.compile("blame|branch|diff|grep|log|ls-files|rev-parse|show|status")
_SPLIT = re.compile(r"&&|\|\||[;|\n]")
_SHELL_KEYS = ("command", "cmd", "code", "script", "input", "")


def reads_only(call: ToolCall) -> bool:
    """Whether a call changes nothing."""
    if kind_of(call.name) == "shell":
        commands = [
            leaf for key, leaf in leaves(call.arguments) if key in _SHELL_KEYS
        ]
        return bool(commands) and all(map(_command_reads, commands))
    names = [word.lower() for word in _WORD.findall(call.name)]
    return any(map(_READS.fullmatch, names)) and not any(
        map(_WRITES.fullmatch, names)
    )


def _command_reads(command: str) -> bool:
    if ">" in command.replace("2>&1", "").replace("2>/dev/null", ""):
        return False
    parts = [part.split() for part in _SPLIT.split(command) if part.strip()]
    return bool(parts) and all(map(_part_reads, parts))


def _part_reads(words: list[str]) -> bool:
    if words[0] == "git":
        return len(words) > 1 and _GIT.fullmatch(words[1]) is not None
    if words[0] == "sed":
        return "-n" in words and "-i" not in words
    writes = "-delete" in words or "-exec" in words
    return _COMMANDS.fullmatch(words[0]) is not None and not writes

"""The configuration files of MCP clients: where they are, and how a server stands in them.

    client              file                                             servers under
    claude-desktop      …/Claude/claude_desktop_config.json              mcpServers
    claude-code         ~/.claude.json                                   mcpServers
    codex               ~/.codex/config.toml                             mcp_servers
    cursor              ~/.cursor/mcp.json                               mcpServers
    vscode              …/Code/User/mcp.json                             servers
    gemini-cli          ~/.gemini/settings.json                          mcpServers
    opencode            ~/.config/opencode/opencode.json                 mcp

A server is a program and its arguments, *words* here: ``command`` and ``args``, or with opencode
one list. `changed` puts other words in their place and leaves every other character as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from ullage.core.errors import ConfigError
from ullage.core.installing import install_remedy
from ullage.doors.files.jsonc import Node, NotJson, scanned


class Client(Struct, frozen=True):
    """A client's configuration.

    Attributes:
        name: as it is typed.
        files: where its file may be, the first there is; beginning with ``~`` (the user's
            home), ``CONFIG`` (where the platform keeps programs' settings) or ``XDG``
            (``~/.config`` on any platform).
        key: under what its servers stand.
        language: what the file is written in.
        allow_key: the list in a server's entry that names the tools which may be called, if the
            client has one there.
        permission_files: where a file of permissions may be that names tools of servers.
    """

    name: str
    files: tuple[str, ...]
    key: str = "mcpServers"
    language: Literal["json", "toml"] = "json"
    allow_key: str = ""
    permission_files: tuple[str, ...] = ()


CLIENTS: Mapping[str, Client] = {
    client.name: client
    for client in (
        Client(
            "claude-desktop", ("CONFIG/Claude/claude_desktop_config.json",)
        ),
        Client(
            "claude-code",
            ("~/.claude.json",),
            permission_files=("~/.claude/settings.json",),
        ),
        Client(
            "codex",
            ("~/.codex/config.toml",),
            "mcp_servers",
            "toml",
            "enabled_tools",
        ),
        Client("cursor", ("~/.cursor/mcp.json",)),
        Client("vscode", ("CONFIG/Code/User/mcp.json",), "servers"),
        Client(
            "gemini-cli",
            ("~/.gemini/settings.json",),
            allow_key="includeTools",
        ),
        Client(
            "opencode",
            ("XDG/opencode/opencode.jsonc", "XDG/opencode/opencode.json"),
            "mcp",
        ),
    )
}
Words = tuple[str, ...]


# ── a server's words ─────────────────────────────────────────────────────────────────────


def wrapped(words: Words, proxy_command: Sequence[str]) -> Words:
    """A server's words behind those that call the proxy, its options among them."""
    return (*proxy_command, "--", *words)


def is_ours(words: Words) -> bool:
    """Whether a server stands behind the proxy already."""
    return unwrapped(words) != words


def unwrapped(words: Words) -> Words:
    """The server behind the proxy; itself, where it stands behind none."""
    program = (
        words[0].replace("\\", "/").rpartition("/")[2].lower() if words else ""
    )
    if program.removesuffix(".exe") == "ullage":
        arguments = words[1:]
    elif words[1:3] == ("-m", "ullage"):
        arguments = words[3:]
    else:
        return words
    is_proxy = arguments[:1] == ("mcp",) and "--" in arguments
    return arguments[arguments.index("--") + 1 :] if is_proxy else words


# ── a file's text ────────────────────────────────────────────────────────────────────────


def servers_of(text: str, client: Client) -> dict[str, Words]:
    """The servers that are started by a command, each with its words.

    Raises:
        ConfigError: the text cannot be read.
    """
    entries = read(text, client).get(client.key)
    servers = entries if isinstance(entries, Mapping) else {}
    words = {str(name): _words(server) for name, server in servers.items()}
    return {
        name: server_words
        for name, server_words in words.items()
        if server_words
    }


def document_of(text: str, client: Client) -> dict[str, Any]:
    """All that a file says; no arguments are as good as an empty list of them.

    Raises:
        ConfigError: the text cannot be read.
    """
    document = dict(read(text, client))
    servers = document.get(client.key)
    if isinstance(servers, Mapping):
        document[client.key] = {
            name: {k: v for k, v in server.items() if (k, v) != ("args", [])}
            if isinstance(server, Mapping)
            else server
            for name, server in servers.items()
        }
    return document


def _words(server: Any) -> Words:
    if not isinstance(server, Mapping):
        return ()
    command = server.get("command")
    args = server.get("args", [])
    words = command if isinstance(command, list) else [command, *(args or [])]
    if not all(isinstance(word, str) for word in words):
        return ()
    return tuple(map(str, words))


def read(text: str, client: Client) -> Mapping[str, Any]:
    """The content of a client's file.

    Raises:
        ConfigError: the text cannot be read.
    """
    value: Any
    if client.language == "toml":
        import tomllib

        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise _unreadable(client, str(error)) from None
    try:
        value = scanned(text).value
    except NotJson as error:
        raise _unreadable(client, str(error)) from None
    if not isinstance(value, Mapping):
        raise _unreadable(client, "it is no object")
    return value


def _unreadable(client: Client, problem: str) -> ConfigError:
    return ConfigError(
        f"{client.name}'s file", problem, "Fix it; nothing was changed."
    )


def changed(text: str, client: Client, words: Mapping[str, Words]) -> str:
    """The text with other commands for some of its servers.

    Raises:
        ConfigError: the text cannot be read, or is TOML and tomlkit is not installed.
    """
    change: Callable[[str, str, Mapping[str, Words]], str]
    change = _changed_toml if client.language == "toml" else _changed_json
    return change(text, client.key, words)


def _changed_toml(text: str, key: str, words: Mapping[str, Words]) -> str:
    document = tomlkit_of(text)
    for name, (command, *args) in words.items():
        server = document[key][name]
        server["command"] = command
        current = server.get("args", [])
        same = _same_end(current, args)
        if "args" in server and same:
            del current[: len(current) - same]
            for at, word in enumerate(args[: len(args) - same]):
                current.insert(at, word)
        else:
            server["args"] = args
    import tomlkit

    return tomlkit.dumps(document)


def tomlkit_of(text: str) -> Any:
    """A TOML document that keeps its layout when it is written again.

    Raises:
        ConfigError: tomlkit is not installed.
    """
    try:
        import tomlkit
    except ImportError:
        remedy = f"Run {install_remedy('mcp')}."
        raise ConfigError(
            "codex's file", "tomlkit is not installed", remedy
        ) from None
    return tomlkit.parse(text)


def _same_end(words: Sequence[str], replacement: Sequence[str]) -> int:
    """How many items at their ends two lists have in common."""
    most = min(len(words), len(replacement))
    return next(
        (n for n in range(most) if words[-1 - n] != replacement[-1 - n]), most
    )


def _changed_json(text: str, key: str, words: Mapping[str, Words]) -> str:
    servers = scanned(text).fields[key].fields
    edits: list[tuple[int, int, str]] = []
    for name, server_words in words.items():
        command = servers[name].fields["command"]
        args = servers[name].fields.get("args")
        if command.items:
            edits.append(edit_of_list(text, command, server_words))
            continue
        edits.append((command.start, command.stop, _written(server_words[0])))
        if args is not None:
            edits.append(edit_of_list(text, args, server_words[1:]))
        elif server_words[1:]:
            written = ", ".join(map(_written, server_words[1:]))
            edits.append(
                (command.stop, command.stop, f', "args": [{written}]')
            )
    for start, stop, written in sorted(edits, reverse=True):
        text = f"{text[:start]}{written}{text[stop:]}"
    return text


def edit_of_list(
    text: str, node: Node, words: Sequence[str]
) -> tuple[int, int, str]:
    """The edit that makes a list hold these words: start, stop, new text. A common end stays."""
    same = _same_end(node.value, words)
    tail_index = len(node.items) - same
    inserted = ", ".join(map(_written, words[: len(words) - same]))
    if not node.items:
        return node.start + 1, node.stop - 1, inserted
    start = node.items[0].start
    stop = node.items[tail_index].start if same else node.items[-1].stop
    return start, stop, f"{inserted}, " if same and inserted else inserted


def _written(word: str) -> str:
    return json.dumps(word, ensure_ascii=False)

"""Where a client lists the tools that may be called: our recall tools belong on the list.

    codex          enabled_tools     in the entry of a server
    gemini-cli     includeTools      in the entry of a server
    claude-code    permissions.allow in ~/.claude/settings.json, as mcp__SERVER__TOOL

A list that is not there allows everything, or the client asks. A list that names tools of a server
and not ours would let the model see a notice and refuse the call that follows it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ullage.doors.files.jsonc import Node, scanned
from ullage.doors.mcp.clients import Client, edit_of_list, read, tomlkit_of
from ullage.doors.mcp.tools import TOOLSET

RECALL_NAMES = tuple(tool.name for tool in TOOLSET.tools)


def allow(text: str, client: Client, servers: Collection[str]) -> str:
    """A client's file with our tools on the lists of these servers.

    Args:
        text: the file.
        client: the owner.
        servers: the names of the servers.

    Raises:
        ConfigError: the text cannot be read, or is TOML and tomlkit is not installed.
    """
    return _with_lists(text, client, servers, _with_ours)


def disallow(text: str, client: Client, servers: Collection[str]) -> str:
    """A client's file without our tools on the lists of these servers.

    Args and errors as of `allow`.
    """
    return _with_lists(text, client, servers, _without_ours)


def _with_ours(listed: Sequence[str]) -> list[str]:
    return [*(name for name in RECALL_NAMES if name not in listed), *listed]


def _without_ours(listed: Sequence[str]) -> list[str]:
    return [name for name in listed if name not in RECALL_NAMES]


def _with_lists(
    text: str,
    client: Client,
    servers: Collection[str],
    change: Callable[[Sequence[str]], list[str]],
) -> str:
    if not client.allow_key:
        return text
    entries = read(text, client).get(client.key)
    lists = {
        name: change(entry[client.allow_key])
        for name, entry in (
            entries.items() if isinstance(entries, Mapping) else ()
        )
        if name in servers and _is_list_of_names(entry.get(client.allow_key))
    }
    if not lists:
        return text
    if client.language == "toml":
        return _written_toml(text, client, lists)
    nodes = scanned(text).fields[client.key].fields
    return _written_json(
        text,
        [
            (nodes[name].fields[client.allow_key], names)
            for name, names in lists.items()
        ],
    )


def _is_list_of_names(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, str) for item in value
    )


def _written_toml(
    text: str, client: Client, lists: Mapping[str, Sequence[str]]
) -> str:
    document = tomlkit_of(text)
    for server, names in lists.items():
        listed = document[client.key][server][client.allow_key]
        for name in [name for name in listed if name not in names]:
            listed.remove(name)
        for at, name in enumerate(
            name for name in names if name not in [*listed]
        ):
            listed.insert(at, name)
    import tomlkit

    return tomlkit.dumps(document)


def _written_json(
    text: str, lists: Iterable[tuple[Node, Sequence[str]]]
) -> str:
    edits = [edit_of_list(text, node, names) for node, names in lists]
    for start, stop, written in sorted(edits, reverse=True):
        text = f"{text[:start]}{written}{text[stop:]}"
    return text


# ── Claude Code's permissions ────────────────────────────────────────────────────────────


def permit(text: str, servers: Collection[str]) -> str:
    """Claude Code's settings with our tools permitted where tools of these servers are.

    A rule for a whole server (``mcp__git``, ``mcp__git__*``) permits ours as well.

    Args:
        text: ``settings.json``.
        servers: the names of the servers.
    """
    node = _permissions(text)
    if node is None:
        return text
    rules = list(node.value)
    missing = [
        rule
        for server in servers
        if _names_tools_of(rules, server)
        for rule in _rules_for(server)
        if rule not in rules
    ]
    return (
        _written_json(text, [(node, [*missing, *rules])]) if missing else text
    )


def unpermit(text: str, servers: Collection[str]) -> str:
    """Claude Code's settings without a rule for our tools. Arguments as of `permit`."""
    node = _permissions(text)
    if node is None:
        return text
    own_rules = {rule for server in servers for rule in _rules_for(server)}
    rules = [rule for rule in node.value if rule not in own_rules]
    return (
        text if rules == node.value else _written_json(text, [(node, rules)])
    )


def _permissions(text: str) -> Node | None:
    permissions = scanned(text).fields.get("permissions")
    node = None if permissions is None else permissions.fields.get("allow")
    return node if node is not None and _is_list_of_names(node.value) else None


def _rules_for(server: str) -> list[str]:
    return [f"mcp__{server}__{name}" for name in RECALL_NAMES]


def _names_tools_of(rules: Sequence[str], server: str) -> bool:
    """Whether rules permit some tools of a server, and not all."""
    of_server = [rule for rule in rules if rule.startswith(f"mcp__{server}__")]
    is_whole = {f"mcp__{server}", f"mcp__{server}__*"}.intersection(rules)
    return bool(of_server) and not is_whole

"""What `ullage mcp` is set to: how much of a result is shown, by tool and by argument.

On the command line, the first that matches holds:

    --limit 6000                        every result
    --limit 'read_*=20000'              results of tools of these names
    --limit 'read_file[path=*.log]=4000'  of calls with such an argument
    --limit 'get_config=whole'          never cut

In a TOML file (``--config``), after those of the command line:

    [[limits]]
    tool = "read_file"
    arguments = { path = "*.log" }
    chars = 4000            # or "whole"
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

from ullage.core.errors import ConfigError
from ullage.doors.host import answered_by_user, named_tools, plain_tool_name
from ullage.doors.mcp.cutting import WHOLE_CHARS
from ullage.doors.mcp.frames import (
    MOST_FRAME_BYTES,
    UnreadableFrame,
    fields_of,
    value_of,
)
from ullage.policy import LIMIT_CHARS, kind_of

LEAST_CHARS = 500
"""No limit may be under it: a notice has to fit."""

_RULE = re.compile(
    r"(?:(?P<tool>[^=\[\]]+)(?:\[(?P<arguments>[^\]]*)\])?=)?(?P<chars>\w[\w,]*)"
)
_REMEDY = "Write N, TOOL=N, TOOL[ARGUMENT=VALUE]=N, or whole for N; tool and value may hold *"


class LimitRule(Struct, frozen=True, forbid_unknown_fields=True):
    """How much is shown of some tools' results.

    Attributes:
        chars: the most characters; ``"whole"`` for all of them.
        tool: their names, as a shell pattern.
        arguments: what the call's arguments must be, as shell patterns by name.
    """

    chars: int | Literal["whole"]
    tool: str = "*"
    arguments: Mapping[str, str] = {}

    def __post_init__(self) -> None:
        if self.chars != "whole" and self.chars < LEAST_CHARS:
            raise ConfigError(
                "limit",
                f"{self.chars:,} characters leave no room for a notice",
                f"Give at least {LEAST_CHARS:,}.",
            )


class ServerConfig(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A server of several, as clients' own configuration names it.

    Attributes:
        command: the program; "" for a server behind a URL.
        args: its arguments.
        env: variables for it, beside those of this process.
        cwd: the folder it runs in.
        url: where a server speaks streamable HTTP.
        headers: sent with every request to it.
    """

    command: str = ""
    args: Sequence[str] = ()
    env: Mapping[str, str] = {}
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str] = {}

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url):
            raise ConfigError(
                "servers",
                "a server is either a command or a url",
                'Give command = "…" and args = […], or url = "https://…".',
            )


class McpSettings(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The settings of one proxy.

    Attributes:
        limits: the first that matches a call holds; where none does, the kind of the tool
            decides (`ullage.core.contract.kinds`).
        servers: by name, where there are several.
        store: the SQLite file in which what was cut is kept for later sessions; None for a file
            that is gone with this one.
        tenant: under whose name it is kept there.
        user_tools: servers' own tools by which the user answers, beside those that ullage knows;
            their results stay whole where no limit names them.
        credential_headers: with ``--listen``, headers that say whose a request is, beside those
            that are known by their names (``Authorization``, ``Cookie``, ``X-Api-Key``, …).
        whole_chars: see `ullage.doors.mcp.cutting.cut`.
        most_frame_bytes: a longer frame is passed on unread.
    """

    limits: tuple[LimitRule, ...] = ()
    servers: Mapping[str, ServerConfig] = {}
    store: str | None = None
    tenant: str = ""
    user_tools: tuple[str, ...] = ()
    credential_headers: tuple[str, ...] = ()
    whole_chars: int = WHOLE_CHARS
    most_frame_bytes: int = MOST_FRAME_BYTES

    def __post_init__(self) -> None:
        named_tools(self.user_tools)


def rule_of(written: str) -> LimitRule:
    """The rule that an option of the command line writes.

    Raises:
        ConfigError: it writes none.
    """
    match = _RULE.fullmatch(written.strip())
    number = match["chars"].replace(",", "").replace("_", "") if match else ""
    if not match or not (number == "whole" or number.isdecimal()):
        raise ConfigError("limit", f"{written[:60]!r} is no limit", _REMEDY)
    arguments = {}
    for pair in filter(None, (match["arguments"] or "").split(",")):
        name, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(
                "limit", f"{pair[:60]!r} is no argument with a value", _REMEDY
            )
        arguments[name.strip()] = value.strip()
    chars: int | Literal["whole"] = (
        "whole" if number == "whole" else int(number)
    )
    return LimitRule(chars, (match["tool"] or "*").strip(), arguments)


def settings_of(toml: str) -> McpSettings:
    """The settings that a TOML file writes.

    Raises:
        ConfigError: it is not TOML, or writes something else.
    """
    import tomllib

    try:
        return msgspec.convert(tomllib.loads(toml), McpSettings)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ConfigError(
            "config", str(error), "See docs/mcp.md for what it may hold."
        ) from None


def limit_of(
    limits: Sequence[LimitRule],
    tool: str,
    arguments: bytes | Raw | None,
    user_tools: tuple[str, ...] = (),
) -> int | None:
    """The most characters to show of what a call gives; None for all of them.

    Args:
        limits: the rules, the first that matches first.
        tool: the name of the tool.
        arguments: of the call, as JSON.
        user_tools: tools by which the user answers, beside those that are known.
    """
    values: Mapping[str, Any] | None = None
    for rule in limits:
        if not fnmatchcase(tool, rule.tool):
            continue
        if rule.arguments and values is None:
            values = _read(arguments)
        if all(
            _matches((values or {}).get(name), like)
            for name, like in rule.arguments.items()
        ):
            return None if rule.chars == "whole" else rule.chars
    if plain_tool_name(tool) in answered_by_user(user_tools):
        return None
    return LIMIT_CHARS[kind_of(tool)]


def may_cut(
    limits: Sequence[LimitRule], tool: str, user_tools: tuple[str, ...] = ()
) -> bool:
    """Whether a result of a tool may be cut, whatever the arguments of the call.

    Args:
        limits: the rules, the first that matches first.
        tool: the name of the tool.
        user_tools: tools by which the user answers, beside those that are known.
    """
    for rule in limits:
        if not fnmatchcase(tool, rule.tool):
            continue
        if rule.chars != "whole":
            return True
        if not rule.arguments:
            return False
    return plain_tool_name(tool) not in answered_by_user(user_tools)


def _read(arguments: bytes | Raw | None) -> Mapping[str, Any]:
    try:
        return {
            name: value_of(raw)
            for name, raw in fields_of(arguments or b"{}").items()
        }
    except UnreadableFrame:
        return {}


def _matches(value: object, like: str) -> bool:
    """Whether an argument is like a pattern; a number or a truth value as JSON writes it."""
    if value is None:
        return False
    text = (
        value
        if isinstance(value, str)
        else msgspec.json.encode(value).decode()
    )
    return fnmatchcase(text, like)

"""Claude Agent SDK: large results of tools cut before the agent keeps them, and read on.

    ullage = UllageHooks(store="sqlite")
    options = ullage.of("incident-7", ClaudeAgentOptions(allowed_tools=["Bash"]))
    async with ClaudeSDKClient(options) as client: ...

Needs the extra ``claude-agent-sdk``. The loop is in Claude Code, which the SDK runs: Python
sees results, by a hook, and never a request. Whatever else needs room there, `ullage proxy` makes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from ullage import Output, ToolSpec, open_result
from ullage.core.errors import ConfigError, StoreError
from ullage.doors.host import (
    Closing,
    Portable,
    Words,
    answered_by_user,
    cut_text,
    named_tools,
    plain_tool_name,
)
from ullage.integrations._needs import needs
from ullage.policy import DEFAULT, LIMIT_CHARS, kind_of, level
from ullage.stores import Store, open_store

with needs("claude-agent-sdk"):
    from anyio.to_thread import run_sync
    from claude_agent_sdk import (
        ClaudeAgentOptions,
        HookMatcher,
        SdkMcpTool,
        create_sdk_mcp_server,
    )

__all__ = ["UllageHooks"]

_SERVER = "ullage"
_WHOLE = {
    "BASH_MAX_OUTPUT_LENGTH": "150000",
    "MAX_MCP_OUTPUT_TOKENS": "1000000",
}
"""Up to here Claude Code leaves a result to the hooks. The first is the most it takes."""

_Path: TypeAlias = tuple[str | int, ...]
_READ_BY_THE_MODEL: Mapping[str, tuple[_Path, ...]] = {
    "Bash": (("stdout",), ("stderr",)),
    "Grep": (("content",),),
    "WebFetch": (("result",),),
}
"""Where a built-in tool's result has what the model reads of it; all else is for the program. Lines
of `Read` are numbered behind the hooks: in a file that was cut the numbers would be wrong."""


class _Server(dict[str, Any]):
    """Our MCP server among those of some options."""


def _words(server: str) -> Words:
    """The wording of notices, where our server has this name."""
    return Words(prefix=f"mcp__{server}__", toolset=DEFAULT.toolset)


def _free_name(servers: Mapping[str, Any]) -> str:
    """A name for our server that none of these has."""
    name = _SERVER
    number = 1
    while name in servers:
        number += 1
        name = f"{_SERVER}{number}"
    return name


class UllageHooks(Portable, Closing):
    """Cuts the results of tools, for any number of conversations, and opens what was cut.

    Args:
        store: see `ullage.Session`. One on disk opens after a restart what was cut before it.
        limit_chars: the most characters of a result. None: by the kind of tool, judged by its name.
        user_tools: your own tools by which the user answers, as of `ullage.Session`: whole.

    Raises:
        ConfigError: there is no such store, or ``user_tools`` are no names.
        StoreError: the store cannot be opened.
    """

    def __init__(
        self,
        *,
        store: str | Store | None = None,
        limit_chars: int | None = None,
        user_tools: Iterable[str] = (),
    ) -> None:
        self._user_tools = answered_by_user(named_tools(user_tools))
        self._store = open_store(store)
        self._limit_chars = limit_chars

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def of(
        self, conversation: str, options: ClaudeAgentOptions | None = None
    ) -> Any:
        """Options with the hook, and the recall tools with leave to use them.

        The server of the recall tools is called ``ullage``, or ``ullage2`` and so on where you
        have one of that name.

        Args:
            conversation: its name, the same when it is resumed: what was cut in it opens in no
                other.
            options: what the agent is made with beside; they stay as they are.

        Raises:
            ConfigError: the MCP servers are named by a file.
        """
        options = options or ClaudeAgentOptions()
        if not isinstance(options.mcp_servers, dict):
            raise ConfigError(
                "mcp_servers", "a file names them", "Give them as a dict."
            )
        servers = {
            name: server
            for name, server in options.mcp_servers.items()
            if not isinstance(server, _Server)
        }
        name = _free_name(servers)
        words = _words(name)
        hooks = dict(options.hooks or {})
        after = partial(self._after, conversation, words=words)
        matcher = HookMatcher(hooks=[after])
        specs = DEFAULT.toolset.tools
        tools = [
            SdkMcpTool(
                spec.name,
                _description(spec, name),
                dict(spec.parameters),
                partial(self._open, conversation, spec.name, words=words),
            )
            for spec in specs
        ]
        servers[name] = _Server(
            create_sdk_mcp_server(name, tools=tools), alwaysLoad=True
        )
        return replace(
            options,
            hooks={
                **hooks,
                "PostToolUse": [*hooks.get("PostToolUse", ()), matcher],
            },
            mcp_servers=servers,
            allowed_tools=[
                *options.allowed_tools,
                *(words.prefix + spec.name for spec in specs),
            ],
            env={**_WHOLE, **options.env},
        )

    async def _after(
        self,
        conversation: str,
        result: Any,
        tool_use_id: Any,
        context: Any,
        *,
        words: Words,
    ) -> dict[str, Any]:
        """See `HookCallback`: what of a result goes to the model; nothing, where all of it may."""
        tool = result["tool_name"]
        if words.is_recall(tool) or plain_tool_name(tool) in self._user_tools:
            return {}
        response, outputs = _cut(
            tool, result["tool_response"], self._limit_chars, words
        )
        if not outputs:
            return {}
        try:
            await run_sync(self._store.put, conversation, outputs)
        except (
            StoreError
        ) as error:  # what cannot be kept stays whole, and the user is told
            return {"systemMessage": f"ullage: {error}"}
        fields = {
            "hookEventName": "PostToolUse",
            "updatedToolOutput": response,
        }
        return {"hookSpecificOutput": fields}

    async def _open(
        self,
        conversation: str,
        name: str,
        arguments: Mapping[str, Any],
        words: Words | None = None,
    ) -> dict[str, Any]:
        """The answer to a call of a recall tool."""
        words = words or _words(_SERVER)
        ask = partial(
            open_result,
            tenant=conversation,
            words=words,
            is_one_conversation=True,
        )
        answer = await run_sync(
            ask, words.prefix + name, arguments, self._store
        )
        return {
            "content": [{"type": "text", "text": answer.text}],
            "is_error": answer.is_error,
        }


def _description(spec: ToolSpec, server: str) -> str:
    """What the model reads of a tool, and how notices may have named it before."""
    if server == _SERVER:
        return spec.description
    former = _words(_SERVER).prefix + spec.name
    return f"{spec.description}. Earlier notices name it {former}"


def _cut(
    tool: str, response: Any, limit_chars: int | None, words: Words
) -> tuple[Any, list[Output]]:
    """A result of the same shape with shorter texts, and the originals of those."""
    texts = {
        path: text
        for path in _paths(tool, response)
        if (text := _at(response, path))
    }
    name = tool.rpartition("__")[2]
    limit = LIMIT_CHARS[kind_of(name)] if limit_chars is None else limit_chars
    sizes = [len(text) for text in texts.values()]
    outputs = list[Output]()
    if sum(sizes) <= limit:
        return response, outputs
    height = level(sizes, limit)
    for path, text in texts.items():
        cut = cut_text(text, tool=name, limit_chars=height, words=words)
        if cut is not None:
            response = _with(response, path, cut[0])
            outputs.append(cut[1])
    return response, outputs


def _paths(tool: str, response: Any) -> list[_Path]:
    """Where a result has texts that the model reads."""
    if isinstance(response, str):
        return [()]
    if isinstance(response, list):  # the content of an MCP server's result
        return [
            (at, "text")
            for at, block in enumerate(response)
            if "text" in block
        ]
    if isinstance(response, dict) and isinstance(
        response.get("content"), list
    ):
        return [
            ("content", *path) for path in _paths(tool, response["content"])
        ]
    return list(_READ_BY_THE_MODEL.get(tool, ()))


def _at(value: Any, path: _Path) -> str:
    for step in path:
        value = value[step] if isinstance(step, int) else value.get(step)
    return value if isinstance(value, str) else ""


def _with(value: Any, path: _Path, text: str) -> Any:
    """A value with another text at a place; the value itself is not changed."""
    if not path:
        return text
    changed = value.copy()
    changed[path[0]] = _with(value[path[0]], path[1:], text)
    return changed

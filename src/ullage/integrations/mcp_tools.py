"""Tools of an MCP server for `ullage.loop`, through the official SDK, over stdio.

    with mcp_tools([sys.executable, "server.py"]) as tools:
        run_turn(client.chat.completions.create, session, request, tools=tools)

Needs the extra ``mcp-tools``. The server is a process of its own; it ends with the block.
A server's text is passed on whole: what is too long is cut by the session, and can be read on.
"""

from __future__ import annotations

import json
import os
from collections.abc import (
    AsyncIterator,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

from msgspec.structs import replace

from ullage.doors.loop.tools import Returned, Tool
from ullage.integrations._needs import needs

with needs("mcp-tools"):
    from anyio.from_thread import start_blocking_portal
    from mcp import Client, StdioServerParameters
    from mcp.types import (
        CallToolResult,
        ContentBlock,
        EmbeddedResource,
        TextContent,
    )

__all__ = ["amcp_tools", "mcp_tools"]


@asynccontextmanager
async def amcp_tools(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    timeout_s: float | None = None,
) -> AsyncIterator[list[Tool]]:
    """The tools of a server, for `arun_turn`.

    Args:
        command: the program that serves, and its arguments.
        env: variables for it, beside the few that the SDK passes on.
        cwd: the folder it runs in.
        timeout_s: how long one answer may take. None: as long as it likes.

    Raises:
        OSError: the program cannot be started.
    """
    server = StdioServerParameters(
        command=command[0],
        args=list(command[1:]),
        env=None if env is None else dict(env),
        cwd=None if cwd is None else os.fspath(cwd),
    )
    raised: BaseException | None = None
    async with Client(server, read_timeout_seconds=timeout_s) as client:
        tools = await _tools_of(client)
        try:
            yield tools
        except BaseException as error:  # noqa: BLE001
            raised = error  # past the SDK's task groups, which would wrap it in a group
    if raised is not None:
        raise raised


@contextmanager
def mcp_tools(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    timeout_s: float | None = None,
) -> Iterator[list[Tool]]:
    """The same for `run_turn`: the connection lives in a thread. See `amcp_tools`."""
    opened = amcp_tools(command, env=env, cwd=cwd, timeout_s=timeout_s)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(opened) as tools,
    ):

        def blocking(
            run: Callable[[dict[str, Any]], Any],
        ) -> Callable[[dict[str, Any]], Any]:
            return partial(portal.call, run)

        yield [replace(tool, run=blocking(tool.run)) for tool in tools]


async def _tools_of(client: Client) -> list[Tool]:
    tools: list[Tool] = []
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            run = partial(_call, client, tool.name)
            tools.append(
                Tool(tool.name, tool.description or "", tool.input_schema, run)
            )
        cursor = page.next_cursor
        if not cursor:
            return tools


async def _call(
    client: Client, name: str, arguments: dict[str, Any]
) -> Returned:
    result = await client.call_tool(name, arguments)
    return Returned(_text_of(result), is_error=result.is_error)


def _text_of(result: CallToolResult) -> str:
    """What the model reads: the content, or the structured form where that is all there is.

    Servers send the same twice, as text and structured (`proxy-and-mcp` §4); once is enough.
    """
    if not result.content and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n".join(map(_block, result.content))


def _block(block: ContentBlock) -> str:
    """A block as text. Of a picture or sound, that it was there: results here are text."""
    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, EmbeddedResource):
        text = getattr(block.resource, "text", None)
        if isinstance(text, str):
            return text
    fields = block.model_dump(mode="json", by_alias=True, exclude_none=True)
    data = fields.pop("data", None) or fields.get("resource", {}).pop(
        "blob", None
    )
    if data is None:
        return json.dumps(fields, ensure_ascii=False)
    return f"[{block.type}, {len(data):,} characters of base64, not shown: {json.dumps(fields)}]"

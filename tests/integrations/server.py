"""A small MCP server with every kind of answer there is."""

import os

from mcp.server import MCPServer
from mcp.server.mcpserver import Image
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("kinds", log_level="CRITICAL")


@server.tool()
def repeat(text: str, times: int) -> str:
    """Repeat a text."""
    return text * times


@server.tool()
def table(rows: int) -> dict[str, list[int]]:
    """Rows of numbers."""
    return {"rows": list(range(rows))}


@server.tool()
def fail(why: str) -> str:
    """Always fails."""
    raise ToolError(why)


@server.tool()
def picture() -> Image:
    """A picture."""
    return Image(data=b"\x89PNG\r\n", format="png")


@server.tool()
def leave() -> str:
    """Ends the server in the middle of a call."""
    os._exit(3)


if __name__ == "__main__":
    server.run("stdio")

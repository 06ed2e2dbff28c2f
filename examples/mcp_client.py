"""An MCP server whose results are too large, with ullage before it: one line of settings.

python -m examples.mcp_client
"""

from __future__ import annotations

import asyncio
import sys

from mcp import Client, StdioServerParameters
from mcp.types import TextContent

SERVER = [sys.executable, "-m", "examples.meeting_server"]


async def main() -> str:
    """What a client is given of a transcript of 24,591 characters."""
    before_it = [
        "-m",
        "ullage",
        "mcp",
        "--limit",
        "8000",
        "--",
        *SERVER,
    ]  # ullage
    async with Client(
        StdioServerParameters(command=sys.executable, args=before_it)
    ) as client:
        result = await client.call_tool(
            "transcribe_audio", {"path": "meeting.wav"}
        )
        return "".join(
            part.text
            for part in result.content
            if isinstance(part, TextContent)
        )


if __name__ == "__main__":
    print(asyncio.run(main()))

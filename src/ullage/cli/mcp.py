"""``ullage mcp -- SERVER…``: an MCP server whose large results are cut, kept and read on."""

from ullage.mcp.command import command

__all__ = ["command"]

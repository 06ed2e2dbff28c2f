"""`ullage mcp`: one word before an MCP server's command, and its large results are cut and kept.

    client ─▶ relay ─▶ server        frames, one JSON message a line
              │  only tools/list, tools/call and their answers are read; all else is the same bytes
              ▼
              cutting ─▶ store ◀─ recall tools

`frames` to `relay` decide and do no I/O; `stdio` and `web` move the bytes. Nothing here imports the
MCP SDK: a proxy that does not know a method passes it on, and starts in a fifth of the time.
"""

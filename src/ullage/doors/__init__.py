"""What a program comes in by: a wrapped client, the proxy, an MCP server, a loop.

host            the interface of the core to entry points
hidden_turns    recall calls that are answered without the client: its history, restored
exchange        one exchange with a provider's API, without the sockets
wrapping        clients of vendors' SDKs, wrapped
proxy           any program's requests, on their way to a provider
mcp             in front of an MCP server
loop            a reference agent loop
"""

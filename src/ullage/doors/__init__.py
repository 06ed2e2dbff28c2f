"""What a program comes in by: a wrapped client, the proxy, an MCP server, a loop.

host        what a door takes of the core
splice      recall inside: hidden turns
exchange    one exchange with a provider's API, without the sockets
wrapping    a client of a vendor, wrapped
proxy       any program's requests, on their way
mcp         in front of an MCP server
loop        a reference agent loop
"""

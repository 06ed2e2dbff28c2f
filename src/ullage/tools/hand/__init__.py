"""A user's hand from outside a program: what a page, an MCP client or an agent is given of it."""

"""An MCP server on the official SDK, with typed results: ``python typed.py``."""

import sys
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Elicit, Image, Resolve
from pydantic import BaseModel, Field

server = MCPServer("typed", log_level="CRITICAL")


class Row(BaseModel):
    id: int
    name: str
    tags: list[str]


class Table(BaseModel):
    rows: list[Row]
    note: Annotated[str, Field(pattern="^[a-z ]*$")]


@server.tool()
def table(rows: int) -> Table:
    """Rows of a model."""
    made = [Row(id=n, name=f"name {n}", tags=["a", "b"]) for n in range(rows)]
    return Table(rows=made, note="as declared")


@server.tool()
def names(count: int) -> list[str]:
    """A list, which the SDK wraps."""
    return [f"name {n} of many" for n in range(count)]


@server.tool()
def say(text: str, times: int) -> str:
    """A text, which the SDK wraps too."""
    return text * times


@server.tool()
def where(
    region: Annotated[
        str, Field(json_schema_extra={"x-mcp-header": "Region"})
    ],
) -> str:
    """An argument that a request has to say in a header too."""
    return region


class Name(BaseModel):
    name: str


def asked() -> Elicit[Name]:
    return Elicit("Who is there?", Name)


@server.tool()
def greet(who: Annotated[Name, Resolve(asked)]) -> str:
    """Asks the user, as each protocol has it."""
    return f"hello {who.name}"


@server.prompt()
def start(topic: str) -> str:
    """A prompt."""
    return f"about {topic}"


@server.tool()
def picture(kilobytes: int) -> Image:
    """A picture."""
    return Image(data=b"\x89PNG" * 256 * kilobytes, format="png")


@server.tool()
async def slowly(steps: int, context: Context) -> str:
    """Reports its progress."""
    for n in range(steps):
        await context.report_progress(n, steps)
    return "done"


@server.resource("note://one")
def note() -> str:
    """A resource."""
    return "a note"


if __name__ == "__main__":
    if sys.argv[1:]:
        server.run("streamable-http", port=int(sys.argv[1]))
    server.run("stdio")

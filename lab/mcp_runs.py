"""Runs with real MCP servers that answer in large JSON: ``python -m lab.mcp_runs FILE``.

An agent that needs no model works on what four servers give: `make mcp-servers` installs three
(filesystem, git, memory); one for SQLite (`mcp-server-sqlite`) is used where PATH has it. The data
are made up, as exports of business systems are: rows of objects with many columns, most of them
empty, up to 45 kB a result. What the agent does with them is what people do: it picks one row,
works on something else for a few calls, and then uses the row's number, address or name. Which row
that is, a lot decides.

Half of the runs show a result as its text, half as the block that the server sent, in JSON, as some
clients pass it on. The file is one that every replay reads:

    python -m lab.mcp_runs mcp.jsonl
    python -m lab.replay.carried mcp.jsonl --split all --least-tokens 0 --window 200000
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from msgspec import Struct

ROOT = Path(__file__).parents[1]
PLACES = (
    ROOT / ".venv-mcp-servers/bin",
    ROOT / "tests/mcp/node/node_modules/.bin",
)
RUNS = 12
STEPS = 70
_SHEETS = ("orders", "devices", "contacts", "tickets", "shipments")
_COLUMNS = 22
_EMPTY_SHARE = 0.6
_ROWS = (4, 48)
_WAIT_RESULTS = (4, 14)
_USES = 0.7
"""Of the rows that are looked at, so many are used later."""

Row = dict[str, Any]
Message = dict[str, Any]


class Find(Struct, frozen=True):
    """A row that is to be used once so many results more have come.

    Attributes:
        due: the number of the step.
        row: the row.
        sheet: where it stands.
    """

    due: int
    row: Row
    sheet: str


def rows_of(rng: random.Random, sheet: str) -> list[Row]:
    """Rows of a made-up export: an id, an address, a name, and columns that are mostly empty."""
    rows = list[Row]()
    columns = [f"{sheet[:-1]}_{name}" for name in _names(rng, _COLUMNS)]
    empty = {name for name in columns if rng.random() < _EMPTY_SHARE}
    for number in range(rng.randint(*_ROWS)):
        row: Row = {
            "id": f"{sheet[:3].upper()}-{rng.randrange(10**6):06}",
            "contact": f"{rng.choice(_FIRST)}.{rng.randrange(10**4)}@example.org",
            "serial": f"{rng.getrandbits(40):010x}",
            "amount": round(rng.uniform(5, 9_000), 2),
            "position": number,
        }
        for name in columns:
            is_empty = name in empty and rng.random() < 0.95
            row[name] = None if is_empty else _value(rng)
        rows.append(row)
    return rows


_FIRST = ("ana", "bo", "chen", "dara", "edu", "fatou", "goran", "hanna")
_WORDS = (
    *("amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "inlet"),
    *("jetty", "kelp", "lagoon", "marsh", "ochre", "pier", "quay", "reef"),
)


def _names(rng: random.Random, count: int) -> list[str]:
    return [f"{rng.choice(_WORDS)}_{number}" for number in range(count)]


def _value(rng: random.Random) -> Any:
    return rng.choice(
        [
            rng.randrange(1_000),
            f"2026-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}",
            " ".join(rng.sample(_WORDS, 3)),
            rng.random() < 0.5,
        ]
    )


class Desk:
    """A folder with exports, a database of the same rows, and a repository.

    Args:
        folder: where.
        rng: the lot.
    """

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.folder, self.database = folder, folder / "desk.db"
        self.sheets = {
            f"{name}_{part}": rows_of(rng, name)
            for name in _SHEETS
            for part in range(5)
        }
        for name, rows in self.sheets.items():
            (folder / f"{name}.json").write_text(
                json.dumps({"sheet": name, "rows": rows}, indent=1)
            )
        with sqlite3.connect(self.database) as database:
            for name, rows in self.sheets.items():
                names = ", ".join(f'"{column}"' for column in rows[0])
                marks = ", ".join("?" for _ in rows[0])
                database.execute(f"CREATE TABLE {name} ({names})")
                database.executemany(
                    f"INSERT INTO {name} VALUES ({marks})",
                    [list(row.values()) for row in rows],
                )
        _repository(folder, rng)


def _repository(folder: Path, rng: random.Random) -> None:
    """Forty commits with long messages."""
    said = [" ".join(rng.choices(_WORDS, k=60)) for _ in range(40)]
    commits = (
        f"commit HEAD\ncommitter a <a@b> 0 +0000\ndata {len(text)}\n{text}\n"
        for text in said
    )
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    subprocess.run(
        ["git", "-C", str(folder), "fast-import", "--quiet"],
        input="".join(commits),
        text=True,
        check=True,
    )


class Agent:
    """Works through sheets, and uses what it saw some results ago.

    Args:
        clients: by the name of the server.
        desk: what the servers see.
        rng: the lot.
        shows_block: whether a result stands as the block that the server sent.
    """

    def __init__(
        self,
        clients: Mapping[str, Client],
        desk: Desk,
        rng: random.Random,
        *,
        shows_block: bool,
    ) -> None:
        self.messages: list[Message] = [
            {
                "role": "user",
                "content": "Go through the exports. Note every case that needs a letter.",
            }
        ]
        self._clients, self._desk, self._rng = clients, desk, rng
        self._shows_block = shows_block
        self._due: list[Find] = []
        self._step = 0

    async def work(self, steps: int) -> None:
        """So many calls."""
        for self._step in range(steps):
            ready = [find for find in self._due if find.due <= self._step]
            if ready:
                self._due.remove(ready[0])
                await self._use(ready[0])
            else:
                await self._look()

    async def _look(self) -> None:
        """Read a sheet, a part of the database, the folder, the graph, or the log."""
        name = self._rng.choice([*self._desk.sheets])
        rows = self._desk.sheets[name]
        folder = self._desk.folder
        reads: list[tuple[str, str, Row, bool]] = [
            (
                "filesystem",
                "read_text_file",
                {"path": str(folder / f"{name}.json")},
                True,
            )
        ] * 5
        reads += [
            ("filesystem", "directory_tree", {"path": str(folder)}, False),
            ("memory", "read_graph", {}, False),
            (
                "git",
                "git_log",
                {"repo_path": str(folder), "max_count": 20},
                False,
            ),
        ]
        query = {"query": f"SELECT * FROM {name} ORDER BY amount DESC"}
        reads += [("sqlite", "read_query", query, True)] * 3
        reads = [read for read in reads if read[0] in self._clients]
        server, tool, arguments, has_rows = self._rng.choice(reads)
        await self._call(server, tool, arguments, f"I look at {name}.")
        if has_rows and self._rng.random() < _USES:
            due = self._step + self._rng.randint(*_WAIT_RESULTS)
            self._due.append(Find(due, self._rng.choice(rows), name))

    async def _use(self, find: Find) -> None:
        """Write down what a row says, or ask for more of it."""
        row = find.row
        facts = [f"{name}: {row[name]}" for name in ("contact", "serial")]
        if self._rng.random() < 0.5:
            entity = {
                "name": row["id"],
                "entityType": find.sheet,
                "observations": facts,
            }
            await self._call(
                "memory",
                "create_entities",
                {"entities": [entity]},
                f"Position {row['position']} of {find.sheet} needs a letter.",
            )
        else:
            letter = "\n".join([f"To {row['contact']}", row["id"], *facts])
            await self._call(
                "filesystem",
                "write_file",
                {
                    "path": str(
                        self._desk.folder / f"letter_{self._step}.txt"
                    ),
                    "content": letter,
                },
                f"I write to the contact at position {row['position']} of {find.sheet}.",
            )

    async def _call(
        self, server: str, tool: str, arguments: Row, said: str
    ) -> None:
        result = await self._clients[server].call_tool(tool, arguments)
        texts = [getattr(block, "text", "") for block in result.content]
        text = "\n".join(texts)
        if self._shows_block:
            blocks = [{"type": "text", "text": text} for text in texts]
            text = json.dumps(blocks)
        name = f"mcp__{server}__{tool}"
        call_id = f"call_{self._step}"
        function = {"name": name, "arguments": json.dumps(arguments)}
        self.messages += [
            {
                "role": "assistant",
                "content": said,
                "tool_calls": [
                    {"id": call_id, "type": "function", "function": function}
                ],
            },
            {"role": "tool", "tool_call_id": call_id, "content": text},
        ]


def _servers(desk: Desk) -> Iterator[tuple[str, Sequence[str]]]:
    """The servers that are installed, and how each is started."""
    path = os.pathsep.join((*map(str, PLACES), os.environ["PATH"]))
    words = {
        "filesystem": ("mcp-server-filesystem", str(desk.folder)),
        "git": ("mcp-server-git",),
        "memory": ("mcp-server-memory",),
        "sqlite": ("mcp-server-sqlite", "--db-path", str(desk.database)),
    }
    for name, (program, *arguments) in words.items():
        found = shutil.which(program, path=path)
        if found is not None:
            yield name, [found, *arguments]


@asynccontextmanager
async def opened(desk: Desk) -> AsyncIterator[dict[str, Client]]:
    """A client of each server."""
    env = dict(os.environ)
    env["MEMORY_FILE_PATH"] = str(desk.folder / "memory.json")
    async with AsyncExitStack() as stack:
        clients = dict[str, Client]()
        for name, (command, *args) in _servers(desk):
            parameters = StdioServerParameters(
                command=command, args=args, env=env
            )
            clients[name] = await stack.enter_async_context(Client(parameters))
        yield clients


async def run_of(number: int) -> dict[str, Any]:
    """One run, as a trajectory."""
    rng = random.Random(number)
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder), rng)
        async with opened(desk) as clients:
            agent = Agent(clients, desk, rng, shows_block=number % 2 == 1)
            await agent.work(STEPS)
            names = sorted(clients)
    return {
        "id": f"mcp-{number}",
        "source": "lab.mcp_runs",
        "kind": "mcp",
        "model": "gpt-4.1",
        "task": f"desk {number}, with {', '.join(names)}",
        "format": "openai-chat",
        "messages": agent.messages,
    }


def main() -> None:
    """Make the runs, a line each."""
    with Path(sys.argv[1]).open("w") as file:
        for number in range(RUNS):
            run = anyio.run(run_of, number)
            file.write(json.dumps(run) + "\n")
            chars = sum(len(each["content"] or "") for each in run["messages"])
            print(f"{run['task']}: {chars:,} characters")


if __name__ == "__main__":
    main()

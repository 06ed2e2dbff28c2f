"""The coding agents that `ullage run` names, without ullage and behind it: a table of both.

    ULLAGE_AGENTS=FOLDER/node_modules/.bin python -m lab.clients [NAME …]

Each agent that is installed (`tests.coding_agents` says how) is asked one thing, alone and behind
`ullage run`, before a scripted vendor at the vendor's own address. Printed are the bytes and the
tools of its first request, what else is other in it or in a session that it resumes, and the window
that Claude Code tells by ``/context``. Exit status 1 if anything but our tools is other.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.coding_agents import (
    AGENTS,
    CodingAgent,
    messages_of,
    tools_of,
    world,
)
from tests.servers import Captured, Reply

OF_A_RUN = frozenset(
    (
        *(
            "host",
            "content-length",
            "connection",
            "accept-encoding",
            "traceparent",
            "baggage",
        ),
        *("user-agent", "x-ullage"),
    )
)
"""Headers of a connection, or made anew for each run."""

TITLES = {
    "claude": "Claude Code",
    "codex": "Codex",
    "gemini": "Gemini CLI",
    "qwen": "Qwen Code",
}
_WINDOW = re.compile(r"\*\*Tokens:\*\* [^/]*/ (\S+)")


class Seen(NamedTuple):
    """What was seen of an agent: its first request, its resumed one, and its window if it tells."""

    first: Captured
    resumed: Captured
    window: str


def seen(agent: CodingAgent, folder: Path, *, is_behind: bool) -> Seen:
    """Run an agent twice, the second time to go on. Raises RuntimeError if it does not end well."""
    with world(
        agent, lambda _: Reply("All is well."), folder, is_behind=is_behind
    ) as there:
        first = there.run(agent.asked("Hello."))
        begun = len(there.server.requests)
        again = there.run(agent.asked("Again.", resumes=True))
        if first.status or again.status:
            raise RuntimeError(f"{agent.name}: {first.errors}{again.errors}")
        requests = list(there.server.requests)
        window = ""
        if agent.name == "claude":
            told = _WINDOW.search(
                there.run(["claude", "-p", "/context"]).output
            )
            window = told[1] if told else ""
    largest = max(requests[:begun], key=lambda request: len(request.raw))
    return Seen(
        largest,
        max(requests[begun:], key=lambda request: len(request.raw)),
        window,
    )


def other(alone: Captured, behind: Captured) -> list[str]:
    """What is other in a request behind ullage, besides its tools and what each run makes anew."""
    words = [
        f"field `{name}`" for name in sorted({*alone.body} ^ {*behind.body})
    ]
    headers = ({*alone.headers} ^ {*behind.headers}) - OF_A_RUN
    words += [f"header `{name}`" for name in sorted(headers)]
    if alone.headers.get("anthropic-beta") != behind.headers.get(
        "anthropic-beta"
    ):
        words.append("`anthropic-beta`")
    if alone.body.get("model") != behind.body.get("model"):
        words.append("the model")
    if alone.path != behind.path:
        words.append("the path")
    return words


def row(agent: CodingAgent) -> str:
    """An agent's line of the table."""
    with tempfile.TemporaryDirectory() as folder:
        alone = seen(agent, Path(folder, "alone"), is_behind=False)
        behind = seen(agent, Path(folder, "behind"), is_behind=True)
    added = [
        name
        for name in tools_of(behind.first)
        if name not in tools_of(alone.first)
    ]
    lost = [
        name
        for name in tools_of(alone.first)
        if name not in tools_of(behind.first)
    ]
    words = other(alone.first, behind.first) + [
        f"lost: {name}" for name in lost
    ]
    resumed = [len(messages_of(each.resumed)) for each in (alone, behind)]
    if resumed[0] != resumed[1]:
        words.append(f"messages resumed: {resumed[0]}, {resumed[1]}")
    if alone.window != behind.window:
        words.append(f"window: {alone.window}, {behind.window}")
    cells = (
        f"{TITLES.get(agent.name, agent.name)} {agent.version()}",
        *(f"{len(each.first.raw):,}" for each in (alone, behind)),
        *(str(len(tools_of(each.first))) for each in (alone, behind)),
        ", ".join(f"`{name}`" for name in added) or "nothing",
        "; ".join(words)
        or "equal" + (f"; window of {alone.window}" if alone.window else ""),
    )
    return f"| {' | '.join(cells)} |"


def main(names: list[str]) -> int:
    """Print the table of some agents, or all; the exit status."""
    print(
        "| agent | bytes | behind ullage | tools | behind ullage | added | all else |"
    )
    print("|---|--:|--:|--:|--:|---|---|")
    is_equal = True
    for name in names or list(AGENTS):
        agent = AGENTS[name]
        if agent.program is None:
            print(f"| {name} | not installed | | | | | |")
            continue
        line = row(agent)
        is_equal = is_equal and "| equal" in line
        print(line, flush=True)
    return 0 if is_equal else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What ullage weighs, in milliseconds and megabytes: ``python -m lab.bench.weight``.

Each use runs in fresh processes with compiled bytecode: CPU time of the process, the least of
several, less that of bare Python; the most memory it held, and what of it is its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

REPEATS = 7
KILOBYTES = 200

FIT = """
import json, sys
import ullage
from pathlib import Path
request = json.loads(Path({path!r}).read_text())
ullage.Session({model!r}, limits=ullage.Limits(window_tokens={window})).fit(request)
"""
FORWARD = """
import ullage.policy.stages.truncate
import ullage.session.recall.dispatch
import ullage.stores.sqlite
"""

_MEASURE = """
import json, os, resource, sys
exec(sys.argv[1])
used = resource.getrusage(resource.RUSAGE_SELF)
status, proportional = {}, None
try:
    with open("/proc/self/status") as file:
        status = dict(line.split(":", 1) for line in file)
    with open("/proc/self/smaps_rollup") as file:
        proportional = next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
except OSError:
    pass
peak = int(status["VmHWM"].split()[0]) if "VmHWM" in status else used.ru_maxrss
print(json.dumps([used.ru_utime + used.ru_stime, peak, proportional]))
"""


def request(model: str) -> dict[str, object]:
    """A request of `KILOBYTES` in an agent's shape: calls, and results of a few kilobytes."""
    claude = model.startswith("claude")
    messages: list[dict[str, object]] = [
        {"role": "user", "content": "Why does the build fail?"}
    ]
    lines = "".join(
        f"src/module_{at}.py:{at}: def handler_{at}(request):\n"
        for at in range(80)
    )
    for at in range(KILOBYTES * 1_000 // (len(lines) + 250)):
        call, path = f"call_{at}", {"path": f"src/part_{at}"}
        if claude:
            use = {
                "type": "tool_use",
                "id": call,
                "name": "grep",
                "input": path,
            }
            result = {
                "type": "tool_result",
                "tool_use_id": call,
                "content": f"{at}\n{lines}",
            }
            messages.append({"role": "assistant", "content": [use]})
            messages.append({"role": "user", "content": [result]})
        else:
            function = {"name": "grep", "arguments": json.dumps(path)}
            use = {"id": call, "type": "function", "function": function}
            messages.append(
                {"role": "assistant", "content": None, "tool_calls": [use]}
            )
            messages.append(
                {
                    "role": "tool",
                    "tool_call_id": call,
                    "content": f"{at}\n{lines}",
                }
            )
    limits = {"max_tokens": 4_000} if claude else {}
    return {"model": model, "messages": messages, **limits}


def uses(folder: Path) -> dict[str, str]:
    """The code of each use by its name."""
    found = {
        "nothing": "",
        "import ullage": "import ullage",
        "ullage.Session": "import ullage; ullage.Session",
        "truncate, recall and an SQLite store": FORWARD,
    }
    for model in ("claude-opus-4-5", "gpt-4.1"):
        path = folder / f"{model}.json"
        path.write_text(json.dumps(request(model)), encoding="utf-8")
        for what, window in (
            ("below its window", 200_000),
            ("over it", 40_000),
        ):
            code = FIT.format(path=str(path), model=model, window=window)
            found[f"one fit of {KILOBYTES} KB, {model}, {what}"] = code
    return found


def measured(code: str, cache: Path) -> tuple[float, float, float | None]:
    """Milliseconds of CPU, most memory and proportional memory in MB, of a fresh process."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(cache)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    runs = []
    for _ in range(REPEATS + 1):  # the first writes the bytecode
        done = subprocess.run(
            [sys.executable, "-c", _MEASURE, code],
            capture_output=True,
            check=True,
            text=True,
            env=environment,
        )
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    seconds, peak, proportional = (
        min(column) if None not in column else None
        for column in zip(*runs[1:], strict=True)
    )
    assert seconds is not None
    assert peak is not None
    return seconds * 1e3, peak / 1e3, proportional and proportional / 1e3


def main() -> None:
    table = Table(title="over bare Python (whole process)")
    for heading in ("use", "CPU, ms", "most memory, MB", "its share, MB"):
        table.add_column(
            heading, justify="left" if heading == "use" else "right"
        )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bare: tuple[float, float, float | None] | None = None
        for use, code in uses(folder).items():
            numbers = measured(code, folder / "bytecode")
            bare = bare or numbers
            cells = [
                "–"
                if number is None or less is None
                else f"{number - less:.1f} ({number:.1f})"
                for number, less in zip(numbers, bare, strict=True)
            ]
            table.add_row(use, *cells)
    console = Console()
    console.width = max(console.width, 110)
    console.print(table)


if __name__ == "__main__":
    main()

"""What a stored conversation costs: ``python -m lab.bench.conversations``, part of ``make bench``.

A conversation of 10,000 messages (5,000 calls with results of 400 characters), among others of
the same file, is written, compacted near its end, and loaded: from its boundary, and whole.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from lab.bench.figures import Figure, of_times, table, timed_ms
from ullage.documents.conversation import ConversationStore

MESSAGES, OTHERS, KEPT = 10_000, 20, 100
GROUP = (
    f"A conversation of {MESSAGES:,} messages in SQLite (bench.conversations)"
)
BOUNDARY_TARGET_MS = 10


def measure() -> Iterator[Figure]:
    """Every figure; some ten seconds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chat.db"
        store = ConversationStore(path)
        messages = conversation()
        for number in range(OTHERS):
            store.append(f"other {number}", messages[:1_000])
        batches = [messages[at : at + 2] for at in range(1, MESSAGES, 2)]
        ids = list(store.append("s", messages[:1]))
        for batch in batches[:-200]:
            ids += store.append("s", batch)
        last = [
            timed_ms(lambda b=batch: ids.extend(store.append("s", b)))
            for batch in batches[-200:]
        ]
        yield of_times(GROUP, "append a call and its result", last)
        whole = [timed_ms(lambda: store.load("s")) for _ in range(5)]
        yield of_times(GROUP, "load, nothing compacted", whole)
        yield Figure(
            GROUP,
            "mark as compacted all before the boundary",
            timed_ms(
                lambda: store.mark_compacted(
                    ids[-KEPT], "a summary", tokens=1_000_000
                )
            ),
        )
        times = [timed_ms(lambda: store.load("s")) for _ in range(100)]
        yield of_times(
            GROUP,
            f"load the last {KEPT} from the boundary",
            times,
            BOUNDARY_TARGET_MS,
        )
        yield of_times(
            GROUP,
            "open the file",
            [timed_ms(lambda: ConversationStore(path)) for _ in range(20)],
        )
        yield Figure(
            GROUP,
            "the file, per message",
            path.stat().st_size / (MESSAGES + OTHERS * 1_000),
            unit="bytes",
        )


def conversation() -> list[dict[str, Any]]:
    """One question, and calls with their results."""
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Find the fault."}
    ]
    for number in range(MESSAGES // 2):
        function = {"name": "read", "arguments": f'{{"path": "{number}.log"}}'}
        call = {
            "id": f"call_{number}",
            "type": "function",
            "function": function,
        }
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {
                "role": "tool",
                "tool_call_id": call["id"],
                "content": f"{number} is fine. " * 25,
            },
        ]
    return messages


def main() -> None:
    """Measure and print."""
    Console().print(table(GROUP, list(measure())))


if __name__ == "__main__":
    main()

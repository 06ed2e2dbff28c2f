"""An MCP server on stdio with one tool, whose result is far too long to read at once.

`transcribe_audio` gives the transcript of a meeting: 24,591 characters, the same every time.
The decisions are spread over it, so that its first page does not tell them all.
"""

from __future__ import annotations

from itertools import cycle, islice

from mcp.server import MCPServer

TRANSCRIPT_CHARS = 24_591

_DECISIONS = (
    "We move the launch to the ninth of March.",
    "Rosa owns the migration of the billing tables.",
    "The old importer stays for one more release.",
    "We drop support for the XML feed.",
    "Jun writes the notice to customers by Friday.",
)
_TALK = (
    (
        "Rosa",
        "The billing tables are larger than we thought, some rows are twelve years old.",
    ),
    (
        "Jun",
        "I asked three customers. Two of them have never seen the old importer.",
    ),
    (
        "Amadou",
        "Then let us go through the open questions one after the other.",
    ),
    ("Rosa", "If we copy at night, the lock is held for less than a minute."),
    (
        "Amadou",
        "What happens to the requests that come in during that minute?",
    ),
    ("Jun", "They wait. I measured it: the slowest took four seconds."),
    (
        "Amadou",
        "That is fine for the night, but not for the Monday after a launch.",
    ),
)
_TURNS_BETWEEN_DECISIONS = 50

server = MCPServer("meeting", log_level="WARNING")


def transcript() -> str:
    """What was said, one line a turn, cut to its length in the middle of a word if need be."""
    decisions = iter(_DECISIONS)
    lines = []
    for number, (speaker, words) in enumerate(islice(cycle(_TALK), 400), 1):
        lines.append(
            f"[{number // 6:02}:{number % 6 * 10:02}] {speaker}: {words}"
        )
        if number % _TURNS_BETWEEN_DECISIONS == 0:
            lines += [
                f"Decision: {decision}" for decision in islice(decisions, 1)
            ]
    return "\n".join(lines)[:TRANSCRIPT_CHARS]


@server.tool()
def transcribe_audio(path: str) -> str:
    """Transcribe the recording of a meeting.

    Args:
        path: the recording, such as ``meeting.wav``.
    """
    return transcript()


if __name__ == "__main__":
    server.run("stdio")

"""The one tool of the programs beside this: it reads a file, however long."""

from __future__ import annotations

from pathlib import Path
from typing import Any

NAME, SAYS = "read_file", "Reads a text file."
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
}


def read_file(path: str) -> str:
    """Reads a text file."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return f"error: {error.strerror}"

"""A recording of real replies: written as they come, read again in their place.

A file of JSON lines. The first tells what was asked of whom; each of the others is one thing that
came from outside, a reply or a tool's result. Nothing that was sent is in it
but a digest of each request, and no key. A run that goes on where it stopped first takes what the
file holds, in order, then asks on.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from demo.providers import AskError

__all__ = ["Recording"]


class Recording:
    """What came from outside, in order, of each run by its name.

    Args:
        path: the file; made when the first thing comes.
        head: what was asked of whom. A file that tells otherwise is refused.

    Attributes:
        unlike: replies taken from the file though another request was sent for them.
        is_used: whether anything was taken from the file.

    Raises:
        AskError: the file is no recording, or one of something else.
    """

    def __init__(self, path: Path, head: dict[str, Any]) -> None:
        self.path, self._head = path, head
        self.unlike = 0
        self._come: dict[str, deque[dict[str, Any]]] = {}
        self._is_begun = path.exists() and path.stat().st_size > 0
        if self._is_begun:
            told, *lines = _lines(path)
            _check(path, told, head)
            for line in lines:
                self._come.setdefault(line["run"], deque()).append(line)
        self.is_used = any(self._come.values())

    @staticmethod
    def head_of(path: Path) -> dict[str, Any]:
        """What was asked of whom, as a file tells.

        Raises:
            AskError: there is no such file, or it is no recording.
        """
        if not path.exists():
            raise AskError(f"There is no recording at {path}.", status=2)
        return _lines(path)[0]

    def taken(
        self, run: str, kind: str, make: Callable[[], Any], digest: str = ""
    ) -> Any:
        """What came next in a run: of the file, or else made now and written down.

        Args:
            run: the name of the run.
            kind: ``"reply"`` or ``"result"``.
            make: asks for it; gives JSON values.
            digest: of the request that a reply is for.

        Raises:
            AskError: the file has something of another kind here: it is of another version.
        """
        come = self._come.get(run)
        if come:
            line = come.popleft()
            if kind not in line:
                raise AskError(
                    f"{self.path} does not go on as this version does: delete it to ask anew."
                )
            self.unlike += line.get("of", digest) != digest
            return line[kind]
        value = make()
        self._write(
            {"run": run, kind: value, **({"of": digest} if digest else {})}
        )
        return value

    def _write(self, line: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            if not self._is_begun:
                file.write(_bytes(self._head))
                self._is_begun = True
            file.write(_bytes(line))


def _lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a recording; a last one that was torn off is cut from the file."""
    whole, _, torn = path.read_bytes().rpartition(b"\n")
    try:
        lines = [json.loads(line) for line in whole.split(b"\n")]
    except ValueError:
        lines = []
    if not lines or not isinstance(lines[0], dict) or "model" not in lines[0]:
        raise AskError(f"{path} is no recording of the demo.", status=2)
    if torn:
        with path.open("r+b") as file:
            file.truncate(len(whole) + 1)
    return lines


def _bytes(line: dict[str, Any]) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def _check(path: Path, told: dict[str, Any], head: dict[str, Any]) -> None:
    other = [
        f"{name} {told.get(name)!r}, not {head[name]!r}"
        for name in head
        if told.get(name) != head[name]
    ]
    if other:
        raise AskError(
            f"{path} was recorded with {', '.join(other)}: ask the same, or give another "
            "RECORDING=.",
            status=2,
        )

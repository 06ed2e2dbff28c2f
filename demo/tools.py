"""Three real tools over the Python source of this machine.

``list_dir``, ``read_file`` and ``search`` look below two named roots, ``stdlib/`` and
``site/`` (the installed packages), and nowhere else. No machine path is ever shown. What they
return depends on the files alone: stable order, no times, no sizes of compiled files. They
are as talkative as real tools: a whole file with line numbers, every hit of a search.
"""

from __future__ import annotations

import json
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import re2
import rich

__all__ = ["MAX_HITS", "SPECS", "ToolError", "Tools", "default_roots"]

MAX_HITS = 1_000

_HIDDEN_FOLDERS = (
    "test",
    "tests",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "turtledemo",
)
_HIDDEN_INSTALLS = ("__pycache__", "dist-packages", "site-packages")
_HIDDEN_FILES = ("sitecustomize.py", "usercustomize.py")
_HIDDEN = frozenset((*_HIDDEN_FOLDERS, *_HIDDEN_INSTALLS, *_HIDDEN_FILES))
_HIDDEN_STARTS = (".", "_sysconfigdata", "__editable__", "_editable")


def _spec(
    name: str, description: str, required: list[str], **properties: str
) -> dict[str, Any]:
    """One tool definition in the Chat Completions format; ``properties`` are name → type."""
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": {
                    key: {"type": kind} for key, kind in properties.items()
                },
                "required": required,
            },
        },
    }


SPECS: list[dict[str, Any]] = [
    _spec(
        "list_dir",
        "List a folder. Paths start with stdlib/ (the Python standard library) or site/ "
        "(installed packages); '.' lists the roots. Tests are left out.",
        ["path"],
        path="string",
    ),
    _spec(
        "read_file",
        "Read a Python file with line numbers, whole or from start_line to end_line.",
        ["path"],
        path="string",
        start_line="integer",
        end_line="integer",
    ),
    _spec(
        "search",
        "Search the Python files below a path by regular expression. Every hit is shown as "
        f"path:line:text, up to {MAX_HITS:,}.",
        ["pattern", "path"],
        pattern="string",
        path="string",
    ),
]


class ToolError(Exception):
    """What a tool tells the model instead of a result."""


def default_roots() -> dict[str, Path]:
    """The standard library of this interpreter, and the folder its packages are installed in."""
    return {
        "stdlib": Path(sysconfig.get_path("stdlib")),
        "site": Path(rich.__file__).parents[1],
    }


class Tools:
    """The tools and the files they have read.

    Args:
        roots: the folders that may be read, by the name they are shown under.
    """

    def __init__(self, roots: Mapping[str, Path] | None = None) -> None:
        roots = default_roots() if roots is None else roots
        self._roots = {name: path.resolve() for name, path in roots.items()}
        self._files: dict[Path, bytes] = {}

    def run(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """Run one tool call of an assistant message; returns the tool message to append."""
        function = call["function"]
        try:
            content = self._dispatch(
                function["name"], json.loads(function["arguments"])
            )
        except (ToolError, ValueError, OSError) as error:
            content = f"error: {error if isinstance(error, ToolError) else 'of these arguments'}"
        return {"role": "tool", "tool_call_id": call["id"], "content": content}

    def _dispatch(self, name: str, arguments: dict[str, Any]) -> str:
        tool: dict[str, Callable[..., str]] = {
            "list_dir": self.list_dir,
            "read_file": self.read_file,
            "search": self.search,
        }
        if name not in tool:
            raise ToolError(f"there is no tool {name!r}")
        try:
            return tool[name](**arguments)
        except TypeError:
            raise ToolError(
                f"{name} does not take these arguments: {sorted(arguments)}"
            ) from None

    def list_dir(self, path: str) -> str:
        """The entries of a folder, sorted, folders with a slash, files with their bytes.

        Raises:
            ToolError: no such folder, or outside the roots.
        """
        if path.strip("/") in ("", "."):
            return "".join(f"{name}/\n" for name in sorted(self._roots))
        folder = self._resolve(path)
        if not folder.is_dir():
            raise ToolError(f"{path} is not a folder")
        entries = [self._entry(child) for child in self._children(folder)]
        return "".join(f"{entry}\n" for entry in entries) or "(nothing here)\n"

    def read_file(
        self, path: str, start_line: int = 1, end_line: int | None = None
    ) -> str:
        """The lines of a file, each as ``number|text``, numbers right-aligned to six places.

        Args:
            path: the file, under a root.
            start_line: the first line, from 1.
            end_line: the last line, included; None for the end of the file.

        Raises:
            ToolError: no such file, or outside the roots.
        """
        file = self._resolve(path)
        if file.is_dir():
            raise ToolError(f"{path} is a folder; try list_dir")
        if not self._is_shown(file):
            beside = file.with_suffix("")
            hint = (
                f"; there is a folder {path[:-3]}/" if beside.is_dir() else ""
            )
            raise ToolError(f"{path} does not exist{hint}")
        lines = (
            self._bytes(file)
            .decode("utf-8", "replace")
            .replace("\r\n", "\n")
            .split("\n")
        )
        if not lines[-1]:
            lines.pop()
        first = max(start_line, 1)
        chosen = lines[first - 1 : end_line]
        numbered = [
            f"{number:6d}|{line}\n"
            for number, line in enumerate(chosen, first)
        ]
        return "".join(numbered) or f"({path} has {len(lines)} lines)\n"

    def search(self, pattern: str, path: str) -> str:
        """Every line below ``path`` that matches, as ``path:line:text``, files in path order.

        The engine is linear in time, because the pattern comes from a model.

        Raises:
            ToolError: the pattern is not valid, no such path, or outside the roots.
        """
        try:
            regex = re2.compile(f"(?m){pattern}".encode())
        except re2.error:
            raise ToolError(
                f"{pattern!r} is not a regular expression of RE2"
            ) from None
        start = self._resolve(path)
        if not start.exists():
            raise ToolError(f"{path} does not exist")
        hits, files = [], 0
        for file in [start] if start.is_file() else self._walk(start):
            found = list(self._hits(file, regex))
            hits += found
            files += bool(found)
        shown = "".join(f"{hit}\n" for hit in hits[:MAX_HITS])
        left = (
            f"({len(hits) - MAX_HITS} more hits not shown)\n"
            if len(hits) > MAX_HITS
            else ""
        )
        return f"{len(hits)} hits in {files} files\n{shown}{left}"

    def _hits(self, file: Path, regex: Any) -> Iterator[str]:
        data = self._bytes(file)
        name, line, at, last = self._name(file), 1, 0, -1
        for match in regex.finditer(data):
            # a pattern that starts with \s* may begin on the blank lines before
            begin = match.end() - len(match.group().lstrip())
            line += data.count(b"\n", at, begin)
            at = begin
            if line != last:
                last = line
                start = data.rfind(b"\n", 0, begin) + 1
                stop = data.find(b"\n", begin)
                text = data[start : stop if stop >= 0 else len(data)]
                yield f"{name}:{line}:{text.decode('utf-8', 'replace').rstrip()}"

    def _resolve(self, path: str) -> Path:
        parts = PurePosixPath(path).parts
        if not parts or parts[0] not in self._roots:
            raise ToolError(
                f"{path!r} is outside the roots: {', '.join(sorted(self._roots))}"
            )
        root = self._roots[parts[0]]
        real = root.joinpath(*parts[1:]).resolve()
        if not real.is_relative_to(root):
            raise ToolError(f"{path!r} leads outside the roots")
        if any(map(_hidden, real.relative_to(root).parts)):
            raise ToolError(f"{path} does not exist")
        return real

    def _name(self, file: Path) -> str:
        """The path as it is shown: the root's name and what follows."""
        for name, root in self._roots.items():
            if file.is_relative_to(root) and not _hidden(
                file.relative_to(root).parts[0]
            ):
                return f"{name}/{file.relative_to(root).as_posix()}"
        raise ToolError("outside the roots")

    def _children(self, folder: Path) -> list[Path]:
        """Folders and Python files of a folder, by name; links are not followed."""
        return sorted(
            child
            for child in folder.iterdir()
            if not _hidden(child.name)
            and not child.is_symlink()
            and (child.is_dir() or child.suffix == ".py")
        )

    def _walk(self, folder: Path) -> Iterator[Path]:
        for child in self._children(folder):
            if child.is_dir():
                yield from self._walk(child)
            else:
                yield child

    def _entry(self, child: Path) -> str:
        return (
            f"{child.name}/"
            if child.is_dir()
            else f"{child.name}  {child.stat().st_size:,}"
        )

    def _is_shown(self, file: Path) -> bool:
        return file.is_file() and file.suffix == ".py"

    def _bytes(self, file: Path) -> bytes:
        if file not in self._files:
            self._files[file] = file.read_bytes()
        return self._files[file]


def _hidden(name: str) -> bool:
    return name in _HIDDEN or name.startswith(_HIDDEN_STARTS)

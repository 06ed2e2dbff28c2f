"""Names that nothing in ``src`` uses: ``python -m lab.unused``. A suspect, not a verdict.

A name counts as used where it is read, called, imported, given as a keyword or listed in text
(``on_demand``); its own definition and ``__all__`` do not count. Public names and what only tests
use are marked.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
_WORD = re.compile(r"\w+")


def defined(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(
            node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        ):
            yield node.name, node.lineno
            if isinstance(node, ast.ClassDef):
                fields = (
                    each
                    for each in node.body
                    if isinstance(each, ast.AnnAssign)
                )
                yield from (
                    (f.target.id, f.lineno)
                    for f in fields
                    if isinstance(f.target, ast.Name)
                )
    for node in tree.body if isinstance(tree, ast.Module) else ():
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [getattr(node, "target", None)]
        )
        yield from (
            (t.id, node.lineno) for t in targets if isinstance(t, ast.Name)
        )


def used(tree: ast.AST, *, listed: bool) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)
        elif (
            listed
            and isinstance(node, ast.Constant)
            and isinstance(node.value, str)
        ):
            yield from _WORD.findall(node.value)


def main() -> None:
    trees = {}
    for top in ("src", "lab", "tests", "demo", "examples"):
        for file in (ROOT / top).rglob("*.py"):
            trees[file] = ast.parse(file.read_text(encoding="utf-8"))
    inside, outside = Counter[str](), Counter[str]()
    for file, tree in trees.items():
        is_ours = "src" in file.relative_to(ROOT).parts[:1]
        (inside if is_ours else outside).update(used(tree, listed=False))
    for file, tree in sorted(trees.items()):
        if file.relative_to(ROOT).parts[0] != "src":
            continue
        for name, line in defined(tree):
            if name.startswith("__") or inside[name]:
                continue
            who = "tests, lab or demo alone" if outside[name] else "nobody"
            print(f"{file.relative_to(ROOT)}:{line} {name}: {who}")


if __name__ == "__main__":
    main()

"""The words that users read, checked: ``python -m lab.words``, a part of ``make check``.

codespell knows misspellings, and ``words.txt`` the phrases that `CONTRIBUTING.md` asks to leave
out, each with what to write. It is shown what people read: the documentation, and of Python the
docstrings of public names and the messages, without code and comments. What a model reads is left
out: notices change with a replay before and after alone.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORDS = Path(__file__).with_suffix(".txt")
READ = (
    "README.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "docs",
    "examples",
    "deploy",
    "src",
)
READABLE = (".md", ".py", ".js", ".html")
SKIPPED = ("docs/documents", "docs/design")
"""The design documents in their authors' words, and the record of how we came to ours."""
FOR_MODELS = (
    *(
        "core/values/notices.py",
        "core/values/briefs.py",
        "core/values/toolset.py",
    ),
    *(
        "policy/stages",
        "session/recall",
        "documents/presets",
        "doors/mcp",
        "core/tokens",
    ),
)
"""In ``src/ullage``: of these the docstrings alone are read, since their texts are for models."""
IGNORED = "re-use,re-uses,te,ure,ans,nd,hist,crate,fo,ot,ned,ser"
_CODE = re.compile(r"``[^`\n]*``|`[^`\n]*`")
_PROGRAM = re.compile(r"^```python\n.*?^```$", re.MULTILINE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_COMMENT_OR_STRING = re.compile(
    r"/\*.*?\*/|//[^\n]*"
    r"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`""",
    re.DOTALL,
)
_PLACE_IN_STRING = re.compile(r"\$\{[^}]*\}")
_ARGUMENT = re.compile(r"^\s*\w+: ")
_WORD = r"[\w\-'’]+"


def read_by_people(source: str, *, is_for_models: bool = False) -> str:
    """The texts of a program that people read, in their lines, without all else.

    Args:
        source: the program.
        is_for_models: leave out what is no docstring.
    """
    tree = ast.parse(source)
    docstrings = dict(_docstrings(tree))
    shown = [""] * len(source.splitlines())
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(
            node.value, str
        ):
            continue
        is_public = docstrings.get(node, not is_for_models)
        if not is_public or node.value.isidentifier():
            continue
        last = (node.end_lineno or node.lineno) - 1
        for offset, line in enumerate(node.value.splitlines()):
            text = _ARGUMENT.sub("", line)
            shown[min(node.lineno - 1 + offset, last)] += f" {text}"
    return "\n".join(shown)


def _docstrings(
    tree: ast.AST, *, is_public: bool = True
) -> Iterator[tuple[ast.Constant, bool]]:
    """The docstrings of a tree, and whether each is of a public name."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value, is_public
        name = getattr(node, "name", None) or ""
        is_private = name.startswith("_") and not name.endswith("__")
        yield from _docstrings(node, is_public=is_public and not is_private)


def strings_of(script: str) -> str:
    """The strings of a program in JavaScript, in their lines, without code and comments.

    Args:
        script: the program. Of a template the places for values are left out.
    """
    shown, end = "", 0
    for found in _COMMENT_OR_STRING.finditer(script):
        shown += "\n" * script.count("\n", end, found.start())
        end = found.end()
        is_comment = found[0].startswith(("//", "/*"))
        text = "" if is_comment else _PLACE_IN_STRING.sub("", found[0][1:-1])
        lines_left_out = found[0].count("\n") - text.count("\n")
        shown += f" {text}" + "\n" * lines_left_out
    return shown


def _without_tags(page: str) -> str:
    """The text of a page in HTML, in its lines."""
    return _TAG.sub(lambda tag: "\n" * tag[0].count("\n"), page)


def phrases_in(dictionary: str) -> list[str]:
    """The entries of a dictionary that are more than a word, the longest before the others."""
    entries = [line.partition("->")[0] for line in dictionary.splitlines()]
    return sorted((entry for entry in entries if " " in entry), key=len)[::-1]


def files_in(root: Path) -> Iterator[Path]:
    """What people read below a folder, relative to it."""
    for path in READ:
        place = root / path
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            name = file.relative_to(root)
            is_skipped = any(name.is_relative_to(other) for other in SKIPPED)
            if file.suffix in READABLE and not is_skipped:
                yield name


def problems_in(root: Path, names: Iterable[Path]) -> list[str]:
    """What codespell says of these files, a line each: file, line, and what to write.

    Args:
        root: the folder.
        names: the files, relative to it.
    """
    phrases = map(re.escape, phrases_in(WORDS.read_text(encoding="utf-8")))
    regex = rf"\b(?:{'|'.join(phrases)})\b|{_WORD}"
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            text = (root / name).read_text(encoding="utf-8")
            if name.suffix == ".py":
                inner = name.as_posix().removeprefix("src/ullage/")
                is_for_models = inner.startswith(FOR_MODELS)
                text = read_by_people(text, is_for_models=is_for_models)
            if name.suffix == ".js":
                text = strings_of(text)
            if name.suffix == ".html":
                text = _without_tags(text)
            text = _PROGRAM.sub(lambda code: "\n" * code[0].count("\n"), text)
            copy = Path(folder) / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(_CODE.sub("", text), "utf-8", "replace")
        done = subprocess.run(
            [
                *(sys.executable, "-m", "codespell_lib", "--regex", regex),
                *("-D", "-", "-D", str(WORDS), "-L", IGNORED, "."),
            ],
            cwd=folder,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
    if done.stderr:
        raise SystemExit(done.stderr)
    return [line.removeprefix("./") for line in done.stdout.splitlines()]


def main() -> None:
    """Print each problem, and exit with 1 if there is any."""
    if (
        find_spec("codespell_lib") is None
    ):  # an environment of before it was asked for
        print("words: not checked, codespell is not installed: make setup")
        return
    problems = problems_in(ROOT, files_in(ROOT))
    for problem in problems:
        print(problem)
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()

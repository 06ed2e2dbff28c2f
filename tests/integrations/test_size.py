"""An adapter is short: it converts, has fitted, converts back and reports; the rest is shared."""

import ast
import io
import tokenize
from pathlib import Path

import pytest

import ullage.integrations

HERE = Path(ullage.integrations.__file__).parent
ADAPTERS = sorted(
    path
    for path in HERE.iterdir()
    if not path.name.startswith("_") and path.name != "mcp_tools.py"
)
MOST = 260
NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}


def code_lines(text):
    """The lines of a module that hold code: no imports, no docstrings, no blanks."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = {
        line
        for token in tokens
        if token.type not in NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(ast.parse(text)):
        is_text = isinstance(node, ast.Expr) and isinstance(
            node.value, ast.Constant
        )
        if is_text or isinstance(node, (ast.Import, ast.ImportFrom)):
            lines -= set(range(node.lineno, node.end_lineno + 1))
    return len(lines)


def test_a_line_of_code_is_counted_and_nothing_else():
    text = '"""Says."""\n\nimport a\n\n# why\nb = (\n    1,\n)\n"""Of b."""\n'
    assert code_lines(text) == 3


@pytest.mark.parametrize("path", ADAPTERS, ids=lambda path: path.stem)
def test_an_adapter_is_short(path):
    files = path.rglob("*.py") if path.is_dir() else [path]
    assert (
        sum(code_lines(file.read_text(encoding="utf-8")) for file in files)
        <= MOST
    )

"""How plain the code is, as measures that may only get better.

Dense code is folded code: many nodes of the syntax tree on a line, a condition in an expression.
A name that is a participle or a pronoun (`found`, `kept`, `each`) says a state and no thing.
"""

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "ullage"
NODES_A_LINE = {
    "core": 5.5,
    "policy": 5.5,
    "wires": 5.5,
    "session": 5.15,
    "stores": 4.63,
    "tools": 4.95,
}
TERNARIES_A_THOUSAND = {
    "core": 20,
    "policy": 15,
    "wires": 16,
    "session": 20,
    "stores": 15,
    "tools": 26.5,
}
COMMENTS_A_HUNDRED = {
    "core": 1.0,
    "policy": 1.5,
    "wires": 0.8,
    "session": 0.8,
    "stores": 0.5,
    "tools": 0.3,
}
UNPACKED = [
    *("core", "policy", "wires", "session", "doors", "stores", "documents"),
    *("testing", "tools/replay", "tools/hand", "tools/watch"),
]
STATE_NAMES_SHARE = 0.01
_STATES = """
said told made kept known given found asked shown held taken left sent wanted
came done gone each it other others before after behind above what who why
where how every some of new old first last much few both ours theirs own
"""
STATES = frozenset(_STATES.split())
_BARE = (ast.Load, ast.Store, ast.Del, ast.Module)
rooms = pytest.mark.parametrize("room", NODES_A_LINE)


def sources(room="."):
    for file in sorted((SRC / room).rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        yield text, ast.parse(text)


def docstring_lines(tree):
    """The lines of strings that stand alone: docstrings, and what is said below a constant."""
    lines = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Expr):
            continue
        value = node.value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            lines.update(range(node.lineno, node.end_lineno + 1))
    return lines


def code_lines(text, tree):
    skipped = docstring_lines(tree)
    return sum(
        bool(line.strip()) and not line.strip().startswith("#")
        for number, line in enumerate(text.splitlines(), 1)
        if number not in skipped
    )


def comments_in(text):
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type == tokenize.COMMENT for token in tokens)


def measured(room):
    """The code lines of a room, with its nodes, conditional expressions and comments."""
    counts = Counter()
    for text, tree in sources(room):
        counts["lines"] += code_lines(text, tree)
        counts["comments"] += comments_in(text)
        for node in ast.walk(tree):
            counts["nodes"] += not isinstance(node, _BARE)
            counts["ternaries"] += isinstance(node, ast.IfExp)
    return counts


@rooms
def test_a_line_holds_one_thought(room):
    counts = measured(room)
    nodes_a_line = counts["nodes"] / counts["lines"]
    assert nodes_a_line <= NODES_A_LINE[room] + 0.005


@rooms
def test_a_condition_is_a_statement(room):
    counts = measured(room)
    ternaries = 1_000 * counts["ternaries"] / counts["lines"]
    assert ternaries <= TERNARIES_A_THOUSAND[room]


@rooms
def test_a_comment_stands_where_the_thought_is(room):
    counts = measured(room)
    comments = 100 * counts["comments"] / counts["lines"]
    assert comments >= COMMENTS_A_HUNDRED[room]


def names():
    """Every name that is given to a value: variables and parameters."""
    for _, tree in sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.arg):
                yield node.arg
            elif isinstance(node, ast.Name) and isinstance(
                node.ctx, ast.Store
            ):
                yield node.id


def test_a_name_says_a_thing():
    counts = Counter(names())
    states = {name: counts[name] for name in STATES if counts[name]}
    share = sum(states.values()) / counts.total()
    assert share <= STATE_NAMES_SHARE, states


def test_a_public_class_name_means_one_thing():
    counts = Counter(
        node.name
        for _, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in counts.items() if count > 1] == []


def is_packed(node):
    """Whether an assignment gives several names a value of their own, none of them another's."""
    if not isinstance(node, ast.Assign):
        return False
    targets = node.targets[0]
    values = node.value
    if not isinstance(targets, ast.Tuple) or not isinstance(values, ast.Tuple):
        return False
    names = {ast.unparse(target) for target in targets.elts}
    read = {ast.unparse(part) for part in ast.walk(values)}
    return not names & read


@pytest.mark.parametrize("room", UNPACKED)
def test_an_assignment_says_one_thing(room):
    packed = [
        ast.unparse(node)
        for _, tree in sources(room)
        for node in ast.walk(tree)
        if is_packed(node)
    ]
    assert packed == []

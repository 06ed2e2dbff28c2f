"""JSON with comments, edited in place: what is not changed keeps its bytes.

Clients' configuration files are written by hand, with comments and commas behind last items. So a
file is scanned for where its values stand, and a change is made there and nowhere else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

_BLANK = re.compile(r"(?:[ \t\r\n\ufeff]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORD = re.compile(r"[-+.\w]+")
_MOST_DEPTH = 200
_SPACE = " \t\r\n"


class NotJson(ValueError):
    """The text is no JSON, comments apart."""


class Node(NamedTuple):
    """A value and where it stands.

    Attributes:
        start: its first character.
        stop: the character behind it.
        value: what it is, without comments.
        fields: of an object, the node of each field.
        items: of a list, its nodes.
        begins: where its name begins, if it is a field of an object.
    """

    start: int
    stop: int
    value: Any
    fields: dict[str, Node]
    items: list[Node]
    begins: int = -1


def scanned(text: str) -> Node:
    """The one value of a text.

    Raises:
        NotJson: it is none.
    """
    node = _value(text, _skipped(text, 0), 0)
    if _skipped(text, node.stop) != len(text):
        raise NotJson(
            f"something stands behind the value, at character {node.stop:,}"
        )
    return node


def with_value(text: str, path: Sequence[str], value: str) -> str:
    """A text with another string at a path of objects; what is not there is added.

    Args:
        text: one object.
        path: the names of the fields that lead there.
        value: the string.

    Raises:
        NotJson: the text is no JSON, or something on the path is no object.
    """
    node = scanned(text)
    for depth, name in enumerate(path):
        if not isinstance(node.value, dict):
            where = ".".join(path[:depth]) or "it"
            raise NotJson(f"{where} is no object")
        if name not in node.fields:
            inner = _nested(path[depth + 1 :], value)
            return _with_field(text, node, name, inner)
        node = node.fields[name]
    written = json.dumps(value, ensure_ascii=False)
    return _replaced(text, node.start, node.stop, written)


def without_value(text: str, path: Sequence[str]) -> str:
    """A text without the field at a path of objects.

    Raises:
        NotJson: the text is no JSON, or there is no such field.
    """
    node = scanned(text)
    for name in path:
        if name not in node.fields:
            raise NotJson(f"it has no {'.'.join(path)}")
        node = node.fields[name]
    before = text[: node.begins].rstrip(_SPACE)
    comma = _skipped(text, node.stop)
    if _sign(text, comma) == ",":
        rest = text[comma + 1 :]
        is_on_one_line = len(before) == node.begins
        return before + (rest.lstrip(" ") if is_on_one_line else rest)
    # of the last field the comma before it goes
    return before.removesuffix(",") + text[node.stop :]


def _nested(path: Sequence[str], value: Any) -> Any:
    """A value within as many objects as a path has names."""
    for name in reversed(path):
        value = {name: value}
    return value


def _replaced(text: str, start: int, stop: int, piece: str) -> str:
    """A text with a piece in place of the characters of a range."""
    return text[:start] + piece + text[stop:]


def _with_field(text: str, node: Node, name: str, value: Any) -> str:
    """A text with one field more at the head of an object, laid out as its neighbours are."""
    start = node.start + 1
    lead = _leading_space(text[start:])
    if node.fields and "\n" not in lead:  # all on one line
        field = json.dumps({name: value}, ensure_ascii=False)[1:-1]
        return _replaced(text, start, start, f"{field}, ")
    begin_of_line = text.rfind("\n", 0, start) + 1
    end_of_line = "\r\n" if "\r\n" in text else "\n"
    outer = end_of_line + _leading_space(text[begin_of_line:start])
    step = "  "
    if node.fields and lead.startswith(outer):
        step = lead.removeprefix(outer) or step
    lines = json.dumps({name: value}, ensure_ascii=False, indent=step)
    fields = lines.splitlines()[1:-1]
    field = "".join(f"{outer}{line}" for line in fields)
    if node.fields:
        return _replaced(text, start, start, f"{field},")
    stop = node.stop - 1
    inner = text[start:stop]
    end = inner if inner.strip() else outer
    return _replaced(text, start, stop, field + end)


def _leading_space(text: str) -> str:
    """The blanks and ends of lines that a text begins with."""
    return text[: len(text) - len(text.lstrip(_SPACE))]


def _sign(text: str, at: int) -> str:
    """The character at a place; ``""`` behind the last one."""
    return text[at : at + 1]


def _skipped(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _value(text: str, at: int, depth: int) -> Node:
    if depth > _MOST_DEPTH:
        raise NotJson("it is too deep")
    opening = _sign(text, at)
    if opening == "{":
        return _object(text, at, depth)
    if opening == "[":
        return _list(text, at, depth)
    form = _STRING if opening == '"' else _WORD
    match = form.match(text, at)
    if match is None:
        raise NotJson(f"no value stands at character {at:,}")
    try:
        value = json.loads(match[0])
    except ValueError:
        raise NotJson(f"no value stands at character {at:,}") from None
    return Node(at, match.end(), value, {}, [])


def _object(text: str, start: int, depth: int) -> Node:
    fields: dict[str, Node] = {}
    at = _skipped(text, start + 1)
    while _sign(text, at) != "}":
        name = _value(text, at, depth + 1)
        colon = _skipped(text, name.stop)
        if not isinstance(name.value, str) or _sign(text, colon) != ":":
            raise NotJson(f"no name stands at character {at:,}")
        node = _value(text, _skipped(text, colon + 1), depth + 1)
        fields[name.value] = node._replace(begins=at)
        at = _behind(text, node.stop, "}")
    values = {name: node.value for name, node in fields.items()}
    return Node(start, at + 1, values, fields, [])


def _list(text: str, start: int, depth: int) -> Node:
    items: list[Node] = []
    at = _skipped(text, start + 1)
    while _sign(text, at) != "]":
        item = _value(text, at, depth + 1)
        items.append(item)
        at = _behind(text, item.stop, "]")
    values = [item.value for item in items]
    return Node(start, at + 1, values, {}, items)


def _behind(text: str, at: int, closing: str) -> int:
    """Where the next part begins, or the closing bracket stands; a last comma is allowed."""
    at = _skipped(text, at)
    sign = _sign(text, at)
    if sign == ",":
        return _skipped(text, at + 1)
    if sign != closing:
        raise NotJson(f"neither a comma nor an end stands at character {at:,}")
    return at

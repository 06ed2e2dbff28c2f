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
    depth = 0
    while depth < len(path):
        if not isinstance(node.value, dict):
            raise NotJson(f"{'.'.join(path[:depth]) or 'it'} is no object")
        if path[depth] not in node.fields:
            break
        node = node.fields[path[depth]]
        depth = depth + 1
    if depth == len(path):
        written = json.dumps(value, ensure_ascii=False)
        return f"{text[: node.start]}{written}{text[node.stop :]}"
    inner: Any = value
    for name in reversed(path[depth + 1 :]):
        inner = {name: inner}
    return _with_field(text, node, path[depth], inner)


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
    begin = len(text[: node.begins].rstrip(_SPACE))
    comma = _skipped(text, node.stop)
    if text[comma] == ",":
        rest = text[comma + 1 :]
        if begin == node.begins:  # all on one line
            rest = rest.lstrip(" ")
        return f"{text[:begin]}{rest}"
    if text[begin - 1] == ",":
        begin -= 1
    return f"{text[:begin]}{text[node.stop :]}"


def _with_field(text: str, node: Node, name: str, value: Any) -> str:
    """A text with one field more at the head of an object, laid out as its neighbours are."""
    at = node.start + 1
    behind = text[at:]
    lead = behind[: len(behind) - len(behind.lstrip(_SPACE))]
    if node.fields and "\n" not in lead:  # all on one line
        field = json.dumps({name: value}, ensure_ascii=False)[1:-1]
        return f"{text[:at]}{field}, {behind}"
    line = text[text.rfind("\n", 0, at) + 1 : at]
    end_of_line = "\r\n" if "\r\n" in text else "\n"
    outer = end_of_line + line[: len(line) - len(line.lstrip(_SPACE))]
    step = "  "
    if node.fields and lead.startswith(outer) and len(lead) > len(outer):
        step = lead[len(outer) :]
    lines = json.dumps({name: value}, ensure_ascii=False, indent=step)
    fields = lines.splitlines()[1:-1]
    field = "".join(f"{outer}{line}" for line in fields)
    if node.fields:
        return f"{text[:at]}{field},{behind}"
    inner = text[at : node.stop - 1]
    end = inner if inner.strip() else outer
    return f"{text[:at]}{field}{end}{text[node.stop - 1 :]}"


def _skipped(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _value(text: str, at: int, depth: int) -> Node:
    if depth > _MOST_DEPTH:
        raise NotJson("it is too deep")
    kind = text[at : at + 1]
    if kind == "{":
        return _object(text, at, depth)
    if kind == "[":
        return _list(text, at, depth)
    match = (_STRING if kind == '"' else _WORD).match(text, at)
    try:
        value = json.loads(match[0]) if match else None
    except ValueError:
        match = None
    if match is None:
        raise NotJson(f"no value stands at character {at:,}")
    return Node(at, match.end(), value, {}, [])


def _object(text: str, start: int, depth: int) -> Node:
    fields: dict[str, Node] = {}
    at = _skipped(text, start + 1)
    while text[at : at + 1] != "}":
        name = _value(text, at, depth + 1)
        colon = _skipped(text, name.stop)
        if not isinstance(name.value, str) or text[colon : colon + 1] != ":":
            raise NotJson(f"no name stands at character {at:,}")
        node = _value(text, _skipped(text, colon + 1), depth + 1)
        fields[name.value] = node = node._replace(begins=at)
        at = _behind(text, node.stop, "}")
    values = {name: node.value for name, node in fields.items()}
    return Node(start, at + 1, values, fields, [])


def _list(text: str, start: int, depth: int) -> Node:
    items: list[Node] = []
    at = _skipped(text, start + 1)
    while text[at : at + 1] != "]":
        items.append(_value(text, at, depth + 1))
        at = _behind(text, items[-1].stop, "]")
    return Node(start, at + 1, [node.value for node in items], {}, items)


def _behind(text: str, at: int, closing: str) -> int:
    """Where the next part begins, or the closing bracket stands; a last comma is allowed."""
    at = _skipped(text, at)
    if text[at : at + 1] == ",":
        return _skipped(text, at + 1)
    if text[at : at + 1] != closing:
        raise NotJson(f"neither a comma nor an end stands at character {at:,}")
    return at

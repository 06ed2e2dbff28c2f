"""JSON with comments, edited in place: what is not changed keeps its bytes.

Clients' configuration files are written by hand, with comments and commas behind last items. So a
file is scanned for where its values stand, and a change is made there and nowhere else.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

_BLANK = re.compile(r"(?:[ \t\r\n\ufeff]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORD = re.compile(r"[-+.\w]+")
_MOST_DEPTH = 200


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
    """

    start: int
    stop: int
    value: Any
    fields: dict[str, Node]
    items: list[Node]


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
        node = fields[name.value] = _value(
            text, _skipped(text, colon + 1), depth + 1
        )
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

"""One example of every block, item and part that may stand in a history.

Written by us, after the vendors' typed models; no text of anybody's run. A module for each
format holds its ``EXAMPLES``; together, in order, they are one legal history.
"""

from base64 import b64decode
from importlib import import_module
from typing import Any

from msgspec import Struct

from ullage.wires import FORMATS

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PDF = "JVBERi0xLjQKJeLjz9MKMSAwIG9iago8PC9UeXBlL0NhdGFsb2c+PgplbmRvYmoK"
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
SEALED = "gAAAAABl" + "c2VhbGVkIGJ5IHRoZSBwcm92aWRlcg" * 30 + "=="
"""Sealed by nobody: base64 of nothing that anyone could open."""


class Example(Struct, frozen=True):
    """Some messages in which a type stands, and what it is taken for.

    ``type`` is its name on the wire; ``meaning`` the name of its class in
    `ullage.core.values.messages`. ``role`` says who speaks in the message; ``inside`` that it
    stands in a tool's result.
    """

    type: str
    meaning: str
    messages: list[dict[str, Any]]
    role: str = "assistant"
    inside: bool = False
    note: str = ""


def examples(format):
    """Every example of a format."""
    return import_module(f"tests.wire.{format.replace('-', '_')}").EXAMPLES


def history(format):
    """All of them as one history."""
    return [
        message for example in examples(format) for message in example.messages
    ]


def in_bytes(value):
    """A message of Converse as boto3 takes it, and gives it: bytes for base64."""
    if isinstance(value, dict):
        return {
            key: b64decode(item)
            if key in ("bytes", "redactedContent")
            else in_bytes(item)
            for key, item in value.items()
        }
    return (
        [in_bytes(item) for item in value]
        if isinstance(value, list)
        else value
    )


def found_in(format, example):
    """The parts that the type is parsed to, from every place in which it stands."""
    wire = FORMATS[format]
    for raw in example.messages:
        message = wire.parse(raw, "example")
        for part in message.parts:
            content = getattr(part, "content", ())
            for item in content if example.inside else (part,):
                if type(item).__name__ == example.meaning:
                    yield message, item

"""Secrets that are taken out of what is set aside or summarised, before anything else reads it.

    message as it came ──redact──▶ what stages cut, digest and summarise; what a store keeps;
           │                       what a summariser is asked; what a ref opens, from the store
           │                       and from the history alike
           └──▶ what is sent as long as nothing of it is edited, and what is counted

A pure function of a text, so a cold start sees what a warm session saw. Off by default
(`ullage.Session`). What the model is sent unedited is the caller's own message, keys and all.

Source: failure F88. The forms of keys are in `ullage.core.redaction.forms`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from operator import is_
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ullage.core.errors import ConfigError
from ullage.core.redaction.forms import FORMS
from ullage.core.values.messages import (
    BlockFrame,
    Media,
    Message,
    Opaque,
    Text,
    ToolCall,
    ToolResult,
)

S = TypeVar("S", bound=Struct)
Redact: TypeAlias = Callable[[str], str]
"""Gives a text back without its secrets: the same for the same text, in every process."""

REDACTED = "[redacted]"


def common_keys(text: str) -> str:
    """A text without keys that can be told by their form, `REDACTED` in their place.

    Keys of the vendors in `ullage.core.redaction.forms`; JSON web tokens; private keys in PEM;
    bearer tokens and basic credentials; passwords in URLs; and what is assigned to a name like
    ``password``, ``api_key`` or ``secret``, where it has letters and digits. A secret without a
    form of its own, such as a password in a sentence, stays, and so does one that is written in
    another encoding, or with something in its midst.

    Linear in the text; a text with nothing in it is given back as the same object.
    """
    lower = text.lower()
    for form in FORMS:
        if form.is_possible(text, lower):
            text = form.pattern.sub(_without_secret, text)
    return text


def _without_secret(match: re.Match[str]) -> str:
    """What stands in the place of a secret, behind what leads to it."""
    prefix = match.groupdict().get("kept", "")
    return f"{prefix}{REDACTED}"


def redacted(message: Message, redact: Redact) -> Message:
    """A message whose texts are redacted: what was said, arguments, results, blocks.

    Reasoning stays: it is never set aside nor summarised. So does media, but for plain text in
    a document.

    Raises:
        ConfigError: ``redact`` gave something else than a text, or raised.
    """
    safe = checked(redact)
    return _of(
        message,
        "parts",
        tuple(_redacted(part, safe) for part in message.parts),
    )


def checked(redact: Redact) -> Redact:
    """``redact`` that gives a text or raises `ConfigError`, in which nothing of the text stands."""

    def text_of(text: str) -> str:
        try:
            clean = redact(text)
        except ConfigError:
            raise
        except Exception as error:  # noqa: BLE001 - it is the caller's, and its words may be secret
            problem = f"raised {type(error).__name__} for"
        else:
            if isinstance(clean, str):
                return clean
            problem = f"returned a {type(clean).__name__} for"
        problem = f"it {problem} {len(text):,} characters, so nothing of them is kept"
        raise ConfigError(
            "redact", problem, "Return the text without its secrets."
        )

    return text_of


def _redacted(part: Any, redact: Redact) -> Any:
    match part:
        case Text(text=text):
            return _of(part, "text", redact(text))
        case ToolCall(arguments=text):
            return _of(part, "arguments", in_json(text, redact))
        case Opaque(text=text, words=words):
            part = _of(part, "text", in_json(text, redact))
            return _of(part, "words", redact(words)) if words else part
        case BlockFrame(text=text):
            return _of(part, "text", in_json(text, redact))
        case ToolResult(content=content):
            items = tuple(_redacted(item, redact) for item in content)
            return _of(part, "content", items)
        case Media(mime=mime, data=data) if mime.startswith("text/"):
            part = _of(part, "data", redact(data))
            return _of(part, "block", _inside(part.block, redact))
        case _:
            return part


def _of(value: S, name: str, content: Any) -> S:
    """A value with another field; itself where that is the same."""
    if _is_same(getattr(value, name), content):
        return value
    return replace(value, **{name: content})


def _is_same(present: Any, content: Any) -> bool:
    """Whether redaction changed nothing: of parts the very objects, of other values an equal."""
    if isinstance(present, tuple):
        return all(map(is_, present, content))
    return bool(present == content)


def in_json(text: str, redact: Redact) -> str:
    """JSON text with its strings redacted; any other text is redacted as it is."""
    redact = checked(redact)
    try:
        value = json.loads(text)
        clean = _inside(value, redact)
    except (ValueError, RecursionError):
        return redact(text)
    if clean == value:
        return text
    return json.dumps(clean, ensure_ascii=False, separators=(",", ":"))


_SEALED = frozenset(
    [
        "signature",
        "thoughtSignature",
        "thought_signature",
        "encrypted_content",
        "type",
        "role",
        "name",
        "id",
        "call_id",
        "tool_use_id",
        "tool_call_id",
    ]
)
"""The fields of a message that its provider checks, or by which its parts find each other."""


def in_message(value: Any, redact: Redact) -> Any:
    """A message as it is on any wire, redacted, for who keeps whole messages.

    What its provider checks stays: signatures, ids, names; and so does media in base64.

    Raises:
        ConfigError: ``redact`` gave something else than a text, or raised.
    """
    return _message(value, checked(redact))


def _message(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_message(item, redact) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _field(key, item, value, redact) for key, item in value.items()
    }


def _field(key: str, item: Any, within: dict[str, Any], redact: Redact) -> Any:
    if key in _SEALED or (key == "data" and within.get("type") != "text"):
        return item
    if key == "arguments" and isinstance(item, str):
        return in_json(item, redact)
    if key in ("input", "args", "response") and isinstance(item, dict):
        return _inside(item, redact)  # a tool's own fields
    return _message(item, redact)


def _inside(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_inside(item, redact) for item in value]
    if not isinstance(value, dict):
        return value
    clean = {}
    for key, item in value.items():
        clean[_inside(key, redact)] = _inside(item, redact)
    return clean

"""What is taken out of a page that is given to others: `--share`.

Every text of the page goes through `shareable`: what was said, what was shown instead, the names of
runs and files, the command. It takes out what `ullage.core.redaction.common_keys` knows by its
form,
and what a store may keep and a page of others may not: addresses, home folders, lines of key
material without their heading, and what a cut has left of a longer word.

A heuristic: a password in a sentence stays. Look through the page before it leaves your hands.
"""

from __future__ import annotations

import re
import zlib
from typing import Any

import msgspec

from ullage.core.redaction import REDACTED, common_keys

_HOMES = re.compile(
    r"(?:/home|/Users|/var/home)/[^\s/\\:;,'\"`<>|()]+|/root(?![\w-])"
    r"|\b[A-Za-z]:(?:\\{1,2}|/)(?:Users|Documents and Settings)(?:\\{1,2}|/)[^\s/\\:;,'\"`<>|()]+"
)
_ADDRESS = re.compile(
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.)+[A-Za-z]{2,24}\b"
)
_KEY_LINE = re.compile(r"(?m)^[ \t]*[A-Za-z0-9+/]{48,}={0,2}[ \t]*$")
_SECRET_FIELD = re.compile(
    r"(?i)(?<![a-z0-9])((?:[a-z0-9]+_)*(?:api_?key|secret|token|passw(?:or)?d|credentials?)\\?[\"']?"
    r"\s*[=:]\s*\\?[\"']?)(?!\[redacted)[A-Za-z0-9+/=_.~-]{12,}"
)
_AT_A_CUT = re.compile(
    r"[A-Za-z0-9+/=_.~-]{8,}(?= ?(?:⟨…|\[?…))|(?<=…⟩ )[A-Za-z0-9+/=_.~-]{8,}"
)


def shareable(text: str) -> str:
    """A text without keys, tokens, addresses and home folders; linear in the text."""
    text = common_keys(text)
    text = _SECRET_FIELD.sub(rf"\1{REDACTED}", text)
    text = _ADDRESS.sub(REDACTED, text)
    text = _KEY_LINE.sub(REDACTED, text)
    text = _AT_A_CUT.sub(REDACTED, text)
    return _HOMES.sub("~", text)


def without_private(value: Any) -> Any:
    """A value of JSON with every text in it made `shareable`."""
    if isinstance(value, str):
        return shareable(value)
    if isinstance(value, list):
        return [without_private(item) for item in value]
    if isinstance(value, dict):
        return {key: without_private(item) for key, item in value.items()}
    return value


def repacked(blob: bytes) -> bytes:
    """A packed part of a picture, its texts made `shareable`."""
    value = without_private(msgspec.json.decode(zlib.decompress(blob)))
    return zlib.compress(msgspec.json.encode(value), 9)

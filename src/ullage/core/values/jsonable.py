"""Python values that are no JSON, as the hosts that send them write them.

Tools return models, dates, decimals and bytes, and frameworks and SDKs serialise these on the way
to the provider. What is counted, compared and set aside is what they make of them: for most the
JSON form that pydantic gives, for Gemini's wire what google-genai does.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

_BYTES = (bytes, bytearray, memoryview)
_DATES = (datetime.datetime, datetime.date, datetime.time)
_TEXTS = (decimal.Decimal, uuid.UUID, datetime.timedelta, complex)


def jsonable(value: Any) -> Any:
    """One level of a value that is no JSON, as JSON or as something that this takes again.

    For ``default`` of `json.dumps` and ``enc_hook`` of msgspec's encoders.

    Raises:
        TypeError: nobody knows how to write it. What its ``repr`` says may differ from process to
            process.
    """
    if isinstance(
        value, float
    ):  # a class of its own: msgspec knows float alone
        return float(value)
    if isinstance(value, _BYTES):
        return b64encode(value).decode()
    if isinstance(value, _DATES):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, _TEXTS):
        return str(value)
    if hasattr(value, "__fspath__"):
        return value.__fspath__()
    if isinstance(value, Mapping):
        return {_key(key): item for key, item in value.items()}
    if isinstance(value, Set):
        return sorted(value, key=repr)
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    return _object(value)


def as_google(value: Any) -> Any:
    """`jsonable` as google-genai writes it: bytes in the alphabet of base64 for URLs."""
    if isinstance(value, _BYTES):
        return urlsafe_b64encode(value).decode()
    return jsonable(value)


def _object(value: Any) -> Any:
    """An object of a library, or a dataclass, by its fields; numbers and arrays as they are."""
    if isinstance(value, type):
        raise TypeError(f"{value.__name__} is a class")
    if hasattr(value, "model_dump"):
        return value.model_dump(exclude_none=True)
    if is_dataclass(value):
        return {
            field.name: getattr(value, field.name) for field in fields(value)
        }
    if hasattr(value, "tolist"):  # of numpy, and of what stands for it
        return value.tolist()
    if hasattr(value, "_asdict"):
        return value._asdict()
    raise TypeError(
        f"Object of type {type(value).__name__} is not JSON serializable"
    )


def _key(key: Any) -> str:
    return key if isinstance(key, str) else str(key)

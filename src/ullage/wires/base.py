"""Reading what is on a wire: dicts as sent, or the objects of the vendors' SDKs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ullage.core.history.raw import (
    as_json,
    field,
    not_json,
    text_at,
    unexpected,
)
from ullage.core.on_demand import cached_by_text
from ullage.core.values.messages import Part, Reasoning, Text

PartT = TypeVar("PartT")
MARKERS = frozenset(("cache_control", "prompt_cache_breakpoint"))
"""What a client puts on a block to have it cached: it has no say in what the block is."""


def check_object(value: Any, path: str) -> None:
    """Raise FormatError unless ``value`` is a dict or an object of an SDK."""
    if not isinstance(value, (dict, Mapping)) and not hasattr(
        value, "model_dump"
    ):
        remedy = "Give a dict as sent on the wire, or the SDK's own object."
        raise unexpected(value, path, "an object", remedy)


def plain(value: Any, path: str) -> Mapping[str, Any]:
    """A dict itself, or the fields of an SDK object. Raises FormatError if it is neither."""
    if type(value) is dict or isinstance(value, Mapping):
        return value
    check_object(value, path)
    # As the vendors' own clients write it: a null they were given is a null they send.
    fields: Mapping[str, Any] = value.model_dump(
        mode="json", by_alias=True, exclude_unset=True
    )
    return fields


@cached_by_text(128)
def snake(name: str) -> str:
    """A camelCase name in snake_case, as Google's SDK spells it."""
    return re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name)


def get(value: Any, name: str) -> Any:
    """A field by its camelCase name, in either spelling, of a dict or of an SDK object."""
    if type(value) is dict or isinstance(
        value, Mapping
    ):  # the second alone is slow
        item = value.get(name)
        if item is None:
            return value.get(snake(name))
        return item
    return getattr(value, snake(name), None)


def at_path(value: Any, path: str) -> Any:
    """The value under names with dots between, each read as by `get`; None if there is none."""
    for name in path.split("."):
        if value is None or isinstance(value, str):
            return None
        value = get(value, name)
    return value


_CALL_BODIES = (
    "function",
    "custom",
    "functionCall",
    "function_call",
    "toolUse",
)
"""Where a format puts what a call says, if not in the call itself."""


def name_of_call(call: Any) -> str:
    """The tool that a raw call of any format is for; ``""`` if it does not tell.

    A tool of a namespace, or of a toolset, has that before its name: it is another tool than one
    that is called the same and stands by itself.
    """
    body = call
    for key in _CALL_BODIES:
        inner = field(call, key)
        if inner:
            body = inner
            break
    name = field(body, "name")
    if not isinstance(name, str):
        return ""
    namespace = field(call, "namespace") or field(call, "toolset_name")
    if namespace and isinstance(namespace, str):
        return f"{namespace}.{name}"
    return name


def opaque_json(value: Any, path: str) -> str:
    """What says which block this is: canonical JSON without cache markers and nulls.

    Clients move the first and drop the second. Raises FormatError if it is not JSON.
    """
    return as_json(_without_nulls(unmarked(value)), path)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_nulls(item)
            for key, item in value.items()
            if item is not None
        }
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def ordered(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Parts as a message holds them: reasoning last, empty text left out."""
    spoken: list[Part] = []
    reasoning: list[Part] = []
    for part in parts:
        if isinstance(part, Reasoning):
            reasoning.append(part)
        elif not isinstance(part, Text) or part.text:
            spoken.append(part)
    if len(spoken) == len(parts):
        return tuple(parts)
    return (*spoken, *reasoning)


def list_at(value: Any, path: str) -> Sequence[Any]:
    """``value`` if it is a list, nothing if it is None. Raises FormatError if it is neither."""
    if value is None or isinstance(value, (list, tuple)):
        return value or ()
    raise unexpected(value, path, "a list", "Give a list, or leave it out.")


def optional_text_at(value: Any, path: str) -> str:
    """``value`` if it is a string, ``""`` if it is None. Raises FormatError if it is neither."""
    if value is None:
        return ""
    return text_at(value, path)


def content_at(
    content: Any, path: str, read: Callable[[Any, int, str], PartT]
) -> list[Text | PartT]:
    """The parts of a content: one text, or what ``read`` makes of each of its blocks.

    Args:
        content: as it stands on the wire.
        path: its path.
        read: reads a block, given the block, its index in the list, and its path.

    Raises:
        FormatError: the content is neither a string nor a list nor None.
    """
    if type(content) is str:
        return [Text(content)]
    if content is None:
        return []
    if isinstance(content, (list, tuple)):
        return [
            read(block, at, f"{path}[{at}]")
            for at, block in enumerate(content)
        ]
    expected = "a string or a list of parts"
    raise unexpected(
        content, path, expected, "Give content as the API takes it."
    )


def block_at(value: Any, path: str) -> Any:
    """A block as it stands on the wire, in containers of its own, without cache markers.

    What is set aside is written down as JSON: FormatError names the place of anything that is none.
    """
    if isinstance(value, Mapping):
        unmarked_items = {
            k: item for k, item in value.items() if k not in MARKERS
        }
        if not all(isinstance(key, str) for key in unmarked_items):
            raise not_json(path, "a key that is no string")
        return {
            key: block_at(item, f"{path}.{key}")
            for key, item in unmarked_items.items()
        }
    if isinstance(value, (list, tuple)):
        return [
            block_at(item, f"{path}[{at}]") for at, item in enumerate(value)
        ]
    if value is None or isinstance(value, (str, int, float)):
        return value
    if hasattr(value, "model_dump"):
        return block_at(plain(value, path), path)
    raise not_json(path, f"a {type(value).__name__}")


def unmarked(value: Any) -> Any:
    """A copy of a block's containers without cache markers, which have no say in identity."""
    if isinstance(value, Mapping):
        return {
            key: unmarked(item)
            for key, item in value.items()
            if key not in MARKERS
        }
    if isinstance(value, (list, tuple)):
        return [unmarked(item) for item in value]
    if hasattr(value, "model_dump"):
        return unmarked(plain(value, "block"))
    return value


# ── sizes ────────────────────────────────────────────────────────────────────────────────


def detail_of(detail: Any) -> str:
    """How finely a medium is to be looked at, as `ullage.core.values.messages.Media` has it.

    Args:
        detail: a word of OpenAI's or of Gemini's, or the object that Gemini wraps it in; of
            anything else it is ``""``.
    """
    level = detail
    if not isinstance(detail, str):
        level = get(detail, "level")
    word = getattr(level, "value", level)
    if not isinstance(word, str):
        return ""
    word = word.lower().removeprefix("media_resolution_")
    if word in ("auto", "unspecified"):
        return ""
    return word


def sealed_bytes(sealed: Any, frame_bytes: int) -> int:
    """Bytes of what is sealed, by the length of its base64, without the frame around it."""
    if not isinstance(sealed, str):
        return 0
    return max(len(sealed) * 3 // 4 - frame_bytes, 0)

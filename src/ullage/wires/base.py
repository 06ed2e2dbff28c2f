"""Reading what is on a wire: dicts as sent, or the objects of the vendors' SDKs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, get_args

from ullage.core.history import canon
from ullage.core.history.raw import as_json, field, not_json, text_at, unexpected
from ullage.core.on_demand import cached_by_text
from ullage.core.values.messages import Part, Reasoning, Text

PartT = TypeVar("PartT")
MARKERS = frozenset(("cache_control", "prompt_cache_breakpoint"))
"""What a client puts on a block to have it cached: it has no say in what the block is."""


def check_object(value: Any, where: str) -> None:
    """Raise FormatError unless ``value`` is a dict or an object of an SDK."""
    if not isinstance(value, (dict, Mapping)) and not hasattr(value, "model_dump"):
        remedy = "Give a dict as sent on the wire, or the SDK's own object."
        raise unexpected(value, where, "an object", remedy)


def plain(value: Any, where: str) -> Mapping[str, Any]:
    """A dict itself, or the fields of an SDK object. Raises FormatError if it is neither."""
    if type(value) is dict or isinstance(value, Mapping):
        return value
    check_object(value, where)
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
    if type(value) is dict or isinstance(value, Mapping):  # the second alone is slow
        found = value.get(name)
        return value.get(snake(name)) if found is None else found
    return getattr(value, snake(name), None)


def at_path(value: Any, path: str) -> Any:
    """What stands under names with dots between, each read as by `get`; None if nothing does."""
    for name in path.split("."):
        value = None if value is None or isinstance(value, str) else get(value, name)
    return value


_CALL_BODIES = ("function", "custom", "functionCall", "function_call", "toolUse")
"""Where a format puts what a call says, if not in the call itself."""


def name_of_call(call: Any) -> str:
    """The tool that a raw call of any format is for; ``""`` if it does not tell.

    A tool of a namespace, or of a toolset, has that before its name: it is another tool than one
    that is called the same and stands by itself.
    """
    bodies = (field(call, key) for key in _CALL_BODIES)
    body = next((body for body in bodies if body), call)
    name = field(body, "name")
    if not isinstance(name, str):
        return ""
    within = field(call, "namespace") or field(call, "toolset_name")
    return f"{within}.{name}" if isinstance(within, str) and within else name


def opaque_json(value: Any, where: str) -> str:
    """What says which block this is: canonical JSON without cache markers and nulls.

    Clients move the first and drop the second. Raises FormatError if it is not JSON.
    """
    return as_json(_without_nulls(unmarked(value)), where)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_nulls(item) for key, item in value.items() if item is not None
        }
    return (
        [_without_nulls(item) for item in value] if isinstance(value, list) else value
    )


def ordered(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Parts as a message holds them: reasoning last, empty text left out."""
    said = [part for part in parts if not isinstance(part, Reasoning)]
    kept = [part for part in said if not (isinstance(part, Text) and not part.text)]
    if len(kept) == len(parts):
        return tuple(parts)
    return (*kept, *(part for part in parts if isinstance(part, Reasoning)))


def list_at(value: Any, where: str) -> Sequence[Any]:
    """``value`` if it is a list, nothing if it is None. Raises FormatError if it is neither."""
    if value is None or isinstance(value, (list, tuple)):
        return value or ()
    raise unexpected(value, where, "a list", "Give a list, or leave it out.")


def optional_text_at(value: Any, where: str) -> str:
    """``value`` if it is a string, ``""`` if it is None. Raises FormatError if it is neither."""
    return "" if value is None else text_at(value, where)


def content_at(
    content: Any, where: str, read: Callable[[Any, int, str], PartT]
) -> list[Text | PartT]:
    """What stands in a content: one text, or a list of what ``read`` makes of each of its blocks.

    ``read`` takes a block, its place in the list, and its path. Raises FormatError if the content
    is neither a string nor a list nor None.
    """
    if type(content) is str:
        return [Text(content)]
    if content is None:
        return []
    if isinstance(content, (list, tuple)):
        return [read(block, at, f"{where}[{at}]") for at, block in enumerate(content)]
    wanted = "a string or a list of parts"
    raise unexpected(content, where, wanted, "Give content as the API takes it.")


def block_at(value: Any, where: str) -> Any:
    """A block as it stands on the wire, in containers of its own, without cache markers.

    What is set aside is written down as JSON: FormatError names the place of anything that is none.
    """
    if isinstance(value, Mapping):
        kept = {key: item for key, item in value.items() if key not in MARKERS}
        if not all(isinstance(key, str) for key in kept):
            raise not_json(where, "a key that is no string")
        return {key: block_at(item, f"{where}.{key}") for key, item in kept.items()}
    if isinstance(value, (list, tuple)):
        return [block_at(item, f"{where}[{at}]") for at, item in enumerate(value)]
    if value is None or isinstance(value, (str, int, float)):
        return value
    if hasattr(value, "model_dump"):
        return block_at(plain(value, where), where)
    raise not_json(where, f"a {type(value).__name__}")


def unmarked(value: Any) -> Any:
    """A copy of a block's containers without cache markers, which have no say in identity."""
    if isinstance(value, Mapping):
        return {
            key: unmarked(item) for key, item in value.items() if key not in MARKERS
        }
    if isinstance(value, (list, tuple)):
        return [unmarked(item) for item in value]
    return unmarked(plain(value, "block")) if hasattr(value, "model_dump") else value


# ── sizes and schemas ────────────────────────────────────────────────────────────────────


def detail_of(said: Any) -> str:
    """How finely a medium is to be looked at, as `ullage.core.values.messages.Media` has it.

    A word of OpenAI's or of Gemini's says it, or what Gemini wraps it in; nothing else does.
    """
    level = get(said, "level") if not isinstance(said, str) else said
    word = getattr(level, "value", level)
    if not isinstance(word, str):
        return ""
    word = word.lower().removeprefix("media_resolution_")
    return "" if word in ("auto", "unspecified") else word


def sealed_bytes(sealed: Any, frame_bytes: int) -> int:
    """Bytes of what is sealed, by the length of its base64, without the frame around it."""
    return max(len(sealed) * 3 // 4 - frame_bytes, 0) if isinstance(sealed, str) else 0


def schemas_at(settings: Any, paths: Iterable[str]) -> tuple[str, ...]:
    """The schemas that stand at these paths of a request or of its settings, each as text.

    What is no mapping on the way, a class say, is the schema itself.
    """
    found = (_schema_text(_schema_at(settings, *path.split("."))) for path in paths)
    return tuple(filter(None, found))


def _schema_at(settings: Any, first: str, *rest: str) -> Any:
    value = get(settings, first)
    for name in rest:
        value = value.get(name) if isinstance(value, Mapping) else value
    return value


def _schema_text(schema: Any) -> str:
    """A schema as JSON text; of a class what is made of it, of a type its classes'."""
    made = getattr(schema, "model_json_schema", None)
    if inspect.isclass(schema) and made is not None:
        schema = made()
    elif hasattr(schema, "model_dump"):
        schema = schema.model_dump(mode="json", exclude_none=True, by_alias=True)
    if isinstance(schema, str):
        return schema
    if isinstance(schema, Mapping):
        try:
            return canon.canonical_json(schema)
        except (TypeError, ValueError, RecursionError):
            return str(schema)  # an SDK may take what is no JSON
    if inspect.isclass(schema) and not get_args(schema):
        return " ".join(
            [schema.__name__, *map(str, getattr(schema, "__members__", ()))]
        )
    return " ".join(map(_schema_text, get_args(schema)))


# ── streams ──────────────────────────────────────────────────────────────────────────────


def stream_in(reply: Any) -> Any:
    """The events that stand in a reply of boto3's, as an iterator; None of any other reply."""
    events = reply.get("stream") if isinstance(reply, Mapping) else reply
    is_boto = type(events).__module__.startswith("botocore.")
    return _read(events) if is_boto and hasattr(events, "__iter__") else None


def _read(stream: Any) -> Iterator[Any]:
    """The events of a stream of boto3's, which does not close itself."""
    try:
        yield from stream
    finally:
        stream.close()

"""What is nested too deep in a request is set aside.

What a model nests deeper than `LEVELS` in its arguments, or a tool in its result, can be neither
compared nor sent by most. It is set aside as JSON text, and a line that names its ref stands in
its place; the rest of the message stays as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from ullage.core.contract.repaired import Repaired, news
from ullage.core.errors import FormatError
from ullage.core.history import canon
from ullage.core.history.raw import as_json
from ullage.core.history.snapshots import LEVELS, snapshot
from ullage.core.redaction import Redact, in_json
from ullage.core.turn.caches import SessionCache
from ullage.core.turn.request import Request
from ullage.core.values.effects import Output
from ullage.core.values.events import Event
from ullage.core.values.notices import aside

_BLOCK_LEVELS = 8
"""No block of any wire stands deeper: what does is somebody's arguments or result."""


def without_deep_values(
    request: Request, cache: SessionCache, redact: Redact | None
) -> tuple[Request, Repaired]:
    """The request without what is nested too deep, and what of that is new.

    Args:
        request: the request.
        cache: holds what was set aside last time.
        redact: takes secrets out of what is set aside, or None.
    """
    messages = list(request.history)
    outputs: list[Output] = []
    events: list[Event] = []
    for index, raw in enumerate(messages):
        if not _is_deep(raw, LEVELS):
            continue
        aside_here = _SetAside(f"{request.wire.key}[{index}]", redact)
        messages[index] = _flat(raw, _BLOCK_LEVELS, LEVELS - 1, aside_here)
        outputs += aside_here.outputs
        events.append(_event(index, aside_here.outputs))
    flattened = Repaired(messages, tuple(outputs), tuple(events))
    fresh = news(flattened, (cache.flat,))
    cache.flat = flattened
    return with_messages(request, messages, cache), fresh


def with_messages(
    request: Request, messages: Sequence[Any], cache: SessionCache
) -> Request:
    """The request with these messages; itself if they are its own."""
    if messages is request.history:
        return request
    wire = request.wire
    history = list(messages)
    raw = wire.compose(request.raw, history, ())
    envelope = cache.envelopes.read(raw, wire, request.envelope.model)
    return replace(request, raw=raw, history=list(messages), envelope=envelope)


def _event(index: int, outputs: Sequence[Output]) -> Event:
    """What is told of a message of which parts were set aside."""
    sizes = [f"{len(output.text):,} characters" for output in outputs]
    reason = f"{' and '.join(sizes)} were nested more than {LEVELS} levels deep and are set aside"
    return Event(
        kind="cut",
        where=f"message {index + 1}",
        why=reason,
        ref=outputs[0].ref,
    )


class _SetAside:
    """Sets values of one message aside.

    Args:
        path: the message, for errors.
        redact: takes secrets out of them, or None.
    """

    def __init__(self, path: str, redact: Redact | None) -> None:
        self.outputs: list[Output] = []
        self._where = path
        self._redact = redact

    def __call__(self, value: Any) -> str:
        """The line in place of a value that is set aside."""
        text = _json(value, self._where)
        if self._redact is not None:
            text = in_json(text, self._redact)
        ref = canon.ref_of(text)
        self.outputs.append(Output(ref, text))
        subject = f"what was nested more than {LEVELS} levels deep"
        return aside(subject, [(ref, len(text))])


def _is_deep(value: Any, levels: int) -> bool:
    """Whether a value has more levels."""
    try:
        snapshot(value, levels)
    except RecursionError:
        return True
    return False


def _flat(
    value: Any, block_levels: int, levels: int, set_aside: Callable[[Any], str]
) -> Any:
    """A value without what stands too deep in it; itself where nothing does.

    Args:
        value: the value.
        block_levels: so many of its levels are looked into; what is behind those stays or goes
            whole.
        levels: so many it may have.
        set_aside: gives the line in place of what goes.
    """
    if not block_levels:
        return set_aside(value) if _is_deep(value, levels) else value
    if isinstance(value, (list, tuple)):
        items = [
            _flat(item, block_levels - 1, levels - 1, set_aside)
            for item in value
        ]
        return value if _are_same(items, value) else items
    is_dict = isinstance(value, dict)
    fields = value if is_dict else getattr(value, "__dict__", {})
    levels -= 1 if is_dict else 2  # an object and its fields, as in a snapshot
    flat = {}
    for key, item in fields.items():
        flat[key] = _flat(item, block_levels - 1, levels, set_aside)
    if _are_same(list(flat.values()), list(fields.values())):
        return value
    if is_dict:
        return flat
    return {key: item for key, item in flat.items() if item is not None}


def _are_same(items: Sequence[Any], originals: Sequence[Any]) -> bool:
    """Whether all items are the very objects that they were made of."""
    pairs = zip(items, originals, strict=True)
    return all(item is original for item, original in pairs)


def _json(value: Any, path: str) -> str:
    """JSON text of a value, however deep; a FormatError if it holds itself or is no JSON."""
    pieces: list[str] = []
    within: set[int] = set()
    stack: list[tuple[Any, Iterator[tuple[str, Any]]]] = []

    def enter(item: Any) -> None:
        if not isinstance(item, (dict, list, tuple)):
            pieces.append(as_json(item, path))
            return
        if id(item) in within:
            raise FormatError(
                path, "it holds itself", "Give plain JSON values."
            )
        within.add(id(item))
        pieces.append("{" if isinstance(item, dict) else "[")
        stack.append((item, _items(item)))

    enter(value)
    while stack:
        holder, items = stack[-1]
        pair = next(items, None)
        if pair is not None:
            prefix, item = pair
            pieces.append(prefix)
            enter(item)
            continue
        stack.pop()
        within.discard(id(holder))
        pieces.append("}" if isinstance(holder, dict) else "]")
    return "".join(pieces)


def _items(holder: Any) -> Iterator[tuple[str, Any]]:
    """Each value in a dict or list, behind what is written before it."""
    separator = ""
    if isinstance(holder, dict):
        for key, item in holder.items():
            yield f"{separator}{canon.canonical_json(str(key))}:", item
            separator = ","
        return
    for item in holder:
        yield separator, item
        separator = ","

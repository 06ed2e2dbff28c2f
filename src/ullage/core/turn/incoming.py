"""The history of a request as a turn goes on from it: repaired, and nowhere too deep.

What a model nests deeper than `LEVELS` in its arguments, or a tool in its result, can be neither
compared nor sent by most. It is set aside as JSON text, and a line that names its ref stands in
its place; the rest of the message stays as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import is_
from typing import Any

from msgspec.structs import replace

from ullage.core.contract.repaired import Repaired, news, remember
from ullage.core.errors import FormatError
from ullage.core.history import canon
from ullage.core.history.raw import as_json
from ullage.core.history.snapshots import LEVELS, TooDeep, snapshot
from ullage.core.redaction import Redact, in_json
from ullage.core.turn.caches import HistoryCache, SessionCache
from ullage.core.turn.request import Request
from ullage.core.turn.settings import Settings
from ullage.core.values.authors import answered_by_user
from ullage.core.values.effects import Output
from ullage.core.values.events import Event
from ullage.core.values.notices import aside

_KEPT_LEVELS = 8
"""No block of any wire stands deeper: what does is somebody's arguments or result."""


def repair_and_cache(
    request: Request, cache: SessionCache, settings: Settings
) -> tuple[Request, HistoryCache, Repaired]:
    """The request with a history that can be gone on from, its line, and what was set aside.

    Raises:
        FormatError: a message is not what its format says it is, or cannot be made so.
    """
    try:
        return _followed(request, cache, settings)
    except TooDeep:
        request, flat = _flattened(request, cache, settings.redact)
    request, history, fresh = _followed(request, cache, settings)
    outputs, events = (*flat.outputs, *fresh.outputs), (*flat.events, *fresh.events)
    return request, history, Repaired((), outputs, events)


def _followed(
    request: Request, cache: SessionCache, settings: Settings
) -> tuple[Request, HistoryCache, Repaired]:
    found = (
        _repaired(request, cache, settings)
        if settings.repair
        else (request, Repaired(()))
    )
    user_tools = answered_by_user(settings.user_tools)
    history = cache.match_history(
        found[0], settings.tenant, settings.redact, user_tools
    )
    return found[0], history, found[1]


def _repaired(
    request: Request, cache: SessionCache, settings: Settings
) -> tuple[Request, Repaired]:
    """The request with a history that its provider takes, and what was repaired now."""
    wire, raws = request.wire, request.history
    strips = request.envelope.reasoning == "strip"
    model = request.envelope.model
    found = settings.formats.repair(
        wire, raws, cache.repaired, strips=strips, redact=settings.redact, model=model
    )
    fresh, cache.repaired = news(found, cache.repaired), remember(found, cache.repaired)
    return _with(request, found.messages, cache), fresh


def _flattened(
    request: Request, cache: SessionCache, redact: Redact | None
) -> tuple[Request, Repaired]:
    """The request without what is nested too deep, and what of that is new."""
    messages, outputs, events = list(request.history), list[Output](), list[Event]()
    for at, raw in enumerate(messages):
        if not _is_deep(raw, LEVELS):
            continue
        told = list[Output]()
        put = partial(
            _set_aside, where=f"{request.wire.key}[{at}]", redact=redact, told=told
        )
        messages[at] = _flat(raw, _KEPT_LEVELS, LEVELS - 1, put)
        sizes = " and ".join(f"{len(output.text):,} characters" for output in told)
        why = f"{sizes} were nested more than {LEVELS} levels deep and are set aside"
        events.append(
            Event(kind="cut", where=f"message {at + 1}", why=why, ref=told[0].ref)
        )
        outputs += told
    found = Repaired(messages, tuple(outputs), tuple(events))
    fresh, cache.flat = news(found, (cache.flat,)), found
    return _with(request, messages, cache), fresh


def _with(request: Request, messages: Sequence[Any], cache: SessionCache) -> Request:
    """The request with these messages; itself if they are its own."""
    if messages is request.history:
        return request
    raw = request.wire.compose(request.raw, list(messages), ())
    envelope = cache.envelopes.read(raw, request.wire, request.envelope.model)
    return replace(request, raw=raw, history=list(messages), envelope=envelope)


def _is_deep(value: Any, levels: int) -> bool:
    try:
        snapshot(value, levels)
    except RecursionError:
        return True
    return False


def _flat(value: Any, kept: int, left: int, set_aside: Callable[[Any], str]) -> Any:
    """A value without what stands too deep in it; itself where nothing does.

    It may have ``left`` levels. ``kept`` of them are looked into; what is behind those stays or
    goes whole.
    """
    if not kept:
        return set_aside(value) if _is_deep(value, left) else value
    if isinstance(value, (list, tuple)):
        items = [_flat(item, kept - 1, left - 1, set_aside) for item in value]
        return value if all(map(is_, items, value)) else items
    is_dict = isinstance(value, dict)
    fields = value if is_dict else getattr(value, "__dict__", {})
    left -= 1 if is_dict else 2  # an object and its fields, as in a snapshot
    flat = {key: _flat(item, kept - 1, left, set_aside) for key, item in fields.items()}
    if all(map(is_, flat.values(), fields.values())):
        return value
    return {key: item for key, item in flat.items() if is_dict or item is not None}


def _set_aside(
    value: Any, where: str, redact: Redact | None, told: list[Output]
) -> str:
    """The line in place of a value that is set aside."""
    text = _json(value, where)
    text = text if redact is None else in_json(text, redact)
    told.append(Output(canon.ref_of(text), text))
    return aside(
        f"what was nested more than {LEVELS} levels deep", [(told[-1].ref, len(text))]
    )


def _json(value: Any, where: str) -> str:
    """JSON text of a value, however deep; a FormatError if it holds itself or is no JSON."""
    pieces, within = list[str](), set[int]()
    open_: list[tuple[Any, Iterator[tuple[str, Any]]]] = []

    def enter(item: Any) -> None:
        if not isinstance(item, (dict, list, tuple)):
            pieces.append(as_json(item, where))
            return
        if id(item) in within:
            raise FormatError(where, "it holds itself", "Give plain JSON values.")
        within.add(id(item))
        pieces.append("{" if isinstance(item, dict) else "[")
        open_.append((item, _items(item)))

    enter(value)
    while open_:
        holder, rest = open_[-1]
        for name, item in rest:
            pieces.append(name)
            enter(item)
            break
        else:
            open_.pop()
            within.discard(id(holder))
            pieces.append("}" if isinstance(holder, dict) else "]")
    return "".join(pieces)


def _items(holder: Any) -> Iterator[tuple[str, Any]]:
    """Each value in a dict or list, behind what is written before it."""
    named: Iterable[tuple[str, Any]] = (("", item) for item in holder)
    if isinstance(holder, dict):
        named = (
            (f"{canon.canonical_json(str(key))}:", item) for key, item in holder.items()
        )
    for number, (name, item) in enumerate(named):
        yield f",{name}" if number else name, item

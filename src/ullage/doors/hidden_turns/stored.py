"""A reply that a provider stores, as its client may see it when it fetches it again.

The first round stands under the id that the client has, with the private call in it; what the
client was given is in the record of the reply (`ullage.doors.hidden_turns.record`). Lists of
items and messages hold private calls that were sent on with a later request.

    public = run(stored_reply(reply, wire, tenant), store, tenant)
    public = run(stored_items(page, wire, tenant), store, tenant)
    public = run(stored_replies(page, wire, tenant), store, tenant)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from ullage.documents import NAMES, preset
from ullage.doors.hidden_turns.record import (
    HiddenTurns,
    hidden_turns_in,
    private_call_key,
    reply_key,
)
from ullage.doors.host import Dialect, Find, Steps, Words, name_of_call
from ullage.doors.host import root as root_of
from ullage.wires import Format, wire_named

_PREFIX = "ullage_"


def stored_reply(
    reply: dict[str, Any], wire: Format, tenant: str
) -> Steps[dict[str, Any]]:
    """A reply that the provider kept, as its client got it; itself if nothing in it is private."""
    root = root_of(wire.name, tenant)
    key = reply_key(root, str(reply.get("id") or ""))
    hidden = hidden_turns_in((yield Find((key,))), key)
    if hidden is not None and hidden.reply is not None:
        return hidden.reply
    private_ids = yield from _private_ids(reply, root)
    return wire_named(wire.wire).dialect(wire, _owns(private_ids)).kept(reply)


def stored_items(
    page: dict[str, Any], wire: Format, tenant: str
) -> Steps[dict[str, Any]]:
    """A page of the items or messages of a request, without private calls and their results."""
    private_ids = yield from _private_ids(page, root_of(wire.name, tenant))
    items = page.get("data")
    if not private_ids or not isinstance(items, list):
        return page
    dialect = wire_named(wire.wire).dialect(wire, _owns(private_ids))
    visible = [_shown(item, dialect, private_ids) for item in items]
    return {**page, "data": [item for item in visible if item is not None]}


def stored_replies(
    page: dict[str, Any], wire: Format, tenant: str
) -> Steps[dict[str, Any]]:
    """A page of replies, each as its client got it, without those of rounds it never saw."""
    if not isinstance(page.get("data"), list):
        return page
    data = list[Any]()
    root = root_of(wire.name, tenant)
    for reply in _objects_in(page, "data"):
        key = reply_key(root, str(reply.get("id") or ""))
        records = yield Find((key,))
        if not records or hidden_turns_in(records, key) is not None:
            data.append((yield from stored_reply(reply, wire, tenant)))
    return page if data == page.get("data") else {**page, "data": data}


def rounds_of(
    reply_id: str, wire: Format, tenant: str
) -> Steps[tuple[str, ...]]:
    """The ids of the rounds behind a reply that its client never saw."""
    key = reply_key(root_of(wire.name, tenant), reply_id)
    hidden = hidden_turns_in((yield Find((key,))), key) or HiddenTurns([], [])
    return tuple(hidden.rounds)


def _private_ids(
    value: Mapping[str, Any], root: bytes
) -> Steps[frozenset[str]]:
    """The ids of the private calls in a value."""
    ids = sorted({*_call_ids(value)})
    keys = {private_call_key(root, name): name for name in ids}
    records = (yield Find(tuple(keys))) if keys else ()
    return frozenset(keys[record.key] for record in records)


def _call_ids(value: Any) -> Iterator[str]:
    """The ids of every call and result, at any depth."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, list):
            pending += item
        elif isinstance(item, dict):
            pending += item.values()
            for name in (item.get("call_id"), item.get("tool_call_id")):
                if isinstance(name, str):
                    yield name
            for call in _objects_in(item, "tool_calls"):
                yield str(call.get("id") or "")


def _objects_in(value: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects of the list in a field; none where a server has sent no list."""
    items = value.get(name)
    if not isinstance(items, list):
        return []
    return [item for item in items if isinstance(item, dict)]


def _owns(private_ids: Collection[str]) -> Callable[[Any], bool]:
    """Whether a call is private, or a definition ours."""

    def owns(value: Any) -> bool:
        if not isinstance(value, Mapping):
            return False
        if (
            value.get("call_id") in private_ids
            or value.get("id") in private_ids
        ):
            return True
        name = name_of_call(value).removeprefix(_PREFIX)
        function = value.get("function")
        body = function if isinstance(function, Mapping) else value
        return bool(body) and (name, body.get("description")) in _definitions()

    return owns


@lru_cache(maxsize=1)
def _definitions() -> frozenset[tuple[str, Any]]:
    """The names and descriptions of the recall tools of every policy that has a name."""
    toolsets: Iterable[Any] = (
        Words().toolset,
        *(preset(name).toolset for name in NAMES),
    )
    tools = (
        tool
        for toolset in toolsets
        for tool in (*toolset.tools, *toolset.former)
    )
    return frozenset((tool.name, tool.description) for tool in tools)


def _shown(item: Any, dialect: Dialect, private_ids: Collection[str]) -> Any:
    """An item as the client may see it; None for a private call and for its result."""
    if not isinstance(item, Mapping):
        return item
    if (
        item.get("call_id") in private_ids
        or item.get("tool_call_id") in private_ids
    ):
        return None
    return dialect.shown(item) if item.get("tool_calls") else item

"""What a provider keeps of a reply, as its client may see it when it asks for it again.

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
    held_key,
    hidden_key,
    splice_in,
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
    key = held_key(root, str(reply.get("id") or ""))
    splice = splice_in((yield Find((key,))), key)
    if splice is not None and splice.reply is not None:
        return splice.reply
    hidden = yield from _hidden(reply, root)
    return wire_named(wire.wire).dialect(wire, _owns(hidden)).kept(reply)


def stored_items(
    page: dict[str, Any], wire: Format, tenant: str
) -> Steps[dict[str, Any]]:
    """A page of the items or messages of a request, without private calls and their results."""
    hidden = yield from _hidden(page, root_of(wire.name, tenant))
    items = page.get("data")
    if not hidden or not isinstance(items, list):
        return page
    dialect = wire_named(wire.wire).dialect(wire, _owns(hidden))
    visible = [_shown(item, dialect, hidden) for item in items]
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
        key = held_key(root, str(reply.get("id") or ""))
        records = yield Find((key,))
        if not records or splice_in(records, key) is not None:
            data.append((yield from stored_reply(reply, wire, tenant)))
    return page if data == page.get("data") else {**page, "data": data}


def rounds_of(reply_id: str, wire: Format, tenant: str) -> Steps[tuple[str, ...]]:
    """The ids of the rounds behind a reply that its client never saw."""
    key = held_key(root_of(wire.name, tenant), reply_id)
    splice = splice_in((yield Find((key,))), key) or HiddenTurns([], [])
    return tuple(splice.rounds)


def _hidden(value: Mapping[str, Any], root: bytes) -> Steps[frozenset[str]]:
    """The ids of the private calls in a value."""
    ids = sorted({*_call_ids(value)})
    keys = {hidden_key(root, name): name for name in ids}
    records = (yield Find(tuple(keys))) if keys else ()
    return frozenset(keys[record.key] for record in records)


def _call_ids(value: Any) -> Iterator[str]:
    """The ids of every call and result, wherever it stands."""
    rest = [value]
    while rest:
        one = rest.pop()
        if isinstance(one, list):
            rest += one
        elif isinstance(one, dict):
            rest += one.values()
            names = (one.get("call_id"), one.get("tool_call_id"))
            yield from (name for name in names if isinstance(name, str))
            yield from (
                str(call.get("id") or "") for call in _objects_in(one, "tool_calls")
            )


def _objects_in(value: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects of the list in a field; none where a server has sent no list."""
    items = value.get(name)
    return (
        [item for item in items if isinstance(item, dict)]
        if isinstance(items, list)
        else []
    )


def _owns(hidden: Collection[str]) -> Callable[[Any], bool]:
    """Whether a call is private, or a definition ours."""

    def owns(value: Any) -> bool:
        if not isinstance(value, Mapping):
            return False
        if value.get("call_id") in hidden or value.get("id") in hidden:
            return True
        name = name_of_call(value).removeprefix(_PREFIX)
        body = (
            value.get("function")
            if isinstance(value.get("function"), Mapping)
            else value
        )
        return (name, body.get("description")) in _definitions() if body else False

    return owns


@lru_cache(maxsize=1)
def _definitions() -> frozenset[tuple[str, Any]]:
    """The names and descriptions of the recall tools of every policy that has a name."""
    toolsets: Iterable[Any] = (
        Words().toolset,
        *(preset(name).toolset for name in NAMES),
    )
    tools = (tool for toolset in toolsets for tool in (*toolset.tools, *toolset.former))
    return frozenset((tool.name, tool.description) for tool in tools)


def _shown(item: Any, dialect: Dialect, hidden: Collection[str]) -> Any:
    """An item as the client may see it; None of a private call, and of the result of one."""
    if not isinstance(item, Mapping):
        return item
    if item.get("call_id") in hidden or item.get("tool_call_id") in hidden:
        return None
    return dialect.shown(item) if item.get("tool_calls") else item

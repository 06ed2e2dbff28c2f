"""What comes in pieces put together: deltas of a stream, and what several rounds used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_ONCE = frozenset(("id", "index", "name", "type", "role", "format"))
"""Fields that come whole, by some servers with every piece."""


class Pieces(list[str]):
    """A text in pieces."""


def add(into: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Add a delta to what came before it, in place.

    Texts are put one behind the other, objects field by field. An item of a list goes to the item
    with its ``index``; without one it is an item of its own. Anything else takes the place of what
    was there, but for null.
    """
    for name, value in delta.items():
        current = into.get(name)
        if value is None:
            into.setdefault(name, None)
        elif isinstance(value, str) and name not in _ONCE:
            _add_text(into, name, value)
        elif isinstance(value, Mapping):
            inner = current if isinstance(current, dict) else {}
            into[name] = inner
            add(inner, value)
        elif isinstance(value, list):
            items = current if type(current) is list else []
            into[name] = items
            _add_items(items, value)
        elif current in (None, "") or not isinstance(value, str):
            into[name] = value


def _add_text(into: dict[str, Any], name: str, text: str) -> None:
    """Add a text to the one in a field, which is kept in pieces until `whole`."""
    current = into.get(name)
    if not isinstance(current, Pieces):
        current = Pieces([current] if isinstance(current, str) else ())
        into[name] = current
    current.append(text)


def _add_items(items: list[Any], deltas: Iterable[Any]) -> None:
    for delta in deltas:
        if not isinstance(delta, Mapping):
            items.append(delta)
            continue
        item = _item_with(items, delta.get("index"))
        if item is None:
            item = {}
            items.append(item)
        add(item, delta)


def _item_with(items: list[Any], index: Any) -> dict[str, Any] | None:
    """The item with this ``index``; None if there is none, or no index."""
    if index is None:
        return None
    for item in items:
        if isinstance(item, dict) and item.get("index") == index:
            return item
    return None


def whole(value: Any) -> Any:
    """A copy with every text in one piece."""
    if isinstance(value, Pieces):
        return "".join(value)
    if isinstance(value, dict):
        return {name: whole(item) for name, item in value.items()}
    if isinstance(value, list):
        return [whole(item) for item in value]
    return value


# ── usage ────────────────────────────────────────────────────────────────────────────────


def summed(
    usages: Sequence[Any], added: Sequence[str], total: str = ""
) -> Any:
    """What one reply of several rounds used: the prompt of the last round, the output of all.

    Not the prompts of all: clients take it for the size of the context, and compact by it.

    Args:
        usages: what each round reported, None where it reported nothing.
        added: the fields that are summed.
        total: the field that holds prompt and output together, if there is one.
    """
    reports = [usage for usage in usages if isinstance(usage, Mapping)]
    if not reports:
        return None
    if len(reports) == 1:
        return reports[0]
    *earlier, latest = reports
    total_usage = dict(latest)
    for name in added:
        for usage in earlier:
            if usage.get(name) is not None:
                total_usage[name] = _plus(usage[name], total_usage.get(name))
    if _is_number(total_usage.get(total)):
        for usage in earlier:
            for name in added:
                count = usage.get(name)
                if _is_number(count):
                    total_usage[total] += count or 0
    return total_usage


def _plus(earlier: Any, later: Any) -> Any:
    """The sum of two counts, of two objects of them, or of two lists of them by modality."""
    if earlier is None:
        return later
    if later is None:
        return earlier
    if _is_number(earlier) and _is_number(later):
        return earlier + later
    if isinstance(earlier, Mapping) and isinstance(later, Mapping):
        names = {**earlier, **later}
        return {
            name: _plus(earlier.get(name), later.get(name)) for name in names
        }
    if isinstance(earlier, list) and isinstance(later, list):
        return _by_modality(earlier, later)
    return later


def _by_modality(earlier: list[Any], later: list[Any]) -> list[Any]:
    counts: dict[Any, Any] = {}
    for item in (*earlier, *later):
        if not isinstance(item, Mapping):
            return later
        modality = str(item.get("modality"))
        sum_so_far = counts.get(modality, {}).get("tokenCount")
        tokens = _plus(sum_so_far, item.get("tokenCount"))
        counts[modality] = {**item, "tokenCount": tokens}
    return list(counts.values())


def _is_number(value: Any) -> bool:
    """Whether it counts: a boolean does not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)

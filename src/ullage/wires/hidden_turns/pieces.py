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
    for name, new in delta.items():
        old = into.get(name)
        if new is None:
            into.setdefault(name, None)
        elif isinstance(new, str) and name not in _ONCE:
            before = [old] if isinstance(old, str) else ()
            pieces = into[name] = old if isinstance(old, Pieces) else Pieces(before)
            pieces.append(new)
        elif isinstance(new, Mapping):
            inner = into[name] = old if isinstance(old, dict) else {}
            add(inner, new)
        elif isinstance(new, list):
            items = into[name] = old if type(old) is list else []
            _add_items(items, new)
        elif old is None or old == "" or not isinstance(new, str):
            into[name] = new


def _add_items(items: list[Any], new: Iterable[Any]) -> None:
    for item in new:
        if not isinstance(item, Mapping):
            items.append(item)
            continue
        index = item.get("index")
        known = (
            each
            for each in items
            if isinstance(each, dict) and each.get("index") == index
        )
        into = next(known, None) if index is not None else None
        if into is None:
            into = {}
            items.append(into)
        add(into, item)


def whole(value: Any) -> Any:
    """A copy with every text in one piece."""
    if isinstance(value, Pieces):
        return "".join(value)
    if isinstance(value, dict):
        return {name: whole(item) for name, item in value.items()}
    return [whole(item) for item in value] if isinstance(value, list) else value


# ── usage ────────────────────────────────────────────────────────────────────────────────


def summed(usages: Sequence[Any], added: Sequence[str], total: str = "") -> Any:
    """What one reply of several rounds used: the prompt of the last round, the output of all.

    Not the prompts of all: clients take it for the size of the context, and compact by it.

    Args:
        usages: what each round reported, None where it reported nothing.
        added: the fields that are summed.
        total: the field that holds prompt and output together, if there is one.
    """
    known = [usage for usage in usages if isinstance(usage, Mapping)]
    if len(known) < 2:
        return known[0] if known else None
    *earlier, last = known
    new = dict(last)
    for name in added:
        for usage in earlier:
            if usage.get(name) is not None:
                new[name] = _plus(usage[name], new.get(name))
    if _is_number(new.get(total)):
        outputs = [usage.get(name) for usage in earlier for name in added]
        new[total] += sum(number or 0 for number in outputs if _is_number(number))
    return new


def _plus(one: Any, other: Any) -> Any:
    """The sum of two counts, of two objects of them, or of two lists of them by modality."""
    if one is None or other is None:
        return one if other is None else other
    if _is_number(one) and _is_number(other):
        return one + other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        names = {**one, **other}
        return {name: _plus(one.get(name), other.get(name)) for name in names}
    if isinstance(one, list) and isinstance(other, list):
        return _by_modality(one, other)
    return other


def _by_modality(one: list[Any], other: list[Any]) -> list[Any]:
    counts: dict[Any, Any] = {}
    for each in (*one, *other):
        if not isinstance(each, Mapping):
            return other
        kind = str(each.get("modality"))
        before = counts.get(kind, {}).get("tokenCount")
        counts[kind] = {**each, "tokenCount": _plus(before, each.get("tokenCount"))}
    return list(counts.values())


def _is_number(value: Any) -> bool:
    """Whether it counts."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)

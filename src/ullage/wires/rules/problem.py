"""What a broken rule looks like."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from msgspec import Struct

from ullage.wires.rules.table import RULES

__all__ = ["Problem", "Report", "kind_of", "name_in", "plain", "plain_message"]

Wire: TypeAlias = dict[str, Any]
_DICT = {dict}


class Problem(Struct, frozen=True, gc=False):
    """One rule of a provider that a request breaks.

    Attributes:
        rule: its name in the tables of `ullage.wires.rules`, such as ``"A3"``.
        where: JSON path of the offending place, such as ``messages[3].content[0]``.
        sentence: what the provider asks for and what stands there instead; never content.
        remedy: what the caller can do.
        verified: whether the rule was read in the SDK or the documentation, or seen in public;
            if not, it is known from memory or by report (`Rule.source`).
    """

    rule: str
    where: str
    sentence: str
    remedy: str
    verified: bool = True


class Report:
    """Gathers problems; what to do about each comes from the table of rules."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    def add(self, rule: str, where: str, sentence: str) -> None:
        """Note that ``rule`` is broken at ``where``."""
        known = RULES[rule]
        self.found.append(Problem(rule, where, sentence, known.remedy, known.verified))

    def need(self, holds: object, rule: str, where: str, sentence: str) -> None:
        """Note it unless ``holds``."""
        if not holds:
            self.add(rule, where, sentence)

    def fields(self, rule: str, thing: Wire, wanted: Iterable[tuple[str, Any]], where: str) -> bool:
        """Whether each of these fields is there with its type; else ``rule`` is broken."""
        holds = True
        for name, kind in wanted:
            if not isinstance(thing.get(name), kind):
                holds = False
                self.add(rule, where, _lacks(name, kind))
        return holds


def plain(thing: Any) -> Any:
    """``thing`` as plain dicts and lists: objects with ``model_dump`` are dumped.

    Dumped as the vendors' clients send them: Google's without nulls, but with the role that a
    ``ModelContent`` has by its type; the others' without the fields nobody set.
    """
    if type(thing) is dict:
        return {key: plain(value) for key, value in thing.items()}
    if type(thing) is list or type(thing) is tuple:
        return [plain(value) for value in thing]
    dump = getattr(thing, "model_dump", None)
    if dump is None:
        return thing
    is_google = type(thing).__module__.startswith("google.")
    return dump(mode="json", by_alias=True, exclude_none=is_google, exclude_unset=not is_google)


def plain_message(message: Any) -> Any:
    """``message`` itself if its parts are dicts, else a dumped copy."""
    if type(message) is dict:
        for key in ("content", "tool_calls", "parts"):
            parts = message.get(key)
            if type(parts) is list and not set(map(type, parts)) <= _DICT:
                return plain(message)
        return message
    return plain(message)


def name_in(thing: Any, key: str) -> str | None:
    """The string ``thing`` holds under ``key``, or None whatever else it is."""
    name = thing.get(key) if type(thing) is dict else None
    return name if type(name) is str else None


def kind_of(value: Any) -> str:
    """The JSON name of a value's type, for sentences."""
    names = {dict: "an object", list: "a list", str: "a string", type(None): "null"}
    return names.get(type(value), f"a {type(value).__name__}")


def _lacks(name: str, kind: Any) -> str:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return f"the field {name!r} must be {' or '.join(kind_of(each()) for each in kinds)}"

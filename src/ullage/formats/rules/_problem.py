"""What a broken rule looks like, and what to do about each."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeAlias

from msgspec import Struct

__all__ = ["Problem", "Report", "kind_of", "name_in", "plain", "plain_message"]

Wire: TypeAlias = dict[str, Any]
_DICT = {dict}


class Problem(Struct, frozen=True, gc=False):
    """One rule of a provider that a request breaks.

    Attributes:
        rule: its name in the tables of `ullage.formats.rules`, such as ``"A3"``.
        where: JSON path of the offending place, such as ``messages[3].content[0]``.
        sentence: what the provider asks for and what stands there instead; never content.
        remedy: what the caller can do.
    """

    rule: str
    where: str
    sentence: str
    remedy: str


class Report:
    """Gathers problems; the remedy of each comes from the format's table."""

    def __init__(self, remedies: dict[str, str]) -> None:
        self.found: list[Problem] = []
        self._remedies = remedies

    def add(self, rule: str, where: str, sentence: str) -> None:
        """Note that ``rule`` is broken at ``where``."""
        self.found.append(Problem(rule, where, sentence, self._remedies[rule]))

    def need(self, holds: object, rule: str, where: str, sentence: str) -> None:
        """Note it unless ``holds``."""
        if not holds:
            self.add(rule, where, sentence)

    def fields(self, thing: Wire, wanted: Collection[tuple[str, type]], where: str) -> None:
        """Rule 0: each of these fields is there with its type."""
        for name, kind in wanted:
            if not isinstance(thing.get(name), kind):
                self.add("A0" if "A0" in self._remedies else "C0", where, _lacks(name, kind))


def plain(thing: Any) -> Any:
    """``thing`` as plain dicts and lists: objects with ``model_dump`` are dumped.

    Dumped as the vendors' clients send them, without the fields nobody set.
    """
    if type(thing) is dict:
        return {key: plain(value) for key, value in thing.items()}
    if type(thing) is list or type(thing) is tuple:
        return [plain(value) for value in thing]
    dump = getattr(thing, "model_dump", None)
    return thing if dump is None else dump(mode="json", by_alias=True, exclude_unset=True)


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


def _lacks(name: str, kind: type) -> str:
    return f"the field {name!r} must be {kind_of(kind())}"

"""What a broken rule looks like, and what the judges of all wires do alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, TypeAlias

from msgspec import Struct

from ullage.core.history.pairing import Pairing
from ullage.core.on_demand import table
from ullage.wires.block import Block

JsonObject: TypeAlias = dict[str, Any]
_DICT = {dict}
_VERIFIED = frozenset("SDI")
"""Sources that can be looked up: the SDK, its documentation, what was seen in public."""
_JSON_NAMES: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    type(None): "null",
}


class Rule(Struct, frozen=True, gc=False):
    """One rule of a provider.

    Attributes:
        asks: what the provider asks for.
        source: letters of where it was read: those of ``table.toml``.
        remedy: what a caller can do who broke it.
    """

    asks: str
    source: str
    remedy: str

    @property
    def verified(self) -> bool:
        """Whether it was read in the SDK, the documentation, or seen in public."""
        return bool(self.source) and _VERIFIED.issuperset(self.source)


RULES = table("ullage.wires.rules", "table.toml", dict[str, Rule])
"""Every rule that a request can break, by its name."""


class Problem(Struct, frozen=True, gc=False):
    """One rule of a provider that a request breaks.

    Attributes:
        rule: its name in `RULES`, such as ``"A3"``.
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


class Check(ABC):
    """One pass over the messages of a request, one message at a time.

    Attributes:
        head: the request without them, as plain JSON; empty if the messages are judged alone.
        messages: those fed so far.
        pairs: which result answers which call.
        found: the problems in them that stay, whatever follows.
    """

    key: ClassVar[str] = "messages"
    holds: ClassVar[tuple[str, ...]] = ("content",)
    """The fields of a message that hold lists of parts."""
    asks_one: ClassVar[tuple[str, str] | None]
    """The rule that asks for one message at least, and its sentence; None where no rule does."""

    def __init__(self, head: JsonObject | None = None) -> None:
        self.head = head or {}
        self.messages: list[Any] = []
        self.pairs = Pairing()
        self.found: list[Problem] = []
        self._is_request = head is not None

    @classmethod
    def listed(cls, history: Any) -> Any:
        """What stands under `key`, as a list where something else may stand there."""
        return history

    def feed(self, message: Any) -> None:
        """Judge the next message (a dict, or an object with ``model_dump``)."""
        at = len(self.messages)
        self.messages.append(self.plain(message))
        self._judge(self.messages[at], at, f"{self.key}[{at}]")

    def problems(self) -> list[Problem]:
        """What a request that ends with the message fed last would break, in order of judging."""
        whatever_follows = self.found.copy()
        if not self.messages and self.asks_one is not None:
            rule, sentence = self.asks_one
            self.add(rule, self.key, sentence)
        self._end()
        if self._is_request:
            self._request(self.head)
        problems = self.found
        self.found = whatever_follows
        return problems

    def plain(self, message: Any) -> Any:
        """A message itself if its parts are dicts, else a copy in plain dicts and lists."""
        if type(message) is not dict:
            return plain(message)
        for key in self.holds:
            parts = message.get(key)
            if type(parts) is tuple:
                return plain(message)
            if type(parts) is list and not set(map(type, parts)) <= _DICT:
                return plain(message)
        return message

    @abstractmethod
    def _judge(self, message: Any, at: int, path: str) -> None:
        """Judge a message by itself and by those before it."""

    @abstractmethod
    def _end(self) -> None:
        """Judge what is open where the messages end."""

    @abstractmethod
    def _request(self, head: JsonObject) -> None:
        """Judge the head, and what it asks of the messages."""

    # -- what is broken -------------------------------------------------------------------

    def add(self, rule: str, path: str, sentence: str) -> None:
        """Note that ``rule`` is broken at ``path``."""
        row = RULES[rule]
        problem = Problem(
            rule=rule,
            where=path,
            sentence=sentence,
            remedy=row.remedy,
            verified=row.verified,
        )
        self.found.append(problem)

    def need(self, holds: object, rule: str, path: str, sentence: str) -> None:
        """Note it unless ``holds``."""
        if not holds:
            self.add(rule, path, sentence)

    def block(
        self,
        rule: str,
        block: JsonObject,
        row: Block,
        path: str,
        unknown: str = "",
    ) -> None:
        """Judge the fields of a block by the row of its type.

        Args:
            rule: broken by a field that is missing or of another type.
            block: the block.
            row: of its type.
            path: its path.
            unknown: the rule broken by a field that the row does not have; ``""`` if any may
                stand there.
        """
        if unknown:
            self.unknown(
                row.unknown or unknown, row.unknown_fields(block), path
            )
        if not self.fields(rule, block, row.needs, path):
            return
        if row.one_of and not any(block.get(name) for name in row.one_of):
            self.add(
                rule, path, f"one of {', '.join(row.one_of)} is asked for"
            )
        for name, types in row.inner.items():
            self._inner(rule, block[name], types, f"{path}.{name}", unknown)

    def _inner(
        self,
        rule: str,
        inner: JsonObject,
        types: Mapping[str, tuple[str, ...]],
        path: str,
        unknown: str,
    ) -> None:
        """Judge an object in a field, by the fields that its type needs."""
        needed = types.get(name_in(inner, "type") or "")
        if needed is None:
            sentence = f"one of {', '.join(types)} is asked for"
            self.add(rule, f"{path}.type", sentence)
            return
        field = path.rpartition(".")[2]
        for name in needed:
            sentence = f"a {field} of this type has the field {name!r}"
            self.need(inner.get(name) is not None, rule, path, sentence)
        extra = [key for key in inner if key != "type" and key not in needed]
        self.unknown(unknown, extra, path)

    def fields(
        self, rule: str, thing: JsonObject, needs: Mapping[str, Any], path: str
    ) -> bool:
        """Whether each of these fields is there with its type; else ``rule`` is broken."""
        is_complete = True
        for name, kind in needs.items():
            if not isinstance(thing.get(name), kind):
                is_complete = False
                self.add(rule, path, _lacks(name, kind))
        return is_complete

    def unknown(self, rule: str, names: Iterable[object], path: str) -> None:
        """Note the fields that nothing of this type has."""
        extra = ", ".join(repr(name) for name in names)
        if extra:
            self.add(
                rule, path, f"fields the API does not know: {extra[:200]}"
            )


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
    return dump(
        mode="json",
        by_alias=True,
        exclude_none=is_google,
        exclude_unset=not is_google,
    )


def items_of(value: Any) -> list[Any]:
    """The items of a list; none of whatever else it is."""
    if type(value) is list:
        return value
    return []


def name_in(thing: Any, key: str) -> str | None:
    """The string ``thing`` holds under ``key``, or None whatever else it is."""
    name = thing.get(key) if type(thing) is dict else None
    if type(name) is str:
        return name
    return None


def kind_of(value: Any) -> str:
    """The JSON name of a value's type, for sentences."""
    kind = type(value)
    return _JSON_NAMES.get(kind, f"a {kind.__name__}")


def _lacks(name: str, kind: Any) -> str:
    """The sentence of a field that is missing or of another type than ``kind``."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    names = " or ".join(kind_of(allowed()) for allowed in kinds)
    return f"the field {name!r} must be {names}"

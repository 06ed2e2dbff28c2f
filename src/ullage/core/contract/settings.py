"""Settings as text: what a stage runs with, the same in every process.

A setting that cannot be written here cannot be known in another process either: an object at an
address, an open file, a client. It is refused by name, for otherwise each process would believe
that another policy decides (`ullage.policy.stages.fingerprints`).

    plain data          text, numbers, booleans, None, paths, patterns, members of an enum
    collections         tuples, lists, dicts, sets: by what they hold; dicts and sets in any order
    frozen values       structs and dataclasses that are frozen: by class and fields
    functions           by name, defaults, bound arguments, and what they captured
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import fields
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from types import ModuleType
from typing import Any

from msgspec import Struct

from ullage.core.errors import ConfigError
from ullage.core.history.measures import Measure

_OURS = "ullage."
_REMEDY = (
    "Give plain data, a frozen struct or dataclass of plain data, or a function with its settings "
    "bound by functools.partial."
)
_BASES = (str, int, float, complex, bytes)
"""A subclass of one of these is written as its base: its own ``repr`` may hold anything."""
_COMPREHENSION = re.compile(r"<(?:list|set|dict)comp>\.(?:<locals>\.)?")
"""What a name holds on Python 3.11 alone: later versions make no function of a comprehension."""


class Written(Struct, frozen=True):
    """Settings as text.

    Attributes:
        text: the text.
        is_ours: whether every function and class in it is ours.
    """

    text: str
    is_ours: bool


def written(value: Any, setting: str, *, names_ours: bool = True) -> Written:
    """A stage, a row of stages, or any setting of one, as text.

    Args:
        value: the value.
        setting: what it is called, for an error.
        names_ours: name our own functions and classes too. Without names, two of ours that have
            the same settings are written alike: what they show has to tell them apart.

    Raises:
        ConfigError: it holds something that another process cannot know.
    """
    writer = _Writer(names_ours=names_ours)
    text = writer.text(value, setting)
    return Written(text, writer.is_ours)


class _Writer:
    """Writes one value.

    Attributes:
        is_ours: whether everything named so far is ours.
    """

    def __init__(self, *, names_ours: bool) -> None:
        self.is_ours = True
        self._names_ours = names_ours
        self._within: list[int] = []

    def text(self, value: Any, setting: str) -> str:
        """A value as text; one that holds itself is written as ``…`` within itself."""
        plain = _plain(value)
        if plain is not None:
            return plain
        if id(value) in self._within:
            return "…"
        self._within.append(id(value))
        try:
            return self._composed(value, setting)
        finally:
            self._within.pop()

    def _composed(self, value: Any, setting: str) -> str:
        """What holds other values."""
        if isinstance(value, Enum):
            return f"{self._name(type(value))}.{value.name}"
        if isinstance(value, Mapping):
            return self._mapping(value, setting)
        if isinstance(value, (list, tuple)):
            texts = [self.text(item, setting) for item in value]
            return f"[{', '.join(texts)}]"
        if isinstance(value, Set):
            texts = sorted(self.text(item, setting) for item in value)
            return f"{{{', '.join(texts)}}}"
        if isinstance(value, Measure):
            return f"{value.name!r}{self._mapping(value.settings, setting)}"
        if isinstance(value, partial):
            return self._partial(value)
        if isinstance(value, type):
            return self._name(value)
        if hasattr(value, "__qualname__"):
            return self._function(value, {})
        return self._frozen(value, setting)

    def _mapping(self, value: Mapping[Any, Any], setting: str) -> str:
        pairs = []
        for key, item in value.items():
            name = key if isinstance(key, str) else setting
            pairs.append(f"{self.text(key, setting)}: {self.text(item, name)}")
        return f"{{{', '.join(sorted(pairs))}}}"

    def _partial(self, value: partial[Any]) -> str:
        label = _label(value)
        keywords = dict(value.keywords)
        if hasattr(value.func, "__qualname__"):
            text = self._function(value.func, keywords)
        else:
            text = self.text(value.func, "function")
            if keywords:
                text += self._mapping(keywords, label)
        arguments = [
            self.text(item, f"argument of {label}") for item in value.args
        ]
        if arguments:
            text += f"({', '.join(arguments)})"
        return text

    def _function(self, function: Any, bound: Mapping[str, Any]) -> str:
        """A function with its settings: those bound here over its defaults."""
        wrapped = getattr(function, "__wrapped__", None)
        if wrapped is not None and not hasattr(function, "__code__"):
            return self._function(wrapped, bound)  # such as one with a cache
        name = self._name(function)
        settings = {**_defaults(function), **bound}
        settings.update(_captured(function))
        owner = getattr(function, "__self__", None)
        if owner is not None and not isinstance(owner, (ModuleType, type)):
            settings["self"] = owner
        texts = []
        for key, item in settings.items():
            text = self.text(item, f"{key} of {_label(function)}")
            texts.append(f"{key}={text}")
        texts.sort()
        return f"{name}({', '.join(texts)})"

    def _frozen(self, value: Any, setting: str) -> str:
        """A frozen value by class and fields; anything else is refused."""
        names = _fields(value)
        if names is None:
            kind = type(value).__qualname__
            problem = f"a {kind} is nothing that another process could know the value of"
            raise ConfigError(setting, problem, _REMEDY)
        texts = []
        for name in sorted(names):
            text = self.text(getattr(value, name), name)
            texts.append(f"{name}={text}")
        return f"{self._name(type(value))}({', '.join(texts)})"

    def _name(self, named: Any) -> str:
        """The name of a function or class. Ours has no module, for ours may move."""
        home = getattr(
            named, "__objclass__", named
        )  # of a method of a built-in type
        module = str(home.__module__)
        name = _COMPREHENSION.sub("", named.__qualname__)
        if module.startswith(_OURS):
            return name if self._names_ours else "ours"
        if module != "builtins":
            self.is_ours = False
        return f"{module}.{name}"


def _plain(value: Any) -> str | None:
    """Plain data as text, or None."""
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, Enum):
        return None
    for base in _BASES:
        if isinstance(value, base):
            return base.__repr__(value)
    if isinstance(value, re.Pattern):
        return f"pattern({value.pattern!r}, {value.flags})"
    if isinstance(value, (Decimal, Fraction, range)):
        return f"{type(value).__name__}({value})"
    if hasattr(type(value), "__fspath__"):
        return f"path({value.__fspath__()!r})"
    return None


def _defaults(function: Any) -> dict[str, Any]:
    """The parameters of a function that have a default, and what that is."""
    code = getattr(function, "__code__", None)
    defaults = getattr(function, "__defaults__", None) or ()
    named = dict(getattr(function, "__kwdefaults__", None) or {})
    if code is None:
        return named
    positional = code.co_varnames[: code.co_argcount]
    by_position = positional[len(positional) - len(defaults) :]
    return {**dict(zip(by_position, defaults, strict=True)), **named}


def _captured(function: Any) -> Iterator[tuple[str, Any]]:
    """What a function captured from around it, by name.

    Raises:
        ConfigError: a variable has no value yet.
    """
    cells = getattr(function, "__closure__", None) or ()
    names = function.__code__.co_freevars if cells else ()
    for name, cell in zip(names, cells, strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:
            raise ConfigError(
                f"{name} of {_label(function)}",
                "it has no value yet",
                "Assign it before the session is made.",
            ) from None


def _fields(value: Any) -> tuple[str, ...] | None:
    """The fields of a frozen value, or None for anything else."""
    if isinstance(value, Struct):
        return (
            value.__struct_fields__ if value.__struct_config__.frozen else None
        )
    parameters = getattr(type(value), "__dataclass_params__", None)
    if parameters is not None and parameters.frozen:
        return tuple(field.name for field in fields(value))
    return None


def _label(function: Any) -> str:
    """What a function is called in an error."""
    inner = function.func if isinstance(function, partial) else function
    return str(getattr(inner, "__name__", type(inner).__name__))

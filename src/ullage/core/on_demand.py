"""What is worked out when it is first asked for: public names (PEP 562), tables beside the modules,
and what follows from a short text.

A package lists its names twice, side by side: as imports that only type checkers and editors
see, and as a table for `names`. ``tests/house`` checks that the two agree.

    if TYPE_CHECKING:
        from ullage.session.session import Session as Session
    else:
        __getattr__, __dir__ = names(__name__, {"ullage.session.session": "Session"})
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from importlib import import_module
from typing import TypeVar

T = TypeVar("T")


def names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package.

    Args:
        package: its ``__name__``.
        homes: of each module, the names that are found in it, parted by blanks; of a package its
            modules too. No name that is found elsewhere may be that of a module of the package:
            importing it would hide the name.
    """
    home_of = {
        name: home for home, listed in homes.items() for name in listed.split()
    }

    def get(name: str) -> object:
        if name not in home_of:
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}"
            )
        home = home_of[name]
        if home == package:
            return import_module(f"{package}.{name}")
        module = import_module(home)
        if not hasattr(module, name):  # it is a module of that package
            import_module(f"{home}.{name}")
        value: object = getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    def listing() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home_of})

    return get, listing


def table(package: str, file: str, kind: type[T]) -> T:
    """What a TOML file among the modules of a package holds: as constant as they are."""
    from pkgutil import get_data

    from msgspec import toml

    data = get_data(package, file)
    assert data is not None, (
        f"{package} was imported by something that cannot read {file}"
    )
    return toml.decode(data, type=kind)


def cached_by_text(
    most_texts: int, most_chars: int = 256
) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """A decorator for a function of one text: what it gives for short ones is remembered.

    Texts come from requests, and a cache holds its keys. One with a bound in number alone would
    hold names of megabytes.

    Args:
        most_texts: how many texts are remembered.
        most_chars: the longest of them; what is longer is worked out each time.
    """

    def decorated(function: Callable[[str], T]) -> Callable[[str], T]:
        remembered = lru_cache(maxsize=most_texts)(function)

        @wraps(function)
        def short_or_anew(text: str) -> T:
            return (
                remembered(text) if len(text) <= most_chars else function(text)
            )

        return short_or_anew

    return decorated

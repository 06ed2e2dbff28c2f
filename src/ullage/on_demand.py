"""What loads when it is first asked for: public names (PEP 562), and tables beside the modules.

A package lists its names twice, side by side: as imports that only type checkers and editors
see, and as a table for `names`. ``tests/house`` checks that the two agree.

    if TYPE_CHECKING:
        from ullage.session import Session as Session
    else:
        __getattr__, __dir__ = names(__name__, {"ullage.session": "Session"})
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TypeVar

T = TypeVar("T")


def names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package.

    Args:
        package: its ``__name__``.
        homes: of each module, the names that are found in it, parted by blanks; under the
            package's own name, modules of it. No other name may be that of a module of the
            package: importing it would hide the name.
    """
    home_of = {name: home for home, listed in homes.items() for name in listed.split()}

    def get(name: str) -> object:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = home_of[name]
        if home == package:
            return import_module(f"{package}.{name}")
        found: object = getattr(import_module(home), name)
        setattr(sys.modules[package], name, found)
        return found

    def listing() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home_of})

    return get, listing


def table(package: str, file: str, kind: type[T]) -> T:
    """What a TOML file among the modules of a package holds: as constant as they are."""
    from pkgutil import get_data

    from msgspec import toml

    data = get_data(package, file)
    assert data is not None, f"{package} was imported by something that cannot read {file}"
    return toml.decode(data, type=kind)

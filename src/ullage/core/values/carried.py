"""What lives in one process, copied and pickled: stores, budgets, collections, adapters.

Frameworks copy agents and what hangs on them, and send both to other processes. A copy of what has
a file, a server or an account behind it is the thing itself. Pickled, it is what it was made with,
and made again from that. What cannot go along (a lock, a connection, a function without a name) or
should not unasked (a password) is refused, with what to carry in its place.
"""

from __future__ import annotations

import re
from typing import Any, Self, TypeAlias

from ullage.core.errors import NotCarried

Arguments: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]

_SECRET = re.compile(
    r"://[^/?#\s]*:[^/?#\s]*@"  # user:password@host
    r"|(?i:password|secret|token|access_key)[^=&\s]*\s*="
)


class Portable:
    """Copied, it is the same object; pickled, it is made again from its arguments."""

    _arguments: Arguments

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Remember what it is made with."""
        instance = super().__new__(cls)
        instance._arguments = (args, kwargs)
        return instance

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> Any:
        args, kwargs = self._made_with()
        kind = type(self).__name__
        for number, value in enumerate(args, 1):
            check(f"argument {number} of {kind}", value)
        for name, value in kwargs.items():
            check(f"{name} of {kind}", value)
        return made_anew, (type(self), args, kwargs)

    def _made_with(self) -> Arguments:
        """The arguments that make it anew in another process."""
        return self._arguments


def made_anew(
    kind: type[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """What was pickled, in the process that it came to."""
    return kind(*args, **kwargs)


def check(name: str, value: Any) -> None:
    """Refuse what cannot be pickled, or holds a password.

    Args:
        name: what it is called in the error.
        value: an argument of what is pickled.

    Raises:
        NotCarried: it is such a thing. Its content is not shown.
    """
    if isinstance(value, str) and _SECRET.search(value):
        remedy = "Give the address without it, and the password by the environment, or carry "
        raise NotCarried(name, "it holds a password", remedy + _STATE)
    import pickle  # it is there: it calls this

    try:
        pickle.dumps(value)
    except NotCarried:
        raise
    except Exception as error:  # noqa: BLE001 - whatever its own code raises
        kind = type(value).__name__
        problem = f"a {kind} cannot be pickled ({type(error).__name__})"
        remedy = (
            "Give a function of a module or an object that can be, or carry "
        )
        raise NotCarried(name, problem, remedy + _STATE) from None


_STATE = "session.state, and make the rest again in the other process: Session(…, state=state)"

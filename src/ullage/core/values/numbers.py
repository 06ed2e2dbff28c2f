"""Numbers that are written as they were read.

A client may write a number as Python does not: ``1e2``, ``0.10``, ``1e400``, more digits than a
double has. What is not edited goes on to the provider as the client wrote it, so a number keeps
its literal where writing its value would give another. In every other way it is a float.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw


class Number(float):
    """A float that remembers how it was written.

    Attributes:
        literal: the number's text in JSON.
    """

    __slots__ = ("literal",)
    literal: str

    def __new__(cls, literal: str) -> Number:
        """Read a literal; one over the range of a double is an infinity."""
        number = super().__new__(cls, literal)
        number.literal = str(literal)
        return number

    def __getnewargs__(self) -> tuple[str]:  # type: ignore[override]
        return (self.literal,)


def number_of(literal: str) -> float:
    """The value of a JSON number with a fraction or an exponent: for ``float_hook``."""
    value = float(literal)
    return value if repr(value) == literal else Number(literal)


def as_written(value: Any) -> Raw:
    """The text of a `Number`: for ``enc_hook``.

    Raises:
        TypeError: it is not a number.
    """
    literal = (
        value.literal if isinstance(value, Number) else repr(_plain(value))
    )
    return Raw(literal.encode())


def _plain(value: Any) -> float:
    if not isinstance(value, float):
        raise TypeError(f"a {type(value).__name__} is no JSON value")
    return float(value)

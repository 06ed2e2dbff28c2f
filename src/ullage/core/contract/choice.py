"""Which tools the model may call in its next reply, as a request says it."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct


class Choice(Struct, frozen=True):
    """The tools that may be called in reply to a request.

    Attributes:
        names: their names; None for every tool of the request.
        is_open: whether the model may also answer in words. A list of tools can be longer then
            without changing what the caller asks for.
    """

    names: frozenset[str] | None = None
    is_open: bool = True

    @property
    def forbids(self) -> bool:
        """Whether no tool may be called."""
        return self.names == frozenset()

    def allows(self, names: Iterable[str]) -> bool:
        """Whether each of these tools may be called."""
        return self.names is None or self.names.issuperset(names)

    @property
    def takes_more(self) -> bool:
        """Whether names may be added to the list of a request."""
        return bool(self.names) and self.is_open


ANY = Choice()
"""Every tool may be called, and none has to be."""
FORCED = Choice(is_open=False)
"""Every tool may be called, and one has to be."""
NONE = Choice(frozenset())
"""No tool may be called."""

"""What is closed at the end of a ``with`` block, or of an ``async with`` block."""

from __future__ import annotations

from typing import Any, Self

from ullage.core.values.carried import Portable


class Closing:
    """A context manager that calls `close` at the end of its block."""

    def close(self) -> None:
        """Release the resources that are held."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncClosing:
    """`Closing` for an event loop."""

    async def close(self) -> None:
        """Release the resources that are held."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


class SharedStore(Portable):
    """A store that many sessions share: closing one of them does not close it."""

    def __init__(self, store: Any) -> None:
        self.store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def close(self) -> Any:
        """Do nothing: the owner of the store closes it."""


class AsyncSharedStore(SharedStore):
    """`SharedStore` for an event loop."""

    async def close(self) -> None:
        """See `SharedStore.close`."""

"""What is closed at the end of a ``with`` block, or of an ``async with`` block."""

from __future__ import annotations

from typing import Self


class Closing:
    """Closed at the end of its block."""

    def close(self) -> None:
        """Let go of what is held."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncClosing:
    """`Closing` for an event loop."""

    async def close(self) -> None:
        """Let go of what is held."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

"""A choice among names. It loads nothing else, so that what starts a server stays light."""

from __future__ import annotations

from typing import Any

import click

from ullage.core.errors import did_you_mean


class NamedChoice(click.Choice):  # type: ignore[type-arg]
    """One of several names; a mistyped one is answered with the nearest."""

    def get_invalid_choice_message(
        self, value: Any, ctx: click.Context | None
    ) -> str:
        """What is said of a value that is none of them."""
        question = did_you_mean(str(value), map(str, self.choices))
        names = ", ".join(map(str, self.choices))
        return f"{str(value)!r} is unknown. {question}Choose one of {names}."

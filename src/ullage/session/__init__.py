"""Sessions: a turn as most users meet it. `Session`, and its twin for an event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ullage.on_demand import names

__all__ = ["Session", "fit"]

if TYPE_CHECKING:
    from ullage.session.session import Session, fit
else:
    __getattr__, __dir__ = names(__name__, {"ullage.session.session": "Session fit"})

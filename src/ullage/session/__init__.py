"""Sessions: a turn as most users meet it. `Session`, and its twin for an event loop."""

from ullage.session.session import Session, fit

__all__ = ["Session", "fit"]

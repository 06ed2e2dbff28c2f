"""What can be tried: every preset, and what must lose to the default."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from ullage.presets import NAMES, preset
from ullage.stages.policy import Policy

__all__ = ["POLICIES"]

POLICIES: Mapping[str, Callable[[], Policy]] = {name: partial(preset, name) for name in NAMES}
"""A policy by its name."""

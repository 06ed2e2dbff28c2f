"""ullage keeps room in the context window of tool-using agents.

A turn's request goes in; a request that fits comes out; everything set aside can be called
back, byte for byte; every token is accounted for. Start with `Session`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ullage.budget import Budget
from ullage.calls import Call, Spent
from ullage.edits import Batch, Cut, Edit, Place, Replace, Span
from ullage.effects import Output, Record
from ullage.errors import (
    BudgetExceeded,
    ConfigError,
    FormatError,
    OverLimitError,
    RefNotFound,
    StoreError,
    SummaryError,
    UllageError,
    UnsupportedPart,
)
from ullage.events import Event
from ullage.formats.judge import problems
from ullage.formats.rules import Problem
from ullage.limits import Limits
from ullage.overflow import Overflow, is_overflow
from ullage.policy import Policy, Stage
from ullage.recall.found import ToolOutputRef
from ullage.session import Session, fit
from ullage.stores import AsyncStore, MemoryStore, SqliteStore, Store
from ullage.turn import State
from ullage.usage import Usage
from ullage.window import Window

__version__ = "0.1.0"

__all__ = [
    "AsyncSession",
    "AsyncStore",
    "Batch",
    "Budget",
    "BudgetExceeded",
    "Call",
    "ConfigError",
    "Cut",
    "Edit",
    "Event",
    "FormatError",
    "Limits",
    "MemoryStore",
    "Output",
    "OverLimitError",
    "Overflow",
    "Place",
    "Policy",
    "Problem",
    "Record",
    "RefNotFound",
    "Replace",
    "Session",
    "Span",
    "Spent",
    "SqliteStore",
    "Stage",
    "State",
    "Store",
    "StoreError",
    "SummaryError",
    "ToolOutputRef",
    "UllageError",
    "UnsupportedPart",
    "Usage",
    "Window",
    "__version__",
    "convert",
    "fit",
    "is_overflow",
    "problems",
]

if TYPE_CHECKING:
    from ullage.aio import AsyncSession
    from ullage.formats.convert import convert


def __getattr__(name: str) -> Any:
    """``ullage.AsyncSession`` and ``ullage.convert``, loaded when they are first asked for."""
    if name == "AsyncSession":
        from ullage.aio import AsyncSession

        return AsyncSession
    if name == "convert":
        from ullage.formats.convert import convert

        return convert
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

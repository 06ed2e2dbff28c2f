"""ullage keeps room in the context window of tool-using agents.

A turn's request goes in; a request that fits comes out; everything set aside can be called
back, byte for byte; every token is accounted for. Start with `Session`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ullage.errors import (
    BudgetExceeded,
    ConfigError,
    FormatError,
    OverLimitError,
    RefNotFound,
    SpillNotFound,
    StoreError,
    SummaryError,
    UllageError,
    UnsupportedPart,
)
from ullage.history.window import Window
from ullage.recall.found import ToolOutputRef
from ullage.session import Session, fit
from ullage.spend.budget import Budget
from ullage.spend.calls import Call, Spent
from ullage.stages.policy import Policy, Stage
from ullage.stores import AsyncStore, MemoryStore, SqliteStore, Store
from ullage.turn import State
from ullage.values.edits import Address, Batch, Cut, Edit, Replace, Summary
from ullage.values.effects import Output, Record
from ullage.values.events import Event
from ullage.values.limits import Limits
from ullage.values.usage import Modalities, Usage
from ullage.wires.overflow import Overflow, is_overflow

__version__ = "0.1.0"

__all__ = [
    "Address",
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
    "Modalities",
    "Output",
    "OverLimitError",
    "Overflow",
    "Policy",
    "Problem",
    "Record",
    "RefNotFound",
    "Replace",
    "Session",
    "Spent",
    "SpillNotFound",
    "SqliteStore",
    "Stage",
    "State",
    "Store",
    "StoreError",
    "Summary",
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
    from ullage.session.aio import AsyncSession
    from ullage.wires.convert import convert
    from ullage.wires.judge import problems
    from ullage.wires.rules.checker import Problem

_ON_DEMAND = {
    "AsyncSession": "ullage.session.aio",
    "Problem": "ullage.wires.rules.checker",
    "convert": "ullage.wires.convert",
    "problems": "ullage.wires.judge",
}


def __getattr__(name: str) -> Any:
    """What not every program asks for, loaded when it is first asked for."""
    if name in _ON_DEMAND:
        return getattr(import_module(_ON_DEMAND[name]), name)
    if name == "loop":
        return import_module("ullage.loop")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

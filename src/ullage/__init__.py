"""ullage keeps room in the context window of tool-using agents.

A turn's request goes in; a request that fits comes out; everything set aside can be called
back, byte for byte; every token is accounted for. Start with `Session`.

Importing the package loads next to nothing: each name brings its module when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ullage.on_demand import names

__version__ = "0.1.0"

__all__ = [
    "Address",
    "Answer",
    "AsyncSession",
    "AsyncSessions",
    "AsyncStore",
    "AsyncView",
    "Batch",
    "Budget",
    "BudgetExceeded",
    "Call",
    "ConfigError",
    "Cut",
    "Decision",
    "Edit",
    "Event",
    "FormatError",
    "Host",
    "Limits",
    "MemoryStore",
    "Modalities",
    "NotCarried",
    "Output",
    "OverLimitError",
    "Overflow",
    "Policy",
    "Preview",
    "Problem",
    "Record",
    "RefNotFound",
    "Replace",
    "Session",
    "Sessions",
    "SharedBudget",
    "Spent",
    "SpillNotFound",
    "SqliteStore",
    "Stage",
    "StageError",
    "State",
    "Store",
    "StoreError",
    "StoreFull",
    "Summary",
    "SummaryError",
    "TargetNotFound",
    "ToolOutputRef",
    "ToolSpec",
    "UllageError",
    "UnsupportedPart",
    "Usage",
    "View",
    "Window",
    "__version__",
    "common_keys",
    "conversation",
    "convert",
    "cut_result",
    "fit",
    "is_overflow",
    "open_result",
    "problems",
    "recall_tools",
    "wrap",
    "wrapped",
]

if TYPE_CHECKING:
    from ullage import loop as loop
    from ullage import presets as presets
    from ullage import stages as stages
    from ullage import stores as stores
    from ullage import summarise as summarise
    from ullage.errors import (
        BudgetExceeded,
        ConfigError,
        FormatError,
        NotCarried,
        OverLimitError,
        RefNotFound,
        SpillNotFound,
        StageError,
        StoreError,
        StoreFull,
        SummaryError,
        TargetNotFound,
        UllageError,
        UnsupportedPart,
    )
    from ullage.exchange.exchanges import conversation
    from ullage.history.window import Window
    from ullage.recall.dispatch import Answer
    from ullage.recall.found import ToolOutputRef
    from ullage.recall.tools import recall_tools
    from ullage.redaction import common_keys
    from ullage.session.aio import AsyncSession
    from ullage.session.preview import Preview
    from ullage.session.results import cut_result, open_result
    from ullage.session.session import Session, fit
    from ullage.session.sessions import AsyncSessions, Sessions
    from ullage.session.view import AsyncView, View
    from ullage.spend.budget import Budget
    from ullage.spend.calls import Call, Spent
    from ullage.spend.shared import SharedBudget
    from ullage.stages.policy import Policy, Stage
    from ullage.stores._base import AsyncStore, Store
    from ullage.stores.memory import MemoryStore
    from ullage.stores.sqlite import SqliteStore
    from ullage.turn.turn import State
    from ullage.values.decisions import Decision
    from ullage.values.edits import Address, Batch, Cut, Edit, Replace, Summary
    from ullage.values.effects import Output, Record
    from ullage.values.events import Event
    from ullage.values.limits import Limits
    from ullage.values.toolset import ToolSpec
    from ullage.values.usage import Modalities, Usage
    from ullage.wires.convert import convert
    from ullage.wires.host import Host
    from ullage.wires.overflow import Overflow, is_overflow
    from ullage.wires.rules.checker import problems
    from ullage.wires.rules.problem import Problem
    from ullage.wrapping._clients import wrap, wrapped
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "ullage": "loop presets stages stores summarise",
            "ullage.errors": "BudgetExceeded ConfigError FormatError NotCarried OverLimitError "
            "RefNotFound SpillNotFound StageError StoreError StoreFull SummaryError TargetNotFound "
            "UllageError UnsupportedPart",
            "ullage.exchange.exchanges": "conversation",
            "ullage.history.window": "Window",
            "ullage.recall.dispatch": "Answer",
            "ullage.recall.found": "ToolOutputRef",
            "ullage.recall.tools": "recall_tools",
            "ullage.redaction": "common_keys",
            "ullage.session.aio": "AsyncSession",
            "ullage.session.preview": "Preview",
            "ullage.session.results": "cut_result open_result",
            "ullage.session.session": "Session fit",
            "ullage.session.sessions": "AsyncSessions Sessions",
            "ullage.session.view": "AsyncView View",
            "ullage.spend.budget": "Budget",
            "ullage.spend.calls": "Call Spent",
            "ullage.spend.shared": "SharedBudget",
            "ullage.stages.policy": "Policy Stage",
            "ullage.stores._base": "AsyncStore Store",
            "ullage.stores.memory": "MemoryStore",
            "ullage.stores.sqlite": "SqliteStore",
            "ullage.turn.turn": "State",
            "ullage.values.decisions": "Decision",
            "ullage.values.edits": "Address Batch Cut Edit Replace Summary",
            "ullage.values.effects": "Output Record",
            "ullage.values.events": "Event",
            "ullage.values.limits": "Limits",
            "ullage.values.toolset": "ToolSpec",
            "ullage.values.usage": "Modalities Usage",
            "ullage.wires.convert": "convert",
            "ullage.wires.host": "Host",
            "ullage.wires.rules.checker": "problems",
            "ullage.wires.overflow": "Overflow is_overflow",
            "ullage.wires.rules.problem": "Problem",
            "ullage.wrapping._clients": "wrap wrapped",
        },
    )

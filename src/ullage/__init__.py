"""ullage keeps room in the context window of tool-using agents.

A turn's request goes in; a request that fits comes out; everything set aside can be called
back, byte for byte; every token is accounted for. Start with `Session`.

Importing the package loads next to nothing: each name brings its module when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ullage.core.on_demand import names

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
    "BudgetUse",
    "Call",
    "ConfigError",
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
    "ProposedEdit",
    "Record",
    "RefNotFound",
    "Replace",
    "ReplaceSpan",
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
    "SummaryError",
    "TargetNotFound",
    "TeamBudget",
    "TeamBudgetExceeded",
    "TeamBudgets",
    "TeamCall",
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
    from ullage import documents as documents
    from ullage import policy as policy
    from ullage import stores as stores
    from ullage.core.contract.policy import Policy, Stage
    from ullage.core.errors import (
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
        TeamBudgetExceeded,
        UllageError,
        UnsupportedPart,
    )
    from ullage.core.history.window import Window
    from ullage.core.redaction import common_keys
    from ullage.core.turn.state import State
    from ullage.core.values.decisions import Decision
    from ullage.core.values.edits import (
        Address,
        Batch,
        Edit,
        ProposedEdit,
        Replace,
        ReplaceSpan,
    )
    from ullage.core.values.effects import Output, Record
    from ullage.core.values.events import Event
    from ullage.core.values.limits import Limits
    from ullage.core.values.toolset import ToolSpec
    from ullage.core.values.usage import Modalities, Usage
    from ullage.doors import loop as loop
    from ullage.doors.exchange.exchanges import conversation
    from ullage.doors.wrapping._clients import wrap, wrapped
    from ullage.session import summarise as summarise
    from ullage.session.aio import AsyncSession
    from ullage.session.decisions.preview import Preview
    from ullage.session.recall.dispatch import Answer
    from ullage.session.recall.found import ToolOutputRef
    from ullage.session.recall.tools import recall_tools
    from ullage.session.results import cut_result, open_result
    from ullage.session.session import Session, fit
    from ullage.session.sessions import AsyncSessions, Sessions
    from ullage.session.spend.budget import Budget
    from ullage.session.spend.calls import Call, Spent
    from ullage.session.spend.shared import SharedBudget
    from ullage.session.spend.teams import (
        BudgetUse,
        TeamBudget,
        TeamBudgets,
        TeamCall,
    )
    from ullage.session.view import AsyncView, View
    from ullage.stores._base import AsyncStore, Store
    from ullage.stores.memory import MemoryStore
    from ullage.stores.sqlite import SqliteStore
    from ullage.wires.convert import convert
    from ullage.wires.host import Host
    from ullage.wires.overflow import Overflow, is_overflow
    from ullage.wires.rules.checker import problems
    from ullage.wires.rules.problem import Problem
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "ullage": "documents policy stores",
            "ullage.doors": "loop",
            "ullage.session": "summarise",
            "ullage.core.errors": "BudgetExceeded ConfigError FormatError NotCarried "
            "OverLimitError "
            "RefNotFound SpillNotFound StageError StoreError StoreFull SummaryError TargetNotFound "
            "TeamBudgetExceeded UllageError UnsupportedPart",
            "ullage.doors.exchange.exchanges": "conversation",
            "ullage.core.history.window": "Window",
            "ullage.session.recall.dispatch": "Answer",
            "ullage.session.recall.found": "ToolOutputRef",
            "ullage.session.recall.tools": "recall_tools",
            "ullage.core.redaction": "common_keys",
            "ullage.session.aio": "AsyncSession",
            "ullage.session.decisions.preview": "Preview",
            "ullage.session.results": "cut_result open_result",
            "ullage.session.session": "Session fit",
            "ullage.session.sessions": "AsyncSessions Sessions",
            "ullage.session.view": "AsyncView View",
            "ullage.session.spend.budget": "Budget",
            "ullage.session.spend.calls": "Call Spent",
            "ullage.session.spend.shared": "SharedBudget",
            "ullage.session.spend.teams": (
                "BudgetUse TeamBudget TeamBudgets TeamCall"
            ),
            "ullage.core.contract.policy": "Policy Stage",
            "ullage.stores._base": "AsyncStore Store",
            "ullage.stores.memory": "MemoryStore",
            "ullage.stores.sqlite": "SqliteStore",
            "ullage.core.turn.state": "State",
            "ullage.core.values.decisions": "Decision",
            "ullage.core.values.edits": "Address Batch Edit ProposedEdit Replace ReplaceSpan",
            "ullage.core.values.effects": "Output Record",
            "ullage.core.values.events": "Event",
            "ullage.core.values.limits": "Limits",
            "ullage.core.values.toolset": "ToolSpec",
            "ullage.core.values.usage": "Modalities Usage",
            "ullage.wires.convert": "convert",
            "ullage.wires.host": "Host",
            "ullage.wires.rules.checker": "problems",
            "ullage.wires.overflow": "Overflow is_overflow",
            "ullage.wires.rules.problem": "Problem",
            "ullage.doors.wrapping._clients": "wrap wrapped",
        },
    )

"""What runs the loop: for threads, and for an event loop. They differ in ``await`` alone."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from ullage import AsyncSession, Session
from ullage.core.errors import ConfigError
from ullage.doors.host import adrive, drive
from ullage.doors.loop.steps import (
    UNCOUNTED_TOOLS,
    AgentTurn,
    Limit,
    Outcome,
    ParallelActions,
)
from ullage.doors.loop.tools import Tool, by_name


def run_turn(
    call: Callable[..., Any],
    session: Session,
    request: Mapping[str, Any],
    *,
    tools: Iterable[Tool | Callable[..., Any]] = (),
    max_iterations: int = 20,
    max_uncounted: int = 100,
    uncounted: Collection[str] = UNCOUNTED_TOOLS,
) -> Outcome:
    """Run an agent until the model has answered.

    Run again with the same request, it goes on where it was interrupted or stopped; after an
    answer, append what the user says first.

    Args:
        call: sends a request and gives the reply, such as ``client.messages.create``,
            ``client.chat.completions.create``, ``client.responses.create`` or
            ``client.models.generate_content``, streamed or not. Retries are its own affair.
        session: keeps the requests within the window; its recall calls are answered here.
        request: the keyword arguments of the call. Its list of messages (``messages``,
            ``input`` or ``contents``) is the history: it is appended to, and nothing in it is
            ever changed. Tools that stand in the request are the provider's to run.
        tools: functions, or `Tool`. Their definitions are added to the request. What a tool
            raises is an error the model reads.
        max_iterations: the most model calls that count.
        max_uncounted: the most that do not, so that no model reads on for ever.
        uncounted: a model call that asks for nothing but these tools does not count.

    Returns:
        What was said, why it ended, and the tokens it took.

    Raises:
        ConfigError: two tools have one name, or a tool has no schema or must be awaited.
        FormatError: the format is not recognised, or the history is not a list.
        OverLimitError: what may not be cut is over the limit.
        BudgetExceeded: the session's budget is spent.
        Exception: what ``call`` raises, unless it says that the request was too long. The
            history is legal then, and so it is after ``KeyboardInterrupt``.
    """
    named = by_name(tools)
    for tool in named.values():
        if inspect.iscoroutinefunction(tool.run):
            raise ConfigError(
                "tools",
                f"{tool.name!r} must be awaited",
                "Use arun_turn, or a plain function.",
            )
    limit = Limit(max_iterations, max_uncounted, uncounted)
    return drive(AgentTurn(call, session, request, named, limit).steps(), _do)


async def arun_turn(
    call: Callable[..., Any],
    session: AsyncSession,
    request: Mapping[str, Any],
    *,
    tools: Iterable[Tool | Callable[..., Any]] = (),
    max_iterations: int = 20,
    max_uncounted: int = 100,
    uncounted: Collection[str] = UNCOUNTED_TOOLS,
) -> Outcome:
    """`run_turn` for an event loop: parallel calls run at once, plain functions in threads.

    See `run_turn`. After a cancellation the history is legal, too.
    """
    limit = Limit(max_iterations, max_uncounted, uncounted)
    return await adrive(
        AgentTurn(call, session, request, by_name(tools), limit).steps(), _ado
    )


def _do(todo: Callable[[], Any] | ParallelActions) -> Any:
    """Do one thing, or several in order. What one of several raises is what came of it."""
    if not isinstance(todo, ParallelActions):
        return todo()
    for n, action in enumerate(todo.actions):
        try:
            todo.results[n] = action()
        except Exception as error:  # noqa: BLE001 - an interruption passes
            todo.results[n] = error
    return None


async def _ado(todo: Callable[[], Any] | ParallelActions) -> Any:
    """Do one thing, or several at once: coroutine functions here, plain ones in threads."""
    if not isinstance(todo, ParallelActions):
        result = todo()
        return await result if inspect.isawaitable(result) else result

    async def one(n: int, action: Callable[[], Any]) -> None:
        is_plain = not inspect.iscoroutinefunction(action)
        try:
            todo.results[n] = await (
                asyncio.to_thread(action) if is_plain else action()
            )
        except Exception as error:  # noqa: BLE001
            todo.results[n] = error

    await asyncio.gather(
        *(one(n, action) for n, action in enumerate(todo.actions))
    )
    return None

"""LangChain: the context editing middleware, and `trim_messages`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    ModelRequest,
)
from langchain_core.messages import BaseMessage, SystemMessage, trim_messages
from langchain_messages import as_theirs, as_view
from speaks import Message, Policy, View, serve


class Converted(Policy):
    """Keeps the history in LangChain's messages."""

    def __init__(self, budget_tokens: int, tools: Sequence[Any]) -> None:
        """Begin a run."""
        super().__init__(budget_tokens, tools)
        self.theirs: list[BaseMessage] = []

    def view(self, new: Sequence[Message]) -> View:
        """See `Policy.view`."""
        for message in new:
            self.theirs.append(as_theirs(message, len(self.theirs)))
        with self.timed():
            made = self.made()
        return as_view(self.history, self.theirs, made)

    def made(self) -> Sequence[BaseMessage]:
        """What the library makes of the history."""
        raise NotImplementedError


class Clear(Converted):
    """`ClearToolUsesEdit` as a middleware of an agent, which keeps the system prompt apart."""

    def __init__(self, budget_tokens: int, tools: Sequence[Any]) -> None:
        """Begin a run."""
        super().__init__(budget_tokens, tools)
        self.middleware = ContextEditingMiddleware(
            edits=[ClearToolUsesEdit(trigger=budget_tokens)]
        )

    def made(self) -> Sequence[BaseMessage]:
        """See `Converted.made`."""
        apart = [m for m in self.theirs[:1] if isinstance(m, SystemMessage)]
        request = ModelRequest(
            model=SimpleNamespace(),  # never called
            messages=self.theirs[len(apart) :],
            system_message=apart[0] if apart else None,
            tool_choice=None,
            tools=[],
            response_format=None,
            state={"messages": self.theirs},
            runtime=None,
        )
        sent: list[BaseMessage] = []
        self.middleware.wrap_model_call(
            request, lambda request: sent.extend(request.messages)
        )
        return [*apart, *sent]


class Trim(Converted):
    """`trim_messages` to the budget, beginning with one of these kinds of messages."""

    def __init__(
        self, budget_tokens: int, tools: Sequence[Any], start_on: Any
    ) -> None:
        """Begin a run."""
        super().__init__(budget_tokens, tools)
        self.start_on = start_on

    def made(self) -> Sequence[BaseMessage]:
        """See `Converted.made`."""
        return trim_messages(
            self.theirs,
            max_tokens=self.budget_tokens,
            token_counter="approximate",
            strategy="last",
            start_on=self.start_on,
            include_system=True,
        )


if __name__ == "__main__":
    serve(
        {
            "clear": Clear,
            "trim": partial(Trim, start_on="human"),
            "trim-any": partial(Trim, start_on=("human", "ai")),
        },
        packages=["langchain", "langchain-core"],
    )

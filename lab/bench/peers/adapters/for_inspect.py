"""inspect-ai: the compaction strategies that ask no model, driven by its own handler."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    CompactionEdit,
    CompactionStrategy,
    CompactionTrim,
    Model,
    ModelAPI,
    compaction,
    get_model,
    modelapi,
)
from inspect_ai.tool import ToolCall
from speaks import Message, Policy, View, calls_of, serve, text_of

CHARS_A_TOKEN = 4


@modelapi(name="counts")
class Counts(ModelAPI):
    """Counts by characters, since the vocabulary of the default would have to be fetched."""

    async def count_text_tokens(self, text: str) -> int:
        """See `ModelAPI.count_text_tokens`."""
        return len(text) // CHARS_A_TOKEN

    async def generate(self, *args: Any, **kwargs: Any) -> Any:
        """There is nobody to ask."""
        raise NotImplementedError


class Compaction(Policy):
    """One strategy with the budget as its threshold; the first messages are its prefix."""

    def __init__(
        self,
        budget_tokens: int,
        tools: Sequence[Any],
        strategy: type[CompactionStrategy],
    ) -> None:
        """Begin a run."""
        super().__init__(budget_tokens, tools)
        self.strategy = strategy(threshold=budget_tokens, memory=False)
        self.model: Model = get_model("counts/none", memoize=False)
        self.theirs: list[ChatMessage] = []
        self.names: dict[str, str] = {}
        self.loop = asyncio.new_event_loop()
        self.compact: Any = None

    def view(self, new: Sequence[Message]) -> View:
        """See `Policy.view`."""
        for message in new:
            self.names |= {id_: name for id_, name, _ in calls_of(message)}
            self.theirs.append(self.as_theirs(message))
        if self.compact is None:
            self.compact = compaction(
                self.strategy, list(self.theirs), model=self.model
            )
        with self.timed():
            made, _ = self.loop.run_until_complete(
                self.compact.compact_input(self.theirs)
            )
        return [self.one(message) for message in made]

    def as_theirs(self, message: Message) -> ChatMessage:
        """A Chat message; its place in the history is the id."""
        text, id_ = text_of(message), str(len(self.theirs))
        if message["role"] == "assistant":
            calls = [
                ToolCall(
                    id=call_id,
                    function=name,
                    arguments=args if isinstance(args, dict) else {"_": args},
                )
                for call_id, name, args in calls_of(message)
            ]
            return ChatMessageAssistant(
                content=text, tool_calls=calls or None, id=id_
            )
        if message["role"] == "tool":
            call_id = message["tool_call_id"]
            name = self.names.get(call_id)
            return ChatMessageTool(
                content=text, tool_call_id=call_id, function=name, id=id_
            )
        kind = (
            ChatMessageUser if message["role"] == "user" else ChatMessageSystem
        )
        return kind(content=text, id=id_)

    def one(self, message: ChatMessage) -> Any:
        """A message of a view: by its place, or made from what the library wrote."""
        if message.id is None or not message.id.isdigit():
            return self.renamed(message)
        index = int(message.id)
        same = message.text == self.theirs[index].text
        return (
            index if same else {**self.history[index], "content": message.text}
        )

    def renamed(self, message: ChatMessage) -> Any:
        """A changed message has a new id: a result is known by its call."""
        if isinstance(message, ChatMessageTool):
            places = (
                i
                for i, m in enumerate(self.history)
                if m.get("tool_call_id") == message.tool_call_id
            )
            return {**self.history[next(places)], "content": message.text}
        return {"role": message.role, "content": message.text}


if __name__ == "__main__":
    serve(
        {
            "edit": partial(Compaction, strategy=CompactionEdit),
            "trim": partial(Compaction, strategy=CompactionTrim),
        },
        packages=["inspect-ai"],
    )

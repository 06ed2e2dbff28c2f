"""openai-agents: the trimmer of tool outputs, as a filter of the model's input."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from agents.extensions.tool_output_trimmer import ToolOutputTrimmer
from agents.run_config import CallModelData, ModelInputData
from speaks import Message, Policy, View, calls_of, serve, text_of


class Trimmer(Policy):
    """`ToolOutputTrimmer`, defaults: no budget; trims what is behind two messages of the user."""

    def __init__(self, budget_tokens: int, tools: Sequence[Any]) -> None:
        """Begin a run."""
        super().__init__(budget_tokens, tools)
        self.trimmer = ToolOutputTrimmer()
        self.items: list[Any] = []
        self.places: list[int] = []
        self.results: dict[str, int] = {}

    def view(self, new: Sequence[Message]) -> View:
        """See `Policy.view`."""
        for index, message in enumerate(new, len(self.history) - len(new)):
            made = list(self.as_theirs(message, index))
            self.items += made
            self.places += [index] * len(made)
        sent = ModelInputData(input=self.items, instructions=None)
        unused: Any = None
        with self.timed():
            kept = self.trimmer(
                CallModelData(model_data=sent, agent=unused, context=None)
            ).input
        changed = {
            self.results[after["call_id"]]: after["output"]
            for before, after in zip(self.items, kept, strict=True)
            if before is not after
        }
        return [
            {**self.history[index], "content": changed[index]}
            if index in changed
            else index
            for index in dict.fromkeys(self.places)
        ]

    def as_theirs(self, message: Message, index: int) -> Iterator[Any]:
        """A Chat message as items of the Responses API, which the SDK's runner holds."""
        text = text_of(message)
        if message["role"] == "tool":
            self.results[message["tool_call_id"]] = index
            yield {
                "type": "function_call_output",
                "call_id": message["tool_call_id"],
                "output": text,
            }
            return
        calls = calls_of(message)
        if text or not calls:
            yield {"role": message["role"], "content": text}
        for id_, name, arguments in calls:
            written = (
                arguments
                if isinstance(arguments, str)
                else json.dumps(arguments)
            )
            yield {
                "type": "function_call",
                "call_id": id_,
                "name": name,
                "arguments": written,
            }


if __name__ == "__main__":
    serve({"trimmer": Trimmer}, packages=["openai-agents"])

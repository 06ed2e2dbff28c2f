"""google-adk: the filter of contexts, as a plugin asked before each model call."""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import Sequence
from typing import Any

from google.adk.models.llm_request import LlmRequest
from google.adk.plugins.context_filter_plugin import ContextFilterPlugin
from google.genai import types
from speaks import Message, Policy, View, calls_of, serve, text_of

INVOCATIONS = 2
"""To keep; the plugin has no number of its own. One more is one task and nothing before it."""


class Filter(Policy):
    """`ContextFilterPlugin(num_invocations_to_keep=2)`; the system prompt is kept apart."""

    def __init__(self, budget_tokens: int, tools: Sequence[Any]) -> None:
        """Begin a run."""
        super().__init__(budget_tokens, tools)
        self.plugin = ContextFilterPlugin(num_invocations_to_keep=INVOCATIONS)
        self.loop = asyncio.new_event_loop()
        self.contents: list[types.Content] = []
        self.places: dict[int, int] = {}
        self.system: list[int] = []
        self.names: dict[str, str] = {}

    def view(self, new: Sequence[Message]) -> View:
        """See `Policy.view`."""
        for index, message in enumerate(new, len(self.history) - len(new)):
            if message["role"] in ("system", "developer"):
                self.system.append(index)
                continue
            content = self.as_theirs(message)
            self.contents.append(content)
            self.places[id(content)] = index
        request = LlmRequest(contents=[])
        request.contents = list(
            self.contents
        )  # as they are: a model's field would copy them
        unused: Any = None
        with self.timed():
            hook = self.plugin.before_model_callback(
                callback_context=unused, llm_request=request
            )
            self.loop.run_until_complete(hook)
        return [
            *self.system,
            *(self.places[id(content)] for content in request.contents),
        ]

    def as_theirs(self, message: Message) -> types.Content:
        """A Chat message as a content of Gemini's."""
        text = text_of(message)
        if message["role"] == "tool":
            id_ = message["tool_call_id"]
            answer = types.FunctionResponse(
                id=id_,
                name=self.names.get(id_, "tool"),
                response={"result": text},
            )
            return types.Content(
                role="user", parts=[types.Part(function_response=answer)]
            )
        if message["role"] != "assistant":
            return types.Content(role="user", parts=[types.Part(text=text)])
        calls = calls_of(message)
        self.names |= {id_: name for id_, name, _ in calls}
        asked = (
            types.FunctionCall(
                id=id_,
                name=name,
                args=args if isinstance(args, dict) else {"_": args},
            )
            for id_, name, args in calls
        )
        said = [types.Part(text=text)] if text or not calls else []
        return types.Content(
            role="model",
            parts=[*said, *(types.Part(function_call=call) for call in asked)],
        )


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    serve({"filter": Filter}, packages=["google-adk"])

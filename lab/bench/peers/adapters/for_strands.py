"""strands: the sliding window every agent has, and the context manager with its stash."""

from __future__ import annotations

import asyncio
import logging
import re
import warnings
from collections.abc import Sequence
from typing import Any

from speaks import Message, Policy, View, calls_of, serve, text_of
from strands import Agent
from strands._context_manager.strategies.offload import Offload
from strands.agent.conversation_manager import SlidingWindowConversationManager
from strands.hooks import BeforeModelCallEvent, MessageAddedEvent
from strands.models import Model
from strands.types.exceptions import ContextWindowOverflowException

THRESHOLD_TOKENS, PREVIEW_TOKENS = 1_500, 750
"""Those of the preset "auto"."""
CUT = "[truncated]"
NUMBERED = re.compile(r"^  *(\d+)\| ", re.MULTILINE)


class Silent(Model):
    """A model that has a window, counts as strands counts, and is never called."""

    def __init__(self, window_tokens: int) -> None:
        self.config = {"context_window_limit": window_tokens}

    def get_config(self) -> Any:
        """See `Model.get_config`."""
        return self.config

    def update_config(self, **model_config: Any) -> None:
        """See `Model.update_config`."""
        self.config |= model_config

    def stream(self, *args: Any, **kwargs: Any) -> Any:
        """There is nobody to ask."""
        raise NotImplementedError

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        """There is nobody to ask."""
        raise NotImplementedError


class Agents(Policy):
    """An agent that is told the recorded messages; the system prompt is kept apart."""

    def __init__(self, budget_tokens: int, tools: Sequence[Any]) -> None:
        """Begin a run."""
        super().__init__(budget_tokens, tools)
        self.loop = asyncio.new_event_loop()
        self.system: list[int] = []
        self.places: dict[int, tuple[Any, int]] = {}
        self.blocks_of: dict[int, list[Any]] = {}
        self.results: dict[str, int] = {}
        model = Silent(budget_tokens)
        self.agent = Agent(
            model=model, callback_handler=None, **self.arguments()
        )

    def arguments(self) -> dict[str, Any]:
        """What the agent is made with."""
        raise NotImplementedError

    def view(self, new: Sequence[Message]) -> View:
        """See `Policy.view`."""
        theirs = self.as_theirs(new, len(self.history) - len(new))
        with self.timed():
            for message in theirs:
                self.agent.messages.append(message)
                self.tell(MessageAddedEvent(agent=self.agent, message=message))
            self.tell(
                BeforeModelCallEvent(agent=self.agent, invocation_state={})
            )
            self.before_call()
        shown = (
            item
            for message in self.agent.messages
            for item in self.shown(message)
        )
        return [*self.system, *shown]

    def before_call(self) -> None:
        """What happens when the provider would refuse what is left."""

    def tell(self, event: Any) -> None:
        """Let the agent's hooks run."""
        self.loop.run_until_complete(
            self.agent.hooks.invoke_callbacks_async(event)
        )

    def tokens(self) -> int:
        """As strands counts."""
        counting = self.agent.model.count_tokens(self.agent.messages)
        return self.loop.run_until_complete(counting)

    def as_theirs(self, new: Sequence[Message], start: int) -> list[Any]:
        """Chat messages as theirs: results that stand together are one message."""
        theirs: list[Any] = []
        for index, message in enumerate(new, start):
            if message["role"] in ("system", "developer"):
                self.system.append(index)
                used = (len(text_of(message)) + 3) // 4
                limit = self.agent.model.config["context_window_limit"]
                self.agent.model.update_config(
                    context_window_limit=limit - used
                )
                continue
            role = "assistant" if message["role"] == "assistant" else "user"
            blocks = self.blocks(message, index)
            if (
                message["role"] == "tool"
                and theirs
                and "toolResult" in theirs[-1]["content"][-1]
            ):
                theirs[-1]["content"] += blocks
            else:
                theirs.append({"role": role, "content": blocks})
        return theirs

    def blocks(self, message: Message, index: int) -> list[Any]:
        """The blocks of one message, each known again by what it is or by its id."""
        text = text_of(message)
        if message["role"] == "tool":
            self.results[message["tool_call_id"]] = index
            result = {
                "toolUseId": message["tool_call_id"],
                "status": "success",
            }
            return [{"toolResult": {**result, "content": [{"text": text}]}}]
        blocks: list[Any] = (
            [{"text": text}] if text or not message.get("tool_calls") else []
        )
        for id_, name, arguments in calls_of(message):
            blocks.append(
                {
                    "toolUse": {
                        "toolUseId": id_,
                        "name": name,
                        "input": arguments,
                    }
                }
            )
        self.blocks_of[index] = blocks
        self.places |= {id(block): (block, index) for block in blocks}
        return blocks

    def shown(self, message: Any) -> View:
        """What a message of the agent's stands for, as strands itself writes it for Chat."""
        content = message["content"]
        if message["role"] == "assistant":
            return [self.reply(content)]
        results = [
            self.result(block["toolResult"])
            for block in content
            if "toolResult" in block
        ]
        texts = [block for block in content if "text" in block]
        own = (self.place_of(block) for block in texts)
        said = [
            {"role": "user", "content": block["text"]}
            if index is None
            else index
            for block, index in zip(texts, own, strict=True)
        ]
        return [*results, *said]

    def reply(self, blocks: Sequence[Any]) -> Any:
        """A reply: untouched, or one message with the texts and the calls that it has now."""
        indices = {self.place_of(block) for block in blocks}
        (index,) = indices if len(indices) == 1 else (None,)
        if index is not None and len(blocks) == len(self.blocks_of[index]):
            return index
        texts = [block["text"] for block in blocks if "text" in block]
        asked = {
            block["toolUse"]["toolUseId"]
            for block in blocks
            if "toolUse" in block
        }
        raws = [
            self.history[i]
            for i in sorted(i for i in indices if i is not None)
        ]
        calls = [call for raw in raws for call in raw.get("tool_calls") or ()]
        kept = [call for call in calls if call["id"] in asked]
        made: Message = {"role": "assistant", "content": "\n".join(texts)}
        return {**made, "tool_calls": kept} if kept else made

    def place_of(self, block: Any) -> int | None:
        """The message of the history that a block is of, or None if the library made it."""
        known, index = self.places.get(id(block), (None, None))
        return index if known is block else None

    def result(self, result: Any) -> Any:
        """A result: untouched, or with the text that is left."""
        index = self.results[result["toolUseId"]]
        text = "\n".join(
            item["text"] for item in result["content"] if "text" in item
        )
        raw = self.history[index]
        return index if text == text_of(raw) else {**raw, "content": text}


class Sliding(Agents):
    """The window of 40 messages before every call, and its answer to an overflow."""

    def arguments(self) -> dict[str, Any]:
        """See `Agents.arguments`."""
        return {
            "conversation_manager": SlidingWindowConversationManager(
                per_turn=True
            )
        }

    def before_call(self) -> None:
        """The provider refuses until what is left fits."""
        overflow = ContextWindowOverflowException("prompt is too long")
        while self.tokens() > self.agent.model.config["context_window_limit"]:
            self.agent.conversation_manager.reduce_context(
                self.agent, e=overflow
            )


class Context(Agents):
    """The preset "auto" without the strategy that asks a model for a summary."""

    def arguments(self) -> dict[str, Any]:
        """See `Agents.arguments`."""
        cut = Offload.truncate(
            "tool_results", {"preview_tokens": PREVIEW_TOKENS}
        )
        return {
            "context_manager": {
                "strategies": [cut.when(threshold=THRESHOLD_TOKENS)]
            }
        }

    def refs(self) -> Sequence[str]:
        """The refs of its stash that stand beside what it cut."""
        return [f"{id_}_0" for id_ in self.results]

    def page(self, ref: str) -> str:
        """What its retrieval tool answers without a pattern: up to 10,000 tokens."""
        return self.retrieved(reference=ref)

    def whole(self, ref: str) -> str:
        """The same, by ranges of lines where that is cut."""
        page = self.page(ref)
        if not page.endswith(CUT):
            return page
        lines = (
            text_of(self.history[self.results[ref.removesuffix("_0")]]).count(
                "\n"
            )
            + 1
        )
        pages, at = [page], 1
        while at <= lines:
            pages.append(
                self.retrieved(
                    reference=ref, line_range={"start": at, "end": lines}
                )
            )
            shown = NUMBERED.findall(pages[-1])
            at = max(int(shown[-1]) if shown else 0, at) + 1
        return "\n".join(pages)

    def retrieved(self, **arguments: Any) -> str:
        """Call the tool itself."""
        tool = self.agent.tool_registry.registry["retrieve_context"]
        use = {
            "toolUseId": "call_open",
            "name": "retrieve_context",
            "input": arguments,
        }
        return self.loop.run_until_complete(_last(tool.stream(use, {})))


async def _last(events: Any) -> str:
    found = [event async for event in events][-1]
    result = getattr(found, "tool_result", found)
    return "\n".join(
        item["text"] for item in result["content"] if "text" in item
    )


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    serve(
        {"sliding": Sliding, "context": Context}, packages=["strands-agents"]
    )

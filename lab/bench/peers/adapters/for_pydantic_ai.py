"""pydantic-ai with pydantic-ai-harness: clearing, a window, and spilling what is large."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RunUsage
from pydantic_ai_harness.compaction import (
    ClearToolResults,
    SlidingWindowCompaction,
)
from pydantic_ai_harness.tool_output_limits import (
    LocalFileStore,
    ToolOutputLimits,
)
from speaks import Message, Policy, View, calls_of, serve, text_of

PAGE_LINES = 200
"""The default of `read_tool_result`."""
CAPPED = "output capped"
HANDLE = re.compile(r"stored to handle '([^']+)'")


class Compacted(Policy):
    """A run whose messages persist: what a capability makes of them is what it sees next."""

    def __init__(self, budget_tokens: int, tools: Sequence[Any]) -> None:
        """Begin a run."""
        super().__init__(budget_tokens, tools)
        self.loop = asyncio.new_event_loop()
        self.model = TestModel()
        self.messages: list[ModelMessage] = []
        self.places: dict[int, tuple[Any, int]] = {}
        self.results: dict[str, int] = {}
        self.names: dict[str, str] = {}
        self.capability = self.made()

    def made(self) -> Any:
        """The capability that is asked before each request."""
        raise NotImplementedError

    def view(self, new: Sequence[Message]) -> View:
        """See `Policy.view`."""
        for index, message in enumerate(new, len(self.history) - len(new)):
            self.take(message, index)
        context = RunContext(
            deps=None,
            model=self.model,
            usage=RunUsage(),
            messages=self.messages,
            run_id="run",
        )
        request = ModelRequestContext(
            model=self.model,
            messages=list(self.messages),
            model_settings=None,
            model_request_parameters=ModelRequestParameters(),
        )
        with self.timed():
            hook = self.capability.before_model_request(context, request)
            sent = self.loop.run_until_complete(hook).messages
        return [item for message in sent for item in self.shown(message)]

    def take(self, message: Message, index: int) -> None:
        """Add a Chat message; what stands between two replies is one request."""
        self.names |= {id_: name for id_, name, _ in calls_of(message)}
        parts = self.parts(message, index)
        for part in parts:
            self.places[id(part)] = (part, index)
        if message["role"] == "assistant":
            self.messages.append(ModelResponse(parts=parts))
        elif self.messages and isinstance(self.messages[-1], ModelRequest):
            last = self.messages[-1]
            self.messages[-1] = ModelRequest(parts=[*last.parts, *parts])
        else:
            self.messages.append(ModelRequest(parts=parts))

    def parts(self, message: Message, index: int) -> list[Any]:
        """The parts of one message."""
        text = text_of(message)
        if message["role"] == "assistant":
            calls = [
                ToolCallPart(name, args, id_)
                for id_, name, args in calls_of(message)
            ]
            return [*([TextPart(text)] if text or not calls else []), *calls]
        if message["role"] == "tool":
            id_ = message["tool_call_id"]
            self.results[id_] = index
            return [
                ToolReturnPart(
                    self.names.get(id_, "tool"), self.kept(id_, text), id_
                )
            ]
        kind = (
            UserPromptPart if message["role"] == "user" else SystemPromptPart
        )
        return [kind(text)]

    def kept(self, call_id: str, text: str) -> str:
        """What of a tool's result goes into the history."""
        return text

    def shown(self, message: ModelMessage) -> View:
        """What a message of theirs stands for."""
        found: dict[Any, None] = {}
        made: View = []
        for part in message.parts:
            if isinstance(part, ToolReturnPart):
                made.append(self.result(part))
            elif id(part) in self.places and self.places[id(part)][0] is part:
                index = self.places[id(part)][1]
                if index not in found:
                    found[index] = None
                    made.append(index)
            else:
                role = (
                    "assistant"
                    if isinstance(message, ModelResponse)
                    else "user"
                )
                made.append({"role": role, "content": str(part.content)})
        return made

    def result(self, part: ToolReturnPart) -> Any:
        """A result: untouched, or with the text that is left."""
        index = self.results[part.tool_call_id]
        raw, text = self.history[index], part.model_response_str()
        return index if text == text_of(raw) else {**raw, "content": text}


class Clear(Compacted):
    """`ClearToolResults` at the budget."""

    def made(self) -> Any:
        """See `Compacted.made`."""
        return ClearToolResults(max_tokens=self.budget_tokens)


class Window(Compacted):
    """`SlidingWindowCompaction` at the budget, down to half of it."""

    def made(self) -> Any:
        """See `Compacted.made`."""
        half = self.budget_tokens // 2
        return SlidingWindowCompaction(
            max_tokens=self.budget_tokens, keep_tokens=half
        )


class SpillClear(Clear):
    """Large results go to a file when they arrive; the rest as `Clear`."""

    def __init__(self, budget_tokens: int, tools: Sequence[Any]) -> None:
        """Begin a run."""
        super().__init__(budget_tokens, tools)
        self.folder = tempfile.TemporaryDirectory()
        self.limits: Any = ToolOutputLimits(
            store=LocalFileStore(Path(self.folder.name) / "spilled")
        )
        self.handles: dict[str, int] = {}

    def kept(self, call_id: str, text: str) -> str:
        """See `Compacted.kept`."""
        name = self.names.get(call_id, "tool")
        with self.timed():
            hook = self.limits.after_tool_execute(
                self.context(),
                call=ToolCallPart(name, {}, call_id),
                tool_def=ToolDefinition(name=name),
                args={},
                result=text,
            )
            kept = self.loop.run_until_complete(hook)
        shown: str = getattr(kept, "return_value", kept)
        named = HANDLE.search(shown) if shown != text else None
        if named is not None:
            self.handles[named[1]] = len(text.splitlines())
        return shown

    def context(self) -> Any:
        """The context of a tool call."""
        return RunContext(
            deps=None, model=self.model, usage=RunUsage(), run_id="run"
        )

    def refs(self) -> Sequence[str]:
        """The handles its notices name."""
        return list(self.handles)

    def page(self, ref: str) -> str:
        """What `read_tool_result` returns from the beginning, with its own default of lines."""
        return self.read(ref)

    def whole(self, ref: str) -> str:
        """`read_tool_result`, page after page, fewer lines of it where its own cap cuts one."""
        pages, at, limit = list[str](), 0, PAGE_LINES
        while at < self.handles[ref]:
            page = self.read(ref, offset=at, limit=limit)
            if limit > 1 and CAPPED in page.partition("\n")[0]:
                limit //= 2
                continue
            pages.append(page)
            at, limit = at + limit, PAGE_LINES
        return "\n".join(pages)

    def read(self, ref: str, **more: Any) -> str:
        """Call the tool itself."""
        tool = self.limits.get_toolset().tools["read_tool_result"]
        return self.loop.run_until_complete(
            tool.function(self.context(), ref, **more)
        )


if __name__ == "__main__":
    serve(
        {"clear": Clear, "window": Window, "spill-clear": SpillClear},
        packages=["pydantic-ai-slim", "pydantic-ai-harness"],
    )

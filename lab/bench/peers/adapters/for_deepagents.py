"""deepagents: results that are too large go to a file when they arrive."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from functools import partial
from typing import Any

from deepagents.backends import FilesystemBackend
from deepagents.middleware.filesystem import FilesystemMiddleware
from langchain.agents.middleware import ToolCallRequest
from langchain.tools import ToolRuntime
from langchain_core.messages import BaseMessage
from langchain_messages import as_theirs, as_view
from speaks import Message, Policy, View, calls_of, serve

DEFAULT_TOKENS, SMALL_TOKENS = 20_000, 1_500
FOLDER = "/large_tool_results/"
LAST_LINE = re.compile(r"^@@ lines \d+-(\d+)", re.MULTILINE)


class Evict(Policy):
    """The filesystem middleware, wrapped around every tool call of the recording."""

    def __init__(
        self, budget_tokens: int, tools: Sequence[Any], limit_tokens: int
    ) -> None:
        """Begin a run."""
        super().__init__(budget_tokens, tools)
        self.folder = tempfile.TemporaryDirectory()
        backend = FilesystemBackend(
            root_dir=self.folder.name, virtual_mode=True
        )
        self.middleware = FilesystemMiddleware(
            backend=backend, tool_token_limit_before_evict=limit_tokens
        )
        self.read_file = next(
            tool for tool in self.middleware.tools if tool.name == "read_file"
        )
        self.theirs: list[BaseMessage] = []
        self.kept: list[BaseMessage] = []
        self.names: dict[str, str] = {}
        self.lines: dict[str, int] = {}

    def view(self, new: Sequence[Message]) -> View:
        """See `Policy.view`."""
        for message in new:
            theirs = as_theirs(message, len(self.theirs))
            self.theirs.append(theirs)
            self.names |= {id_: name for id_, name, _ in calls_of(message)}
            self.kept.append(
                self.after_call(theirs)
                if message["role"] == "tool"
                else theirs
            )
        return as_view(self.history, self.theirs, self.kept)

    def after_call(self, result: Any) -> BaseMessage:
        """What the middleware lets into the history."""
        call = {"name": self.names.get(result.tool_call_id, ""), "args": {}}
        request = ToolCallRequest(
            tool_call={**call, "id": result.tool_call_id, "type": "tool_call"},
            tool=None,
            state={},
            runtime=None,
        )
        with self.timed():
            kept = self.middleware.wrap_tool_call(
                request, lambda request: result
            )
        if kept.content != result.content:
            path = next(
                word
                for word in kept.content.split()
                if word.startswith(FOLDER)
            )
            self.lines[path] = result.content.count("\n") + 1
        return kept

    def refs(self) -> Sequence[str]:
        """The paths its notices name."""
        return list(self.lines)

    def page(self, ref: str) -> str:
        """What `read_file` returns from the beginning, with its own default of lines."""
        return self.read(ref)

    def whole(self, ref: str) -> str:
        """`read_file` on from the last line that each page shows, which its own cap decides."""
        pages, at = list[str](), 0
        while at < self.lines[ref]:
            pages.append(self.read(ref, offset=at))
            shown = LAST_LINE.search(pages[-1])
            at = max(int(shown[1]) if shown else 0, at + 1)
        return "\n".join(pages)

    def read(self, path: str, **more: Any) -> str:
        """Call the tool itself."""
        runtime = ToolRuntime(
            state={},
            context=None,
            config={},
            stream_writer=lambda _: None,
            tool_call_id="call_open",
            store=None,
        )
        answer = self.read_file.func(file_path=path, runtime=runtime, **more)
        return answer if isinstance(answer, str) else str(answer.content)


if __name__ == "__main__":
    serve(
        {
            "evict": partial(Evict, limit_tokens=DEFAULT_TOKENS),
            "evict-small": partial(Evict, limit_tokens=SMALL_TOKENS),
        },
        packages=["deepagents"],
    )

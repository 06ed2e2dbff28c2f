"""headroom: `compress()` and `densify()`; its retrieve tool opens what was taken out."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Sequence
from typing import Any

from speaks import Message, Policy, View, placed, serve

os.environ["HEADROOM_WORKSPACE_DIR"] = os.environ["HEADROOM_CONFIG_DIR"] = (
    tempfile.mkdtemp()
)

from headroom import compress
from headroom.cache.compression_store import get_compression_store
from headroom.ccr import CCRResponseHandler, CCRToolCall, CCRToolInjector
from headroom.compress import densify

MODEL = "gpt-4o"


class Compress(Policy):
    """The whole history through `compress`, every call, as the library is used."""

    work = staticmethod(compress)

    def __init__(self, budget_tokens: int, tools: Sequence[Any]) -> None:
        """Begin a run."""
        super().__init__(budget_tokens, tools)
        self.opener = CCRResponseHandler()
        self.hashes: list[str] = []

    def view(self, new: Sequence[Message]) -> View:
        """See `Policy.view`."""
        with self.timed():
            made = self.work(
                self.history, model=MODEL, model_limit=self.budget_tokens
            ).messages
        injector = CCRToolInjector(provider="openai")
        injector.scan_for_markers(made)
        self.hashes = injector.verify_ownership(get_compression_store())
        return placed(self.history, made)

    def refs(self) -> Sequence[str]:
        """The hashes in its markers, as its own scanner finds them."""
        return self.hashes

    def page(self, ref: str) -> str:
        """What its retrieve tool answers: always the whole original."""
        call = CCRToolCall(tool_call_id="call_open", hash_key=ref)
        return self.opener._execute_retrieval(call).content


class Densify(Compress):
    """The same through `densify`, which takes nothing out."""

    work = staticmethod(densify)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    serve({"compress": Compress, "densify": Densify}, packages=["headroom-ai"])

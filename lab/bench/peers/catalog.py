"""The peers: what is installed, which adapter speaks for it, and its policies.

Only what needs no model call is here. A library's own defaults are kept but for the budget: a
policy that takes a number of tokens is given the budget of the messages; ``note`` tells where
another number had to be chosen.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

HERE = Path(__file__).parent


class PolicyNote(Struct, frozen=True):
    """One policy of a peer.

    Attributes:
        name: as the adapter knows it.
        note: what it does, and what was chosen for it.
    """

    name: str
    note: str


class PeerKind(Struct, frozen=True):
    """One library.

    Attributes:
        name: of its adapter and of its requirements.
        policies: what is scored.
    """

    name: str
    policies: tuple[PolicyNote, ...]

    @property
    def adapter(self) -> Path:
        """The script that speaks for it."""
        return HERE / "adapters" / f"for_{self.name}.py"

    @property
    def requirements(self) -> Path:
        """What its environment holds, every version pinned."""
        return HERE / "requirements" / f"{self.name}.txt"


def _peer(name: str, **policies: str) -> PeerKind:
    notes = (
        PolicyNote(key.replace("_", "-"), note)
        for key, note in policies.items()
    )
    return PeerKind(name, tuple(notes))


PEERS = (
    _peer(
        "headroom",
        compress="`compress()`, defaults; the retrieve tool opens what it took out",
        densify="`densify()`, the lossless mode for agents",
    ),
    _peer(
        "langchain",
        clear="`ContextEditingMiddleware`: `ClearToolUsesEdit(trigger=budget)`",
        trim='`trim_messages(strategy="last", start_on="human")`, as its docstring advises',
        trim_any='the same, `start_on=("human", "ai")`',
    ),
    _peer(
        "deepagents",
        evict="`FilesystemMiddleware`, defaults: results over 20,000 tokens go to a file",
        evict_small="the same from 1,500 tokens on; `read_file` reads them",
    ),
    _peer(
        "pydantic_ai",
        clear="harness `ClearToolResults(max_tokens=budget)`",
        window="harness `SlidingWindowCompaction(max_tokens=budget, keep_tokens=budget / 2)`",
        spill_clear="harness `ToolOutputLimits`, defaults (from 10,000 characters), and clear",
    ),
    _peer(
        "strands",
        sliding="`SlidingWindowConversationManager`, defaults, every turn; told of overflows",
        context='`ContextManager` "auto" without its summary: truncates from 1,500 tokens',
    ),
    _peer(
        "inspect",
        edit="`CompactionEdit(threshold=budget)`",
        trim="`CompactionTrim(threshold=budget)`",
    ),
    _peer(
        "litellm",
        compress="`compress(compression_trigger=budget)`; the retrieve tool opens the stubs",
        trim="`trim_messages(max_tokens=budget)`",
    ),
    _peer(
        "openai_agents",
        trimmer="`ToolOutputTrimmer`, defaults: over 500 characters, behind two users' turns",
    ),
    _peer("adk", filter="`ContextFilterPlugin(num_invocations_to_keep=2)`"),
)
